"""The critical path and its owners: of runs that were written down by hand, and of real runs into
which something was planted.
"""

import os
import subprocess
import sys
from types import MappingProxyType

import pandas as pd
import pytest

from nbhelpers import Campaign, Cell, finished
from nbhelpers.account.owners import owned_pieces, owners_of_path, with_speed, without_cpu
from nbhelpers.account.path import critical_path
from nbhelpers.machine import doctor
from nbhelpers.measurement import Attachment
from nbhelpers.tracing import Tracer
from nbhelpers.tracing.campaign import EVENTS, OWNERS, STATES, STOLEN, each_recording
from nbhelpers.workloads import nbody

NO_EVENTS = pd.DataFrame(
    columns=["run", "cpu", "kind", "source", "start_ns", "end_ns", "duration_ns"]
)


def states(*rows):
    """Rows of (thread, start, end, state, cpu[, woken_by, its name])."""
    rows = [(*row, *(-1, "")[len(row) - 5 :]) for row in rows]
    names = ["thread", "start_ns", "end_ns", "state", "cpu", "woken_by", "woken_by_name"]
    return pd.DataFrame(rows, columns=names).assign(run=0)


def owners(*rows):
    """Rows of (cpu, start, end, name, is_program[, thread: 1])."""
    names = ["cpu", "start_ns", "end_ns", "name", "is_program", "thread"]
    return pd.DataFrame([(*row, 1)[:6] for row in rows], columns=names).assign(run=0)


def owned(table, cpu_owners, marks=None, throttled_ns=MappingProxyType({})):
    path = critical_path(table, marks)
    assert path["start_ns"].iloc[0] == 0
    assert (path["start_ns"].iloc[1:].to_numpy() == path["end_ns"].iloc[:-1].to_numpy()).all()
    found = owners_of_path(owned_pieces(path, cpu_owners, NO_EVENTS, NO_EVENTS), throttled_ns)
    assert found["ns"].sum() == path["end_ns"].iloc[-1]
    return found.set_index(["part", "owner"])["ns"].to_dict()


def test_a_wait_is_passed_on_to_what_held_up_the_other_thread():
    """Thread 1 waits for thread 2, whose CPU another process has for 40 ns."""
    table = states(
        (1, 0, 20, "running", 0),
        (1, 20, 90, "sleeping", -1, 2, "work"),
        (1, 90, 100, "running", 0),
        (2, 0, 30, "running", 1),
        (2, 30, 70, "runnable", 1),
        (2, 70, 100, "running", 1),
    )
    had = owners(
        (1, 0, 30, "work", True), (1, 30, 70, "backupd", False), (1, 70, 100, "work", True)
    )
    assert owned(table, had) == {("computing", "the program"): 60, ("runnable", "backupd"): 40}


def test_threads_that_wait_for_each_other_do_not_stop_the_walk():
    """Thread 1 sleeps within its marked work until thread 2 wakes it, which waits at a barrier."""
    sleeper = [(1, 0, 40, "running", 0), (1, 40, 90, "sleeping", 0, 2, "work")]
    table = states(*sleeper, (1, 90, 100, "running", 0), (2, 0, 100, "running", 1))
    marks = pd.DataFrame({"thread": [1, 2], "start_ns": 0, "end_ns": [100, 30]}).assign(run=0)
    assert owned(table, owners((0, 0, 100, "work", True)), marks.assign(busy_ns=marks["end_ns"]))


def test_computing_is_split_by_the_speed_of_fixed_work():
    """Calls that took twice as long for 40 of 100 ns, and nothing known of the last 20."""
    table = states(
        (1, 0, 100, "running", 0), (1, 100, 120, "runnable", 0), (1, 120, 130, "running", 0)
    )
    interrupts = pd.DataFrame({"run": 0, "cpu": 0, "kind": "irq", "source": ["irq:eth0"]})
    interrupts = interrupts.assign(start_ns=10, end_ns=23, duration_ns=13)
    path = critical_path(table)
    had = owners((0, 0, 100, "work", True), (0, 100, 120, "backupd", False))
    pieces = owned_pieces(path, had, interrupts, NO_EVENTS)
    calls = {"start_ns": [0, 40], "end_ns": [40, 90], "busy_ns": [40, 50], "factor": [2.0, 1.0]}
    split = with_speed(pieces, pd.DataFrame(calls).assign(run=0, thread=1))
    found = owners_of_path(split, {}).set_index(["part", "owner"])["ns"]
    net = 87 / 100  # of the first piece: the interrupt had 13
    assert found["slower", "the same calls"] == pytest.approx(20 * net)
    assert found["work", "the program"] == pytest.approx(70 * net)
    assert found["computing", "the program"] == pytest.approx(10 * net + 10)
    assert found.sum() == pytest.approx(130)
    slower = split[split["part"] == "slower"]
    assert slower[["cpu", "start_ns", "end_ns"]].to_numpy().tolist() == [[0, 0, 40]]
    without = without_cpu(table, interrupts, NO_EVENTS)
    assert without[["start_ns", "end_ns"]].to_numpy().tolist() == [[100, 120], [10, 23]]


