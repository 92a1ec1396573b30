"""What a notebook shows of the library's objects."""

import re

from nbhelpers.facts import facts_html


def rows(html: str) -> dict[str, str]:
    """The facts, by name."""
    return dict(re.findall(r"<tr><th[^>]*>([^<]*)</th><td[^>]*>([^<]*)</td></tr>", html))


def test_texts_are_escaped_and_cut():
    shown = facts_html("<b>", {"x<y": "a" * 1999, "none": (), "unknown": None})
    assert "<b><b>" not in shown and "&lt;b&gt;" in shown and "x&lt;y" in shown
    assert len(rows(shown)["x&lt;y"]) == 1000
    assert (rows(shown)["none"], rows(shown)["unknown"]) == ("none", "none")
