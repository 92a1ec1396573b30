"""The clock that CPUs really had while they worked: APERF over MPERF, times the rate of the time
stamp counter.

Owns where the three counters are read: the kernel's perf device `msr`, or /dev/cpu/N/msr. Both
count only while the CPU is not idle; MPERF at a fixed rate, APERF at the real one (Intel SDM vol.
3, sec. 15.2; the same on AMD). Virtual machines mostly hide them.
"""

import os
import struct
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Protocol

from ._perf import open_cpu_counter, read_counter

EVENTS = ("aperf", "mperf", "tsc")
_REGISTERS = {"aperf": 0xE8, "mperf": 0xE7, "tsc": 0x10}
_DEVICE = "sys/bus/event_source/devices/msr"


class BusyClock:
    """Reads the counters of some CPUs at the beginning and the end of a run.

    Parameters
    ----------
    root
        Folder of a recorded tree of /sys and /dev; "/" is this machine.

    Notes
    -----
    `lacking` is the reason why nothing can be read, "" if it can. The rate of MPERF is taken to be
    that of the time stamp counter, which is read with it: where the two differ the clock is off by
    their ratio, the same in every run.
    """

    def __init__(self, root: str | Path = "/"):
        self._root = Path(root)
        self._open: dict[int, _Counters] = {}
        self._begun: dict[int, tuple[int, ...]] = {}
        self._ended: dict[int, tuple[int, ...]] = {}
        self._began_ns = self._ended_ns = 0
        self._open_counters, self.lacking = _way(self._root)

    def start(self, cpus: tuple[int, ...]) -> None:
        """Read for the first time."""
        self._begun, self._ended = {}, {}
        if not self.lacking:
            self._begun = {cpu: self._counters(cpu) for cpu in cpus}
            self._began_ns = time.monotonic_ns()

    def stop(self) -> None:
        """Read for the last time."""
        if self._begun and not self._ended:
            self._ended = {cpu: self._counters(cpu) for cpu in self._begun}
            self._ended_ns = time.monotonic_ns()

    def _counters(self, cpu: int) -> tuple[int, ...]:
        if cpu not in self._open:
            assert self._open_counters is not None  # nothing is lacking
            self._open[cpu] = self._open_counters(cpu)
        return self._open[cpu].values()

    def columns(self) -> dict[str, float]:
        """`busy_mhz` (mean of the CPUs), `busy_min_mhz`, `busy_max_mhz`; nothing where nothing was
        read, or no CPU worked.
        """
        seconds = (self._ended_ns - self._began_ns) / 1e9
        of_cpus = [busy_mhz(self._begun[cpu], ended, seconds) for cpu, ended in self._ended.items()]
        clocks = [clock for clock in of_cpus if clock is not None]
        if not clocks:
            return {}
        return {
            "busy_mhz": sum(clocks) / len(clocks),
            "busy_min_mhz": min(clocks),
            "busy_max_mhz": max(clocks),
        }

    def close(self) -> None:
        """Close all counters; may be called at any time."""
        for opened in self._open.values():
            opened.close()
        self._open = {}


def busy_mhz(before: tuple[int, ...], after: tuple[int, ...], seconds: float) -> float | None:
    """Mean clock (MHz) of a CPU while it worked, of two readings (APERF, MPERF, TSC); None: it did
    not work, or no time passed.
    """
    aperf, mperf, tsc = ((late - early) % 2**64 for early, late in zip(before, after))
    return aperf / mperf * tsc / seconds / 1e6 if mperf and seconds > 0 else None


def _way(root: Path) -> "tuple[Callable[[int], _Counters] | None, str]":
    """How to read the counters of a CPU, or why they cannot be read."""
    has_events = all((root / _DEVICE / "events" / name).exists() for name in EVENTS)
    registers = root / "dev/cpu/0/msr"
    kind: type[_PerfCounters] | type[_Registers]
    if has_events:
        kind = _PerfCounters
    elif registers.exists():
        kind = _Registers
    else:
        return None, (
            "this machine shows neither (a virtual machine hides them; on real hardware without"
            " perf's device: modprobe msr)"
        )
    try:
        first = kind(root, 0)
        first.values()
        first.close()
    except OSError as error:
        return None, (
            f"{error.strerror} (it takes root, or kernel.perf_event_paranoid at 0 or below)"
        )
    return partial(kind, root), ""


class _Counters(Protocol):
    """The three counters of a CPU, open."""

    def values(self) -> tuple[int, ...]: ...

    def close(self) -> None: ...


class _PerfCounters:
    """Three counters of perf's device `msr` on a CPU."""

    def __init__(self, root: Path, cpu: int):
        folder = root / _DEVICE
        self._fds: list[int] = []
        kind = int((folder / "type").read_text())
        try:
            for name in EVENTS:
                config = int(
                    (folder / "events" / name).read_text().strip().removeprefix("event="), 16
                )
                self._fds.append(open_cpu_counter(kind, config, cpu))
        except OSError:
            self.close()
            raise

    def values(self) -> tuple[int, ...]:
        return tuple(read_counter(fd)[0] for fd in self._fds)

    def close(self) -> None:
        while self._fds:
            os.close(self._fds.pop())


class _Registers:
    """Three model-specific registers of a CPU."""

    def __init__(self, root: Path, cpu: int):
        self._fd = os.open(root / f"dev/cpu/{cpu}/msr", os.O_RDONLY | os.O_CLOEXEC)

    def values(self) -> tuple[int, ...]:
        return tuple(self._register(_REGISTERS[name]) for name in EVENTS)

    def _register(self, number: int) -> int:
        read = os.pread(self._fd, 8, number)
        if len(read) != 8:
            raise OSError(5, f"register {number:#x} cannot be read")
        return struct.unpack("<Q", read)[0]

    def close(self) -> None:
        os.close(self._fd)
