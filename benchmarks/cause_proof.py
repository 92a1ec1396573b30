"""Does the autopilot find the factor of a planted cause, and is it proven, live? And what do doses
cost?

    python benchmarks/cause_proof.py live FOLDER [--seconds 1500] [--budget 55] [--proof 14]
    python benchmarks/cause_proof.py sensitivity [PROGRAM ...]

`live`: ten programs, five of them foreign, are drawn of those of the sealed bench that run here.
Each has two causes and a control: 30 cases, in random order. A cause is drawn as in `sealed.py`,
its amount from the upper half of the catalogue's range. Half of the runs, at random, have it, the
others its sham; in a control all have the sham. The autopilot gets the program and nothing else,
and what it suspects is injected (`prove_cause`). A case is proven rightly if a factor of the cause
is called a cause, wrongly if another is, or any in a control; else it is open. Its effect is that
on the runs of the first measurement, by the truth, which the tool does not get. Counted by
themselves are causes of which no factor has a dose: those only a remedy can prove, if any. A quota
of CPU time is not drawn: its control group would be the one of the tool's own dose.

It goes on for so long, stops between two cases, and the same call goes on; FOLDER/cases.csv has
what was found. Where nothing is suspected, a case ends after the first measurement, a third of the
budget; else it takes budget and proof, and some seconds more. The default is for 25 minutes in all,
if half of the cases have a suspect. Leave the machine alone.

Found with nothing beside (bzip2, cache, clang, factor, gzip, huge, jq, map, objects, zstd;
an Intel Xeon, two shared virtual CPUs; 18 minutes, 0.2 to 1.3 a case): proven rightly 8 of 20 (95 %
22 to 61 %), wrongly 1 (1 to 24 %), open 11. Of the 14 whose effect can be told from none: 8, 1 and
5. Wrong: timers in gzip were called contention for CPUs. Three causes had no factor with a dose and
stayed open. Of 10 controls none was suspected (0 to 28 %).

`sensitivity`: what the doses of page 57 cost each of the ten programs, by the cells of that page,
from the sealed bench's recorded campaigns of random doses.
"""

import argparse
import shlex
import shutil
import sys
import time
import warnings
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

for folder in (Path(__file__).parents[1], Path(__file__).parent / "known_causes"):
    sys.path.insert(0, str(folder))

import numpy as np
import pandas as pd
from _shares import share
from noisebook_known_causes.campaigns import _place, _plant
from noisebook_known_causes.catalogue import UNDISTURBED, Cause, Victim, causes
from noisebook_known_causes.planting import Truth
from noisebook_known_causes.tables import SEALED, bench_folder
from noisebook_known_causes.victims import victim_files
from record import effect
from sealed import (
    AMOUNTS,
    FOREIGN,
    OF_ALL,
    OF_SOME,
    as_cause,
    dose_of,
    victims,
)

from nbhelpers.errors import NoisebookError
from nbhelpers.files import write_atomically
from nbhelpers.measurement import Attachment, run_once
from nbhelpers.mitigation import autopilot, explain_factor, mitigations
from nbhelpers.reading import read_csv
from nbhelpers.statistics import stopping
from nbhelpers.studies.cause_proof import CAUSE, prove_cause
from nbhelpers.workloads import Workload
from tests.cells import run_cells
from tests.shown import Shown

SEED = 33  # of all that is drawn
OF_EACH = 5  # own programs, and foreign ones
SHARE = 0.5  # of the runs that are disturbed
RUNS = 80  # of the first measurement, as far as a third of the budget reaches
RIGHTLY, WRONGLY, OPEN = "rightly", "wrongly", "open"
DOSE, REMEDY = "dose", "remedy"  # what may prove a cause


# ---- what is drawn -------------------------------------------------------------------------------


def programs() -> list[str]:
    """Five own programs and five foreign ones that run here, in an order that is drawn."""
    order = map(str, np.random.default_rng([SEED, 3]).permutation(list(victims())))
    own, foreign = [], []
    for name in order:
        (foreign if name in FOREIGN else own).append(name)
    return [*islice(filter(runs_here, own), OF_EACH), *islice(filter(runs_here, foreign), OF_EACH)]


