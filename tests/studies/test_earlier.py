"""Findings beside those of an earlier recording."""

import numpy as np
import pandas as pd
import pytest

from nbhelpers.errors import InputError
from nbhelpers.places import knowledge
from nbhelpers.studies.earlier import earlier_sentences, with_earlier

from .simulated import cui_series, length_runs, persson_runs
from .test_false_verdicts import cui_page, persson_page

PERSSON, CUI = "40-mitigations", "60-openmp-variability"


def found_again(stage: str, **verdicts: str) -> pd.DataFrame:
    """The earlier findings as if they had been found once more, but for some."""
    table = pd.read_csv(knowledge() / "earlier-findings.csv", comment="#")
    table = table[table["stage"] == stage].rename(
        columns={"verdict_before": "verdict"}
        | {"before_percent": "effect_percent"}
        | {f"before_{end}_percent": f"{end}_percent" for end in ("low", "high")}
    )
    for name, verdict in verdicts.items():
        table.loc[table["finding"].str.startswith(name), "verdict"] = verdict
    return table


def test_each_earlier_finding_is_one_of_its_page():
    random = np.random.default_rng(1)
    pages = {
        PERSSON: persson_page(persson_runs(random, 2, 1.3), length_runs(random, 1.3)),
        CUI: cui_page(*cui_series(random)),
    }
    for stage, page in pages.items():
        compared = with_earlier(page, stage)
        assert len(compared) == len(found_again(stage)) == len(page)
        assert list(compared["verdict"]) == list(page["verdict"])


def test_what_the_rule_changed_and_what_the_runs_changed():
    compared = with_earlier(found_again(CUI, threads="reproduced", more="reversed"), CUI)
    (said,) = earlier_sentences(compared)
    assert "1 of 6 findings were called" in said and "4 are the same here" in said
    assert "(CV, TP / one thread): reproduced (+32.7 %) then, reversed (+32.7 %) here" in said
    assert "(CV): not measurable here then, reproduced here" in said and "nan" not in said
    (said,) = earlier_sentences(with_earlier(found_again(PERSSON), PERSSON))
    assert "6 of 8 findings" in said and said.endswith("11 are the same here.")
    assert earlier_sentences(with_earlier(found_again(CUI), PERSSON)) == []


def test_knowledge_without_them_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv("NOISEBOOK_KNOWLEDGE", str(tmp_path))
    with pytest.raises(InputError, match="earlier findings are not here"):
        with_earlier(pd.DataFrame(), CUI)
