"""What a large campaign takes from its traces to the delta: seconds, events a second, memory.

python benchmarks/large_campaign.py [RUNS] [CPUS] [EVENTS A CPU]

The traces are text of the kernel's osnoise tracer, as `Tracer` records it: the noise lines of a
recorded trace (tests/tracing/data), drawn anew for each CPU. Ten different ones are written, and
further runs are links to them, each of which is read and kept for itself. For a tenth, three tenths
and all of the runs: first from the traces, then again from the kept events. `peak` is the resident
memory of the process, and of the largest process that reads ahead.
"""

import argparse
import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
RECORDED = ROOT / "tests/tracing/data/osnoise-run-003.trace.gz"
DIFFERENT = 10
WINDOW_NS = (24 * 10**9, 40 * 10**9)
ONE = "import sys; from benchmarks.large_campaign import one; one(sys.argv[1], int(sys.argv[2]))"


def write_trace(path: Path, lines: list[bytes], cpus: int, events: int, seed: int) -> None:
    """A run of `cpus` × `events` lines in the order of their time stamps."""
    random = np.random.default_rng(seed)
    drawn = np.sort(random.integers(0, len(lines), cpus * events))
    cpu = [b"%03d" % number for number in range(cpus)]
    text = [
        lines[line][:26] + cpu[number] + lines[line][29:]
        for line, number in zip(drawn.tolist(), random.integers(0, cpus, len(drawn)).tolist())
    ]
    header = {"format": "noisebook osnoise 1", "run": seed, "excluded_pids": [], "lost": 0}
    header |= {"clock": "mono", "workload_pids": [103]}
    header |= {"start_ns": WINDOW_NS[0], "end_ns": WINDOW_NS[1]}
    path.write_bytes(
        b"# noisebook: " + json.dumps(header).encode() + b"\n# tracer: osnoise\n" + b"".join(text)
    )


def write_campaign(folder: Path, runs: int, cpus: int, events: int) -> None:
    content = gzip.decompress(RECORDED.read_bytes()).splitlines(keepends=True)
    lines = [line for line in content if b"_noise: " in line and b"start 0.0" not in line]
    for run in range(runs):
        path = folder / f"run-{run:06d}.osnoise.gz"
        if run < DIFFERENT:
            write_trace(path, lines, cpus, events, run)
        else:
            os.link(folder / f"run-{run % DIFFERENT:06d}.osnoise.gz", path)


def one(folder: str, count: int) -> None:
    """Average and delta of the first runs, as a process of its own; prints what it took."""
    import resource

    from nbhelpers.noise import average_noise, delta_noise
    from nbhelpers.outcomes import worst_first
    from nbhelpers.tracing import each_trace, read_traces

    seconds = 1 + np.random.default_rng(0).random(count)
    runs = pd.DataFrame({"run": range(count), "seconds": seconds, "status": "ok"})
    begin = time.perf_counter()
    average = average_noise(each_trace(folder, runs), runs)
    delta = delta_noise(read_traces(folder, worst_first(runs).head(1)), average, runs)
    took = time.perf_counter() - begin
    peaks = [
        resource.getrusage(who).ru_maxrss / 1024**2
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    ]
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    cpu = sum(usage.ru_utime + usage.ru_stime for usage in used)
    print(json.dumps([took, cpu, int(average["events"].sum()), *peaks, len(delta)]))


def measure(folder: Path, count: int, what: str) -> tuple[int, float]:
    command = [sys.executable, "-c", ONE, str(folder), str(count)]
    output = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout
    took, cpu, events, own, ahead, left = json.loads(output)
    print(
        f"{count:>5} runs {what:<12} {events:>10} events {took:7.1f} s {events / took:>10,.0f}/s"
        f"  CPU {cpu:7.1f} s  peak {own:.2f} GiB, ahead {ahead:.2f} GiB  delta {left} events"
        f"  load {os.getloadavg()[0]:.1f}",
        flush=True,
    )
    return events, cpu


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", type=int, nargs="?", default=1000)
    parser.add_argument("cpus", type=int, nargs="?", default=128)
    parser.add_argument("events", type=int, nargs="?", default=1016)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write_campaign(folder, chosen.runs, chosen.cpus, chosen.events)
        size = sum(path.stat().st_size for path in folder.iterdir()) / 1e9
        print(f"{chosen.runs} runs, {chosen.cpus} CPUs: {size:.1f} GB of text, {DIFFERENT} written")
        for what in ("from traces", "from kept"):
            found = []
            for count in (chosen.runs // 10, chosen.runs * 3 // 10, chosen.runs):
                if what == "from traces":
                    shutil.rmtree(folder / ".events", ignore_errors=True)
                found.append(measure(folder, count, what))
            slope = np.polyfit(*np.log(np.array(found)).T, 1)[0]
            print(f"{what}: CPU seconds grow as events to the power {slope:.2f} (1: linear)")
        kept = sum(path.stat().st_size for path in (folder / ".events").iterdir()) / 1e9
        print(f"kept events: {kept:.2f} GB; {len(os.sched_getaffinity(0))} CPUs here")


if __name__ == "__main__":
    main()
