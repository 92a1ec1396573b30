"""How fast the noise stage is: average, delta and noise config of many events, as a ratio to one
NumPy sort of as many numbers.

    python benchmarks/delta.py [--events 10000000] [--runs 10]

Sorting is the bound that any method with a sort by source has to meet; below 1 would mean that
nothing is ordered at all.
"""

import argparse
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from nbhelpers.noise import NoiseConfig, average_noise, delta_noise

SOURCES = 200
CPUS = 32


def made_events(count: int, runs: int) -> pd.DataFrame:
    """Events as a trace has them: a few frequent sources and many rare ones, durations with a long
    tail, few overlaps.
    """
    random = np.random.default_rng(0)
    source = np.minimum(random.zipf(1.5, count) - 1, SOURCES - 1)
    kinds = np.array(["irq", "softirq", "thread"])
    duration = random.lognormal(8, 1, count).astype(np.int64) + 1
    start = np.sort(random.integers(0, 1 + count // runs * 20_000 // CPUS, count))
    return pd.DataFrame(
        {
            "run": random.integers(0, runs, count),
            "cpu": random.integers(0, CPUS, count),
            "kind": pd.Categorical.from_codes(source % 3, kinds),
            "source": pd.Categorical.from_codes(
                source, [f"source{number}" for number in range(SOURCES)]
            ),
            "start_ns": start,
            "duration_ns": duration,
            "end_ns": start + duration,
            "policy": pd.Categorical.from_codes(np.zeros(count, int), [""]),
            "priority": np.int64(0),
            "pid": random.integers(1, 5000, count),
        }
    )


def timed(action: Callable[[], object]) -> tuple[float, object]:
    begin = time.perf_counter()
    result = action()
    return time.perf_counter() - begin, result


def report(name: str, count: int, seconds: float) -> None:
    numbers = np.random.default_rng(1).integers(0, 2**40, count)
    sort = min(timed(lambda: np.sort(numbers))[0] for _ in range(3))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    print(
        f"{name:<34} {count:>10} events {seconds:8.3f} s {count / seconds:12.0f} events/s"
        f" {seconds / sort:7.2f} x np.sort  peak {peak:5.2f} GiB"
    )


def benchmark_delta(count: int, runs: int) -> None:
    """All events spread over some runs, then all of them in one: the delta then has ten times as
    much to choose from.
    """
    for number in (runs, 1):
        events = made_events(count, number)
        table = pd.DataFrame(
            {"run": range(number), "seconds": np.linspace(1, 1.5, number), "status": "ok"}
        )
        seconds, average = timed(lambda: average_noise(events, table))
        report(f"average_noise, {number} runs", count, seconds)
        seconds, _ = timed(lambda: delta_noise(events, average, table))
        report(f"delta_noise, {number} runs", count, seconds)


def benchmark_config(count: int) -> None:
    events = made_events(count, 1)
    for merge in ("improved", "pessimistic", "compat"):
        seconds, config = timed(lambda: NoiseConfig.from_events(events, merge=merge))
        report(f"from_events {merge}", count, seconds)
    config = NoiseConfig.from_events(events)
    kept = len(config.events())
    with tempfile.TemporaryDirectory() as folder:
        for name, write in (("own", config.write), ("published", config.write_published)):
            seconds, path = timed(lambda: write(Path(folder) / name))
            report(f"write {name}", kept, seconds)
            seconds, _ = timed(lambda: NoiseConfig.read(path))
            report(f"read {name}", kept, seconds)
    report("digest", kept, timed(lambda: config.digest)[0])
    report("summary", kept, timed(config.summary)[0])


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--events", type=int, default=10_000_000)
    options.add_argument("--runs", type=int, default=10)
    chosen = options.parse_args()
    benchmark_config(max(chosen.events // 10, 1))
    benchmark_delta(chosen.events, chosen.runs)