def runs_here(name: str) -> bool:
    """Whether a program is installed, by a run of it."""
    victim = victims()[name]
    files = victim_files(victim)
    try:
        return run_once(_place(dose_of(victim)).workload, files)["status"] == "ok"
    except NoisebookError:
        return False
    finally:
        for one in files:
            one.close()


def drawn() -> pd.DataFrame:
    """The cases in the order of measuring; columns case, program, cause, amount, planted, seed."""
    suffers, rows = OF_ALL | OF_SOME, []
    names = [name for name in [*list(OF_ALL) * 3, *OF_SOME] if name != "cpu-quota"]
    for program in programs():
        seed = 10 * list(victims()).index(program)
        random = np.random.default_rng([SEED, 4, seed])
        able = [name for name in names if program in suffers[name]]
        for number, planted in enumerate((True, True, False), 1):
            cause = able[random.integers(len(able))]
            able = [name for name in able if name != cause]
            amount = _upper_half(causes()[cause], random)
            rows.append((f"{program}-{number}", program, cause, amount, planted, seed + number))
    columns = ["case", "program", "cause", "amount", "planted", "seed"]
    order = np.random.default_rng([SEED, 5]).permutation(len(rows))
    return pd.DataFrame([rows[at] for at in order], columns=columns)


def _upper_half(cause: Cause, random: np.random.Generator) -> float:
    """An amount between the middle of the catalogue's range and its strongest, evenly on a
    logarithmic scale.
    """
    known = np.log([dose.amounts[0] for dose in cause.doses.values()])
    amount = np.exp(known[0] + random.uniform(0.5, 1) * (known[-1] - known[0]))
    return float(f"{amount:.3g}")


# ---- planting ------------------------------------------------------------------------------------


class Sometimes(Attachment):
    """One of two attachments, by a draw for each run; `flag` is there while a run is disturbed.

    Attributes
    ----------
    truths
        Whether a run was disturbed, by its `t0_ns`.
    """

    follows_region = True

    def __init__(
        self, disturbed: Sequence[Attachment], sham: Sequence[Attachment], flag: Path, seed: int
    ):
        self._either = Truth("", sham), Truth("", disturbed)
        self._draw, self._flag, self._now = np.random.default_rng(seed), flag, False
        self.truths: dict[int, bool] = {}
        self.identity = f"sometimes {self._either[True].identity}"

    def before(self, workload: Workload) -> None:
        self._now = self._draw.random() < SHARE
        self._flag.unlink(missing_ok=True)
        if self._now:
            self._flag.touch()
        self._either[self._now].before(workload)

    def armed(self, pid: int) -> None:
        self._either[self._now].armed(pid)

    def released(self, t0_ns: int) -> None:
        self._either[self._now].released(t0_ns)

    def ended(self, pid: int) -> None:
        self._either[self._now].ended(pid)

    def after(self, run: dict) -> dict:
        """Nothing of the truth, only a failure."""
        self.truths[run["t0_ns"]] = self._now
        found = self._either[self._now].after(run)
        return {name: found[name] for name in ("status", "message") if name in found}

    def close(self) -> None:
        for one in self._either:
            one.close()


def either(flag: Path, disturbed: Workload, usual: Workload) -> Workload:
    """A program that is the first one while the flag is there, else the second; the same, where
    they differ in nothing that a command says.
    """
    if disturbed == usual:
        return usual
    added = [f"{name}={value}" for name, value in disturbed.env if (name, value) not in usual.env]
    first, second = (
        shlex.join(["env", *variables, *one.command])
        for variables, one in ((added, disturbed), ([], usual))
    )
    script = f"if [ -e {shlex.quote(str(flag))} ]; then exec {first}; else exec {second}; fi"
    return replace(usual, command=("/bin/sh", "-c", script))


# ---- a case --------------------------------------------------------------------------------------


