"""One replay of a plan: the shared memory that holds plan and log, and the life of the processes
that work on it.

Owns the layout of that memory. The memory goes when the last NumPy view of a column does.
"""

import errno
import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import RunError, Unavailable
from ..workloads import binary_folder, program_path
from ._check import fill_lanes, fill_limits, raise_excess
from ._native import PROGRAM, check, ffi, lib
from .rules import Plan, codes_of
from .stressors import fill_options, remove_scratch

ARMED_LIMIT_S = 60.0
READY_MS, JOIN_MS = 5000, 5000
ENDINGS = (
    "the supervisor died",
    "plan done",
    "workload ended",
    "owner ended",
    "stopped",
    "time limit",
    "failed",
)
PLAN_COLUMNS = {
    "start_ns": np.int64,
    "duration_ns": np.int64,
    "policy": np.int8,
    "priority": np.int8,
    "kind": np.int8,
    "intensity": np.float64,
}
LOG_COLUMNS = {
    "start_ns": np.int64,
    "taken_ns": np.int64,
    "end_ns": np.int64,
    "cpu_time_ns": np.int64,
    "gap_ns": np.int64,
    "preempted_ns": np.int64,
    "ran_on": np.int16,
    "policy": np.int8,
    "outcome": np.int8,
    "achieved": np.float64,
}
C_TYPES = {
    np.int8: "int8_t *",
    np.int16: "int16_t *",
    np.int64: "int64_t *",
    np.float64: "double *",
}


