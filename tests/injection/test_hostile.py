"""The injector under somebody who means no good: what its program is handed, and who stops it."""

import os
import random
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import numpy as np
import pytest

from nbhelpers.injection import Injector, make_plan
from nbhelpers.injection._native import ffi, lib
from nbhelpers.injection.replay import Replay
from nbhelpers.injection.rules import Rules, may_realtime
from nbhelpers.measurement import Attachment, Campaign, Cell
from nbhelpers.workloads import binary_folder, program

from .helpers import CPU_COUNT, make_config, state

MS = 10**6
LAYOUT = "/".join(str(ffi.sizeof(f"struct nb_{name}")) for name in ("injection", "lane", "control"))
needs_fifo = pytest.mark.skipif(not may_realtime(50), reason="SCHED_FIFO is not permitted here")


# ---- what the program is handed ------------------------------------------------------------------


def handed(spoil: Callable[[Replay], None], memory_fd: int = -1) -> int:
    """How the program ends that gets an injection by hand, after `spoil` has been at it."""
    # longer than the shortest that any machine can inject: none is carried by another
    replay = Replay(make_plan(make_config([(0, "irq", 1 + 2 * k, 1) for k in range(8)])))
    run = replay._run
    run.lanes[0].first, run.lanes[0].count = 0, 8
    run.control.state = lib.NB_ARMED
    spoil(replay)
    content = bytes(ffi.buffer(run))
    memory = run.memory_fd if memory_fd < 0 else memory_fd
    ours, its = socket.socketpair()
    ready = os.pipe()
    owner = os.pidfd_open(os.getpid())
    fds = (its.fileno(), -1, owner, ready[1], memory)
    started = subprocess.Popen(
        [binary_folder() / "nbinject", LAYOUT, *map(str, fds)],
        pass_fds=[fd for fd in fds if fd >= 0],
    )
    its.close()
    try:
        with suppress(BrokenPipeError, ConnectionResetError):
            ours.sendall(content)
        try:
            return started.wait(0.5)
        except subprocess.TimeoutExpired:
            ours.send(b"s")
        return started.wait(10)
    finally:
        ours.close()
        started.kill()
        started.wait()
        for fd in (*ready, owner):
            os.close(fd)
        replay.close()


def test_what_is_whole_is_taken() -> None:
    assert handed(lambda replay: None) == 0


def _set(path: str, value: object) -> Callable[[Replay], None]:
    def spoil(replay: Replay) -> None:
        *parts, name = path.split(".")
        target = replay._run
        for part in parts:
            target = target[int(part)] if part.isdigit() else getattr(target, part)
        setattr(target, name, value)

    return spoil


def _shift(path: str, by: int) -> Callable[[Replay], None]:
    def spoil(replay: Replay) -> None:
        *parts, name = path.split(".")
        target = replay._run
        for part in parts:
            target = getattr(target, part)
        address = int(ffi.cast("uintptr_t", getattr(target, name))) + by
        setattr(target, name, ffi.cast("void *", address))

    return spoil


