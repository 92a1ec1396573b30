"""What a notebook rests on: a change of the code that it may run is noticed, any other is not.

The changes are real ones, in a copy of this library, of its C sources and of its notebooks.
"""

import shutil
from pathlib import Path

import pytest

from nbhelpers.imports import RESTS_ON, CodeTree, code_digest

REPOSITORY = Path(__file__).resolve().parent.parent
SOURCES = ("injector_c", "simulator_c", "workloads", "data/knowledge", "data/published")
SIMULATES = {
    "70-noise-signatures",
    "75-mpi-at-scale",
    "80-noise-at-scale",
    "82-this-machine-at-scale",
    "85-stragglers",
}


@pytest.fixture(scope="module")
def copy(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("copy")
    for folder in ("nbhelpers", "notebooks", *SOURCES):
        shutil.copytree(
            REPOSITORY / folder,
            root / folder,
            ignore=shutil.ignore_patterns("__pycache__", "*.so", "_shipped"),
        )
    return root


def digests(root: Path) -> dict[str, str]:
    tree = CodeTree(root)
    return {
        path.stem: code_digest(path, tree, root, ends=["nbhelpers.promise"])
        for path in sorted((root / "notebooks").glob("*.ipynb"))
    }


@pytest.fixture(scope="module")
def before(copy) -> dict[str, str]:
    return digests(copy)


@pytest.fixture
def changed(copy, before):
    """The notebooks whose digest a change of a file changes; the file is put back later."""
    saved = {}

    def change(name: str, old: str, new: str) -> set[str]:
        path = copy / name
        saved[path] = path.read_text()
        assert old in saved[path], f"{name} no longer holds {old!r}"
        path.write_text(saved[path].replace(old, new, 1))
        after = digests(copy)
        return {stage for stage in before if before[stage] != after[stage]}

    yield change
    for path, text in saved.items():
        path.write_text(text)


def test_a_comment_changes_no_digest(changed):
    assert changed("nbhelpers/simulation/engine.py", "\n\n\n", "\n\n\n# Why this is so.\n") == set()


def test_a_docstring_changes_no_digest(changed):
    assert changed("nbhelpers/simulation/engine.py", '"""', '"""Said in another way. ') == set()
    assert changed("nbhelpers/measurement/run.py", '    """', '    """Also here: ') == set()


def test_the_layout_changes_no_digest(changed):
    assert changed("nbhelpers/files.py", "\n\n\ndef ", "\n\n\n\n\ndef ") == set()


def test_a_function_of_simulation_changes_the_notebooks_that_simulate(changed):
    assert changed("nbhelpers/simulation/engine.py", "    return ", "    return 0 or ") == SIMULATES


def test_a_c_source_of_the_simulator_changes_the_notebooks_that_simulate(changed):
    assert changed("simulator_c/engine.c", "\n", "\n\n") == SIMULATES


def test_the_known_networks_change_the_notebooks_that_simulate(changed):
    assert changed("data/knowledge/networks.yml", "\n", "\n# seen\n") == SIMULATES


def test_a_function_of_measurement_changes_the_notebooks_that_measure(changed):
    stale = changed("nbhelpers/measurement/run.py", "    return ", "    return 0 or ")
    assert {"10-trace-collection", "30-injection", "60-openmp-variability"} <= stale
    assert not {"90-paper"} & stale


def test_what_writes_files_changes_every_notebook(changed, before):
    assert changed("nbhelpers/files.py", "    return ", "    return 0 or ") == set(before)


def test_the_sources_that_packages_rest_on_are_there():
    for patterns in RESTS_ON.values():
        for pattern in patterns:
            assert list(REPOSITORY.glob(pattern)), pattern


@pytest.fixture
def small(tmp_path) -> CodeTree:
    """A library of a few lines, with each way in which one module leads to another."""
    files = {
        "__init__.py": '_FACE = {"later": "lazy"}\ndef __getattr__(name): ...',
        "lazy/__init__.py": "from .one import later\nfrom .two import other",
        "lazy/one.py": "def later():\n    from ..inside import helper",
        "lazy/two.py": "other = 1",
        "inside.py": "helper = 1",
        "program.py": "import sys\ncommand = [sys.executable, '-m', 'nbhelpers.started']",
        "started.py": "from . import face",
        "face.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from . import inside",
    }
    for name, text in files.items():
        path = tmp_path / "nbhelpers" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return CodeTree(tmp_path)


@pytest.mark.parametrize(
    "text, reached",
    [
        ("import numpy", ""),
        ("from nbhelpers.lazy import other", "lazy.two"),
        ("from nbhelpers.lazy import later", "inside lazy.one"),
        ("from nbhelpers import later", "inside lazy.one"),
        ("from nbhelpers.lazy import *", "inside lazy lazy.one lazy.two"),
        ("import nbhelpers.lazy", "inside lazy lazy.one lazy.two"),
        ("if 1:\n    from nbhelpers import inside", "inside"),
        ("import nbhelpers.program", "face program started"),
    ],
)
def test_each_way_to_another_module_is_followed(small, text, reached):
    found = small.reached([text])
    assert {name.removeprefix("nbhelpers.") for name in found} == set(reached.split())


def test_modules_whose_imports_do_not_count_are_not_followed(small):
    found = small.reached(["import nbhelpers.program"], ends=["nbhelpers.program"])
    assert found == {"nbhelpers.program"}


def test_a_docstring_that_is_read_at_run_time_counts(tmp_path):
    (tmp_path / "nbhelpers").mkdir()
    digests = []
    for word in ("one", "two"):
        (tmp_path / "nbhelpers/said.py").write_text(f'"""{word}"""\nprint(__doc__)')
        digests.append(CodeTree(tmp_path).digest("nbhelpers.said"))
    assert digests[0] != digests[1]
