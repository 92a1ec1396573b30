"""Figures of noise at scale: what is drawn is what stands in the table; and the place of ours
beside the published results.
"""

import matplotlib
import numpy as np
import pandas as pd
import pytest

matplotlib.use("Agg")


from nbhelpers.errors import InputError
from nbhelpers.report import (
    figure_dots,
    published_results,
    published_table,
)

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


def test_dots_stand_at_their_values():
    axes = figure_dots(CURVES, "ranks", "noise").axes[0]
    drawn = [container.lines[0].get_xdata().tolist() for container in axes.containers]
    assert drawn == [[1, 2, 20], [1, 1, 1.5]] and [
        text.get_text() for text in axes.get_yticklabels()
    ] == ["2", "8", "64"]


def test_what_cannot_be_drawn_is_named():
    with pytest.raises(InputError, match="without"):
        figure_dots(pd.DataFrame({"other": [1]}), "ranks", "noise")


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
