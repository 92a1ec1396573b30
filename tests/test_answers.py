"""The answer of a notebook: refused where it does not fit, and the same after a way over disk."""

import json

import pytest

from nbhelpers.answers import Answer, read_answer, read_answers, write_answer
from nbhelpers.errors import InputError

REPLAY = Answer(
    "no",
    "The replay takes half as long as the anomaly.",
    "replayed over recorded run time",
    0.5213,
    0.5,
    0.55,
    n=30,
    n_of="rounds",
    published="8.6 % (Persson et al. 2025, Table 7)",
    figure="injected",
)


def written(folder, answer):
    path = folder / "30-injection" / "found.json"
    return write_answer(path, "30-injection", "Is it as slow?", answer, ["And **more**."])


def test_an_answer_comes_back_from_disk(tmp_path):
    found = read_answer(written(tmp_path, REPLAY))
    assert found == read_answers(tmp_path)[0]
    assert (found.stage, found.question) == ("30-injection", "Is it as slow?")
    assert "And **more**." in (tmp_path / "30-injection" / "found.json").read_text()
    assert found.answer.number == "0.521 (0.5 to 0.55), n = 30 rounds"
    assert found.answer == REPLAY


def test_another_file_is_not_an_answer(tmp_path):
    path = tmp_path / "found.json"
    path.write_text(json.dumps(["a sentence"]))
    with pytest.raises(InputError, match="run its stage again"):
        read_answer(path)


def test_text_is_escaped():
    shown = Answer("yes", "a < b & c", "x<y", 1.0, n=3)._repr_html_()
    assert "a &lt; b &amp; c" in shown and "x&lt;y: 1, n = 3 runs" in shown
