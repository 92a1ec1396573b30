"""What the probe of speed costs: runs with and without it, in turn, as a ratio to the bound of
0.3 %.

    python benchmarks/speed_probe.py [pairs] [--programs nbody,stream] [--seconds 0.25]

The median of the paired differences of two runs that follow each other, with its bootstrap
interval. No rival: the bound is what tracing may cost (benchmarks/tracing_overhead.py). Let the
machine be idle: 200 pairs of 0.25 s take 2.5 minutes a program.
"""

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np  # noqa: E402

from nbhelpers.measurement import calibrate, run_once  # noqa: E402
from nbhelpers.speed import SpeedProbe  # noqa: E402
from nbhelpers.statistics import bootstrap_interval  # noqa: E402
from nbhelpers.workloads import Workload, program  # noqa: E402

BOUND_SHARE = 0.003
PYTHON = "import numpy as n; a = n.ones((400, 400)); [a @ a for _ in range({size})]"


def python(size: int) -> Workload:
    """A Python program that multiplies matrices."""
    return program([sys.executable, "-c", PYTHON.format(size=size)])


PROGRAMS = ("nbody", "stream", "minife", "python")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pairs", type=int, nargs="?", default=200)
    parser.add_argument("--programs", default=",".join(PROGRAMS))
    parser.add_argument("--seconds", type=float, default=0.25)
    options = parser.parse_args()
    for name in options.programs.split(","):
        workload = sized(name, options.seconds)
        without, with_it, samples = pairs_of(workload, options.pairs)
        show(name, without, with_it, samples)


def sized(name: str, seconds: float) -> Workload:
    """The program in the size that takes about that long."""
    if name == "python":
        return python(round(seconds * 400))
    return calibrate(name, target_seconds=seconds)


def pairs_of(workload: Workload, pairs: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Seconds without the probe and with it, which goes first in every second pair; samples of a
    run.
    """
    seconds, samples = np.empty((pairs, 2)), 0
    with tempfile.TemporaryDirectory() as folder:
        probe = SpeedProbe(folder)
        try:
            for pair in range(pairs):
                for with_it in (pair % 2, 1 - pair % 2):
                    row = run_once(workload, [probe] if with_it else [])
                    seconds[pair, with_it] = row["seconds"]
                    samples = row.get("speed_samples", samples)
        finally:
            probe.close()
    return seconds[:, 0], seconds[:, 1], samples


def show(name: str, without: np.ndarray, with_it: np.ndarray, samples: int) -> None:
    """The median of the paired differences, in % of the median without the probe."""
    costs = (with_it - without) / np.median(without)
    low, high = bootstrap_interval(costs, "median")
    middle = float(np.median(costs))
    print(
        f"{name}: {100 * middle:+.2f} % [{100 * low:+.2f}, {100 * high:+.2f}] (median of"
        f" {len(costs)} pairs, 95 %); median run {np.median(without):.3f} s, {samples} samples;"
        f" ratio to the bound of {100 * BOUND_SHARE:.1f} %: {middle / BOUND_SHARE:.2f}",
        flush=True,
    )


if __name__ == "__main__":
    main()
