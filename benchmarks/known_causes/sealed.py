"""The sealed bench: causes, programs and doses drawn at random; no method was chosen on it.

    python benchmarks/known_causes/sealed.py measure FOLDER [--draw sealed-2] [--seconds 600]
    python benchmarks/known_causes/sealed.py pack FOLDER [--draw sealed-2]
    python benchmarks/known_causes/sealed.py score [--draw sealed-2] [--answers FOLDER]

A draw that decided a change of the method is none to score it on: the next draw is another seed.

`measure`: one table draws a cause of the catalogue, one of 37 programs that can suffer from it (21
of them foreign: compressors, interpreters, compilers, tools) and an amount between the catalogue's
weakest and strongest, evenly on a logarithmic scale. 32 runs, as in `record.py`: in one of four at
random the cause, in the others its sham. Each program also gets a campaign of random doses, as on
page 57. It measures for so long, stops between two tables, and the same call goes on. Leave the
machine alone: 28 minutes in all, on two CPUs.

`pack` writes extras/known_causes/bench/DRAW; `score` scores `explain` and the plain rivals of
`bench.py` on it, the doses, and both. Doses: the program's own measured fingerprints explain how
the slowest quarter of the runs differs (least squares, none negative), and the factor that carries
most is the answer, unless "none of these" carries more. Both: the doses' answer, where they carry
at least half of what was lost; else that of `explain`. These rules were written before any table
was scored.
"""

import argparse
import sys
import time
import warnings
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np
import pandas as pd
from bench import METHODS, card_table
from noisebook_known_causes.campaigns import _place, cause_campaign
from noisebook_known_causes.catalogue import Cause, Dose, Victim, causes
from noisebook_known_causes.tables import (
    SEALED,
    BenchTable,
    bench_folder,
    bench_tables,
    is_giveaway,
)
from noisebook_known_causes.victims import victim_files
from record import described, measure_missing, write_gzipped, write_table
from scipy.optimize import nnls
from score import answer, answers_of, score

from nbhelpers.measurement import (
    Campaign,
    Cell,
    consequences,
    finished,
    metrics,
    rates,
    recorded_runs,
)
from nbhelpers.progress import each
from nbhelpers.reading import read_csv
from nbhelpers.studies.doses import disturbed, possible_doses
from tests.cells import run_cells
from tests.shown import Shown

