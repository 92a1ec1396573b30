"""Small tables of the agreed shapes (CONTRIBUTING.md), drawn with a fixed seed."""

import matplotlib

matplotlib.use("Agg")

import numpy as np
import pandas as pd
import pytest


@pytest.fixture
def runs():
    random = np.random.default_rng(1)
    cells = {"baseline": 0.4, "traced": 0.402, "injected": 0.5}
    table = pd.concat(
        [
            pd.DataFrame({"cell": cell, "seconds": random.normal(mean, 0.01, 30), "status": "ok"})
            for cell, mean in cells.items()
        ]
    )
    table.iloc[3, table.columns.get_loc("status")] = "timeout"
    return table.reset_index(drop=True)


@pytest.fixture
def events():
    random = np.random.default_rng(2)
    source = random.choice(["local_timer", "SCHED", "kworker/0:1"], 200)
    table = pd.DataFrame(
        {
            "run": random.integers(0, 2, 200),
            "cpu": random.integers(0, 2, 200),
            "source": source,
            "kind": (
                pd.Series(source).map(
                    {"local_timer": "irq", "SCHED": "softirq", "kworker/0:1": "thread"}
                )
            ),
            "start_ns": np.sort(random.integers(0, 400_000_000, 200)),
            "duration_ns": random.integers(1000, 90_000, 200),
        }
    )
    return table.assign(end_ns=table["start_ns"] + table["duration_ns"])
