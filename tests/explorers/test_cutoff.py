"""The cutoff that can be dragged: the view follows it, in the widget and in the twin that needs no
kernel.
"""

import re

import numpy as np
import pandas as pd
import pytest

from nbhelpers import explain
from nbhelpers.errors import InputError
from nbhelpers.explorers import explore_cutoff
from nbhelpers.explorers.cutoff import node_counts
from nbhelpers.page import outside_loads


@pytest.fixture
def runs():
    random = np.random.default_rng(3)
    faults = random.poisson(50, 60) + 300 * random.permutation(np.arange(60) % 3 == 0)
    return pd.DataFrame(
        {
            "run": range(60),
            "minor_faults": faults,
            "irq_LOC": random.poisson(100, 60),
            "status": "ok",
            "seconds": 0.1 + 1e-4 * faults + 1e-3 * random.standard_normal(60),
        }
    )


def slow(text):
    return int(re.search(r"(\d+) of 60 runs are slow", text)[1])


def test_the_view_follows_the_slider(runs):
    slider, shown = explore_cutoff(runs, start=0.12).widget().children
    assert slow(shown.value) == (runs["seconds"] > 0.12).sum() == 20
    assert "minor_faults" in shown.value and "Page faults" in shown.value
    assert "<svg" in shown.value and "cutoff <strong>0.12 s</strong>" in shown.value
    slider.value = slider.min
    assert slow(shown.value) == (runs["seconds"] > slider.value).sum() > 50


def test_the_slider_stands_on_the_start_which_a_browser_would_move_to_a_step(runs):
    values = np.sort(runs["seconds"])
    for start in (0.12, 0.1234567, values[20]):
        explorer = explore_cutoff(runs, start=start)
        slider = explorer.widget().children[0]
        steps = (start - slider.min) / slider.step
        assert abs(steps - round(steps)) < 1e-6 and slider.min >= min(values[3], start) - 1e-9
        added_up = slider.min + round(steps) * slider.step
        assert explorer.view({"cutoff": added_up}) is explorer.view()
        assert explorer.view({"cutoff": added_up + slider.step}) != explorer.view()


def test_the_tree_has_the_counts_of_the_runs_that_it_sorts(runs):
    found = explain(runs, cutoff=0.12, permutations=0)
    values = runs[found.features].to_numpy(np.float32)
    inside = found.tree.decision_path(values).toarray().astype(bool)
    slower = (runs["seconds"] > 0.12).to_numpy()
    expected = [[(~slower & node).sum(), (slower & node).sum()] for node in inside.T]
    assert node_counts(found).tolist() == expected and len(expected) >= 3


def test_the_twin_shows_one_view_of_several_and_loads_nothing(runs):
    twin = explore_cutoff(runs, start=0.12).twin()
    views = twin.split("<div data-view=")[1:]
    hidden = [view.split(">")[0].endswith('none"') for view in views]
    assert len(views) == 8 and hidden.count(False) == 1
    assert slow(views[hidden.index(False)]) == 20
    counts = [slow(view) for view in views]
    assert counts == sorted(counts, reverse=True) and counts[-1] < 10
    assert outside_loads(twin) == []


def test_a_stage_shows_the_twin_and_a_person_the_slider(runs, monkeypatch):
    shown = []
    monkeypatch.setattr("IPython.display.display", shown.append)
    explore_cutoff(runs)._ipython_display_()
    monkeypatch.setenv("NOISEBOOK_STATIC", "1")
    explore_cutoff(runs)._ipython_display_()
    assert [type(item).__name__ for item in shown] == ["VBox", "HTML"]


def test_a_handful_of_runs_is_reported_and_no_failure(runs):
    assert "Too few runs" in explore_cutoff(runs.head(4)).widget().children[1].value
    with pytest.raises(InputError, match="at least two"):
        explore_cutoff(runs.head(1))
    with pytest.raises(InputError, match="no column"):
        explore_cutoff(runs, "second")
    with pytest.raises(InputError, match="no control is called 'cut'"):
        explore_cutoff(runs).view({"cut": 0.1})
