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
import io
import time
import warnings
from pathlib import Path

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
from nbhelpers.measurement import finished, recorded_runs
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
    end = time.monotonic() + seconds
    left = [(c, d) for c, d in tables() if not only or c in only]
    left = [(c, d) for c, d in left if not (folder / c / d / "done").exists()]
    left.sort(key=lambda table: len(list((folder / table[0]).glob("*/done"))))  # stays random
    for number, (cause, dose) in enumerate(left):
        if time.monotonic() > end:
            print(f"{len(left) - number} tables are left")
            return
        began = time.monotonic()
        try:
            seed = 100 * SEED + tables().index((cause, dose))
            campaign = cause_campaign(folder / cause / dose, cause, runs, seed, dose=dose)
            table = finished(campaign.run())
        except NoisebookError as error:
            print(f"left out: {cause}/{dose}: {error.what}", flush=True)
            continue
        (folder / cause / dose / "done").touch()
        ratio = effect(table)
        print(
            f"{cause}/{dose}: x{ratio[0]:.3f} ({ratio[1]:.3f} to {ratio[2]:.3f}),"
            f" {len(table)} runs in {time.monotonic() - began:.1f} s",
            flush=True,
        )
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
    buffer = io.BytesIO()
    with gzip.GzipFile(fileobj=buffer, mode="wb", mtime=0, compresslevel=9) as file:
        file.write(table[chosen].to_csv(index=False).encode())
    path = path_of(Path(folder), cause)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, buffer.getvalue())
    return path


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
            table = finished(runs)
            ratio, low, high = effect(table)
            ids = [f"T{number:03d}" for number in numbers[tables().index((cause.id, dose))]]
            rows.append(
                {
                    "cause": cause.id,
                    "dose": dose,
                    "half": halves()[cause.id],
                    "runs": len(table),
                    "effect": round(ratio, 4),
                    "low": round(low, 4),
                    "high": round(high, 4),
                    **dict(zip(KINDS_OF_TABLE, ids)),
                }
            )
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
