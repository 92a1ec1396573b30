"""By which state of the code a table was computed: changes of what it rests on are seen, others are
not, under each Python.

The changes are real ones, in a copy of this library and of its sources.
"""

import shutil
import subprocess

import pytest

from nbhelpers.code_state import code_line, head_of, state_of, tables_of_other_code
from nbhelpers.imports import CodeTree
from nbhelpers.study import Header, Study

from .test_imports import REPOSITORY, copy  # noqa: F401  (a fixture)

STUDY = "nbhelpers.studies.scale.applications"
STATE = f"""
from pathlib import Path
from nbhelpers.code_state import state_of
from nbhelpers.imports import CodeTree
print(state_of(["{STUDY}"], CodeTree(Path()), Path()))
"""


@pytest.mark.parametrize(
    "name, old, new, seen",
    [
        ("nbhelpers/simulation/applications.py", "\nfrom ", "\n_changed = 1\nfrom ", True),
        ("nbhelpers/studies/scale/signatures.py", "\nfrom ", "\n_changed = 1\nfrom ", True),
        ("data/knowledge/networks.yml", "G: 2.5", "G: 2.6", True),
        ("simulator_c/engine.c", "#include", "#define CHANGED\n#include", True),
        ("nbhelpers/simulation/applications.py", '"""', '"""Another first sentence. ', False),
        ("nbhelpers/progress.py", "import ", "import json\nimport ", False),
        ("nbhelpers/training/trace.py", "import ", "import json\nimport ", False),
        ("injector_c/lane.c", "#include", "#define CHANGED\n#include", False),
    ],
)
def test_a_change_is_seen_where_it_may_change_a_number(copy, name, old, new, seen):  # noqa: F811
    before = state_of([STUDY], CodeTree(copy), copy)
    path = copy / name
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    try:
        assert (state_of([STUDY], CodeTree(copy), copy) != before) == seen
    finally:
        path.write_text(text)


@pytest.mark.parametrize("python", ["python3.11", "python3.12", "python3.13", "python3.14"])
def test_every_python_finds_the_same_state(python):
    if not shutil.which(python):
        pytest.skip(f"no {python} here")
    found = subprocess.run(
        [python, "-c", STATE], cwd=REPOSITORY, capture_output=True, text=True, timeout=60
    )
    if found.returncode:
        pytest.skip(f"{python} runs nothing here: {found.stderr.strip().splitlines()[-1][:80]}")
    assert found.stdout.strip() == state_of([STUDY], CodeTree(REPOSITORY), REPOSITORY)


def test_tables_of_this_code_and_of_others(tmp_path):
    line = code_line([STUDY, "numpy"])
    _, _, state, *modules = line.split()
    assert modules == [STUDY]
    other = line.replace(state, "0" * len(state))
    gone = line.replace(STUDY, "nbhelpers.studies.gone")
    for name, head in {"ours": line, "other": other, "gone": gone}.items():
        (tmp_path / f"{name}.csv").write_text(f"# key: 12\n{head}\na,b\n1,2\n")
    (tmp_path / "unknown.csv").write_text("# key: 12\na\n1\n")
    (tmp_path / "plain.csv").write_text("a\n1\n")
    (tmp_path / "comment.csv").write_text("# of something else\na\n1\n")
    assert tables_of_other_code(tmp_path) == ["gone", "other", "unknown"]
    assert len(head_of(tmp_path / "ours.csv")) == 2 and head_of(tmp_path / "plain.csv") == []


def test_a_page_of_recorded_tables_says_which_are_of_other_code(tmp_path, monkeypatch):
    study = Study("80-noise-at-scale", "recorded")
    names = tables_of_other_code(study.data)
    shown = Header(study)._repr_html_()
    assert ("another state of the code" in shown) == bool(names)
    assert all(name in shown for name in names)
    (tmp_path / "old-table.csv").write_text("# key: 12\na\n1\n")
    monkeypatch.setattr(Study, "data", tmp_path)
    assert "another state of the code" in Header(study)._repr_html_()
    assert "old-table" in Header(study)._repr_html_()
