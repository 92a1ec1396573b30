"""Processes of a run are told from those of another, by real processes."""

import subprocess
import sys

import pytest

from nbhelpers.measurement._orphans import MARK, belongs_to_run


def test_a_process_group_or_the_mark_belongs_to_a_run_and_nothing_else_does():
    marked = {MARK: "8.12"}
    with subprocess.Popen(["sleep", "30"], start_new_session=True, env=marked) as apart:
        with subprocess.Popen(["sleep", "30"], env={"OTHER": f"{MARK}=8.12"}) as other:
            assert belongs_to_run(apart.pid, apart.pid, "") and belongs_to_run(apart.pid, 0, "8.12")
            assert not belongs_to_run(apart.pid, other.pid, "8.1")
            assert not belongs_to_run(other.pid, 0, "8.12")
            other.kill()
        apart.kill()
    assert not belongs_to_run(apart.pid, apart.pid, "8.12")  # it is no more


@pytest.mark.parametrize("script", ["pass", "raise ValueError"])
def test_whose_child_an_orphan_becomes_is_as_before(script):
    body = (
        "import ctypes\n"
        "from nbhelpers.measurement._orphans import as_subreaper\n"
        "now = ctypes.c_int(7)\n"
        "read = lambda: ctypes.CDLL(None).prctl(37, ctypes.byref(now), 0, 0, 0) or now.value\n"
        "before = read()\n"
        "try:\n"
        "    with as_subreaper():\n"
        "        inside = read()\n"
        f"        {script}\n"
        "except ValueError: pass\n"
        "print(before, inside, read())"
    )
    done = subprocess.run([sys.executable, "-c", body], capture_output=True, text=True)
    assert done.stdout.split() == ["0", "1", "0"], done.stderr
