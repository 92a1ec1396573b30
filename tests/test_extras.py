"""Extras are found by their entry points; one that is broken or missing is named, not raised."""

import subprocess
import sys
from pathlib import Path

import pytest

from nbhelpers import extras
from nbhelpers.measurement._knowledge import find_layer
from nbhelpers.measurement.layers import reading
from nbhelpers.mitigation._kinds import action_of
from nbhelpers.study import notebook_files

REPOSITORY = Path(__file__).resolve().parent.parent
GOOD = "from pathlib import Path\nfrom nbhelpers.extras import Extra\n"
MODULES = {
    "good": GOOD + "EXTRA = Extra(Path(__file__).parent / 'notebooks')\n",
    "false": "EXTRA = 3\n",
    "broken": "raise OSError('no driver')\n",
}


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Three extras beside those that are installed here: a good one, a false one, a broken one."""
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks" / "99-new.ipynb").write_text('{"cells": []}')
    for name, text in MODULES.items():
        (tmp_path / f"extra_{name}.py").write_text(text)
        about = tmp_path / f"extra_{name}-1.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: extra-{name}\nVersion: 1\n")
        (about / "entry_points.txt").write_text(f"[{extras.GROUP}]\n{name} = extra_{name}:EXTRA\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    extras._loaded.cache_clear()
    yield tmp_path
    extras._loaded.cache_clear()


def test_a_good_extra_brings_its_notebooks(installed):
    assert extras.stages()["99-new"] == installed / "notebooks" / "99-new.ipynb"
    assert "99-new" in notebook_files()


def test_a_false_and_a_broken_extra_are_named_with_the_command(installed):
    said = extras.findings()
    assert said["good"] == "installed"
    assert "it is no Extra" in said["false"]
    assert "no driver" in said["broken"] and "make extra EXTRA=broken" in said["broken"]
    assert not {"false", "broken"} & extras.installed().keys()


def test_one_that_is_not_installed_is_named_with_the_command(monkeypatch):
    monkeypatch.setattr(extras, "_loaded", dict)
    said = extras.findings()
    names = [path.parent.name for path in REPOSITORY.glob("extras/*/pyproject.toml")]
    assert names and sorted(said) == sorted(names)
    assert all(f"make extra EXTRA={name}" in said[name] for name in names)


def test_what_an_extra_would_bring_is_not_there_without_it(monkeypatch):
    monkeypatch.setattr(extras, "_loaded", dict)
    answer = action_of({"kind": "gpu", "what": "fan"}, "here").possible()
    assert not answer and "extra" in answer.reason
    columns, _, layer = reading(find_layer("gpu"))
    assert not columns and "comes with an extra" in layer.notes[0]


def test_the_makefile_is_told_the_stages(installed):
    program = [sys.executable, "-m", "nbhelpers.extras"]
    environment = {"PYTHONPATH": f"{installed}:{REPOSITORY}", "PATH": "/usr/bin:/bin"}
    done = subprocess.run(program, env=environment, capture_output=True, text=True, check=True)
    assert "99-new" in done.stdout.split()


def test_no_module_of_the_library_names_an_extra():
    packages = [path.name for path in REPOSITORY.glob("extras/*/noisebook_*") if path.is_dir()]
    assert packages
    for path in (REPOSITORY / "nbhelpers").rglob("*.py"):
        text = path.read_text()
        assert not [package for package in packages if package in text], path
