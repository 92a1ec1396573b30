"""Metric layers: counters that accompany a run, each an attachment that adds its columns to the runs table.

All count from the barrier, when the process waits with its threads running, to its end. `columns` says what each column means.
"""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from ..errors import InputError
from . import _perf
from ._kernel import Reader, parse_interrupts, parse_pressure, parse_softirqs, parse_stat, parse_vmstat
from .attachment import Attachment


class PerfEvents(Attachment):
    """perf events of a process and all its threads; without a single event that can be had it yields no columns and a note."""

    def __init__(self, layer: str, kind: int):
        self.layer, self._kind, self._open = layer, kind, []

    @property
    def notes(self) -> tuple[str, ...]:
        usable, missing = _perf.available(self._kind)
        reasons = {reason: [name for name in missing if missing[name] == reason] for reason in missing.values()}
        none = "" if usable else "no column at all; "
        return tuple(f"{self.layer}: {none}without {', '.join(names)}: {reason}" for reason, names in reasons.items())

    def armed(self, pid: int) -> None:
        self.close()
        self._open = _perf.open_on_process(self._kind, pid)

    def after(self, run: dict) -> dict:
        totals: dict[str, float] = {}
        shares = []
        for name, fd in self._open:
            value, enabled_ns, running_ns = _perf.read_counter(fd)
            share = running_ns / enabled_ns if enabled_ns else 1.0
            totals[name] = totals.get(name, 0) + (value if share in (0, 1) else value / share)
            shares.append(share)
        self.close()
        columns = {name: round(total) for name, total in totals.items()}
        return columns | ({f"{self.layer}_running_share": min(shares)} if shares and self._kind == _perf.HARDWARE else {})

    def close(self) -> None:
        for _, fd in self._open:
            os.close(fd)
        self._open = []

    def __repr__(self) -> str:
        return f"PerfEvents({self.layer}: {', '.join(_perf.available(self._kind)[0]) or 'nothing available'})"


class MachineCounters(Attachment):
    """How far the counters of the whole machine moved during a run."""

    def __init__(self, layer: str, parsers: dict[str, Callable[[str], dict[str, float]]]):
        self.layer, self._reader, self._start = layer, Reader(parsers), {}

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(f"{self.layer}: this kernel has no {path}" for path in self._reader.missing)

    def armed(self, pid: int) -> None:
        self._start = self._reader.read()

    def after(self, run: dict) -> dict:
        end = self._reader.read()
        return {name: value - self._start.get(name, 0) for name, value in end.items()}

    def close(self) -> None:
        self._reader.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.layer})"


class KernelCounters(MachineCounters):
    """/proc/stat and /proc/vmstat; the CPU time of the run itself is taken out of the machine's to leave that of others."""

    def __init__(self):
        super().__init__("kernel", {"/proc/stat": parse_stat, "/proc/vmstat": parse_vmstat})
        self._own_start_s = 0.0

    def armed(self, pid: int) -> None:
        self._own_start_s = _cpu_time_s(pid)
        super().armed(pid)

    def after(self, run: dict) -> dict:
        columns = super().after(run)
        own_s = run["user_s"] + run["system_s"] - self._own_start_s
        for name in ("steal_s", "machine_busy_s"):
            columns[name] = round(columns[name], 6)
        return columns | {"others_busy_s": round(columns["machine_busy_s"] - own_s, 6)}


def _cpu_time_s(pid: int) -> float:
    """CPU time of another process so far, through its CPU clock (clock_getcpuclockid(3): the pid's complement, shifted, | 2)."""
    with suppress(OSError):
        return time.clock_gettime(((~pid) << 3) | 2)
    return 0.0


LAYERS: dict[str, Callable[[], Attachment] | None] = {
    "rusage": None,  # comes with every run
    "software": partial(PerfEvents, "software", _perf.SOFTWARE),
    "hardware": partial(PerfEvents, "hardware", _perf.HARDWARE),
    "interrupts": partial(MachineCounters, "interrupts", {"/proc/interrupts": parse_interrupts}),
    "softirqs": partial(MachineCounters, "softirqs", {"/proc/softirqs": parse_softirqs}),
    "kernel": KernelCounters,
    "pressure": partial(MachineCounters, "pressure", {f"/proc/pressure/{name}": partial(parse_pressure, resource=name)
                                                      for name in ("cpu", "io", "memory")}),
}


def metrics(*names: str) -> tuple[Attachment, ...]:
    """Metric layers by name, ready to be given to a campaign.

    Parameters
    ----------
    names : rusage (comes with every run anyway), software, hardware, interrupts, softirqs, kernel, pressure; or "all".

    Raises
    ------
    InputError : there is no such layer.
    """
    wanted = list(dict.fromkeys(LAYERS if "all" in names else names))
    unknown = [name for name in wanted if name not in LAYERS]
    if unknown:
        raise InputError(f"there is no metric layer '{unknown[0]}'", mend=f"choose from {', '.join(LAYERS)}, or \"all\"")
    return tuple(LAYERS[name]() for name in wanted if LAYERS[name])
