"""The publications beside this study: every published cell is there, ours in its row, and files."""

import hashlib
import json
import shutil
from itertools import product
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
import pytest

from nbhelpers.answers import read_answers
from nbhelpers.paper import Front, write_paper
from nbhelpers.paper._exports import write_numbers
from nbhelpers.paper._publications import publications
from nbhelpers.paper._typeset import _content
from nbhelpers.report import published_table, save_figure, save_table
from nbhelpers.report.marks import figure_marks
from nbhelpers.study import question
from nbhelpers.workloads import configurations

from ..workloads.test_configuration import EPYC
from .test_front import INTERVAL, SAID, STAGES, study_of


@pytest.fixture
def build(tmp_path) -> Path:
    """A study with answers, a table of stage 40 (with a result known by heart), and a figure."""
    build = study_of(tmp_path / "recorded", (SAID, INTERVAL))
    stage = build / "results" / "40-mitigations"
    ours = pd.DataFrame({"config": ["Rm", "TP"], "seconds": [0.1234, 0.2345]})
    ours = ours.assign(benchmark="N-body", model="OMP", trace="#1", runs=30)
    ours["increase_percent"] = [46.0, 1.0]
    ours = ours.assign(low_percent=[45.0, 0.5], high_percent=[47.0, 1.5])
    save_table(ours, "nbody", "N-body.", stage)
    draw(ours, stage)
    return build


def draw(data: pd.DataFrame, folder: Path) -> None:
    figure, axes = plt.subplots(figsize=(3.33, 2))
    axes.plot(data["seconds"])
    save_figure(figure, "drawn", "A & figure #1.", data, folder)


def tables_of(build: Path) -> dict:
    papers = publications(build / "results")
    return {table.name: table for paper in papers for table in paper.tables}


@pytest.mark.parametrize(("number", "rows"), [(3, 48), (4, 48), (5, 72)])
def test_every_cell_of_persson_s_tables_3_to_5_is_there(build, number, rows):
    name = f"persson2025-table{number}"
    theirs, table = published_table(name), tables_of(build)[name]
    assert len(theirs) == len(table.frame) == rows and table.cells == 2 * rows
    keys = ["platform", "model", "smt", "noise_config", "config"]
    shown = table.frame.set_index(keys)
    for row in theirs.to_dict("records"):
        cell = shown.loc[tuple(row[key] for key in keys)]
        for column in ("seconds", "increase_percent"):
            assert cell[f"{column} (published)"] == row[column]


def test_ours_stand_beside_with_interval_and_verdict_by_the_rule_for_slow_downs(build):
    frame = tables_of(build)["persson2025-table3"].frame
    first = frame.query("platform == 'Intel i7 9700KF' and model == 'OMP' and noise_config == 1")
    first = first.set_index("config")
    ours = ["seconds", "increase_percent", "low_percent", "high_percent"]
    assert first.loc["Rm", ours].tolist() == [0.1234, 46, 45, 47]
    assert first.loc["RmHK", ours].isna().all()
    # 45.5 % is accepted from 36.4 to 54.6 %: 46 (45 to 47) is within, 1 is not
    assert first["verdict"].tolist() == ["reproduced", "", "", "not reproduced", "", ""]
    assert frame[frame["smt"] == "on"]["seconds"].isna().all()


def test_published_numbers_are_hollow_marks_and_ours_have_their_interval(build):
    table = tables_of(build)["persson2025-table3"]
    [(label, marks)] = table.drawings
    drawn = marks[marks["whose"] == "published"]
    assert drawn["value"].tolist() == table.frame["increase_percent (published)"].tolist()
    first = figure_marks(marks, label).axes[0]
    assert first.get_title() == "Intel i7 9700KF\nOMP, SMT none, trace #1"
    theirs = next(line for line in first.lines if line.get_markerfacecolor() == "white")
    assert list(theirs.get_xdata()) == [45.5, 28.4, 15, 43.5, 27.5, 16.3]
    ours = [set(line.get_xdata()) for line in first.lines if line is not theirs]
    assert {46.0, 1.0} <= set.union(*ours) and {45.0, 47.0} in ours


@pytest.mark.long
def test_a_study_of_2_x_64_cores_with_smt_fills_every_cell_of_tables_3_to_5(build):
    listed = configurations(EPYC, families=["mitigation"])
    names = [one.name for one in listed if not one.missing]
    cells = product(["OMP", "SYCL"], ["#1", "#2"], names)
    ours = pd.DataFrame(cells, columns=["model", "trace", "config"])
    numbers = ["seconds", "increase_percent", "low_percent", "high_percent"]
    ours[numbers] = [[1 + at / 100, at, at - 1, at + 1] for at in range(len(ours))]
    for name in ("nbody", "stream", "minife"):
        save_table(ours.assign(runs=30), name, f"{name}.", build / "results" / "40-mitigations")
    frames = [tables_of(build)[f"persson2025-table{number}"].frame for number in (3, 4, 5)]
    rows = pd.concat(frames)
    assert len(rows) == 168 and rows["seconds"].notna().all() and (rows["verdict"] != "").all()
    known = ours.set_index(["model", "trace", "config"])["increase_percent"]
    for row in rows.to_dict("records"):
        ours_is = row["config"] + ("-SMT" if row["smt"] == "on" else "")
        key = (row["model"], f"#{row['noise_config']}", ours_is)
        assert row["increase_percent"] == known[key]