def test_nested_calls_count_once():
    """Calls within a longer one, which ended before the thread's second piece."""
    table = states((1, 0, 60, "running", 0), (1, 60, 80, "runnable", 0), (1, 80, 130, "running", 0))
    path = critical_path(table)
    pieces = owned_pieces(path, owners((0, 60, 80, "backupd", False)), NO_EVENTS, NO_EVENTS)
    calls = {"start_ns": [0, 0, 20], "end_ns": [130, 10, 30], "busy_ns": [110, 10, 10]}
    calls = pd.DataFrame(calls | {"factor": 1.0}).assign(run=0, thread=1)
    found = owners_of_path(with_speed(pieces, calls), {}).set_index("part")["ns"]
    assert found.to_dict() == {"runnable": 20, "work": 110}


def test_what_a_thread_does_itself():
    table = states(
        (1, 0, 10, "running", 0),
        (1, 10, 30, "sleeping", -1, 0, "timer"),
        (1, 30, 35, "runnable", 0),
        (1, 35, 45, "running", 0),
        (1, 45, 60, "stopped", -1, 77, "freezer"),
        (1, 60, 70, "disk", -1, 0, "irq:nvme0q3"),
        (1, 70, 85, "sleeping", -1, 0, "irq:eth0"),
        (1, 85, 95, "runnable", 0),
        (1, 95, 100, "running", 0),
    )
    had = owners((0, 30, 35, "idle", False), (0, 85, 91, "idle", False), (0, 91, 95, "work", True))
    assert owned(table, had, throttled_ns={0: 5}) == {
        ("computing", "the program"): 25,
        ("asleep", "own timer"): 20,
        ("quota", "quota"): 5,
        ("runnable", "idle CPU"): 6,
        ("runnable", "own thread work"): 4,
        ("stopped", "stop signal of freezer"): 15,
        ("disk", "disk nvme0"): 10,
        ("waiting", "irq:eth0"): 15,
    }


def test_threads_that_share_a_cpu_lose_it_to_who_has_the_other():
    """Two threads on CPU 0 for 100 ns, each ready for half of it, while backupd has CPU 1."""
    table = states((1, 0, 50, "runnable", 0), (1, 50, 100, "running", 0))
    had = [(0, 0, 50, "work", True, 2), (0, 50, 100, "work", True), (1, 0, 100, "backupd", False)]
    pieces = owned_pieces(
        critical_path(table), owners(*had, (1, 100, 110, "work", True, 2)), NO_EVENTS, NO_EVENTS
    )
    lost = pieces[pieces["owner"] == "backupd"]
    assert lost[["cpu", "start_ns", "end_ns", "ns"]].to_numpy().tolist() == [[1, 0, 50, 50]]
    # neither ever ran on CPU 1: it is not what they miss
    assert owned(table, owners(*had))["runnable", "own thread work"] == 50


def test_at_a_barrier_that_spins_the_thread_that_came_last_counts():
    """Both threads are always on a CPU or want to; by the marks thread 1 waits from 30 on."""
    table = states(
        (1, 0, 100, "running", 0),
        (2, 5, 20, "running", 1, 1),
        (2, 20, 60, "runnable", 1),
        (2, 60, 100, "running", 1),
    )
    marks = pd.DataFrame(
        [(1, 0, 30, 30), (1, 30, 82, 0), (1, 82, 100, 18), (2, 5, 80, 75), (2, 80, 100, 0)],
        columns=["thread", "start_ns", "end_ns", "busy_ns"],
    ).assign(run=0)
    had = owners(
        (1, 5, 20, "work", True), (1, 20, 60, "backupd", False), (1, 60, 100, "work", True)
    )
    assert owned(table, had, marks) == {
        ("computing", "the program"): 18 + 20 + 15 + 5,
        ("waiting", "barrier"): 2,
        ("runnable", "backupd"): 40,
    }


