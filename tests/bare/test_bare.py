"""The bare system is bare: nothing of the outer machine is seen in it, and nothing of it stays."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

RUN = Path(__file__).parent / "run"
STORE = Path(os.environ.get("BARE", "/var/cache/noisebook-bare"))
pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(600),
    pytest.mark.skipif(os.getuid() != 0, reason="root is needed to make a bare system"),
    pytest.mark.skipif(shutil.which("mmdebstrap") is None, reason="mmdebstrap is not installed"),
]


def bare(*words: str) -> subprocess.CompletedProcess:
    """On the release of tests/bare/all, whose base is made one time."""
    command = [RUN, "--suite", "forky", *words]
    return subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)


def left() -> tuple[list[str], str]:
    return sorted(path.name for path in STORE.glob("run-*")), Path("/proc/self/mounts").read_text()


def test_only_what_the_readme_names_is_there_and_nothing_stays(monkeypatch):
    monkeypatch.setenv("NOISEBOOK_BIN", "/elsewhere")
    before = left()
    for user in ("root", "somebody"):
        only_what_the_readme_names_is_there(user)
    assert left() == before


def only_what_the_readme_names_is_there(user: str) -> None:
    script = """id -un; pwd; ls Makefile; which gcc make python3
        which git clang uv curl numactl; ls -d .venv build
        echo "[$NOISEBOOK_BIN$PYTHONPATH$VIRTUAL_ENV$LANG]"
        python3 -c 'import numpy'; touch /etc/mark; exit 3"""
    done = bare(*([] if user == "root" else ["--user"]), "bash", "-c", script)
    lines = done.stdout.splitlines()
    home = "/root" if user == "root" else str(Path("/home") / user)
    assert done.returncode == 3, done.stderr
    assert lines == [
        user,
        f"{home}/a ü b",
        "Makefile",
        "/usr/bin/gcc",
        "/usr/bin/make",
        "/usr/bin/python3",
        "[]",
    ]
    assert "No module named 'numpy'" in done.stderr and ("Permission denied" in done.stderr) == (
        user != "root"
    )


def test_a_command_that_is_missing_or_an_unknown_option_is_told():
    assert "There is no option '--usr'" in bare("--usr", "true").stderr
    assert "There is no command to run" in bare().stderr