def test_a_machine_without_smt_says_so_one_time(build):
    one = {"name": "Rm", "measured": True, "missing": None}
    lacking = {"measured": False, "missing": "each core runs one thread"}
    listed = pd.DataFrame([one, {"name": "Rm-SMT"} | lacking, {"name": "TP-SMT"} | lacking])
    save_table(listed, "configurations", "All.", build / "results" / "40-mitigations")
    notes = tables_of(build)["persson2025-table3"].notes
    assert notes[0] == "Not measured here: Rm-SMT, TP-SMT: each core runs one thread."
    assert sum("one thread" in note for note in notes) == 1


def test_other_tables_have_all_that_was_printed(build):
    tables = tables_of(build)
    counts = {name: table.cells for name, table in tables.items() if table.cells}
    persson = {f"persson2025-table{at}": n for at, n in enumerate((9, 12, 96, 96, 144, 12, 10), 1)}
    others = {"cui2023-table1": 7, "cui2023-table2": 40, "ferreira2008-text1": 23}
    others |= {"frachtenberg2026-table3": 98, "hoefler2010-noise1": 8}
    others |= {"hoefler2010-slides1": 38, "beckman2006-text1": 14}
    assert counts == persson | others
    slides = tables["hoefler2010-slides1"]
    assert len(slides.frame) == len(published_table("hoefler2010-slides1"))
    assert any("Not measured here" in note for note in slides.notes)


@pytest.mark.long
def test_the_same_study_gives_the_same_bytes_in_another_folder(build, tmp_path):
    other = tmp_path / "an ä folder" / "recorded"
    shutil.copytree(build, other)
    first, second = (digests(write_paper(one).parent) for one in (build, other))
    assert first == second and len(first) > 30
    assert {"paper.pdf", "numbers.json", "persson2025.html"} <= set(first)
    assert "tables/40-mitigations/nbody.tex" in first
    kinds = ("pdf", "svg", "png", "csv")
    assert {f"figures/40-mitigations/drawn.{kind}" for kind in kinds} <= set(first)
    content = json.loads((build / "paper" / "paper.json").read_text())
    assert [one["question"] for one in content["answers"]] == list(map(question, STAGES))
    papers = publications(build / "results")
    assert [row[1] for row in content["verdicts"]["rows"]] == [str(one.cells) for one in papers]
    pdf = (build / "paper" / "paper.pdf").read_bytes()
    assert pdf.startswith(b"%PDF-") and b"CreationDate" not in pdf


def printed_tables(build: Path) -> dict:
    return _content(Front(build), publications(build / "results"), [])["tables"]


def test_the_pdf_has_table_7_with_interval_and_n_beside_the_published_error(build):
    stage = build / "results" / "42-fairness"
    anomaly = {"benchmark": "N-body", "model": "OMP", "config": "Rm", "trace": "#1"}
    assert "persson2025-anomalies" not in printed_tables(build)
    raised = {"raised_percent": 3.35, "raised_low_percent": 1.94, "raised_high_percent": 4.65}
    merges = pd.DataFrame([anomaly | raised | {"undisturbed_percent": 73.3, "runs": 15}])
    save_table(merges, "merges", "Merges.", stage)
    modes = pd.DataFrame([anomaly | {"mode": mode} for mode in ("raised", "slices")])
    modes[["error_percent", "error_low_percent", "error_high_percent"]] = [3.35, 1.94, 4.65]
    modes[["ratio", "low", "high", "undisturbed_percent", "runs"]] = [1.03, 1.02, 1.04, 73.3, 15]
    modes["error_percent (published)"] = 3.8
    save_table(modes, "accuracy", "Accuracy.", stage)
    shown = printed_tables(build)["persson2025-anomalies"]
    [row] = shown["rows"]
    cells = dict(zip(shown["head"], row))
    assert cells["raised (%)"].split() == ["3.4", "(1.9", "to", "4.7)"]
    assert float(cells["error, published (%)"]) == 3.8 and cells["runs"] == "15"
    assert cells["slices (%)"] == "–" and shown["caption"].startswith(
        "Persson et al. 2025. Table 7"
    )


def digests(folder: Path) -> dict[str, str]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
    }


def test_the_numbers_of_the_answers_are_a_list(build, tmp_path):
    write_numbers(read_answers(build / "results"), tmp_path)
    numbers = json.loads((tmp_path / "numbers.json").read_text())
    assert [one["stage"] for one in numbers] == STAGES
    assert numbers[0]["high"] == 0.55 and numbers[0]["n"] == 30
