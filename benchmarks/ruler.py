"""Fixed work as the ruler of speed, against the clock of a program that times its own chunks.

    python benchmarks/ruler.py [--runs 24] [--chunks 300]

Two programs (a chain of dependent operations, arrays that no cache holds), on one CPU. In every
third run a neighbour on another CPU copies memory from a random moment on. The truth is the CPU
time of each chunk over its median; the plain rival is the run's CPU time over its median, one
number a run. Printed: correlation with the truth of pieces, the rival's, and the share of pieces
whose interval holds the truth. Let the machine be idle: one minute.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from _c_programs import build
from _planted_kinds import Neighbour

from nbhelpers.measurement import Attachment, run_once
from nbhelpers.speed import SpeedProbe
from nbhelpers.speed.ruler import slowness
from nbhelpers.tracing import Tracer
from nbhelpers.tracing.campaign import STATES as OF_THREADS
from nbhelpers.tracing.campaign import each_recording
from nbhelpers.workloads import Workload

WORKLOADS = Path(__file__).parents[1] / "workloads"


class Late(Neighbour):
    """A neighbour that begins some time after the program."""

    def __init__(self, program: Path, cpu: int, start_ns: int):
        super().__init__(program, "bandwidth", cpu)
        self._words[-1] = str(start_ns)


class Output(Attachment):
    """What a run printed."""

    def printed(self, output: str, errors: str) -> None:
        self.output = output


def chunks_of(output: str, start_ns: int) -> pd.DataFrame:
    found = re.findall(r"^(\d+) (\d+) (\d+)$", output, re.MULTILINE)
    table = pd.DataFrame(found, columns=["start_ns", "end_ns", "cpu_ns"]).astype(np.int64)
    table[["start_ns", "end_ns"]] -= start_ns
    return table


def measure(folder: Path, kind: str, options) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Runs, and the chunks of each: `run`, `start_ns`, `end_ns`, `cpu_ns`."""
    own, other = sorted(os.sched_getaffinity(0))[:2]
    command = (str(folder / "fixed_work"), kind, str(options.chunks))
    workload = Workload("fixed", "external", command, cpus=(own,))
    place = folder / kind
    probe, tracer, output = SpeedProbe(place), Tracer(place / "traces"), Output()
    random, rows, chunks = np.random.default_rng(0), [], []
    for run in range(options.runs):
        late = Late(folder / "neighbour", other, int(random.uniform(0, 4e8)))
        planted = [late] if run % 3 == 0 else []
        rows.append(run_once(workload, [tracer, probe, output, *planted], run=run))
        chunks.append(chunks_of(output.output, rows[-1]["start_ns"]).assign(run=run))
    probe.close()
    tracer.close()
    return pd.DataFrame(rows), pd.concat(chunks, ignore_index=True)


def truth_of(pieces: pd.DataFrame, chunks: pd.DataFrame) -> np.ndarray:
    """The mean factor of the chunks in each piece; NaN: none."""
    factor = chunks["cpu_ns"] / chunks["cpu_ns"].median()
    middle = (chunks["start_ns"] + chunks["end_ns"]) / 2
    return np.array(
        [
            factor[chunks["run"].eq(run) & middle.between(start, end)].mean()
            for run, start, end in zip(pieces["run"], pieces["start_ns"], pieces["end_ns"])
        ]
    )


def report(folder: Path, kind: str, options) -> None:
    runs, chunks = measure(folder, kind, options)
    place = folder / kind
    recordings = each_recording(place / "traces", runs)
    states = pd.concat([one[OF_THREADS] for one in recordings], ignore_index=True)
    pieces = slowness(place, runs, states[states["state"] == "runnable"])
    pieces = pieces.assign(truth=truth_of(pieces, chunks)).dropna()
    rival = runs.set_index("run")["cpu_ns"]
    rival = (rival / rival.median()).loc[pieces["run"]].to_numpy()
    truth = pieces["truth"].to_numpy()
    inside = pieces["low"].le(truth) & pieces["high"].ge(truth)
    print(
        f"{kind}: {len(pieces)} pieces of {len(runs)} runs, truth"
        f" {np.quantile(truth, 0.05):.2f} to {np.quantile(truth, 0.95):.2f};"
        f" r = {np.corrcoef(pieces['factor'], truth)[0, 1]:.2f}, rival"
        f" {np.corrcoef(rival, truth)[0, 1]:.2f}; mean error"
        f" {np.abs(pieces['factor'] - truth).mean():.3f}, rival {np.abs(rival - truth).mean():.3f};"
        f" truth in the interval {inside.mean():.0%}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=24)
    parser.add_argument("--chunks", type=int, default=300)
    options = parser.parse_args()
    if len(os.sched_getaffinity(0)) < 2:
        sys.exit("skipped: a neighbour needs a second CPU")
    print(f"load {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        build(folder, "neighbour")
        words = ["gcc", "-std=gnu11", "-O2", "-fopenmp", f"-I{WORKLOADS}", "-o"]
        source = Path(__file__).with_name("fixed_work.c")
        subprocess.run([*words, folder / "fixed_work", source], check=True)
        for kind in ("chain", "triad"):
            report(folder, kind, options)


if __name__ == "__main__":
    main()