def test_who_is_stopped_on_the_way_out_of_a_barrier_is_stopped():
    """Thread 1 waits from 30 on, thread 2 came at 40, and a signal stopped both until 90."""
    table = states(
        (1, 0, 45, "running", 0),
        (1, 45, 90, "stopped", -1),
        (1, 90, 100, "running", 0),
        (2, 0, 42, "running", 1),
        (2, 42, 90, "stopped", -1),
        (2, 90, 99, "running", 1),
    )
    marks = pd.DataFrame(
        [(1, 0, 30, 30), (1, 30, 92, 0), (1, 92, 100, 8), (2, 0, 40, 40), (2, 40, 99, 0)],
        columns=["thread", "start_ns", "end_ns", "busy_ns"],
    ).assign(run=0)
    assert owned(table, owners((0, 0, 100, "work", True)), marks) == {
        ("computing", "the program"): 8 + 40,
        ("waiting", "barrier"): 2 + 5,
        ("stopped", "stop signal"): 45,
    }


def test_a_quota_counts_before_who_had_the_cpu_in_the_meantime():
    table = states((1, 0, 40, "running", 0), (1, 40, 90, "runnable", 0), (1, 90, 100, "running", 0))
    had = owners((0, 40, 60, "idle", False), (0, 60, 90, "backupd", False))
    assert owned(table, had, throttled_ns={0: 30}) == {
        ("computing", "the program"): 50,
        ("quota", "quota"): 30,
        ("runnable", "backupd"): 20,
    }


def test_threads_that_share_a_cpu_lose_it_to_who_has_the_other_one():
    """Thread 1 waits 40 ns for CPU 0, which thread 2 has since another process is on CPU 1."""
    table = states((1, 0, 20, "running", 0), (1, 20, 60, "runnable", 0), (1, 60, 90, "running", 0))
    had = owners(
        *((0, 0, 20, "work", True), (0, 20, 60, "work", True), (0, 60, 90, "work", True)),
        *((1, 0, 30, "work", True), (1, 30, 55, "backupd", False), (1, 55, 90, "work", True)),
        (2, 0, 90, "elsewhere", False),  # on no CPU of the program's
    )
    assert owned(table, had) == {
        ("computing", "the program"): 50,
        ("runnable", "backupd"): 25,
        ("runnable", "own thread work"): 15,
    }


def test_before_a_thread_was_forked_the_time_is_its_parents():
    table = states(
        (1, 0, 25, "running", 0),
        (1, 25, 90, "sleeping", -1, 7, "child"),
        (1, 90, 100, "running", 0),
        (7, 20, 24, "runnable", -1, 1, ""),
        (7, 24, 90, "running", 1),
    )
    found = owned(table, owners((1, 24, 90, "child", True)))
    assert found == {("computing", "the program"): 96, ("runnable", "idle CPU"): 4}


HOG = """import os, time
os.sched_setaffinity(0, {1})
os.nice(-15)
end = time.time() + 0.15
while time.time() < end: sum(range(9000))
"""


class Outsider(Attachment):
    """A process named backupd has one of the CPUs for 150 ms, in some of the runs."""

    def __init__(self, folder, runs):
        self.folder, self.runs, self.count = folder, runs, 0
        (folder / "backupd").symlink_to(sys.executable)

    def released(self, t0_ns):
        self.process = None
        if self.count in self.runs:
            self.process = subprocess.Popen(["./backupd", "-S", "-c", HOG], cwd=self.folder)
        self.count += 1

    def ended(self, pid):
        assert self.process is None or self.process.wait() == 0


@pytest.mark.long
@pytest.mark.alone
def test_who_had_the_cpu_of_a_late_thread_is_the_owner(tmp_path, binaries):
    """N-body has a barrier each step: both threads are late when one of them has no CPU."""
    if doctor().capabilities.tracer != "tracepoints" or len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs two CPUs and a user who may record tracepoints")
    outsider = Outsider(tmp_path, {2, 5})
    tracer = Tracer(tmp_path / "traces")
    cell = Cell("traced", nbody(3000, 20), attachments=[tracer, outsider])
    runs = finished(Campaign(tmp_path / "runs", [cell], runs=7).run())
    recordings = list(each_recording(tmp_path / "traces", runs))
    of_threads, had, events, stolen = (
        pd.concat([tables[name] for tables in recordings])
        for name in (STATES, OWNERS, EVENTS, STOLEN)
    )
    table = owners_of_path(owned_pieces(critical_path(of_threads), had, events, stolen), {})
    lengths = runs.set_index("run")["region_seconds"] * 1e9
    assert table.groupby("run")["ns"].sum().to_dict() == pytest.approx(lengths.to_dict(), abs=2)
    taken_ms = table[table["owner"] == "backupd"].groupby("run")["ns"].sum() / 1e6
    assert set(taken_ms[taken_ms > 20].index) == set(runs["run"].iloc[[2, 5]])