def measured(case: Any, victim: Victim, options: argparse.Namespace, folder: Path) -> dict:
    """What the tool found of a case, beside the truth."""
    cause, seed = as_cause(case.cause, victim, case.amount), case.seed
    at = _place(cause.doses["drawn"])
    usual = disturbed = at.workload
    parts, flag = _plant(cause, at), folder / "flag"
    shams = culprits = [one for part in parts for one in part.sham]
    if case.planted:
        culprits = [one for part in parts for one in part.attachments]
        for part in parts:
            disturbed = part.treat(disturbed)
    sometimes = Sometimes(culprits, shams, flag, seed)
    workload = either(flag, disturbed, usual)
    attachments, began = (*victim_files(victim), sometimes), time.monotonic()
    report = autopilot(
        workload,
        options.budget,
        folder=folder / "autopilot",
        rule=stopping.Count(RUNS),
        seed=seed,
        attachments=attachments,
    )
    proof = prove_cause(report, workload, folder, options.proof, seed, attachments=attachments)
    ratio, low, high = _effect(report.baseline, sometimes.truths)
    right = bool(case.planted and proof.factor in cause.factors)
    proven = proof.verdict == CAUSE
    return {
        "ways": ", ".join(ways(cause, workload)),
        "factor": proof.factor,
        "right": right,
        "outcome": (RIGHTLY if right else WRONGLY) if proven else OPEN,
        "effect": ratio,
        "low": low,
        "high": high,
        "runs": len(report.baseline),
        "seconds": time.monotonic() - began,
        "sentence": proof.sentence,
    }


def _effect(runs: pd.DataFrame, truths: dict[int, bool]) -> tuple[float, float, float]:
    """Median of the disturbed runs over that of the others, and its 95 % interval."""
    truth = np.where(runs["t0_ns"].map(truths), "disturbed", UNDISTURBED)
    return effect(runs.assign(truth=truth))


def ways(cause: Cause, workload: Workload) -> list[str]:
    """What could prove a cause here: a dose of one of its factors, a remedy that acts by itself."""
    own = [explain_factor(name) for name in cause.factors]
    known = [mitigations()[name] for factor in own for name in factor.mitigations]
    remedies = [
        one
        for one in known
        if one.automated and one.possible(workload) and not one.too_risky("low")
    ]
    has = {DOSE: any(factor.inject for factor in own), REMEDY: bool(remedies)}
    return [way for way, is_there in has.items() if is_there]


def live(options: argparse.Namespace) -> None:
    """Measure the cases that are missing, for so long; a line each, and the counts at the end."""
    cases, known, end = drawn(), victims(), time.monotonic() + options.seconds
    options.folder.mkdir(parents=True, exist_ok=True)
    file = options.folder / "cases.csv"
    rows = read_csv(file, keep_default_na=False).to_dict("records") if file.exists() else []
    print("programs:", ", ".join(sorted(set(cases["program"]))))
    done = {row["case"] for row in rows}
    left = [case for case in cases.itertuples(index=False) if case.case not in done]
    for number, case in enumerate(left):
        if time.monotonic() > end:
            print(f"{len(left) - number} cases are left")
            break
        place = options.folder / case.case
        shutil.rmtree(place, ignore_errors=True)  # the truth of half a case is lost
        place.mkdir()
        try:
            found = measured(case, known[case.program], options, place)
        except NoisebookError as error:
            print(f"left out: {case.case}: {error.what} ({error.why or error.fix})", flush=True)
            continue
        rows.append({**case._asdict(), **found})
        write_atomically(file, pd.DataFrame(rows).to_csv(index=False))
        print(in_words(rows[-1]), flush=True)
    if rows:
        print(counted(read_csv(file, keep_default_na=False)))


# ---- what is shown -------------------------------------------------------------------------------


def in_words(row: dict) -> str:
    """A line a case, and what the proof says."""
    what = f"{row['cause']} {row['amount']:g}" if row["planted"] else f"control ({row['cause']})"
    can = ""
    if row["planted"] and DOSE not in row["ways"]:
        can = f"; no dose of its factors exists: {row['ways'] or 'nothing'} can prove it"
    own = "" if row["right"] or not row["factor"] else " (not its own)"
    return (
        f"{row['case']}, {what}: {row['outcome']}; {row['factor'] or 'nothing'}{own}; effect"
        f" ×{row['effect']:.3f} ({row['low']:.3f} to {row['high']:.3f}, {row['runs']} runs){can};"
        f" {row['seconds']:.0f} s\n    {row['sentence']}"
    )


