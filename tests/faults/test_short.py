"""A few faults of each sort: nothing is lost or left; and what is left would be counted."""

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from . import matrix
from .child import SETTING, VALUE
from .matrix import Outcome, count, not_tried, ours, place_of, settings_now, stepping_clock
from .matrix import kinds as all_kinds
from .nth import preloaded

pytestmark = [
    pytest.mark.skipif(not os.access(SETTING, os.W_OK), reason="this user may not change sysctls"),
    pytest.mark.usefixtures("binaries"),
]
FEW = ["SIGKILL to all", "power cut of records"]
MORE = [
    "SIGKILL to harness",
    "SIGKILL after the last run",
    "workload: twice",
    "SIGSTOP, SIGKILL to supervisor",
    "power cut",
    "disk full: data",
    "little: file size",
    "clock step",
    "CPU taken away",
    "read-only tracefs",
]


def test_what_is_left_would_be_counted() -> None:
    """Else the zeros below say nothing."""
    with place_of(random.Random(1)) as place:
        command = ["sleep", f"300.0{place.token}"]
        before = settings_now()
        left = subprocess.Popen(command, env={})
        (place.folder / "tmp/forgotten").write_text("x")
        (place.folder / "state/1-2.journal").write_text("{}")
        try:
            while not ours(place):  # a program's words can be read some time after it has begun
                time.sleep(0.001)
            assert list(ours(place)) == [left.pid]
            outcome = Outcome()
            Path(SETTING).write_text(str(VALUE))
            count(place, outcome, before, patience_s=0.1)
            assert settings_now() == before
        finally:
            Path(SETTING).write_text(before[SETTING])
            left.kill()
            left.wait()
    assert (outcome.processes, outcome.settings, outcome.files) == (1, 1, 2)
    assert outcome.bad >= 4


def test_a_run_that_is_lost_would_be_counted() -> None:
    with place_of(random.Random(1)) as place:
        harness = matrix.Harness(place, place.command("plain"))
        harness.end()
        path = place.folder / "data/runs.jsonl"
        path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
        matrix.judge(place, harness, outcome := Outcome())
        harness.close()
    assert (outcome.acknowledged, outcome.lost) == (matrix.RUNS, 1)


def test_records_that_are_not_forced_to_disk_would_be_counted(monkeypatch) -> None:
    if not (cut := all_kinds().get("power cut of records")):
        pytest.skip("no disk can be mounted here")
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    assert cut(random.Random(7)).lost


@pytest.mark.timeout(120)
@pytest.mark.parametrize("kind", [*FEW, *(pytest.param(k, marks=pytest.mark.long) for k in MORE)])
def test_nothing_is_lost_and_nothing_left(kind: str) -> None:
    kinds = all_kinds()
    if kind not in kinds:
        pytest.skip(f"'{kind}' cannot be tried here: {not_tried().get(kind, 'takes root')}")
    outcome = kinds[kind](random.Random(7))
    assert outcome.bad == 0, outcome


def test_a_call_that_fails_one_time_loses_nothing(tmp_path: Path) -> None:
    """Two of all writes, renames and so on; python -m tests.faults.nth tries each."""
    done = preloaded(tmp_path, ["rename", "--most", "2"])
    assert done.returncode == 0 and "rename: 0 tried" not in done.stdout, done.stdout + done.stderr


def test_the_clock_steps_while_a_program_runs(tmp_path: Path) -> None:
    """Whenever each reading comes: it is an hour earlier if it comes after the step."""
    reading = "print(time.monotonic_ns(), time.time() - time.monotonic(), flush=True)"
    script = f"import time\nfor _ in range(3): {reading}; time.sleep(0.3)"
    step_ns, before = time.monotonic_ns() + 500_000_000, time.time() - time.monotonic()
    words = stepping_clock(tmp_path, step_ns, -3600)
    done = subprocess.run([*words, sys.executable, "-c", script], capture_output=True, text=True)
    for line in done.stdout.splitlines():
        now_ns, after = map(float, line.split())
        assert after - before == pytest.approx(-3600 if now_ns >= step_ns else 0, abs=1)
    assert now_ns >= step_ns