class Replay:
    """A plan laid out in shared memory; start it, release it, close it, read its log.

    Parameters
    ----------
    plan
        What is replayed.
    armed_limit_s
        It ends when it was not released by then.

    Attributes
    ----------
    log
        The columns as written by the processes, views without a copy.

    Notes
    -----
    Every method may be called at any time; `close` leaves no process and no descriptor.
    """

    def __init__(self, plan: Plan, armed_limit_s: float = ARMED_LIMIT_S):
        self._armed_limit_ns = round(armed_limit_s * 1e9)
        self.plan, self._owner = plan, os.getpid()
        self._scratch: Path | None = None
        self._place_columns()
        self._fill_plan()
        fill_lanes(self._run, plan)
        self._fill_rules()

    def _place_columns(self) -> None:
        count, offset = len(self.plan.events), 0
        places = {}
        for owner, columns in (("plan", PLAN_COLUMNS), ("log", LOG_COLUMNS)):
            for name, kind in columns.items():
                places[owner, name] = (offset, kind)
                offset = _aligned(offset + count * np.dtype(kind).itemsize)
        control, lanes = offset, _aligned(offset + ffi.sizeof("struct nb_control"))
        size = lanes + ffi.sizeof("struct nb_lane") * max(len(self.plan.lanes), 1)
        self._run = ffi.new("struct nb_injection *", {"memory_fd": -1})
        self._memory = self._map_memory(size)
        self._run.memory, self._run.memory_bytes, self._run.event_count = self._memory, size, count
        self._run.control = ffi.cast("struct nb_control *", self._memory + control)
        self._run.lanes = ffi.cast("struct nb_lane *", self._memory + lanes)
        memory = ffi.buffer(self._memory, size)
        arrays = {
            place: np.frombuffer(memory, kind, count, at) for place, (at, kind) in places.items()
        }
        for (owner, name), (at, kind) in places.items():
            column = ffi.cast(C_TYPES[kind], self._memory + at)
            setattr(getattr(self._run, owner), name, column)
        self._columns = {name: arrays["plan", name] for name in PLAN_COLUMNS}
        self.log = {name: arrays["log", name] for name in LOG_COLUMNS}
        self.log["achieved"][:] = np.nan

    def _map_memory(self, size: int) -> Any:
        place = ffi.new("void **")
        self._run.memory_fd = lib.nb_map_memory(size, place)
        check(self._run.memory_fd, "to get memory")
        unmap = lib.nb_unmap_memory  # at the end of Python `lib` may be gone first
        return ffi.gc(ffi.cast("char *", place[0]), lambda memory: unmap(memory, size), size)

    def _fill_plan(self) -> None:
        events = self.plan.events
        for name in ("start_ns", "duration_ns", "priority", "intensity"):
            self._columns[name][:] = events[name].to_numpy()
        for name in ("policy", "kind"):
            self._columns[name][:] = codes_of(events[name])

    def _fill_rules(self) -> None:
        rules, target = self.plan.rules, self._run.rules
        target.wake_allowance_ns = round(rules.wake_allowance_us * 1e3)
        target.give_up_ns = round(rules.give_up_ms * 1e6)
        # with what it carries of others
        target.longest_event_ns = 2 * round(rules.longest_event_s * 1e9)
        target.limit_ns = self.plan.end_ns + round(rules.overtime_s * 1e9)
        target.armed_limit_ns = self._armed_limit_ns
        target.realtime_limit_us = 2 * self.plan.longest_realtime_ns // 1000 + 500_000
        fill_limits(target, rules)
        self._fill_costs()

    def _fill_costs(self) -> None:
        overheads, fixed_us = self.plan.overheads, self.plan.rules.exit_cost_us
        for target, measured in zip(self._run.rules.costs, overheads.kinds):
            points = measured.exit_points if fixed_us is None else ((1, round(fixed_us * 1e3)),)
            target.points = len(points)
            for place, (length_ns, exit_ns) in enumerate(points):
                target.length_ns[place], target.exit_ns[place] = length_ns, exit_ns
            target.wake_ns = round(measured.wake_us * 1e3)
            target.wake_most_ns = round(measured.wake_most_us * 1e3)
            target.exit_per_wake = measured.exit_per_wake if fixed_us is None else 0.0
        for kind, measured in enumerate(overheads.others, 1):
            for cpu in measured.cpus:
                self._run.core_kind[cpu] = kind

    @property
    def pids(self) -> tuple[int, ...]:
        """The supervisor's pid, then the lanes'; empty when nothing runs."""
        lanes = (self._run.lanes[number].pid for number in range(self._run.lane_count))
        return (self._run.supervisor_pid, *lanes) if self._run.supervisor_pid else ()

    @property
    def refused(self) -> int:
        """How many changes of scheduling policy the kernel did not permit."""
        return sum(self._run.lanes[number].refused for number in range(self._run.lane_count))

    @property
    def exit_cost_us(self) -> float:
        """What it costs to give the CPU back after 0.1 ms and a usual wake-up, as assumed."""
        fixed_us = self.plan.rules.exit_cost_us
        return self.plan.overheads.exit_us if fixed_us is None else fixed_us

    @property
    def ended_by(self) -> str:
        """Why the injection ended, one of `ENDINGS`."""
        return ENDINGS[self._run.control.ended_by]

    def start(self, workload_pid: int = 0) -> None:
        """Start supervisor and lanes, and wait until each of them is asleep and ready; without
        lanes, do nothing.

        Raises
        ------
        InputError
            The plan exceeds a limit of its rules.
        RunError
            The workload has already ended, or a process could not be made ready.
        Unavailable
            The injector's program was built from other sources than this library.
        """
        if not self._run.lane_count:
            return
        program = program_path(binary_folder() / PROGRAM)
        self._scratch = fill_options(self._run, self.plan.injected, self.plan.scratch)
        try:
            code = lib.nb_start(self._run, workload_pid, os.fsencode(program))
            if code == -errno.EDQUOT:
                raise_excess(self._run)
            check(code, "to start")
            code = self._until_done(lib.nb_wait_ready, READY_MS)
            if code < 0:
                self._raise_unready(code, program)
        except BaseException:
            self.close()
            raise

    def _raise_unready(self, code: int, program: Path) -> None:
        lib.nb_kill(self._run)
        status = self._run.supervisor_status
        if os.WIFEXITED(status) and os.WEXITSTATUS(status) == lib.NB_OTHER_BUILD:
            raise Unavailable(
                "the injector's program was built from other sources",
                where=str(program),
                why="its plan and log would be read wrongly",
                fix="run: make env",
            )
        if os.WIFEXITED(status) and os.WEXITSTATUS(status) == lib.NB_BAD_PLAN:
            raise RunError(
                "the injector's program refused the plan that it was handed",
                where=str(program),
                why="it was changed after it was checked, or is none that may be replayed",
                fix="please report it: this is a fault of Noisebook",
            )
        raise RunError(
            f"the injector did not become ready: {self._first_error() or os.strerror(-code)}",
            why="without its noise the run would be an undisturbed one",
            fix="see: make doctor",
        )

    def _first_error(self) -> str:
        errors = (self._run.lanes[number].error for number in range(self._run.lane_count))
        return next((os.strerror(error) for error in errors if error), "")

    def release(self, t0_ns: int) -> None:
        """Let the lanes replay; the plan's times count from `t0_ns` of CLOCK_MONOTONIC."""
        if self._run.supervisor_pid:
            lib.nb_release(self._run, t0_ns)

    def wait(self, timeout_s: float) -> None:
        """Wait until the plan has been replayed or the workload has ended.

        Raises
        ------
        RunError
            It takes longer than `timeout_s`.
        """
        check(self._until_done(lib.nb_join, round(timeout_s * 1000)), "to end")

    def close(self) -> None:
        """Request the end and wait until every process is gone; kill what does not end in time."""
        if self._run.supervisor_pid:
            lib.nb_stop(self._run)
            if self._until_done(lib.nb_join, JOIN_MS) < 0:
                check(lib.nb_kill(self._run), "to stop")
        self._give_back()

    def _give_back(self) -> None:
        """What is left without processes: the file behind the memory, the scratch folder."""
        if self._run.memory_fd >= 0:
            os.close(self._run.memory_fd)
        self._run.memory_fd = -1
        remove_scratch(self._scratch)

    def problem(self) -> str:
        """What went wrong in a replay that has ended: a process that died, a limit that was met;
        empty if nothing did.
        """
        if not self._run.lane_count:
            return ""
        if self.ended_by in (ENDINGS[0], "time limit", "failed"):
            return f"injection ended: {self.ended_by}"
        for number in range(self._run.lane_count):
            lane = self._run.lanes[number]
            if lane.stopped and not lane.done:
                return f"injector {number} was stopped by somebody (SIGSTOP)"
            if os.WIFSIGNALED(lane.status) and not lane.killed:
                return f"injector {number} died of {signal.Signals(os.WTERMSIG(lane.status)).name}"
            if lane.error:
                return f"injector {number} could not make its noise: {os.strerror(lane.error)}"
        return ""

    def __del__(self) -> None:
        # not in a child that was forked from us
        if getattr(self, "_run", None) and os.getpid() == self._owner:
            lib.nb_kill(self._run)
            self._give_back()

    def _until_done(self, function: Any, timeout_ms: int) -> int:
        """Call again after a signal, whose Python handler runs in between."""
        limit = time.monotonic() + timeout_ms / 1000
        while True:
            code = function(self._run, max(0, round((limit - time.monotonic()) * 1000)))
            if code != -errno.EINTR:
                return code


def _aligned(offset: int) -> int:
    """The next multiple of a cache line."""
    return -(-offset // 64) * 64
