"""Counters of perf on a process that waits: one counter an event and thread, inherited by what
the threads start later.

Counters are read as file descriptors; no process is started for them. Events go by the names that
`perf list` has for them.
"""

import errno
import os
import re
from functools import cache
from pathlib import Path

from ..errors import Unavailable
from ..machine import kernel, privileged
from ..machine.perf_event import EXCLUDE_KERNEL_AND_HYPERVISOR, open_counter, read_counter
from ._knowledge import Metric, MetricReader, Source
from .families import threads_of

HARDWARE, SOFTWARE, TRACEPOINT, CACHE, RAW = 0, 1, 2, 3, 4
# in the order of linux/perf_event.h
_HARDWARE_EVENTS = """
cycles instructions cache-references cache-misses branches branch-misses bus-cycles
stalled-cycles-frontend stalled-cycles-backend ref-cycles
"""
_SOFTWARE_EVENTS = """
cpu-clock task-clock page-faults context-switches cpu-migrations minor-faults major-faults
alignment-faults emulation-faults dummy bpf-output cgroup-switches
"""
_CACHES = {"L1-dcache": 0, "L1-icache": 1, "LLC": 2, "dTLB": 3, "iTLB": 4, "branch": 5, "node": 6}
_OPERATIONS = {"load": 0, "store": 1, "prefetch": 2}
# they happen in the kernel: with exclude_kernel they would count 0
_NEEDS_KERNEL = {"context-switches", "cpu-migrations", "cgroup-switches"}
_DISABLED, _INHERIT = 1, 1 << 1


def event_config(name: str) -> tuple[int, int]:
    """Type and config of an event: `cycles`, `dTLB-load-misses`, `r01c2` (raw),
    `raw_syscalls:sys_enter` (a tracepoint).

    Raises
    ------
    OSError
        ENOENT: there is no such event.
    """
    for kind, names in ((HARDWARE, _HARDWARE_EVENTS), (SOFTWARE, _SOFTWARE_EVENTS)):
        if name in names.split():
            return kind, names.split().index(name)
    if re.fullmatch("r[0-9a-fA-F]+", name):
        return RAW, int(name[1:], 16)
    cache_event = re.fullmatch(f"({'|'.join(_CACHES)})-({'|'.join(_OPERATIONS)})(s|-misses)", name)
    if cache_event:
        place, operation, what = cache_event.groups()
        return CACHE, _CACHES[place] | _OPERATIONS[operation] << 8 | (what == "-misses") << 16
    if ":" in name:
        return TRACEPOINT, _tracepoint(name)
    raise OSError(errno.ENOENT, f"there is no event {name}")


@cache
def _tracepoint(name: str) -> int:
    """The number of a tracepoint, the same until the next boot."""
    path = f"events/{name.replace(':', '/')}/id"
    try:
        return int(Path(kernel.file_system(kernel.TRACEFS), path).read_text())
    except PermissionError:
        return privileged.tracepoint(*name.split(":", 1))


@cache
def available(events: tuple[str, ...]) -> tuple[dict[str, tuple[int, int, int]], dict[str, str]]:
    """Those of the events that can be opened here, as (type, config, flags), and for the others
    the reason. What a thread starts inherits its counters.
    """
    usable, missing = {}, {}
    for name in events:
        for excluded in (0,) if name in _NEEDS_KERNEL else (0, EXCLUDE_KERNEL_AND_HYPERVISOR):
            try:
                kind, config = event_config(name)
                os.close(open_counter(kind, config, flags=_INHERIT | excluded))
            except OSError as error:
                missing[name] = _reason(error, name)
            else:
                usable[name] = (kind, config, _INHERIT | excluded)
                missing.pop(name, None)
                break
    return usable, missing


def _reason(error: OSError, name: str) -> str:
    if error.errno in (errno.EACCES, errno.EPERM):
        return "not allowed to this user (kernel.perf_event_paranoid; tracepoints need root)"
    if error.errno in (errno.ENOENT, errno.EOPNOTSUPP, errno.ENODEV):
        return (
            "this kernel has no such tracepoint"
            if ":" in name
            else "this machine has no such counter (a virtual machine often hides them)"
        )
    return error.strerror or str(error)


