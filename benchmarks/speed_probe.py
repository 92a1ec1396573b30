"""What the probe of speed and the trace cost in CPU time and run time, alone and together, against
none: as a ratio to the bound of 0.3 %.

    python benchmarks/speed_probe.py [rounds] [--programs nbody,stream] [--seconds 0.25]
        [--arms probe,trace,both] [--passive]

The median of the paired differences of runs of the same round, with its bootstrap interval. No
rival: the bound is what tracing may cost (benchmarks/tracing_overhead.py). `lulesh` and
`babelstream` are those of `make originals`, in a size of their own. Let the machine be idle: 100
rounds of four runs of 0.25 s take 2.5 minutes a program.

--passive: in the same rounds the program runs with OMP_WAIT_POLICY=passive, too. OpenMP threads
that spin at a barrier turn a delay of one thread into CPU time of all; those that sleep do not.

Found on two shared virtual CPUs (LULESH, 59 rounds, probe and trace): CPU time +2.6 % (−0.9 to
6.3); with threads that sleep +3.6 % (2.9 to 6.4), run time +6.4 % (3.0 to 8.5). So it is not the
spinning: threads that sleep switch at each barrier, and each switch is an event.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
from foreign_worst import PROGRAMS as ORIGINALS  # noqa: E402

from nbhelpers.measurement import calibrate, run_once  # noqa: E402
from nbhelpers.mitigation.action import with_variables  # noqa: E402
from nbhelpers.speed import SpeedProbe  # noqa: E402
from nbhelpers.statistics import bootstrap_interval  # noqa: E402
from nbhelpers.tracing import Tracer  # noqa: E402
from nbhelpers.workloads import Workload, program  # noqa: E402

BOUND_SHARE = 0.003
NONE, ARMS = "none", ("probe", "trace", "both")
MEASURES = {"cpu_s": "CPU time", "seconds": "run time"}
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
    parser.add_argument("--arms", default=",".join(ARMS))
    parser.add_argument("--passive", action="store_true", help="beside OMP_WAIT_POLICY=passive")
    options = parser.parse_args()
    print(f"load {os.getloadavg()[0]:.1f}")
    for name in options.programs.split(","):
        workload = sized(name, options.seconds)
        sides = {name: workload}
        if options.passive:
            variables = with_variables(workload, {"OMP_WAIT_POLICY": "passive"})
            sides[f"{name}, threads that sleep"] = replace(workload, env=variables)
        arms = options.arms.split(",")
        runs = runs_of(sides, arms, options.rounds)
        if runs.empty:
            sys.exit(f"{name}: in no round all runs finished; let the machine be idle")
        for side in sides:
            own = runs[runs["side"] == side].pivot(index="round", columns="arm")
            print(f"{side}: {own['samples'].max(axis=1).median():.0f} samples")
            for measure, words in MEASURES.items():
                show(own[measure], arms, words)


def sized(name: str, seconds: float) -> Workload:
    """The program in the size that takes about that long."""
    if name == "python":
        return python(round(seconds * 400))
    if name in ORIGINALS and name not in PROGRAMS:
        return ORIGINALS[name]()
    return calibrate(name, target_seconds=seconds)


def runs_of(sides: dict[str, Workload], arms: Sequence[str], rounds: int) -> pd.DataFrame:
    """A row a run of the rounds in which all finished: `round`, `side`, `arm`, CPU time and run
    time in s, and samples; the runs of a round come in random order.
    """
    random, rows = np.random.default_rng(0), []
    with tempfile.TemporaryDirectory() as folder:
        probe, tracer = SpeedProbe(folder), Tracer(Path(folder) / "traces")
        known = {NONE: [], "probe": [probe], "trace": [tracer], "both": [tracer, probe]}
        of_round = list(product(sides, (NONE, *arms)))
        for number in range(rounds):
            for side, arm in (of_round[at] for at in random.permutation(len(of_round))):
                done = run_once(sides[side], known[arm], run=number)
                if done["status"] == "ok":
                    cpu_s = done.get("cpu_ns", 1e9 * (done["user_s"] + done["system_s"])) / 1e9
                    row = {"round": number, "side": side, "arm": arm, "cpu_s": cpu_s}
                    row |= {"seconds": done["seconds"], "samples": done.get("speed_samples")}
                    rows.append(row)
        probe.close()
        tracer.close()
    runs = pd.DataFrame(rows, columns=["round", "side", "arm", *MEASURES, "samples"])
    return runs.groupby("round").filter(lambda own: len(own) == len(of_round))


def show(rounds: pd.DataFrame, arms: Sequence[str], measure: str) -> None:
    """The median of the paired differences, in % of the median without a record."""
    median = rounds[NONE].median()
    print(f"  {1e3 * median:.0f} ms of {measure}")
    for arm in arms:
        costs = ((rounds[arm] - rounds[NONE]) / median).to_numpy()
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
