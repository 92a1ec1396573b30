"""What a notebook shows of the library's objects."""

import re

from nbhelpers.facts import facts_html
from nbhelpers.measurement import Campaign, Cell
from nbhelpers.workloads import program


def rows(html: str) -> dict[str, str]:
    """The facts, by name."""
    return dict(re.findall(r"<tr><th[^>]*>([^<]*)</th><td[^>]*>([^<]*)</td></tr>", html))


def test_texts_are_escaped_and_cut():
    shown = facts_html("<b>", {"x<y": "a" * 1999, "none": (), "unknown": None})
    assert "<b><b>" not in shown and "&lt;b&gt;" in shown and "x&lt;y" in shown
    assert len(rows(shown)["x&lt;y"]) == 1000
    assert (rows(shown)["none"], rows(shown)["unknown"]) == ("none", "not known")


def test_a_campaign_says_how_far_it_is(tmp_path):
    cells = [Cell("one", program("true", timeout_s=7)), Cell("two", program("true"), noise="x")]
    campaign = Campaign(tmp_path / "c", cells, runs=3, seed=5)
    campaign.run()
    assert "6 of 6 runs" in repr(campaign)
    assert rows(cells[0].workload._repr_html_())["time limit (s)"] == "7"
