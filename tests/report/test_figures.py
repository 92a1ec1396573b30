"""What the figures draw, read back from the drawing; how they look is for eyes."""

from dataclasses import replace
from itertools import combinations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

from nbhelpers.attribution import explain
from nbhelpers.palette import CLASSES
from nbhelpers.report import figure_attribution


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def words(figure):
    figure.draw_without_rendering()
    texts = [text for text in figure.findobj(plt.Text) if text.get_visible()]
    return [text.get_text() for text in texts if text.get_text().strip()]


def check_inside(figure):
    """Everything that is drawn lies on the paper (within half a point)."""
    figure.canvas.draw()
    drawn, (width, height) = figure.get_tightbbox(), figure.get_size_inches()
    assert min(drawn.x0, drawn.y0) > -0.007, drawn
    assert drawn.x1 < width + 0.007 and drawn.y1 < height + 0.007, drawn


def explained(slow_rate):
    random = np.random.default_rng(3)
    slow = random.random(120) < 0.25
    table = {
        "seconds": random.normal(0.4, 0.005, 120) + 0.1 * slow,
        "nonvoluntary_context_switches_per_s": random.poisson(100 + slow_rate * slow),
        "other_per_s": random.poisson(50, 120),
    }
    runs = pd.DataFrame(table)
    return explain(runs), runs


def test_the_tree_counts_the_runs():
    explanation, runs = explained(300)
    figure = figure_attribution(explanation, runs)
    nodes = [text for text in words(figure) if " slow" in text and " fast" in text]
    slow = int(explanation.labels.sum())
    assert f"{120 - slow} fast\n{slow} slow" in nodes[0] and "nonvoluntary_" in nodes[0]
    leaves = [node.split() for node in nodes if "?" not in node]
    assert sum(int(leaf[0]) for leaf in leaves) == 120 - slow
    assert sum(int(leaf[2]) for leaf in leaves) == slow
    check_inside(figure)


def test_no_box_of_a_deep_tree_lies_on_another():
    explanation, runs = explained(300)
    random, names = np.random.default_rng(7), [f"process_runqueue_wait_{k}_ns_per_s" for k in "abc"]
    runs = runs.assign(**{name: random.normal(size=len(runs)) for name in names})
    tree = DecisionTreeClassifier(max_depth=3, random_state=0)
    tree.fit(runs[names].to_numpy(np.float32), explanation.labels)
    figure = figure_attribution(replace(explanation, features=names, tree=tree), runs)
    figure.canvas.draw()
    nodes = [text for text in figure.findobj(plt.Text) if " slow" in text.get_text()]
    boxes = [text.get_bbox_patch().get_window_extent() for text in nodes[:-1]]
    assert len(boxes) > 8
    assert not [pair for pair in combinations(boxes, 2) if pair[0].overlaps(pair[1])]
    check_inside(figure)


def test_no_tree_is_drawn_where_nothing_was_found():
    explanation, runs = explained(0)
    figure = figure_attribution(explanation, runs)
    assert "Nothing among these" in "".join(words(figure)).replace("\n", " ")
    check_inside(figure)


def test_an_attribution_where_higher_is_better():
    _, runs = explained(300)
    runs = runs.assign(rate=lambda runs: 1 / runs["seconds"]).drop(columns="seconds")
    explanation = explain(runs, "rate", higher_is_better=True)
    figure = figure_attribution(explanation, runs)
    slow = next(part for part in figure.axes[0].collections if part.get_label().startswith("slow"))
    assert slow.get_offsets()[:, 0].max() < explanation.threshold
    assert tuple(slow.get_facecolor()[0][:3]) == plt.matplotlib.colors.to_rgb(CLASSES["slow"])
    check_inside(figure)
