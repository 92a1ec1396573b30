"""Every numbered table, figure and claim of the publications has a row, its page, and a verdict."""

import re

import pandas as pd
import pytest

from nbhelpers.paper._joined import publication_records
from nbhelpers.paper._numbered import index_html, numbered_records, numbered_rows
from nbhelpers.report import published_table, save_table
from nbhelpers.study import NOTEBOOKS

from .test_front import Words

# counted from the captions of the papers; the talk of Hoefler et al. has slides with titles
COUNTS = {
    "persson2025": {"Table": 7, "Figure": 6, "Listing": 1},
    "cui2023": {"Table": 2, "Figure": 7},
    "ferreira2008": {"Figure": 8},
    "frachtenberg2026": {"Table": 3, "Figure": 21},
    "hoefler2010": {"Slide": 46},
}
CLAIMS = {
    "persson2025": ["persson2025-claims1"],
    "ferreira2008": ["ferreira2008-claims1", "ferreira2008-text1"],
    "hoefler2010": ["hoefler2010-slides1", "beckman2006-text1"],
}


@pytest.mark.parametrize("publication", COUNTS)
def test_what_the_paper_numbers_has_a_row(publication):
    numbers = [record["number"] for record in numbered_records(publication)]
    for kind, count in COUNTS[publication].items():
        of_kind = [number for number in numbers if number.startswith(kind)]
        assert len(of_kind) == len(set(of_kind)) == count
        if kind != "Slide":
            assert of_kind == [f"{kind} {at}" for at in range(1, count + 1)]
    assert set(COUNTS) == set(publication_records())


@pytest.mark.parametrize("publication", CLAIMS)
def test_each_claim_has_a_row(publication):
    shown = {record["shows"] for record in numbered_records(publication)}
    for name in CLAIMS[publication]:
        table = published_table(name)
        assert set(table["claim" if "claim" in table else "statement"]) <= shown


def test_ours_is_a_table_or_figure_of_its_page_and_what_has_no_verdict_says_why():
    records = [record for name in COUNTS for record in numbered_records(name)]
    for record in records:
        assert record["judged"] or record["why"], record
        assert record["ours"] or record["why"], record
        for name in record["ours"].split():
            stage, item = name.split("/")
            page = (NOTEBOOKS / f"{stage}.ipynb").read_text(encoding="utf-8")
            assert re.search(rf"\*\*(Table|Figure) `{item}`\.\*\*", page), name


def test_a_verdict_is_that_of_the_page_with_its_n_and_its_reason(tmp_path):
    text = "with a core reserved for the system programs vary less (CV, RmHK / Rm)"
    found = pd.DataFrame({"finding": [text, "another"], "rounds": [10, 12]})
    found = found.assign(verdict=["not measurable here", "reproduced"], why=["one core", None])
    folder = tmp_path / "60-openmp-variability"
    save_table(found, "findings", "Findings.", folder)
    save_table(pd.DataFrame({"run": [1, 1, 2]}), "reserved", "Repetitions.", folder)
    index = numbered_rows("persson2025", [], tmp_path).set_index("number")
    assert index.loc["Figure 1", "verdict"] == "not measurable here (one core)"
    assert index.loc["Figure 1", "n"] == "10 rounds"
    assert index.loc["Table 7", "verdict"] == "not measured here: stage 42-fairness has no accuracy"
    links = Words(index_html(index.reset_index())).links
    assert links == ["../pages/60-openmp-variability.html#reserved"] * 2


def test_verdicts_of_several_cells_are_counted(tmp_path):
    from nbhelpers.paper._joined import JoinedTable

    ours = pd.DataFrame({"runs": [30, 20]})
    save_table(ours, "nbody", "N-body.", tmp_path / "40-mitigations")
    cells = pd.DataFrame({"verdict": ["reproduced", "", "not reproduced", "reproduced"]})
    table = JoinedTable("persson2025-table3", "", cells, 8, ())
    row = numbered_rows("persson2025", [table], tmp_path).set_index("number").loc["Table 3"]
    assert row["verdict"] == "not reproduced: 1, reproduced: 2" and row["n"] == "20 to 30 runs"