class PerfReader(MetricReader):
    """The metrics of a source of perf events, on all threads of a process and on what they start.

    Counters of one `group` are on and off together, so that their ratios hold even where the
    hardware has too few of them and they take turns; then counts are scaled to the whole time, and
    `<layer>_running_share` is the share of it for which the counters were really on.

    Parameters
    ----------
    source
        Each metric has an `event`, and perhaps a `group`; one with `share_of` is the share of that
        group ("": the least of all).
    """

    def __init__(self, source: Source, root: str | Path = "/"):
        super().__init__(source)
        self._counted = {
            metric.where["event"]: metric for metric in source.metrics if "event" in metric.where
        }
        self._shares = {
            metric.id: metric.where["share_of"]
            for metric in source.metrics
            if "share_of" in metric.where
        }
        self._open: list[tuple[Metric, int]] = []
        self._held: list[int] = []

    def lacking(self) -> str:
        """Why events cannot be opened here; "" if all can."""
        usable, missing = available(tuple(self._counted))
        if not missing:
            return ""
        names_by_reason: dict[str, list[str]] = {}
        for name, reason in missing.items():
            names_by_reason.setdefault(reason, []).append(name)
        parts = [
            f"without {', '.join(names)}: {reason}" for reason, names in names_by_reason.items()
        ]
        return ("" if usable else "no column at all; ") + "; ".join(parts)

    def open(self, pid: int) -> None:
        """Open all usable events on every thread that the process and its children have;
        inheritance alone would miss threads that run already.
        """
        self.shut()
        usable, _ = available(tuple(self._counted))
        try:
            self._hold(usable)
            for thread in sorted(threads_of(pid)) if usable else ():
                leaders: dict[str, int] = {}
                for name, event in usable.items():
                    self._open_on_thread(self._counted[name], event, thread, leaders)
        except BaseException:
            self.close()
            raise

    def _hold(self, usable: dict[str, tuple[int, int, int]]) -> None:
        """Keep a counter that counts nothing on each tracepoint: with its last counter a tracepoint
        is switched off, which takes the kernel 20 ms.
        """
        if not self._held:
            for kind, config, _ in usable.values():
                if kind == TRACEPOINT:
                    self._held.append(open_counter(kind, config, flags=_INHERIT | _DISABLED))

    def _open_on_thread(
        self, metric: Metric, event: tuple[int, int, int], thread: int, leaders: dict[str, int]
    ) -> None:
        kind, config, flags = event
        group = metric.where.get("group", "")
        try:
            try:
                fd = open_counter(kind, config, thread, -1, flags, leaders.get(group, -1))
            except OSError as error:
                if error.errno != errno.EINVAL or group not in leaders:
                    raise
                # more events than the hardware can count together: this one takes turns alone
                fd = open_counter(kind, config, thread, -1, flags)
        except OSError as error:
            if error.errno == errno.EMFILE:
                raise Unavailable(
                    "too few file descriptors for a counter on every thread",
                    where=f"thread {thread}, {metric.id}",
                    fix="ulimit -n 65536",
                ) from None
            if error.errno != errno.ESRCH:  # the thread has ended meanwhile
                raise
            return
        self._open.append((metric, fd))
        if group:
            leaders.setdefault(group, fd)

    def read(self) -> dict[str, float]:
        """Column: value since `open`, as it is now."""
        usable, _ = available(tuple(self._counted))
        user_only = any(flags & EXCLUDE_KERNEL_AND_HYPERVISOR for _, _, flags in usable.values())
        readings = [(metric, *read_counter(fd)) for metric, fd in self._open]
        return totals(readings, self._shares, user_only)

    def shut(self) -> None:
        """The run is over: close its counters."""
        while self._open:
            os.close(self._open.pop()[1])  # forgotten first: Ctrl-C may come in between

    def close(self) -> None:
        """Close all counters."""
        self.shut()
        for fd in self._held:
            os.close(fd)
        self._held = []


def totals(
    readings: list[tuple[Metric, int, int, int]], shares: dict[str, str], user_only: bool = False
) -> dict[str, float]:
    """Counts summed over threads from (metric, value, time enabled, time running), scaled where
    counters took turns.

    `<id>@enabled_ns` is the CPU time that a counter was meant to count, for ratios; it is left out
    where only user mode was counted.
    """
    sums: dict[str, float] = {}
    running: dict[str, list[tuple[int, int]]] = {}
    for metric, value, enabled_ns, running_ns in readings:
        scaled = value * enabled_ns / running_ns if running_ns not in (0, enabled_ns) else value
        sums[metric.id] = sums.get(metric.id, 0) + scaled
        if not user_only:
            sums[f"{metric.id}@enabled_ns"] = sums.get(f"{metric.id}@enabled_ns", 0) + enabled_ns
        if enabled_ns:
            for group in {"", metric.where.get("group", "")}:
                running.setdefault(group, []).append((running_ns, enabled_ns))
    columns = {name: round(value) for name, value in sums.items()}
    return columns | {
        column: min(on / meant for on, meant in running[group])
        for column, group in shares.items()
        if group in running
    }
