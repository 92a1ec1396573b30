"""The package works where there is no checkout: a wheel is built, installed elsewhere, and used as
a stranger would.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from .processes import run
from .trees import borrow_packages, own_environment

REPOSITORY = Path(__file__).resolve().parents[1]
BUILT = (".git", ".venv", "build", "*.so", "__pycache__", "_*.c", "*.o", "*.egg-info")
LEFT_OUT = shutil.ignore_patterns(*BUILT, "recorded", "tests")
PIP = (sys.executable, "-m", "pip")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """Built from a copy of what is committed or about to be, in a path with a blank."""
    folder = tmp_path_factory.mktemp("a wheel")
    shutil.copytree(REPOSITORY, folder / "checkout", ignore=LEFT_OUT)
    options = ("--no-deps", "--no-build-isolation", "-w", folder)
    done = run(*PIP, "wheel", *options, folder / "checkout")
    assert done.returncode == 0, done.stderr
    shutil.rmtree(folder / "checkout")
    (found,) = folder.glob("noisebook-*.whl")
    return found


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory) -> Path:
    """A fresh environment with the wheel, which borrows the packages that it needs from ours;
    nothing in it can be written.
    """
    folder = tmp_path_factory.mktemp("elsewhere")
    python = own_environment(folder / "venv")
    done = run(*PIP, "--python", python, "install", "--no-deps", "--no-index", wheel)
    assert done.returncode == 0, done.stderr
    packages = borrow_packages(python)
    for path in [*packages.rglob("*"), packages]:
        if not path.is_symlink():
            path.chmod(path.stat().st_mode & ~0o222)
    os.chmod(folder, 0o755)
    return folder


def noisebook(installed: Path, *words: object) -> subprocess.CompletedProcess:
    ours = ("NOISEBOOK", "PYTHON", "VIRTUAL")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    environment |= {"NOISEBOOK_STATE": str(installed / "state")}
    (installed / "work").mkdir(exist_ok=True)
    how = {"cwd": installed / "work", "env": environment, "timeout": 280}
    return run(installed / "venv" / "bin" / "noisebook", *words, **how)


pytestmark = pytest.mark.long
HELD = (
    *("injection/_injector.abi3.so", "simulation/_simulator.abi3.so"),
    *("_shipped/bin/libnbstart.so", "_shipped/workloads/noisebook.h"),
    *("_shipped/injector_c/owner.c", "_shipped/data/knowledge/networks.yml"),
    "_shipped/data/published/persson2025-table1.csv",
    *("_shipped/notebooks/01-your-program.ipynb", "_shipped/notebooks/parameters/smoke.yml"),
)


def test_the_wheel_is_for_any_python_from_3_11_and_for_any_cpu(wheel):
    assert re.fullmatch(r"noisebook-[\w.]+-cp311-abi3-linux_\w+\.whl", wheel.name)
    with zipfile.ZipFile(wheel) as content:
        names = content.namelist()
        flags = content.read("nbhelpers/_shipped/bin/.command").decode()
        modes = {name: content.getinfo(name).external_attr >> 16 for name in names}
    assert "-march" not in flags, "it would stop with SIGILL on an older CPU"
    for name in ("nbstart", "nbinject", "nbody", "detours", "hog"):
        assert modes[f"nbhelpers/_shipped/bin/{name}"] & 0o111, "a program is executable"
    for name in HELD:
        assert f"nbhelpers/{name}" in names
    no_part_of_it = ("/tests/", "data/recorded", ".pyc")
    assert not [name for name in names for part in no_part_of_it if part in name]
    assert not [name for name in names if name.endswith(".o")]


def files_of(folder: Path) -> list[str]:
    return sorted(str(path) for path in folder.rglob("*") if "__pycache__" not in str(path))


def test_a_stranger_measures_elsewhere(installed):
    before = files_of(installed / "venv")
    assert noisebook(installed, "--version").stdout.startswith("noisebook ")
    examined = noisebook(installed, "doctor")
    assert examined.returncode == 0 and str(installed / "venv") in examined.stdout, examined.stderr
    ran = noisebook(installed, "run", "--runs", "3", "--folder", "kept", "--", "sleep", "0.1")
    assert ran.returncode == 0 and "n = 3" in ran.stdout, ran.stderr
    assert (installed / "work/kept/runs.jsonl").exists()
    (packages,) = (installed / "venv").glob("lib/python*/site-packages")
    ours = packages / "nbhelpers/_shipped/bin/nbody"
    words = ("--runs", "2", "--region", "marks", "--", ours, "--bodies", "500", "--steps", "2")
    assert "n = 2" in noisebook(installed, "run", *words).stdout
    assert files_of(installed / "venv") == before


def test_what_it_holds_is_found_and_the_recorded_campaign_says_where_it_is(installed):
    code = """
from nbhelpers import places
from nbhelpers.mitigation import factors
from nbhelpers.report.publications import published_table_names
from nbhelpers.simulation import known_network
from nbhelpers.workloads import descriptions
found = published_table_names, factors, descriptions
counts = [len(names()) for names in found]
assert min(counts) > 3 and known_network("alps").L == 1900, counts
print(places.is_installed(), places.results())
"""
    environment = {"PATH": os.environ["PATH"], "NOISEBOOK_HOME": "here"}
    done = run(installed / "venv/bin/python", "-c", code, cwd=installed, env=environment)
    assert done.stdout.split() == ["True", str(installed / "here")], done.stderr
    refused = noisebook(installed, "paper", "--profile", "recorded")
    assert refused.returncode == 2 and "Traceback" not in refused.stderr
    assert "not part of the installed package" in refused.stderr


def test_a_stage_of_the_study_runs_there(installed, tmp_path):
    """Its notebook lies in a folder that cannot be written to; its page is in the folder that was
    asked for.
    """
    code = "from nbhelpers.stages import run_stage; print(run_stage('00-machine', 'smoke'))"
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    environment |= {"NOISEBOOK_HOME": f"{tmp_path}/home", "NOISEBOOK_STATE": f"{tmp_path}/state"}
    environment["JUPYTER_PATH"] = os.path.join(sys.prefix, "share", "jupyter")
    how = {"cwd": tmp_path, "timeout": 280, "env": environment}
    done = run(installed / "venv/bin/python", "-c", code, **how)
    assert done.returncode == 0, done.stderr[-2000:]
    assert (tmp_path / "home/smoke/pages/00-machine.html").exists()
    loaded = json.loads((tmp_path / "home/smoke/stamps/00-machine.wanted").read_text())["code"]
    assert loaded["nbhelpers/_shipped/data/knowledge/doctor.yml"]
