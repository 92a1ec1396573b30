"""Tables of a study: the published values stand beside ours, and ours have a count and an
interval.
"""

from nbhelpers.report import Provenance, found_html


def test_provenance_shows_itself(tmp_path):
    (tmp_path / "provenance").mkdir()
    (tmp_path / "provenance/10-x.json").write_text('{"commit": "abc", "parameters": {"runs": 3}}')
    assert "<strong>3 s</strong> &amp; &lt;m&gt;" in found_html(["It took **3 s** & <m>."])
    assert "abc" in Provenance(tmp_path / "provenance")._repr_html_()
    assert "<script>" not in found_html(["<script>"])
