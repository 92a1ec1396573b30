"""Small tables of the agreed shapes (data/README.md), drawn with a fixed seed."""

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