HOSTILE = {
    "more events than memory": _set("event_count", 1 << 40),
    "a negative number of events": _set("event_count", -1),
    "no memory": _set("memory_bytes", 0),
    "more memory than the file": _set("memory_bytes", 1 << 40),
    "no lane": _set("lane_count", 0),
    "very many lanes": _set("lane_count", 1 << 30),
    "a negative number of lanes": _set("lane_count", -5),
    "the log before the memory": _shift("log.start_ns", -(1 << 20)),
    "the log behind the memory": _shift("log.outcome", 1 << 30),
    "the plan far away": _shift("plan.start_ns", 1 << 46),
    "the plan at an odd place": _shift("plan.duration_ns", 3),
    "the control elsewhere": _shift("control", 1 << 30),
    "the lanes elsewhere": _shift("lanes", -(1 << 30)),
    "a lane beyond the plan": _set("rules.limit_ns", 0),
    "no limit of time": _set("rules.limit_ns", -1),
    "endless events": _set("rules.longest_event_ns", -1),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_what_is_not_whole_is_refused(what: str) -> None:
    assert handed(HOSTILE[what]) == lib.NB_BAD_PLAN


def _lane(first: int, count: int, cpu: int = -1) -> Callable[[Replay], None]:
    def spoil(replay: Replay) -> None:
        lane = replay._run.lanes[0]
        lane.first, lane.count, lane.cpu = first, count, cpu

    return spoil


@pytest.mark.parametrize(
    "spoil",
    [_lane(0, 9), _lane(-1, 2), _lane(8, 1), _lane(1 << 60, 1), _lane(0, 1, 9000), _lane(0, 1, -2)],
)
def test_lanes_beyond_the_plan_are_refused(spoil: Callable[[Replay], None]) -> None:
    assert handed(spoil) == lib.NB_BAD_PLAN


def test_a_plan_that_was_changed_after_its_check_is_refused() -> None:
    """The columns are shared: what stands in them when the program comes counts."""

    def spoil(replay: Replay) -> None:
        replay._columns["duration_ns"][:] = 10**15

    assert handed(spoil) == lib.NB_BAD_PLAN


@pytest.mark.skipif(CPU_COUNT is None or CPU_COUNT > 64, reason="a lane for each CPU is made")
def test_a_plan_that_stops_the_machine_is_refused_by_the_program_too() -> None:
    def spoil(replay: Replay) -> None:
        run = replay._run
        columns = replay._columns
        columns["start_ns"][:] = 0
        columns["duration_ns"][:] = 999 * MS
        columns["policy"][:], columns["priority"][:] = 1, 50
        run.rules.full_stop_second_ns, run.rules.cpus = 800 * MS, 1

    assert handed(spoil) == lib.NB_BAD_PLAN


def test_memory_that_somebody_can_shorten_is_refused() -> None:
    """Else the program would die of SIGBUS when it is shortened later."""
    memory = os.memfd_create("hostile")
    os.truncate(memory, 1 << 20)
    try:
        assert handed(lambda replay: None, memory) == lib.NB_BAD_PLAN
    finally:
        os.close(memory)


def test_half_an_injection_or_another_layout_is_refused() -> None:
    assert subprocess.run([binary_folder() / "nbinject"]).returncode == lib.NB_OTHER_BUILD
    ours, its = socket.socketpair()
    started = subprocess.Popen(
        [binary_folder() / "nbinject", LAYOUT, str(its.fileno()), "-1", "-1", "-1", "-1"],
        pass_fds=[its.fileno()],
    )
    its.close()
    ours.send(struct.pack("q", 7))
    ours.close()
    assert started.wait(10) == 1


# ---- who stops it --------------------------------------------------------------------------------


@contextmanager
def stopped(replay: Replay, which: int) -> Iterator[int]:
    pid = replay.pids[which]
    os.kill(pid, signal.SIGSTOP)
    yield pid


@pytest.mark.parametrize("which", [pytest.param(0, marks=pytest.mark.long), 1])
@pytest.mark.parametrize("released", [False, True])
def test_a_stopped_process_of_the_injector_does_not_outlive_it(which: int, released: bool) -> None:
    replay = Replay(make_plan(make_config([(0, "irq", 100 + k, 0.05) for k in range(100)])))
    replay.start()
    pids = replay.pids
    if released:
        replay.release(time.monotonic_ns())
        time.sleep(0.05)
    with stopped(replay, which):
        replay.close()
    assert replay.problem() != ""
    assert all(state(pid) in ("", "Z") for pid in pids)


class Stops(Attachment):
    """Stops a process of an injector at a moment of the run: another attachment beside it."""

    def __init__(self, injector: Injector, which: int, runs: set[int]):
        self.injector, self.which, self.runs, self.seen = injector, which, runs, 0
        self.draw = random.Random(which)

    def released(self, t0_ns: int) -> None:
        if self.seen in self.runs:
            os.kill(self.injector.pids[self.which], signal.SIGSTOP)
        self.seen += 1


@pytest.mark.long
@pytest.mark.usefixtures("binaries")
@pytest.mark.parametrize("which", [0, 1])
def test_a_campaign_goes_on_when_somebody_stops_the_injector(which: int) -> None:
    """The run has failed, and is tried again; those without harm are as they should be."""
    config = make_config([(0, "irq", 5 + 5 * k, 0.1) for k in range(40)])
    injector = Injector(config, rules=Rules(shortest_us=0))
    stops = Stops(injector, which, {1})
    cell = Cell("a", program(["sleep", "0.3"]), attachments=(injector, stops))
    table = Campaign(None, [cell], 3).run()
    assert list(table["status"]).count("ok") == 3
    [failed] = table.loc[table["status"] != "ok", ["status", "message"]].to_dict("records")
    assert failed["status"] == "injection failed" and failed["message"]


@pytest.mark.long
@needs_fifo
@pytest.mark.flaky(reruns=2)
def test_events_that_come_late_leave_others_their_share_of_a_second() -> None:
    """All lanes are stopped for more than a second: what was planned for it would come at once,
    without a pause. What does not fit into the budget is dropped.
    """
    rows = [
        (cpu, "irq", 650 * k, 450.0, "SCHED_FIFO", 50) for cpu in range(CPU_COUNT) for k in range(6)
    ]
    rules = Rules(give_up_ms=5000, shortest_us=0)
    replay = Replay(make_plan(make_config(rows), "origin", rules=rules))
    try:
        replay.start()
        replay.release(time.monotonic_ns() + 50 * MS)
        time.sleep(0.15)
        lanes = replay.pids[1:]
        for pid in lanes:
            os.kill(pid, signal.SIGSTOP)
        time.sleep(1.3)
        for pid in lanes:
            os.kill(pid, signal.SIGCONT)
        replay.wait(20)
    finally:
        replay.close()
    log = replay.log
    taken = (log["outcome"] == lib.NB_INJECTED) | (log["outcome"] == lib.NB_LATE)
    assert (log["outcome"] == lib.NB_DROPPED).any()
    begin, end = log["start_ns"][taken], log["end_ns"][taken]
    for second in range(int(end.max() // 1e9) + 1):
        low, high = second * 1e9, (second + 1) * 1e9
        held = (np.minimum(end, high) - np.maximum(begin, low)).clip(0).sum()
        assert held <= CPU_COUNT * 1e9 - 0.2e9 + 20e6
