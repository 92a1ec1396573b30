"""How fast a training job is analysed, beside the analyser that was published with the jobs.

    python benchmarks/stragglers.py FOLDER PYTHON [ROUNDS]

FOLDER is a checkout of github.com/ByteDance-Seed/StragglerAnalysis, PYTHON an interpreter that has
what it needs (pandas before version 3). Each round analyses each job once with either, in turn:
reading, graph, slow-downs by replica, stage and operation. Ours also replays the job without each,
which the other does not. "analyser" is its own timer's "e2e"; imports are in neither.
"""

import subprocess
import sys
import time

import numpy as np
from noisebook_training import published_job, what_if

JOBS = ("ST", "SE", "AR")
ANALYSER = """
import sys, time, yaml
sys.path.insert(0, "analyzer")
from analyzer.wia import WhatIfAnalyzer
from analyzer.metatypes import JobMeta
for line in sys.stdin:
    job = line.strip()
    meta = JobMeta(**yaml.safe_load(open(f"data/meta-{job}.yaml")))
    begin = time.perf_counter()
    result = WhatIfAnalyzer(f"data/trace-{job}.parquet", None, None).analyze(meta)
    print("seconds", time.perf_counter() - begin, result.blocking_slowdown, flush=True)
"""


def ours(job: str) -> tuple[float, float]:
    """Seconds and slow-down."""
    begin = time.perf_counter()
    result = what_if(published_job(job))
    slowdown = result.slowdown
    for part in ("replica", "stage", "operation"):
        result.by(part)
    return time.perf_counter() - begin, slowdown


def theirs(process: subprocess.Popen, job: str) -> tuple[float, float]:
    """Seconds and slow-down."""
    process.stdin.write(f"{job}\n")
    process.stdin.flush()
    for line in process.stdout:
        if line.startswith("seconds"):
            seconds, slowdown = line.split()[1:]
            return float(seconds), float(slowdown)
    raise RuntimeError("the analyser ended")


def main() -> None:
    folder, python = sys.argv[1:3]
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 7
    process = subprocess.Popen(
        [python, "-c", ANALYSER],
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    times: dict[str, list[tuple[float, float]]] = {job: [] for job in JOBS}
    for number in range(rounds + 1):  # the first warms both up
        for job in JOBS:
            analyser, theirs_slowdown = theirs(process, job)
            here, our_slowdown = ours(job)
            assert abs(our_slowdown / theirs_slowdown - 1) < 1e-6
            if number:
                times[job].append((analyser, here))
    process.stdin.close()
    process.wait()
    for job, pairs in times.items():
        analyser, here = np.array(pairs).T
        ratio = np.sort(analyser / here)
        print(
            f"{job}: analyser {np.median(analyser):.3f} s, ours {np.median(here) * 1e3:.1f} ms:"
            f" {np.median(ratio):.0f} times as fast ({ratio[0]:.0f} to {ratio[-1]:.0f},"
            f" n = {rounds} rounds)"
        )


if __name__ == "__main__":
    main()