SEEDS = dict(zip(SEALED, (31, 32)))  # of all that is drawn
TABLES, RUNS, ROUNDS = 240, 32, 3
SLOW = 0.75  # quantile of the run time from which a run is slow
CLASSES = {"weak": 1.1, "medium": 1.35, "strong": np.inf}  # by the measured effect, up to so much
AMOUNTS = {  # of the campaign of doses, as on page 57
    "cpu-contention": 0.05,
    "timer-interrupts": 4000,
    "reschedule-interrupts": 10_000,
    "tlb-shootdowns": 5000,
    "disk-contention": 2e6,
    "network-traffic": 2e7,
    "page-faults": 65536,
}
COUNT = "with recursive c(x) as (select 1 union all select x + 1 from c limit {size})"
INSERTS = "create table t(a); " + "insert into t values (1); " * 40
JSON = "import json; a = [[*range(50)]] * {size}; print(len(json.loads(json.dumps(a))))"
LOOP = "let s = 0; for (let i = 0; i < {size}; i++) s = (s * 31 + i) % 1000003; console.log(s)"
# programs that nobody here wrote: a line for sh, its size, the file that it reads
FOREIGN = {
    "xz": ("exec xz -{size} -c '{file}' > /dev/null", 1, "text"),
    "zstd": ("exec zstd -qf -{size} '{file}' -o /dev/null", 9, "text"),
    "bzip2": ("exec bzip2 -{size} -c '{file}' > /dev/null", 9, "text"),
    "pigz": ("exec pigz -{size} -p 2 -c '{file}' > /dev/null", 6, "map"),
    "sha512": ("exec sha512sum '{file}' '{file}' '{file}'", 1, "map"),
    "words": ("exec mawk '{{ for (; i < NF; i++) n[$i]++ }}' '{file}'", 1, "text"),
    "sort": ("tr ' ' '\\n' < '{file}' | sort | uniq -c | wc -l", 1, "text"),
    "clang": ("exec clang++ -fsyntax-only '{file}'", 1, "source"),
    "sqlite-disk": (f"rm -f '{{file}}.db'; exec sqlite3 '{{file}}.db' '{INSERTS}'", 1, "disk"),
    "sqlite": (f"exec sqlite3 :memory: '{COUNT} select sum(x) from c'", 300_000, ""),
    "awk": ("exec mawk 'BEGIN {{ for (; i < {size}; i++) s += i % 7; print s }}'", 1_200_000, ""),
    "perl": ("exec perl -e '$s += $_ % 7 for 1 .. {size}; print $s'", 2_000_000, ""),
    "json": (f"exec '{{python}}' -c '{JSON}'", 3000, ""),
    "node": (f"exec node -e '{LOOP}'", 8_000_000, ""),
    "java": ("exec java -Xshare:auto -version", 1, ""),
    "jq": ("exec jq -n '[range({size})] | map(. * 2 % 7) | add'", 80_000, ""),
    "bc": ("echo 'scale={size}; 4*a(1)' | bc -l", 900, ""),
    "factor": ("exec factor {size}", 10000000000037 * 10000000000051, ""),
    "openssl": (
        "exec openssl kdf -keylen 32 -kdfopt digest:SHA256 -kdfopt pass:x -kdfopt salt:12345678"
        " -kdfopt iter:{size} PBKDF2",
        200_000,
        "",
    ),
    "tar": ("tar -cf - /usr/share/perl | wc -c", 1, ""),
    "du": ("exec du -s /usr/include /usr/share/doc", 1, ""),
}
OWN = "compute cache last_cache stream allocate huge map disk lookup objects lines gzip cc1plus"
EVERY = [*OWN.split(), "nbody", "minife", "arrays", *FOREIGN]
TWO = ["nbody", "pigz"]
MEMORY = "last_cache stream huge arrays minife lookup objects json node java jq"
ANYWHERE = """cpu-hog nice-competitor fifo-bursts cpu-quota timer-storm profiler interrupt-storm
tlb-shootdowns network-storm tmpfs-storm forced-migrations syscall-tracer"""
# cause -> programs that can suffer from it; those of every program are drawn three times as often
OF_ALL = dict.fromkeys(ANYWHERE.split(), EVERY)
OF_SOME = {
    "straggling-thread": TWO,
    "narrow-affinity": TWO,
    "cache-eviction": MEMORY.split(),
    "memory-bandwidth": MEMORY.split(),
    "dropped-cache": ["map", "sha512", "words", "xz", "zstd", "bzip2"],
    "disk-contention": ["disk", "sqlite-disk"],
    "small-pages": ["huge"],
    "returned-memory": ["allocate", "json", "jq"],
    "slow-path": ["compute"],
    "hash-collisions": ["lookup"],
    "frequent-collection": ["objects"],
    "debug-logging": ["lines"],
    "harder-input": ["gzip"],
}


# ---- what is drawn -------------------------------------------------------------------------------


def victims() -> dict[str, Victim]:
    """The programs by id: those of the catalogue, and the foreign ones."""
    doses = [dose for one in causes().values() for dose in one.doses.values()]
    known = {one.victim.id: one.victim for one in doses}
    for name, (line, size, file) in FOREIGN.items():
        words, threads = ("sh", "-c", line), 2 if name in TWO else 0
        known[name] = Victim(name, line, words, size, file=file, start="exec", threads=threads)
    return {name: known[name] for name in EVERY}


def drawn(half: str) -> pd.DataFrame:
    """The tables of a draw in the order of measuring; columns table, cause, victim, amount."""
    random, rows = np.random.default_rng(SEEDS[half]), []
    suffers = OF_ALL | OF_SOME
    names = [*list(OF_ALL) * 3, *OF_SOME]
    for number in range(TABLES):
        cause = names[random.integers(len(names))]
        victim = suffers[cause][random.integers(len(suffers[cause]))]
        known = [dose.amounts[0] for dose in causes()[cause].doses.values()]
        amount = np.exp(random.uniform(*np.log([min(known), max(known)])))
        rows.append((f"t{number:03d}", cause, victim, float(f"{amount:.3g}")))
    return pd.DataFrame(rows, columns=["table", "cause", "victim", "amount"])


def as_cause(name: str, victim: Victim, amount: float) -> Cause:
    """A cause of the catalogue in another program, with one dose."""
    return replace(causes()[name], doses={"drawn": dose_of(victim, amount)})


