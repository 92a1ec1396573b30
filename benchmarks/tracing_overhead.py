"""What recording costs a CPU: events a second × the direct cost of an event, as a ratio to the
bound of 0.3 %.

    python benchmarks/tracing_overhead.py [--seconds 2] [--blocks 20]

The indirect cost (run times with and without tracing, in turn) is a campaign's business: notebook
10.
"""

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402

from nbhelpers.measurement import run_once
from nbhelpers.statistics import percentile_interval  # noqa: E402
from nbhelpers.tracing import Tracer, detour_workload
from nbhelpers.tracing.cost import event_costs_ns

BOUND_SHARE = 0.003


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--blocks", type=int, default=20)
    options = parser.parse_args()
    costs = event_costs_ns(options.blocks)
    low, high = _interval(costs)
    print(
        f"cost of an event: {np.median(costs):.0f} ns (median of {len(costs)}; 95 % interval"
        f" {low:.0f} to {high:.0f})"
    )
    for row in runs_of(options.seconds).itertuples():
        share = row.trace_events / row.cpus / row.wall_seconds * np.median(costs) * 1e-9
        print(
            f"run {row.run}: {row.trace_events / row.cpus / row.wall_seconds:7.0f} events/s a CPU,"
            f" {row.trace_bytes / 1024:5.1f} KiB, lost {row.trace_lost}: {100 * share:.4f} % of a"
            f" CPU, ratio to the bound of {100 * BOUND_SHARE:.1f} %: {share / BOUND_SHARE:.2f}"
        )


def _interval(costs: np.ndarray) -> tuple[float, float]:
    medians = np.median(np.random.default_rng(0).choice(costs, (2000, len(costs))), axis=1)
    return percentile_interval(medians)


def runs_of(seconds: float) -> pd.DataFrame:
    """Three runs of the detour loop, which keeps every CPU busy, traced."""
    with tempfile.TemporaryDirectory() as folder:
        tracer, workload = Tracer(folder, source="auto"), detour_workload(seconds, folder)
        try:
            rows = [run_once(workload, [tracer], run=run) for run in range(3)]
        finally:
            tracer.close()
    return pd.DataFrame(rows).rename(columns={"threads": "cpus"})


if __name__ == "__main__":
    main()
