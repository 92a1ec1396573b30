"""Processes of a run are told from those of another, by real processes."""

import os
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest

from nbhelpers.measurement import _orphans
from nbhelpers.measurement._orphans import MARK


@contextmanager
def sleeping(**variables: str):
    """A process with these variables, as soon as it has them."""
    with subprocess.Popen(["sleep", "30"], env=variables, start_new_session=True) as process:
        try:
            while "sleep" not in os.readlink(f"/proc/{process.pid}/exe"):
                time.sleep(0.005)
            yield process.pid
        finally:
            process.kill()


def test_a_run_is_not_the_one_whose_mark_begins_like_its_own():
    """Run 1 of a campaign, and run 12."""
    with sleeping(**{MARK: "0.8f3a-1"}) as first, sleeping(**{MARK: "0.8f3a-12"}) as twelfth:
        assert _orphans.belongs_to_run(first, 0, "0.8f3a-1")
        assert not _orphans.belongs_to_run(twelfth, 0, "0.8f3a-1")


def test_a_group_or_a_mark_belongs_to_a_run_and_nothing_else_does():
    with sleeping(OTHER=f"{MARK}=a") as pid, sleeping() as without:
        assert _orphans.belongs_to_run(pid, pid, "a")
        assert not _orphans.belongs_to_run(pid, without, "a")
        assert not _orphans.belongs_to_run(without, 0, "")
    assert not _orphans.belongs_to_run(pid, pid, "a")  # it is no more


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