def dose_of(victim: Victim, *amounts: float) -> Dose:
    return Dose("drawn", amounts, victim, victim.size, victim.extra)


# ---- measuring -----------------------------------------------------------------------------------


def measure(half: str, folder: Path, seconds: float) -> None:
    """Measure what is missing, for so long: tables and campaigns of doses, in random order."""
    known, campaigns, seed = victims(), {}, SEEDS[half]
    for row in drawn(half).itertuples(index=False):
        cause = as_cause(row.cause, known[row.victim], row.amount)
        how = {"seed": 1000 * seed + int(row.table[1:]), "dose": "drawn"}
        campaigns[folder / row.table] = partial(
            cause_campaign, folder / row.table, cause, RUNS, **how
        )
    for number, (name, victim) in enumerate(known.items()):
        place = folder / "doses" / name
        campaigns[place] = partial(dosed_campaign, place, victim, 1000 * seed + 500 + number)
    places = [*campaigns]
    order = np.random.default_rng([seed, 1]).permutation(len(places))
    in_order = {places[at]: campaigns[places[at]] for at in order}
    measure_missing(in_order, seconds, lambda runs: f"{1e3 * runs['seconds'].median():.0f} ms each")


def dosed_campaign(folder: Path, victim: Victim, seed: int) -> Campaign:
    """A campaign in which runs of a program get doses of several factors, by page 57's design."""
    work = replace(_place(dose_of(victim)).workload, timeout_s=10.0)  # noise is made for as long
    possible = possible_doses(work, AMOUNTS)
    levels = run_cells("57-random-doses", "design", dosed=possible, study=Shown())["design"]
    levels.loc["undisturbed"] = 0
    folder.mkdir(parents=True, exist_ok=True)
    levels.to_csv(folder / "design.csv", index_label="cell")
    cells = []
    for name, row in levels.iterrows():
        program, doses = disturbed(work, row.to_dict(), AMOUNTS)
        cells.append(Cell(name, program, attachments=doses))
    attached = (*victim_files(victim), *metrics("all"))
    return Campaign(folder, cells, ROUNDS, seed, attachments=attached)


# ---- packing -------------------------------------------------------------------------------------


def pack(half: str, folder: Path) -> None:
    """Write what was measured as a part of the bench."""
    ready = drawn(half)[lambda rows: [(folder / one / "done").exists() for one in rows["table"]]]
    numbers = np.random.default_rng([SEEDS[half], 2]).permutation(TABLES * 3).reshape(-1, 3)
    place, rows = bench_folder(half), []
    place.mkdir(parents=True, exist_ok=True)
    for cause, some in ready.groupby("cause", sort=False):
        runs = {one: recorded_runs(folder / one) for one in some["table"]}
        write_table(place, cause, runs)
        for row in some.itertuples(index=False):
            ids = [f"S{number:03d}" for number in numbers[int(row.table[1:])]]
            found = described(finished(runs[row.table]), half, ids)
            dose = next(name for name, most in CLASSES.items() if found["effect"] < most)
            rows.append({**row._asdict(), "dose": dose, **found})
    pd.DataFrame(rows).sort_values("table").to_csv(place / "tables.csv", index=False)
    for done in sorted(folder.glob("doses/*/done")):
        write_doses(done.parent, place / "doses" / f"{done.parent.name}.csv.gz")
    size = sum(path.stat().st_size for path in place.rglob("*.gz"))
    print(f"{len(rows)} tables, {size / 2**20:.2f} MiB")


def write_doses(folder: Path, path: Path) -> None:
    """The runs of a program with doses, and which run got which."""
    levels = read_csv(folder / "design.csv").rename(columns=lambda name: f"dose {name}")
    runs = finished(recorded_runs(folder)).merge(levels, left_on="cell", right_on="dose cell")
    kept = [name for name in runs if runs[name].astype(str).nunique() > 1]
    write_gzipped(path, runs[kept].drop(columns=["dose cell", "cell"]))


# ---- scoring -------------------------------------------------------------------------------------


