"""Figures of noise at scale: what is drawn is what stands in the table; and the place of ours
beside the published results.
"""

import matplotlib
import numpy as np
import pandas as pd
import pytest

matplotlib.use("Agg")

from matplotlib.collections import LineCollection
from matplotlib.container import BarContainer, ErrorbarContainer

from nbhelpers.errors import InputError
from nbhelpers.report import (
    figure_curves,
    figure_dots,
    figure_overheads,
    figure_ranks,
    published_results,
    published_table,
)
from nbhelpers.simulation.timeline import delayed_barrier, noisy_loop

CURVES = pd.DataFrame(
    {
        "noise": ["a", "a", "a", "b", "b", "b"],
        "ranks": [2, 8, 64] * 2,
        "median": [1, 2, 20, 1, 1, 1.5],
        "low": [1, 1.5, 15, 1, 1, 1.2],
        "high": [1, 3, 30, 1, 1, 2.0],
        "least": 1.0,
        "most": 40.0,
        "bytes": [1, 1, 1, 1048576, 1048576, 1048576],
    }
)


def test_curves_go_through_the_medians_on_axes_that_fit():
    axes = figure_curves(CURVES, "ranks").axes[0]
    lines = {
        line.get_label(): line.get_ydata().tolist()
        for line in axes.lines
        if not line.get_label().startswith("_")
    }
    assert lines == {"a": [1, 2, 20], "b": [1, 1, 1.5]}
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log") and len(
        [c for c in axes.containers if isinstance(c, ErrorbarContainer)]
    ) == 2


def test_panels_share_axes_and_roles():
    figure = figure_curves(CURVES, "ranks", panels="bytes")
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["bytes: 1", "bytes: 1,048,576"]
    colours = [
        [line.get_color() for line in axes.lines if not line.get_label().startswith("_")]
        for axes in figure.axes
    ]
    assert [len(own) for own in colours] == [1, 1] and colours[0] != colours[1]


def test_little_that_is_drawn_gets_a_linear_axis():
    assert (
        figure_curves(CURVES.assign(median=[1, 1.1, 1.2] * 2, low=1, high=1.3, most=1.4), "ranks")
        .axes[0]
        .get_yscale()
        == "linear"
    )


def test_dots_stand_at_their_values():
    axes = figure_dots(CURVES, "ranks", "noise").axes[0]
    drawn = [container.lines[0].get_xdata().tolist() for container in axes.containers]
    assert drawn == [[1, 2, 20], [1, 1, 1.5]] and [
        text.get_text() for text in axes.get_yticklabels()
    ] == ["2", "8", "64"]


def test_systems_are_named():
    table = pd.DataFrame(
        {
            "noise": ["alps", "daint"],
            "overhead_share": [0.0006, 0.006],
            "median": [9.0, 2.0],
            "low": [8, 1.5],
            "high": [12, 2.5],
        }
    )
    axes = figure_overheads(table).axes[0]
    assert {text.get_text() for text in axes.texts} == {"alps", "daint"}
    assert axes.containers[0].lines[0].get_xdata().tolist() == pytest.approx([0.06, 0.6])


class TestRanks:
    def test_every_piece_of_work_is_a_bar_and_every_message_a_line(self):
        result = noisy_loop(6, 2, seed=3)
        timeline = result.timeline()
        axes = figure_ranks(timeline, result.path()).axes[0]
        bars = sum(
            len(container) for container in axes.containers if isinstance(container, BarContainer)
        )
        assert bars == (timeline["what"] != "message").sum() and not any(
            isinstance(c, LineCollection) for c in axes.collections
        )
        assert len(axes.lines) == (timeline["what"] == "message").sum() + 1

    def test_the_path_ends_with_the_last_rank_and_leaves_a_rank_when_its_message_does(self):
        result = delayed_barrier(8, 3, 20)
        path = figure_ranks(result.timeline(), result.path()).axes[0].lines[-1]
        points = list(zip(path.get_xdata(), path.get_ydata()))
        assert points[-1] == (result.makespan_ns / 1e3, result.last_rank)
        left = [(a, b) for a, b in zip(points, points[1:]) if a[1] != b[1]]
        assert left and all(b[0] - a[0] == pytest.approx(2.5) for a, b in left)  # L


@pytest.mark.parametrize(
    "draw",
    [
        lambda table: figure_curves(table, "ranks"),
        lambda table: figure_dots(table, "ranks", "noise"),
        figure_overheads,
        figure_ranks,
    ],
)
def test_what_cannot_be_drawn_is_named(draw):
    with pytest.raises(InputError, match="without"):
        draw(pd.DataFrame({"other": [1]}))


class TestPublishedResults:
    def test_ours_stand_in_their_rows_and_the_rest_is_empty(self):
        table = published_results(
            {"ferreira-128": {"median": 20.0, "low": 17.0, "high": 22.0, "seeds": 30}}
        ).set_index("result")
        row = table.loc["ferreira-128"]
        assert (
            row["published"],
            row["reference"],
            row["ours"],
            row["low"],
            row["high"],
            row["seeds"],
        ) == ("30", "17.3–31.7", 20, 17, 22, 30)
        assert (
            table["ours"].notna().sum() == 1
            and table.loc["pop-scale", "published"] == "> 2"
            and table.loc["one-mib", "published"] == "< 1"
            and table.loc["POP 1000 Hz x 25 us", "accepted"] == "1.24–1.36"
            and table.loc["pop-scale", "accepted"] == "> 1.99"
        )

    def test_what_nobody_published_is_refused(self):
        with pytest.raises(InputError, match="nothing was published as 'ferreira'"):
            published_results({"ferreira": {"median": 1.0}})

    def test_names_are_unique_and_ranges_are_ranges(self):
        for name in ("hoefler2010-slides1", "beckman2006-text1", "ferreira2008-text1"):
            table = published_table(name)
            assert table["result"].is_unique
            for low, high in (
                ("published_low", "published_high"),
                ("reference_low", "reference_high"),
            ):
                assert not np.any(table[low] > table[high])
