"""The figure of nodes, read back from the drawing; how it looks is for eyes."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from noisebook_nodes.comparison import compare_nodes
from noisebook_nodes.figure import figure_nodes


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


@pytest.mark.parametrize("nodes", [2, 12, 40])
def test_every_run_and_median_of_the_worst_nodes_is_drawn_the_worst_on_top(nodes):
    runs = campaign(nodes)
    runs.loc[5, "status"] = "timeout"
    table = compare_nodes(runs)
    left, right = figure_nodes(runs, table).axes
    shown = table["node"].head(16)
    assert [text.get_text() for text in left.get_yticklabels()] == list(shown)
    assert shown[0] == "n001" and left.get_ylim()[0] > left.get_ylim()[1]
    drawn = np.concatenate(
        [marks.get_offsets()[:, 0] for marks in left.collections if len(marks.get_offsets())]
    )
    ok = runs[(runs["status"] == "ok") & runs["node"].isin(shown)]
    assert set(ok["seconds"]) <= set(drawn)
    assert np.allclose(left.lines[0].get_xdata(), table["median"].head(16))
    assert (right.patches[0].get_x(), right.patches[0].get_width()) == pytest.approx((-2, 4))
    plt.close("all")