@cache
def fingerprints(half: str, victim: str) -> pd.DataFrame:
    """What each factor does to a program's counters, and what it costs, as page 57 measures it.

    Returns
    -------
    DataFrame, a row a factor that costs time; columns ms, and the counters per second that some
    factor moves by five standard errors, all over their spread in the row "spread".
    """
    path = bench_folder(half) / "doses" / f"{victim}.csv.gz"
    if not path.exists():
        return pd.DataFrame()
    runs = read_csv(path)
    doses = runs.filter(regex="^dose ").rename(columns=lambda name: name.removeprefix("dose "))
    turns = pd.get_dummies(runs["round"])
    plan = np.hstack([doses, turns]).astype(float)
    table = counters(runs.drop(columns=[f"dose {name}" for name in doses]))
    inverse, count = np.linalg.pinv(plan), doses.shape[1]
    fitted = inverse @ table.to_numpy(float)
    left = len(table) - plan.shape[1]
    spread = np.sqrt(((table - plan @ fitted) ** 2).sum() / left)
    errors = np.outer(np.sqrt(np.diag(inverse @ inverse.T)[:count]), spread)
    moved = pd.DataFrame(fitted[:count], doses.columns, table.columns)
    strength = (moved / errors).drop("sham", errors="ignore").replace([np.inf, -np.inf], 0)
    marks = [name for name in table if name == "ms" or strength[name].abs().max() > 5]
    costly = strength.index[strength["ms"] > 2]
    found = moved.loc[costly, marks] / spread[marks]
    found.loc["spread"] = spread[marks]
    return found


def counters(runs: pd.DataFrame) -> pd.DataFrame:
    """The run time in ms, and the counters per second that an attribution may see."""
    table = rates(runs).filter(regex="_per_s$").dropna(axis=1)
    hidden = {f"{name}_per_s" for name in consequences()}
    table = table[[name for name in table if name not in hidden and not is_giveaway(name)]].copy()
    table["ms"] = 1e3 * runs["seconds"]
    return table.loc[:, table.std() > 0]


def by_doses(one: BenchTable) -> tuple[str, float, str]:
    """Factor that carries most of what the slowest quarter lost, its share of it, and the counter
    that it moves most; no factor: "none of these" carries more.
    """
    found, table = fingerprints(one.half, one.victim), counters(one.blind)
    use = [name for name in found if name in table]
    if len(found) < 2 or "ms" not in use:
        return "", 0.0, ""
    spread, parts = found.loc["spread", use], found.drop("spread")[use]
    slow = table["ms"] >= table["ms"].quantile(SLOW)
    seen = (table.loc[slow, use].mean() - table.loc[~slow, use].mean()) / spread
    parts.loc["none"] = [1.0 if name == "ms" else 0.0 for name in use]
    carried = pd.Series(nnls(parts.T.to_numpy(), seen.to_numpy())[0], parts.index) * parts["ms"]
    first = carried.idxmax()
    if first == "none" or carried[first] <= 0:
        return "", 0.0, ""
    counter = parts.loc[first].drop("ms").abs().idxmax() if len(use) > 1 else ""
    return str(first), carried[first] / carried.sum(), str(counter)


def doses_and_both(half: str, observed: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Answers by doses, and by doses where they carry half, else by observation."""
    known, doses, both = observed.set_index("table"), [], []
    for one in each(list(bench_tables(half)), "reading fingerprints", "tables"):
        factor, share, counter = by_doses(one)
        mine = answer(one.id, [counter] if factor else []) | {"factor": factor}
        doses.append(mine)
        both.append(mine if share >= 0.5 else {"table": one.id, **known.loc[one.id]})
    return pd.DataFrame(doses), pd.DataFrame(both)


def scored(half: str, place: Path | None) -> None:
    """Score all methods, and print their table."""
    answers = {}
    for name, method in METHODS.items():
        began = time.monotonic()
        answers[name] = answers_of(method, half)
        print(f"{name}: {time.monotonic() - began:.0f} s", file=sys.stderr)
    answers["doses"], answers["both"] = doses_and_both(half, answers["explain"])
    for name, rows in answers.items() if place else ():
        place.mkdir(parents=True, exist_ok=True)
        rows.to_csv(place / f"{name}-{half}.csv", index=False)
    scores = [score(rows, half).assign(method=name) for name, rows in answers.items()]
    print(card_table(pd.concat(scores)))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("task", choices=("measure", "pack", "score"))
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--draw", choices=SEALED, default=SEALED[-1])
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--answers", type=Path, help="where the answers are written")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.task == "score":
        scored(options.draw, options.answers)
    elif not options.folder:
        parser.error("a folder for the campaigns is needed")
    elif options.task == "pack":
        pack(options.draw, options.folder)
    else:
        measure(options.draw, options.folder, options.seconds)


if __name__ == "__main__":
    main()