def counted(rows: pd.DataFrame) -> str:
    """How many cases were proven rightly, wrongly, and stay open; 95 % Wilson intervals."""
    planted, controls = rows[rows["planted"]], rows[~rows["planted"]]
    told = planted["low"] > 1
    by_dose = planted["ways"].str.contains(DOSE)
    groups = {
        "planted": planted,
        "planted, effect told from none": planted[told],
        "… and a dose of a factor exists": planted[told & by_dose],
        "planted, no dose of a factor exists": planted[~by_dose],
        "controls": controls,
    }
    lines = [
        f"{name}, {len(some)}: "
        + ", ".join(
            f"{word} {of_cases(some['outcome'] == word)}" for word in (RIGHTLY, WRONGLY, OPEN)
        )
        for name, some in groups.items()
    ]
    lines.append(f"the suspect is a factor of the cause: {of_cases(planted['right'])}")
    lines.append(f"the same, effect told from none: {of_cases(planted['right'][told])}")
    lines.append(f"a suspect in controls: {of_cases(controls['factor'] != '')}")
    seconds = rows["seconds"]
    lines.append(
        f"{seconds.mean() / 60:.2f} minutes a case ({seconds.min() / 60:.2f} to"
        f" {seconds.max() / 60:.2f}), {seconds.sum() / 60:.1f} in all"
    )
    return "\n".join(lines)


def of_cases(hits: pd.Series) -> str:
    return share(hits.sum(), len(hits))


def sensitivity(names: Sequence[str]) -> None:
    """Print what the doses cost each program."""
    units = [f"{dose:g} {explain_factor(name).inject['unit']}" for name, dose in AMOUNTS.items()]
    print("ms that a dose costs (95 % interval, HC3; *: p < 0.05 by permutation, all factors")
    print("together). Doses:", "; ".join(map(" of ".join, zip(AMOUNTS, units))), "\n")
    rows = {name: _costs(name) for name in names}
    print(pd.DataFrame(rows).T.fillna("not injected").to_string())


def _costs(name: str) -> dict[str, str]:
    """Run time of a program without a dose, and what each dose costs, by the cells of page 57."""
    runs = read_csv(bench_folder(SEALED[-1]) / "doses" / f"{name}.csv.gz")
    levels = runs.filter(regex="^dose ")
    runs = runs.drop(columns=list(levels))
    levels.columns = [column.removeprefix("dose ") for column in levels]
    cell = levels.astype(str).agg("".join, axis=1).where(levels.any(axis=1), "undisturbed")
    known = [(one, explain_factor(one), dose) for one, dose in AMOUNTS.items()]
    given = {
        "runs": runs.assign(cell=cell),
        "rows": levels.assign(cell=cell).drop_duplicates("cell").set_index("cell"),
        "dosed": pd.DataFrame(
            [(one, factor.name, dose, factor.inject["unit"]) for one, factor, dose in known],
            columns=["factor", "name", "dose", "unit"],
        ),
    }
    given |= {"amounts": AMOUNTS, "planted": {}, "seed": SEED, "rounds": runs["round"].nunique()}
    page = run_cells("57-random-doses", "analysis", study=Shown(), found=Shown(), **given)
    costs = {
        one.Index: f"{one.ms:+.1f} ({one.ms_low:.1f} to {one.ms_high:.1f}){'*' * (one.p < 0.05)}"
        for one in page["table"].itertuples()
    }
    return {"ms": f"{page['usual']:.0f}", "runs": str(len(runs)), **costs}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    tasks = parser.add_subparsers(dest="task", required=True)
    cases = tasks.add_parser("live", help="measure the cases")
    cases.add_argument("folder", type=Path)
    cases.add_argument("--seconds", type=float, default=1500.0)
    cases.add_argument("--budget", type=float, default=55.0, help="seconds of the autopilot")
    cases.add_argument("--proof", type=float, default=14.0, help="seconds of the injection")
    tables = tasks.add_parser("sensitivity", help="what doses cost, as recorded")
    tables.add_argument("programs", nargs="*", help="the ten that are drawn, unless given")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.task == "live":
        live(options)
    else:
        sensitivity(options.programs or programs())


if __name__ == "__main__":
    main()
