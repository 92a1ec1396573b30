"""Whoever is killed, nothing of an injection goes on. Real processes, real SIGKILLs."""

import os
import signal
import subprocess
import sys
import time

import pytest

from nbhelpers.injection import Injector, make_plan
from nbhelpers.injection.replay import Replay
from nbhelpers.measurement import run_once
from nbhelpers.workloads import program

from ..processes import REPOSITORY
from .helpers import CPU_COUNT, gone_within, make_config, owner_and_pids, put_back, state
from .test_simple import Look

LONG = [(cpu, "irq", 20 * i, 5) for cpu in range(CPU_COUNT) for i in range(400)]
OWNER = """
import json, signal, sys, time
# a shell starts a job in the background with Ctrl-C ignored
signal.signal(signal.SIGINT, signal.default_int_handler)
from nbhelpers.injection import Injector
from nbhelpers.measurement import run_once
from nbhelpers.workloads import program
from tests.injection.helpers import make_config
from tests.injection.test_deaths import LONG
from tests.injection.test_simple import Look
injector = Injector(make_config(LONG))
look = Look(lambda: print(json.dumps(injector.pids), flush=True))
run_once(program("sleep 30"), [injector, look])
"""


@pytest.mark.parametrize(
    "number",
    [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.long), signal.SIGINT],
    ids=lambda number: number.name,
)
def test_death_of_the_owner_ends_all_and_restores_the_setting(number):
    owner, pids = owner_and_pids(OWNER)
    time.sleep(0.1)
    assert all(state(pid) for pid in pids)
    owner.send_signal(number)
    owner.wait(timeout=10)
    assert gone_within(pids, 5)
    assert put_back(10)


AFTER_ARROW = """
import sys
from pyarrow import csv
from nbhelpers.injection import Injector
from nbhelpers.measurement import run_once
from nbhelpers.workloads import program
from tests.injection.helpers import make_config
csv.read_csv(sys.argv[1], csv.ReadOptions(block_size=1 << 16))
for _ in range(5):
    injector = Injector(make_config([(0, "irq", 1, 1)]))
    run = run_once(program("sleep 0.05"), [injector])
    assert run["status"] == "ok", run["message"]
"""


@pytest.mark.long
def test_handlers_of_fork_that_libraries_register_do_no_harm(tmp_path):
    """Arrow's start its threads anew in a forked child, which may end it: we execute."""
    (tmp_path / "wide.csv").write_text("a,b\n" + "1,2.5\n" * 200_000)
    command = [sys.executable, "-c", AFTER_ARROW, tmp_path / "wide.csv"]
    subprocess.run(command, check=True, cwd=REPOSITORY)
    assert put_back(10)  # what was not closed there ends with its process, by the guardian


@pytest.mark.parametrize(
    "which, seconds, message",
    [(0, 5, "supervisor died"), (1, 0, "SIGKILL")],
    ids=["supervisor", "injector"],
)
def test_a_death_among_those_who_inject_ends_all_and_fails_the_run(which, seconds, message):
    injector = Injector(make_config(LONG))
    look = Look(lambda: (os.kill(injector.pids[which], signal.SIGKILL), injector.pids)[1])
    row = run_once(program("sleep 0.2"), [injector, look])
    injector.close()
    assert gone_within(look.seen, seconds)
    assert row["status"] == "injection failed" and message in row["message"]


def test_death_of_the_workload_ends_all_before_anybody_reaps_it():
    workload = subprocess.Popen(["sleep", "30"])
    replay = Replay(make_plan(make_config(LONG)))
    replay.start(workload.pid)
    pids = replay.pids
    replay.release(time.monotonic_ns())
    time.sleep(0.05)
    workload.kill()
    assert gone_within(pids, 5) and state(workload.pid) == "Z"
    workload.wait()
    replay.close()
    assert replay.ended_by == "workload ended" and not replay.problem()


def test_an_injection_that_is_never_released_ends_by_itself():
    replay = Replay(make_plan(make_config(LONG)))
    replay._run.rules.armed_limit_ns = 100_000_000
    replay.start()
    pids = replay.pids
    assert gone_within(pids, 5)
    replay.close()
    assert replay.ended_by == "time limit"


def test_a_stopped_supervisor_is_no_obstacle(monkeypatch):
    monkeypatch.setattr("nbhelpers.injection.replay.JOIN_MS", 200)
    replay = Replay(make_plan(make_config(LONG)))
    replay.start()
    pids = replay.pids
    replay.release(time.monotonic_ns())
    os.kill(pids[0], signal.SIGSTOP)
    replay.close()
    assert gone_within(pids, 5) and not replay.pids
    assert replay.problem() == "injection ended: the supervisor died"
