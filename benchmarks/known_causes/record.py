"""Record the bench of known causes: each cause at each dose, 32 runs a table.

    python benchmarks/known_causes/record.py FOLDER [--seconds 170] [--runs 32] [CAUSE ...]
    python benchmarks/known_causes/record.py FOLDER --pack [CAUSE ...]

The first measures for so long and stops between two tables; the same call goes on. The tables are
in random order, so that nothing of the machine's day goes with a dose. The second writes
extras/known_causes/bench: runs/CAUSE.csv.gz and tables.csv, which has the drawn halves, the
measured effects and the ids. With causes it writes theirs only: one that had to be planted in
another way is measured again, and the others stay as they are.

The halves are drawn by cause, once. The 13 causes of the first bench are for development, since
methods were tuned on them; of the others all but three (one of two at once) are held out.
"""

import argparse
import gzip
import time
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from noisebook_known_causes.campaigns import cause_campaign
from noisebook_known_causes.catalogue import UNDISTURBED, causes
from noisebook_known_causes.tables import (
    DEVELOPMENT,
    HELD_OUT,
    KINDS_OF_TABLE,
    TRUTH,
    bench_folder,
    is_giveaway,
    path_of,
    split,
)

from nbhelpers.errors import NoisebookError
from nbhelpers.files import write_atomically
from nbhelpers.measurement import Campaign, finished, recorded_runs
from nbhelpers.statistics import bootstrap_ratio

SEED = 14  # of the halves, of the order, of the ids
_ALWAYS = ("run", "table", "status", "seconds", *TRUTH)
# of the campaign and the machine's clock; or nothing but the region's length once more
_OWN = ("t0_ns", "message", "noise", "round", "epoch", "elapsed_seconds")
FIRST_BENCH = {
    "cache-eviction",
    "cpu-hog",
    "cpu-quota",
    "disk-contention",
    "dropped-cache",
    "fifo-bursts",
    "forced-migrations",
    "interrupt-storm",
    "memory-bandwidth",
    "returned-memory",
    "slow-path",
    "small-pages",
    "timer-storm",
}


def catalogue() -> list[tuple[str, str]]:
    """Cause and dose of each table, in the order of the catalogue."""
    return [(cause.id, dose) for cause in causes().values() for dose in cause.doses]


def tables() -> list[tuple[str, str]]:
    """Cause and dose of each table, in the order of measuring."""
    listed = catalogue()
    order = np.random.default_rng([SEED, 1]).permutation(len(listed))
    return [listed[at] for at in order]


def halves() -> dict[str, str]:
    """Cause -> its half."""
    new = [name for name in causes() if name not in FIRST_BENCH]
    single = [name for name in new if len(causes()[name].parts) == 1]
    both = [name for name in new if name not in single]
    random = np.random.default_rng([SEED, 2])
    seen = {*random.choice(single, 2, replace=False), *random.choice(both, 1), *FIRST_BENCH}
    return {name: DEVELOPMENT if name in seen else HELD_OUT for name in causes()}


def measure(folder: Path, runs: int, seconds: float, only: list[str]) -> None:
    """Measure the tables that are missing, for so long."""
    wanted = [(c, d) for c, d in tables() if not only or c in only]
    wanted.sort(key=lambda table: len(list((folder / table[0]).glob("*/done"))))  # stays random

    def campaign(cause: str, dose: str) -> Campaign:
        seed = 100 * SEED + tables().index((cause, dose))
        return cause_campaign(folder / cause / dose, cause, runs, seed, dose=dose)

    campaigns = {folder / c / d: partial(campaign, c, d) for c, d in wanted}
    measure_missing(
        campaigns, seconds, lambda table: "x{:.3f} ({:.3f} to {:.3f})".format(*effect(table))
    )


