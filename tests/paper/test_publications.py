"""The publications beside this study: every published cell is there, ours in its row, and files."""

import hashlib
import json
import re
import shutil
from pathlib import Path

import pandas as pd
import pytest

from nbhelpers.paper import Publications, write_paper
from nbhelpers.paper._exports import macro_stem, write_numbers
from nbhelpers.paper._publications import publications, verdict_counts
from nbhelpers.report import published_table, save_figure, save_table

from .test_front import INTERVAL, SAID, STAGES, Words, study_of

CONFIGS = ["Rm", "RmHK", "RmHK2", "TP", "TPHK", "TPHK2"]


@pytest.fixture
def build(tmp_path) -> Path:
    """A study with answers, a table of stage 40 (with a result known by heart), and a figure."""
    build = study_of(tmp_path / "recorded", (SAID, INTERVAL))
    stage = build / "results" / "40-mitigations"
    ours = pd.DataFrame(
        {
            "benchmark": "N-body",
            "model": "OMP",
            "trace": "#1",
            "config": ["Rm", "TP"],
            "seconds": [0.1234, 0.2345],
            "increase_percent": [46.0, 1.0],
            "low_percent": [45.0, 0.5],
            "high_percent": [47.0, 1.5],
            "runs": 30,
        }
    )
    save_table(ours, "nbody", "N-body.", stage)
    draw(ours, stage)
    return build


def draw(data: pd.DataFrame, folder: Path) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(3.33, 2))
    axes.plot(data["seconds"])
    save_figure(figure, "drawn", "A & figure #1.", data, folder)


def grid_of(build: Path, name: str):
    return next(
        grid
        for paper in publications(build / "results")
        for grid in paper.grids
        if grid.name == name
    )


@pytest.mark.parametrize(("table", "cells"), [(3, 48), (4, 48), (5, 72)])
def test_every_cell_of_persson_s_tables_3_to_5_is_there(build, table, cells):
    printed = published_table(f"persson2025-table{table}")
    grid = grid_of(build, f"persson2025-table{table}")
    frame = grid.frame[grid.frame["which"] == "published"]
    assert len(printed) == cells == frame[CONFIGS].size == grid.count
    keys = ["platform", "model", "smt", "noise_config"]
    for (platform, model, smt, number), rows in printed.groupby(keys):
        label = f" on {platform}, {model}{' SMT' if smt == 'on' else ''} #{number}"
        [row] = frame[frame["row"].str.endswith(label)].to_dict("records")
        for cell in rows.to_dict("records"):
            seconds, increase = row[cell["config"]].replace("−", "-").split("; ")
            assert float(seconds.removesuffix(" s")) == cell["seconds"]
            assert float(increase.removesuffix(" %")) == cell["increase_percent"]
    page = grid.to_html()
    assert page.count('<tr class="published">') == cells / 6


def test_ours_stand_beneath_with_interval_and_verdict_by_the_rule_for_slow_downs(build):
    frame = grid_of(build, "persson2025-table3").frame
    rows = frame[frame["row"] == "N-body on Intel i7 9700KF, OMP #1"].set_index("which")
    assert rows.loc["this study", "Rm"] == "0.123 s; 46.0 %; (45.0 to 47.0)"
    assert rows.loc["this study", "RmHK"] == "–"
    # 45.5 % is accepted from 36.4 to 54.6 %: 46 (45 to 47) is within, 1 is not
    assert rows.loc["verdict", "Rm"] == "reproduced"
    assert rows.loc["verdict", "TP"] == "not reproduced"
    smt = frame[frame["row"].str.contains("SMT")]
    assert set(smt[smt["which"] == "this study"][CONFIGS].to_numpy().ravel()) == {"–"}


def test_other_tables_have_all_that_was_printed(build):
    cells = {paper.name: {grid.name: grid for grid in paper.grids} for paper in publications(build)}
    assert cells["persson2025"]["persson2025-table2"].count == 12
    assert cells["persson2025"]["persson2025-table6"].count == 12
    text = cells["cui2023"]["cui2023-table2"].frame.to_csv()
    for value in published_table("cui2023-table2")["mean_us"]:
        assert f"{value:.2f}" in text
    seven = cells["persson2025"]["persson2025-table7"].frame.to_csv()
    for value in published_table("persson2025-table7")["accuracy_percent"]:
        assert f"{value:.2f} %" in seven
    treated = cells["frachtenberg2026"]["frachtenberg2026-table3"]
    assert sum(row.which == "published" for row in treated.rows) == 14
    slides = cells["hoefler2010"]["hoefler2010-slides"]
    assert len(slides.rows) == len(published_table("hoefler2010-slides1"))
    assert any("not measured here" in note for note in slides.notes)


def test_frachtenberg_s_ratios_are_those_of_its_means():
    table = published_table("frachtenberg2026-table3")
    assert (table["mean_after"] / table["mean_before"] - table["mean_ratio"]).abs().max() < 0.001
    assert (table["sd_after"] / table["sd_before"] - table["sd_ratio"]).abs().max() < 0.02


def test_the_same_study_gives_the_same_bytes_in_another_folder(build, tmp_path):
    other = tmp_path / "an ä folder" / "recorded"
    shutil.copytree(build, other)
    first, second = (digests(write_paper(one).parent) for one in (build, other))
    assert first == second and len(first) > 30
    assert {"paper.pdf", "numbers.tex", "persson2025.html"} <= set(first)
    assert "tables/40-mitigations/nbody.tex" in first
    assert {f"figures/40-mitigations/drawn.{kind}" for kind in ("pdf", "svg", "png", "csv")} <= set(
        first
    )
    pdf = (build / "paper" / "paper.pdf").read_bytes()
    assert pdf.startswith(b"%PDF-") and b"CreationDate" not in pdf
    for page in (build / "paper").glob("*.html"):
        for link in Words(page.read_text()).links:
            if not link.startswith(("#", "https:")):
                assert (page.parent / link).exists(), (page.name, link)


def digests(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_the_numbers_are_macros_of_letters_and_a_list(build, tmp_path):
    from nbhelpers.answers import read_answers

    write_numbers(read_answers(build / "results"), tmp_path)
    lines = (tmp_path / "numbers.tex").read_text().splitlines()[1:]
    shape = re.compile(r"\\newcommand\{\\nb[A-Za-z]+\}\{([^{}]|\\[a-z]+\{\}|\$[^$]*\$)*\}")
    assert lines and all(shape.fullmatch(line) for line in lines), lines
    names = [line.split("}")[0] for line in lines]
    assert len(names) == len(set(names))
    assert r"\newcommand{\nbMachineLow}{0.5}" in lines
    assert r"\newcommand{\nbTraceCollectionUnit}{\%}" in lines
    assert len({macro_stem(stage) for stage in STAGES}) == len(STAGES)
    numbers = json.loads((tmp_path / "numbers.json").read_text())
    assert [one["stage"] for one in numbers] == STAGES
    assert numbers[0]["high"] == 0.55 and numbers[0]["n"] == 30


def test_in_a_notebook_the_publications_are_counted(build):
    papers = Publications(build)
    persson = papers.papers[0]
    assert verdict_counts(persson)["reproduced"] == 1
    assert "reproduced: 1" in papers._repr_html_()
    assert "Persson et al. 2025: noise injection: 8 tables" in repr(papers)


def test_without_any_result_every_publication_says_why_its_cells_are_empty(tmp_path):
    for paper in publications(tmp_path / "nothing"):
        assert any("not measured here" in note for grid in paper.grids for note in grid.notes)
