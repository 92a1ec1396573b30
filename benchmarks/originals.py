"""Our programs beside the originals that they are made after: interleaved pairs of the same size,
compiler and number of threads.

    python benchmarks/originals.py [pairs] [name ...]

The originals are those of `make originals`; what is not built is left out. Prints ours over theirs:
the median of the rounds' ratios with a 95 % bootstrap interval, and both medians. The bound is 1;
each round runs both in random order. Three minutes for 30 pairs.
"""

import os
import sys
from dataclasses import dataclass

import numpy as np
import pandas as pd

from nbhelpers.measurement import Campaign, Cell, finished
from nbhelpers.measurement.calibration import delay_steps
from nbhelpers.workloads import Workload, minife, nbody, program, stream, syncbench
from nbhelpers.workloads.openmp import schedbench
from nbhelpers.workloads.programs import original_path

THREADS, RESAMPLES, SEED = 2, 10_000, 14
KERNELS = ("copy", "mul", "add", "triad", "dot")
CONSTRUCTS = ("parallel", "for", "barrier", "reduction")
ELEMENTS, REPEATS, BODIES, STEPS, NX = 2**22, 20, 8000, 4, 40
# of EPCC's 4.0: iterations a thread; a delay so short that the schedule's own cost is most of it
ITERATIONS, OUTER, SHORT_US = 1024, 20, 0.01


FILES = {
    "nbody": "hecbench-nbody",
    "stream": "babelstream",
    "minife": "minife-openmp",
    "schedbench": "epcc-schedbench",
    "syncbench": "epcc-syncbench",
}


def original(name: str, **options: object) -> Workload:
    """The original of one of our programs, unmodified, as data/knowledge/programs describes it."""
    # HeCBench's kernels ask for 256 threads a team, which only a limit holds to the CPUs
    env = {"OMP_THREAD_LIMIT": str(len(os.sched_getaffinity(0)))} if name == "nbody" else {}
    return program(description=FILES[name], env=env, **options)


@dataclass(frozen=True)
class Pair:
    """Ours and theirs, and what is compared: columns of the runs, or expressions of them."""

    name: str
    original: str
    ours: Workload
    theirs: Workload
    compared: tuple[tuple[str, str, str], ...]  # what, of ours, of theirs


def pairs() -> list[Pair]:
    """Those of which an original is there."""
    makers = {"stream": _streams, "nbody": _nbodies, "minife": _minifes}
    makers |= {"syncbench": _syncbenches, "schedbench": _schedbenches}
    here = [name for name in makers if original_path(FILES[name]).is_file()]
    return [pair for name in here for pair in makers[name]()]


def _streams() -> list[Pair]:
    found = []
    words = ["-s", str(ELEMENTS), "-n", str(REPEATS), "--csv"]
    for precision, option in (("double", []), ("single", ["--float"])):
        command = [str(original_path(FILES["stream"])), *words, *option]
        theirs = program(command, description=FILES["stream"], threads=THREADS)
        ours = stream(REPEATS, ELEMENTS, THREADS, precision=precision)
        kernels = tuple((name, f"{name}_avg_s", f"{name}_avg_s") for name in KERNELS)
        found.append(Pair(f"stream {precision}", "stream", ours, theirs, kernels))
    return found


def _nbodies() -> list[Pair]:
    theirs = original("nbody", bodies=BODIES, steps=STEPS, threads=THREADS)
    ours = nbody(BODIES, STEPS, THREADS, precision="single")
    return [Pair("nbody single", "nbody", ours, theirs, (("steps", "seconds", "seconds"),))]


def _minifes() -> list[Pair]:
    theirs = original("minife", nx=NX, threads=THREADS)
    compared = (("CG iteration", "cg_s / iterations", "seconds / iterations"),)
    return [Pair("minife", "minife", minife(NX, THREADS), theirs, compared)]


def _syncbenches() -> list[Pair]:
    delay, found = delay_steps(0.1), []
    for ours in CONSTRUCTS:
        column = f"{ours}_median_overhead_us"
        theirs = original("syncbench", construct=ours.upper(), outer=OUTER, threads=THREADS)
        own = syncbench(1000, ours, THREADS, delay=delay, outer=OUTER)
        compared = (("overhead", "median_overhead_us", column),)
        found.append(Pair(f"syncbench {ours}", "syncbench", own, theirs, compared))
    return found


def _schedbenches() -> list[Pair]:
    delay = delay_steps(SHORT_US)
    own = schedbench(ITERATIONS, "dynamic", 1, THREADS, delay=delay, inner=20, outer=OUTER)
    theirs = original("schedbench", outer=OUTER, delay_us=SHORT_US, threads=THREADS)
    compared = (("dynamic 1, overhead", "median_overhead_us", "dynamic_1_median_overhead_us"),)
    return [Pair("schedbench dynamic", "schedbench", own, theirs, compared)]


def ratios(runs: pd.DataFrame, pair: Pair) -> list[dict]:
    """A row for each thing that is compared."""
    random, rows = np.random.default_rng(SEED), []
    for what, of_ours, of_theirs in pair.compared:
        values = [
            runs[runs["cell"] == f"{pair.name} {side}"].set_index("round").eval(column)
            for side, column in (("ours", of_ours), ("theirs", of_theirs))
        ]
        ratio = (values[0] / values[1]).dropna().to_numpy()
        drawn = np.median(random.choice(ratio, (RESAMPLES, len(ratio))), axis=1)
        low, high = np.quantile(drawn, [0.025, 0.975])
        rows.append(
            {
                "program": pair.name,
                "compared": what,
                "n": len(ratio),
                "ratio": np.median(ratio),
                "low": low,
                "high": high,
                "ours": values[0].median(),
                "theirs": values[1].median(),
            }
        )
    return rows


def main(count: int = 30, names: tuple[str, ...] = ()) -> None:
    found = [pair for pair in pairs() if not names or set(names) & set(pair.name.split())]
    if not found:
        raise SystemExit("no originals are built: make originals")
    cells = [
        Cell(f"{pair.name} {side}", workload)
        for pair in found
        for side, workload in (("ours", pair.ours), ("theirs", pair.theirs))
    ]
    runs = finished(Campaign(None, cells, count, SEED).run())
    table = pd.DataFrame([row for pair in found for row in ratios(runs, pair)])
    print(f"{count} pairs, {THREADS} threads; ours over theirs, medians, 95 % bootstrap intervals")
    print(table.to_string(index=False, float_format="{:.4g}".format))


if __name__ == "__main__":
    main(int((sys.argv[1:] or ["30"])[0]), tuple(sys.argv[2:]))