def measure_missing(
    campaigns: Mapping[Path, Callable[[], Campaign]],
    seconds: float,
    said: Callable[[pd.DataFrame], str],
) -> None:
    """Measure the campaigns that have no file `done` in their folder, for so long; a line each."""
    end = time.monotonic() + seconds
    left = [place for place in campaigns if not (place / "done").exists()]
    for number, place in enumerate(left):
        if time.monotonic() > end:
            print(f"{len(left) - number} tables are left")
            return
        began = time.monotonic()
        try:
            table = finished(campaigns[place]().run())
        except NoisebookError as error:
            print(f"left out: {place}: {error.what}", flush=True)
            continue
        (place / "done").touch()
        took = time.monotonic() - began
        print(f"{place}: {said(table)}, {len(table)} runs in {took:.1f} s", flush=True)
    print("all tables are measured")


def effect(table: pd.DataFrame) -> tuple[float, float, float]:
    """Median of the disturbed runs over that of the undisturbed ones, and its 95 % interval."""
    on = table["truth"] != UNDISTURBED
    low, high = bootstrap_ratio(table.loc[on, "seconds"], table.loc[~on, "seconds"], "median", SEED)
    return table.loc[on, "seconds"].median() / table.loc[~on, "seconds"].median(), low, high


def write_table(folder: str | Path, cause: str, doses: dict[str, pd.DataFrame]) -> Path:
    """Write the runs of a cause, all doses in one file.

    Left out are runs that failed, columns that give the injector away, and columns that are the
    same in all runs.

    Parameters
    ----------
    folder
        Folder of the bench.
    cause
        Its id.
    doses
        Dose -> runs of its campaign.

    Returns
    -------
    Path of the file, a gzipped CSV; the column `table` has the dose.
    """
    tables = [finished(runs).assign(table=dose) for dose, runs in doses.items()]
    table = pd.concat(tables, ignore_index=True)
    kept = [name for name in table if name in _ALWAYS or table[name].astype(str).nunique() > 1]
    chosen = [name for name in kept if not is_giveaway(name) and name not in _OWN]
    return write_gzipped(path_of(Path(folder), cause), table[chosen])


def write_gzipped(path: Path, table: pd.DataFrame) -> Path:
    """Write a table as gzipped CSV, the same bytes for the same table."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, gzip.compress(table.to_csv(index=False).encode(), 9, mtime=0))
    return path


def described(table: pd.DataFrame, half: str, ids: list[str]) -> dict[str, Any]:
    """What tables.csv has of measured runs: their half, number and effect, and the tables' ids."""
    ends = {name: round(end, 4) for name, end in zip(("effect", "low", "high"), effect(table))}
    return {"half": half, "runs": len(table), **ends, **dict(zip(KINDS_OF_TABLE, ids))}


def pack(folder: Path, only: list[str]) -> None:
    """Write extras/known_causes/bench; of some causes, if there are any."""
    numbers = np.random.default_rng([SEED, 3]).permutation(len(tables()) * 3).reshape(-1, 3)
    bench_folder().mkdir(exist_ok=True)
    rows = split()[lambda table: ~table["cause"].isin(only)].to_dict("records") if only else []
    for cause in causes().values():
        if only and cause.id not in only:
            continue
        doses = {
            dose: recorded_runs(folder / cause.id / dose)
            for dose in cause.doses
            if (folder / cause.id / dose / "done").exists()
        }
        if doses:
            write_table(bench_folder(), cause.id, doses)
        for dose, runs in doses.items():
            ids = [f"T{number:03d}" for number in numbers[tables().index((cause.id, dose))]]
            found = described(finished(runs), halves()[cause.id], ids)
            rows.append({"cause": cause.id, "dose": dose, **found})
    order = {table: number for number, table in enumerate(catalogue())}
    rows.sort(key=lambda row: order[row["cause"], row["dose"]])
    pd.DataFrame(rows).to_csv(bench_folder() / "tables.csv", index=False)
    size = sum(path.stat().st_size for path in bench_folder().rglob("*.gz"))
    print(f"{len(rows)} tables, {size / 2**20:.2f} MiB")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("causes", nargs="*", metavar="CAUSE")
    parser.add_argument("--runs", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=170.0)
    parser.add_argument("--pack", action="store_true")
    options = parser.parse_intermixed_args()
    warnings.simplefilter("ignore")
    if options.pack:
        pack(options.folder, options.causes)
    else:
        measure(options.folder, options.runs, options.seconds, options.causes)


if __name__ == "__main__":
    main()
