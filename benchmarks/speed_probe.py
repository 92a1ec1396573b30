"""What the probe of speed and the trace cost in CPU time, alone and together, against none: as a
ratio to the bound of 0.3 %.

    python benchmarks/speed_probe.py [rounds] [--programs nbody,stream] [--seconds 0.25]

The median of the paired differences of runs of the same round, with its bootstrap interval. No
rival: the bound is what tracing may cost (benchmarks/tracing_overhead.py). `lulesh` and
`babelstream` are those of `make originals`, in a size of their own. Let the machine be idle: 100
rounds of four runs of 0.25 s take 2.5 minutes a program.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
from foreign_worst import PROGRAMS as ORIGINALS  # noqa: E402

from nbhelpers.measurement import calibrate, run_once  # noqa: E402
from nbhelpers.speed import SpeedProbe  # noqa: E402
from nbhelpers.statistics import bootstrap_interval  # noqa: E402
from nbhelpers.tracing import Tracer  # noqa: E402
from nbhelpers.workloads import Workload, program  # noqa: E402

BOUND_SHARE = 0.003
ARMS = ("none", "probe", "trace", "both")
PYTHON = "import numpy as n; a = n.ones((400, 400)); [a @ a for _ in range({size})]"


def python(size: int) -> Workload:
    """A Python program that multiplies matrices."""
    return program([sys.executable, "-c", PYTHON.format(size=size)])


PROGRAMS = ("nbody", "stream", "minife", "python")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rounds", type=int, nargs="?", default=100)
    parser.add_argument("--programs", default=",".join(PROGRAMS))
    parser.add_argument("--seconds", type=float, default=0.25)
    options = parser.parse_args()
    print(f"load {os.getloadavg()[0]:.1f}")
    for name in options.programs.split(","):
        workload = sized(name, options.seconds)
        show(name, rounds_of(workload, options.rounds))


def sized(name: str, seconds: float) -> Workload:
    """The program in the size that takes about that long."""
    if name == "python":
        return python(round(seconds * 400))
    if name in ORIGINALS and name not in PROGRAMS:
        return ORIGINALS[name]()
    return calibrate(name, target_seconds=seconds)


def rounds_of(workload: Workload, rounds: int) -> pd.DataFrame:
    """CPU time (ns) of the process with each of ARMS, a row a round, and samples of a run; the arms
    of a round come in random order.
    """
    random, rows = np.random.default_rng(0), []
    with tempfile.TemporaryDirectory() as folder:
        probe, tracer = SpeedProbe(folder), Tracer(Path(folder) / "traces")
        known = {"none": [], "probe": [probe], "trace": [tracer], "both": [tracer, probe]}
        for number in range(rounds):
            row = {}
            for arm in random.permutation(list(ARMS)):
                done = run_once(workload, known[arm], run=number)
                own_ns = 1e9 * (done["user_s"] + done["system_s"])
                row[arm] = done.get("cpu_ns", own_ns)
                row["samples"] = done.get("speed_samples", row.get("samples"))
            rows.append(row)
        probe.close()
        tracer.close()
    return pd.DataFrame(rows)


def show(name: str, rounds: pd.DataFrame) -> None:
    """The median of the paired differences, in % of the median without a record."""
    median = rounds["none"].median()
    print(f"{name}: {median / 1e6:.0f} ms of CPU time, {rounds['samples'].median():.0f} samples")
    for arm in ARMS[1:]:
        costs = ((rounds[arm] - rounds["none"]) / median).to_numpy()
        low, high = (100 * end for end in bootstrap_interval(costs, "median"))
        middle = 100 * float(np.median(costs))
        print(
            f"  {arm}: {middle:+.2f} % [{low:+.2f}, {high:+.2f}] (median of {len(costs)} rounds,"
            f" 95 %); ratio to the bound of {100 * BOUND_SHARE:.1f} %:"
            f" {middle / 100 / BOUND_SHARE:.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
