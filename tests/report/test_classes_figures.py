"""What the figures of variability draw, read back from the drawing."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from nbhelpers.attribution import explain
from nbhelpers.report import figure_attribution
from nbhelpers.report.appearance import ROLES

from .test_figures import check_inside


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def campaign():
    random = np.random.default_rng(0)
    slow = random.random(150) < 0.2
    seconds = random.normal(0.4, 0.006, 150) + 0.1 * slow
    return pd.DataFrame(
        {
            "seconds": seconds,
            "faults_per_s": (random.poisson(100, 150) + 250 * slow) / seconds,
            "status": "ok",
        }
    )


def test_an_attribution_where_higher_is_better():
    runs = campaign().assign(rate=lambda runs: 1 / runs["seconds"]).drop(columns="seconds")
    explanation = explain(runs, "rate", higher_is_better=True)
    figure = figure_attribution(explanation, runs)
    slow = next(part for part in figure.axes[0].collections if part.get_label().startswith("slow"))
    assert slow.get_offsets()[:, 0].max() < explanation.threshold
    assert tuple(slow.get_facecolor()[0][:3]) == plt.matplotlib.colors.to_rgb(ROLES["slow"].colour)
    check_inside(figure)
