"""The notebooks are essays: a reason, a short cell, what it shows, and a sentence that reads it."""

import ast
import json
import re
from itertools import pairwise
from pathlib import Path

import pandas as pd
import pytest

from nbhelpers.report.record import records
from nbhelpers.study import Study, captions

REPOSITORY = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((REPOSITORY / "notebooks").glob("*.ipynb"))
LONGEST_LINE = 88
LONGEST_CELL = 10  # lines
MOST_CELLS = 55
SHOWING = ("study.table(", "study.figure(", "study.text(")


def read_cells(path: Path) -> list[dict]:
    return json.loads(path.read_text())["cells"]


def source(cell: dict) -> str:
    return "".join(cell["source"])


def is_code(cell: dict) -> bool:
    return cell["cell_type"] == "code"


def is_parameters(cell: dict) -> bool:
    return "parameters" in cell["metadata"].get("tags", [])


def code_cells(path: Path) -> list[dict]:
    return [cell for cell in read_cells(path) if is_code(cell)]


def texts(path: Path) -> list[str]:
    return [source(cell) for cell in read_cells(path) if not is_code(cell)]


def calls(path: Path, method: str) -> list[ast.Call]:
    """Calls of a method of `study`."""
    trees = [ast.parse(source(cell)) for cell in code_cells(path)]
    return [
        node
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == f"study.{method}"
    ]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
class TestNotebook:
    def test_what_a_cell_shows_is_its_last_line(self, path):
        """What `study.table` and its kin return is shown only there; before, it would be lost."""
        for cell in code_cells(path):
            for line in ast.parse(source(cell)).body[:-1]:
                shown = ast.unparse(line).startswith(SHOWING)
                assert not shown, f"{ast.unparse(line)} is not the last line of its cell"

    def test_a_figure_is_shown_by_the_cell_that_draws_it(self, path):
        """JupyterLab shows what is open when a cell ends, and so half of a drawing."""
        for cell in code_cells(path):
            if re.search(r"subplots\(|sns\.\w+plot\(|\.plot\.|report\.figure_", source(cell)):
                assert "study.figure(" in source(cell), source(cell)

    def test_has_no_outputs_and_no_counts(self, path):
        for cell in code_cells(path):
            assert not cell["outputs"]
            assert cell["execution_count"] is None

    def test_has_one_parameters_cell_of_typed_explained_literals(self, path):
        tagged = [cell for cell in code_cells(path) if is_parameters(cell)]
        assert len(tagged) == 1
        lines = source(tagged[0]).splitlines()
        for statement in ast.parse(source(tagged[0])).body:
            assert isinstance(statement, ast.AnnAssign)
            ast.literal_eval(statement.value)
            above = lines[statement.lineno - 2] if statement.lineno > 1 else ""
            explained = above.startswith("# ") or "  # " in lines[statement.lineno - 1]
            assert explained, f"no comment explains {ast.unparse(statement.target)}"

    def test_holds_no_logic(self, path):
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Try, ast.Lambda)
        assert len(code_cells(path)) <= MOST_CELLS
        for cell in code_cells(path):
            text = source(cell)
            assert not any(isinstance(node, kinds) for node in ast.walk(ast.parse(text))), text
            if not is_parameters(cell):
                assert sum(map(bool, text.splitlines())) <= LONGEST_CELL, text
            assert max(map(len, text.splitlines())) <= LONGEST_LINE, text

    def test_says_its_question_what_it_does_not_show_and_where_to_go(self, path):
        text = texts(path)
        assert re.match(r"# .+\?", text[0]), "the title is the question that the notebook answers"
        assert any(part.startswith("## What this does not show") for part in text)
        assert ".ipynb)" in text[0] + text[1], "links to the notebooks before and after"

    def test_its_links_lead_somewhere(self, path):
        for text in texts(path):
            for target in re.findall(r"\]\(([^)#:]+)\)", text):
                assert (path.parent / target).exists(), target

    def test_runs_on_the_projects_kernel(self, path):
        assert json.loads(path.read_text())["metadata"]["kernelspec"]["name"] == "python3"

    def test_each_table_and_figure_has_a_caption_and_each_caption_its_table_or_figure(self, path):
        shown = calls(path, "table") + calls(path, "figure")
        names = [ast.literal_eval(call.args[1]) for call in shown]
        assert sorted(captions(path.stem)) == sorted(names)

    def test_one_table_is_the_key_to_the_page(self, path):
        """All others are folded."""
        tables = calls(path, "table")
        keys = [call for call in tables if "key" in [one.arg for one in call.keywords]]
        assert len(keys) == min(1, len(tables))

    def test_what_it_shows_is_read_in_the_next_cell(self, path):
        cells = read_cells(path)
        for cell, following in pairwise(cells):
            if is_code(cell) and re.search(r"study\.(table|figure)\(", source(cell)):
                computed = re.search(r"study\.text\(|program\.show\(", source(following))
                reading = not is_code(following) and not source(following).startswith("#")
                assert reading or (is_code(following) and computed), source(cell)


@pytest.fixture
def study(tmp_path, monkeypatch):
    """Stage 20 with its results in a folder of this test's own."""
    monkeypatch.setattr("nbhelpers.study.results", lambda: tmp_path)
    return Study("20-delta-config", "smoke")


FRAME = pd.DataFrame({"cell": ["a", "b"], "seconds": [1.0, 2.0]})


def test_a_caption_stands_in_the_text_and_reaches_the_paper(study):
    shown = study.table(FRAME, "delta", note="Chosen: run 3.")
    caption = captions("20-delta-config")["delta"]
    [record] = records(study.build / "results")
    assert record.caption == f"{caption} Chosen: run 3."
    assert caption not in shown._repr_html_()
    assert "Chosen: run 3." in shown._repr_html_()
    theirs = FRAME.assign(seconds=[3.0, 4.0])
    beside = study.table(FRAME, "delta", published=theirs).record.frame
    assert beside["seconds (published)"].tolist() == [3.0, 4.0]
