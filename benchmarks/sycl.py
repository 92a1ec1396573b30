"""The SYCL programs compared with their OpenMP twins: the same sizes, interleaved, roaming;
needs `make sycl`.

    python benchmarks/sycl.py [runs]

Prints the timed region and the whole process of each, and the ratio of the medians (SYCL over
OpenMP). The whole process has about 0.4 s more with SYCL: its runtime starts and loads the compiled
kernels, outside the timed region.
"""

import sys

import pandas as pd

from nbhelpers.measurement import Campaign, Cell, finished
from nbhelpers.workloads import minife, nbody, stream
from nbhelpers.workloads.sycl import available

PROGRAMS = {
    "nbody": (nbody, {"bodies": 6400, "steps": 20}),
    "stream": (stream, {"repeats": 20, "elements": 2**22}),
    "minife": (minife, {"nx": 50}),
}


def medians(runs: int) -> pd.DataFrame:
    """A row a program; columns are (time, model), in s."""
    cells = [
        Cell(f"{name} {model}", make(**size, model=model))
        for name, (make, size) in PROGRAMS.items()
        for model in ("omp", "sycl")
    ]
    rows = finished(Campaign(None, cells, runs).run())
    rows[["program", "twin"]] = rows.cell.str.split(" ", expand=True)
    return rows.pivot_table(
        index="program",
        columns="twin",
        values=["seconds", "wall_seconds", "elapsed_seconds"],
        aggfunc="median",
        sort=False,
    )


def main(runs: int = 15) -> None:
    here = available()
    if not here:
        print(f"{here.reason}: {here.fix}")
        return
    table = medians(runs)
    for time in table.columns.levels[0]:
        table[time, "ratio"] = table[time, "sycl"] / table[time, "omp"]
    print(f"median of {runs} interleaved runs, s")
    print(table.sort_index(axis=1).round(3).to_string())


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
