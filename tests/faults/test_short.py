"""A few faults of each sort: nothing is lost or left; and what is left would be counted."""

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nbhelpers.machine import kernel

from .child import SETTING, VALUE
from .matrix import Outcome, count, ours, place_of, settings_now, stepping_clock
from .matrix import kinds as all_kinds

pytestmark = [
    pytest.mark.skipif(not os.access(SETTING, os.W_OK), reason="this user may not change sysctls"),
    pytest.mark.usefixtures("binaries"),
]
FEW = ["SIGKILL to all"]
MORE = [
    "SIGKILL to harness",
    "SIGKILL after the last run",
    "workload: twice",
    "SIGSTOP, SIGKILL to supervisor",
    "SIGINT to harness",
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
            count(place, outcome, before)
            assert settings_now() == before
        finally:
            Path(SETTING).write_text(before[SETTING])
            left.kill()
            left.wait()
    assert (outcome.processes, outcome.settings, outcome.files) == (1, 1, 2)
    assert outcome.bad >= 4


@pytest.mark.timeout(120)
@pytest.mark.parametrize("kind", [*FEW, *(pytest.param(k, marks=pytest.mark.long) for k in MORE)])
def test_nothing_is_lost_and_nothing_left(kind: str) -> None:
    kinds = all_kinds()
    if kind not in kinds:
        pytest.skip(f"'{kind}' cannot be tried here")
    outcome = kinds[kind](random.Random(7))
    assert outcome.bad == 0, outcome


def test_every_end_and_every_role_is_tried() -> None:
    names = list(all_kinds())
    assert len(names) >= 60 and len(set(names)) == len(names)
    assert Path(SETTING).exists() and kernel.boot_id()


def test_the_clock_steps_while_a_program_runs(tmp_path: Path) -> None:
    script = (
        "import time\nfor _ in range(2): print(time.time() - time.monotonic()); time.sleep(0.6)"
    )
    words = stepping_clock(tmp_path, time.monotonic_ns() + 400_000_000, -3600)
    done = subprocess.run([*words, sys.executable, "-c", script], capture_output=True, text=True)
    first, second = map(float, done.stdout.split())
    assert second - first == pytest.approx(-3600, abs=1)
