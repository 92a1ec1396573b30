"""The figure of nodes, read back from the drawing; how it looks is for eyes."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import PathCollection

from nbhelpers.cluster.comparison import compare_nodes
from nbhelpers.errors import InputError
from nbhelpers.report.nodes import figure_nodes

from .test_figures import check_inside, said_instead, words


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def campaign(nodes, rounds=8, runs=3, slow=1):
    """Node number `slow` takes a tenth longer; a round is as good or as bad for all nodes."""
    draw = np.random.default_rng(7)
    times = draw.uniform(0.9, 1.1, (rounds, 1, 1)) * draw.normal(1, 0.01, (rounds, nodes, runs))
    times[:, slow] *= 1.1
    number, node, _ = np.indices(times.shape).reshape(3, -1)
    names = [f"n{place:03d}" for place in node]
    return pd.DataFrame(
        {"node": names, "node_round": number, "seconds": times.ravel(), "status": "ok"}
    )


def points(axes):
    """Every run: its value and its height."""
    drawn = [marks for marks in axes.collections if isinstance(marks, PathCollection)]
    return np.concatenate([marks.get_offsets() for marks in drawn])


def bars(axes):
    """Ends of all intervals, and the rows that they lie in."""
    lines = [line for drawn in axes.containers for line in drawn.lines[2]]
    ends = [segment for line in lines for segment in line.get_segments() if len(segment)]
    return np.array([(end[0, 1], end[0, 0], end[1, 0]) for end in ends])


@pytest.mark.parametrize("nodes", [2, 12, 16, 17, 200])
def test_every_run_and_interval_of_every_node_is_drawn_the_worst_on_top(nodes):
    runs = campaign(nodes)
    runs.loc[5, "status"] = "timeout"
    table = compare_nodes(runs)
    figure = figure_nodes(runs, table)
    left, right = figure.axes
    drawn = np.sort(points(left)[:, 0])
    assert np.allclose(drawn, np.sort(runs.loc[runs["status"] == "ok", "seconds"]))
    for axes, columns in (
        (left, ["low", "high"]),
        (right, ["change_low_percent", "change_high_percent"]),
    ):
        found = bars(axes)
        found = found[np.argsort(found[:, 0])]
        assert (np.diff(found[:, 0]) > 0).all()
        assert np.allclose(found[:, 1:], table[columns])
    top, bottom = left.get_ylim()[::-1]
    assert table["node"][0] == "n001" and top < found[0, 0] < found[-1, 0] < bottom
    check_inside(figure)
    assert figure.get_size_inches()[0] == 7 and figure.get_size_inches()[1] < 7


def test_of_many_nodes_the_worst_are_named_and_the_others_counted():
    runs = campaign(40)
    table = compare_nodes(runs)
    labels = [text.get_text() for text in figure_nodes(runs, table).axes[0].get_yticklabels()]
    assert labels == [*table["node"][:16], "24 more nodes,\nworst first"]
    labels = [
        text.get_text() for text in figure_nodes(runs, table, named=40).axes[0].get_yticklabels()
    ]
    assert labels == table["node"].tolist()


def test_points_lie_in_the_row_of_their_node():
    runs = campaign(3)
    table = compare_nodes(runs)
    places = points(figure_nodes(runs, table).axes[0])
    for row, node in enumerate(table["node"]):
        own = np.sort(places[np.round(places[:, 1]) == row, 0])
        assert np.allclose(own, np.sort(runs.loc[runs["node"] == node, "seconds"]))


def test_verdicts_have_a_marker_each_and_the_margin_is_a_band():
    runs = campaign(12)
    table = compare_nodes(runs, margin=0.03)
    figure = figure_nodes(runs, table)
    said = {text.get_text() for text in words(figure)}
    counts = table["verdict"].value_counts()
    assert {f"worse ({counts['worse']} node)", "margin, ±3 %", "median, 95 % interval"} <= said
    assert {"run time (s)", "worse than the other nodes (%)"} <= said
    band = figure.axes[1].patches[0]
    assert (band.get_x(), band.get_width()) == pytest.approx((-3, 6))
    marked = [drawn.lines[0] for drawn in figure.axes[1].containers]
    assert {
        line.get_marker(): len(line.get_xdata()) for line in marked if len(line.get_xdata())
    } == {
        "^": counts["worse"],
        "o": counts["no difference"],
    }
    table.attrs.clear()
    assert not figure_nodes(runs, table).axes[1].patches


def test_of_few_rounds_there_is_no_interval_of_the_change():
    runs = campaign(2, rounds=3)
    figure = figure_nodes(runs, compare_nodes(runs))
    assert len(bars(figure.axes[0])) == 2
    assert not len(bars(figure.axes[1]))
    check_inside(figure)


def test_a_throughput_is_worse_to_the_right_too():
    runs = campaign(4).assign(outcome="rate", reports='{"rate": ["MB/s", "higher"]}')
    runs["rate"] = 100 / runs["seconds"]
    table = compare_nodes(runs)
    figure = figure_nodes(runs, table)
    assert table["node"][0] == "n001" and table["change_percent"][0] > 0
    assert figure.axes[0].get_xlabel() == "rate (MB/s)"
    assert np.allclose(np.sort(points(figure.axes[0])[:, 0]), np.sort(runs["rate"]))


def test_long_names_keep_their_ends_and_what_is_missing_is_named():
    runs = campaign(2)
    runs["node"] = "a-very-long-name-of-a-cluster.example-" + runs["node"]
    table = compare_nodes(runs)
    figure = figure_nodes(runs, table)
    label = figure.axes[0].get_yticklabels()[0].get_text()
    assert len(label) == 28 and label.startswith("…") and label.endswith("example-n001")
    check_inside(figure)
    assert "no run to draw" in said_instead(figure_nodes(runs.assign(status="timeout"), table))
    with pytest.raises(InputError, match="'verdict'"):
        figure_nodes(runs, table.drop(columns="verdict"))
    with pytest.raises(InputError, match="no column 'node'"):
        figure_nodes(runs.drop(columns="node"), table)
