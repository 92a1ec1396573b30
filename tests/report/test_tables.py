"""Sentences of a page."""

from nbhelpers.report import found_html


def test_sentences_are_escaped_and_their_bold_parts_bold():
    assert "<strong>3 s</strong> &amp; &lt;m&gt;" in found_html(["It took **3 s** & <m>."])
    assert "<script>" not in found_html(["<script>"])
