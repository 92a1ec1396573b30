"""How true the begin and the end of a timed region are, for each way of saying where they are.

Prints the errors in µs against the stamps of the program: idle, and with two busy loops a CPU.

    python benchmarks/regions.py [RUNS [CASE]]
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY / "tests" / "measurement"))

import truth  # noqa: E402

from nbhelpers.measurement import run_once

QUANTILES = (0, 0.05, 0.5, 0.95, 1)


def errors(name: str, runs: int) -> np.ndarray:
    """Begin and end of each run, in µs after the truth."""
    with tempfile.TemporaryDirectory() as folder:
        workload, found = truth.case(name, Path(folder)), []
        while len(found) < runs:
            row = run_once(workload)
            if row["status"] != "ok":
                raise SystemExit(f"{name}: {row['status']}: {row['message']}")
            found.append(truth.errors_us(row, Path(folder) / "truth"))
    return np.array(found)


def main(runs: int = 100, wanted: str = "") -> None:
    print(
        f"{'µs, ' + str(runs) + ' runs':<25}{'CPUs':<6}{'':<7}"
        + "".join(f"{q:>9.0%}" for q in QUANTILES)
    )
    loop = [sys.executable, "-c", "while True: pass"]
    for name in (name for name in truth.CASES if wanted in name):
        if missing := truth.lacking(name):
            print(f"{name:<25}no {missing} here")
            continue
        for state, count in (("idle", 0), ("busy", 2 * os.cpu_count())):
            loops = [subprocess.Popen(loop) for _ in range(count)]
            try:
                both = errors(name, runs).T
            finally:
                for running in loops:
                    running.kill()
                    running.wait()
            for which, observed in zip(("begin", "end"), both):
                values = "".join(f"{value:>9.0f}" for value in np.quantile(observed, QUANTILES))
                print(f"{name:<25}{state:<6}{which:<7}{values}", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]), *sys.argv[2:3])
