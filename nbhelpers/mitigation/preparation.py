"""Actions before a run that leave nothing to undo: caches dropped or warmed, memory compacted, a
pause; and a request that ends with our process.

Each proves at once that it was done: by a counter of the kernel, by asking for the pages, by
reading the request back.
"""

import errno
import glob
import os
import struct
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import InputError, SettingError
from ..machine import allowed, kernel, privileged
from ..workloads import Workload
from .action import YES, Action, Possible, Prepared, Unproven

_SMALLEST_WAIT_S = 0.002
_NO_REQUEST_US = 2_000_000_000  # longer than any wake-up: it changes nothing


def _done(action: Prepared) -> Iterator[None]:
    """For the run that follows, the action counts as done."""
    object.__setattr__(action, "done", True)  # a frozen dataclass may note it, too
    try:
        yield
    finally:
        object.__setattr__(action, "done", False)


@dataclass(frozen=True)
class Trigger(Prepared):
    """A file that makes the kernel do something once when it is written, such as dropping caches.

    Parameters
    ----------
    counts
        Counters of /proc/vmstat of which at least one rises when it was done.
    flush
        sync(2) first.

    Raises
    ------
    InputError
        It is neither compact_memory nor drop_caches, or the value is out of range.
    """

    path: str
    value: str
    counts: Sequence[str] = ()
    flush: bool = False

    def __post_init__(self) -> None:
        if self.path not in allowed.AT_ONCE or allowed.refusal(self.path, self.value):
            raise InputError(
                f"this cannot be triggered: {self.path!r}, {self.value!r}",
                why="writing into any other file could change the machine for good",
                fix=f"1 into {allowed.AT_ONCE[0]}, or 1 to 3 into {allowed.AT_ONCE[1]}",
            )

    @property
    def risk(self) -> str:
        return allowed.risk_of(self.path)

    def possible(self, workload: Workload | None = None) -> Possible:
        if not os.path.exists(self.path):
            return Possible(False, f"there is no {self.path} here", "a kernel that has it")
        try:
            kernel.check_writable(self.path)
        except OSError as error:
            return Possible(
                False, f"{self.path}: {error.strerror}", f"{privileged.INSTALL}, or run as root"
            )
        return YES

    @contextmanager
    def held(self, workload: Workload) -> Iterator[None]:
        if self.flush:
            os.sync()
        before = _vmstat(self.counts)
        try:
            _write(self.path, self.value)
        except OSError as error:
            raise SettingError(
                f"it cannot be written: {error.strerror}", where=self.path, fix="run as root"
            ) from None
        if self.counts and _vmstat(self.counts) == before:
            raise SettingError(
                "the kernel did nothing: none of its counters moved",
                where=f"{self.path}; {', '.join(self.counts)}",
            )
        yield from _done(self)


def _write(path: str, value: str) -> None:
    """Into a file that is there; none is made, none is cut, and no link is followed."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except PermissionError:
        privileged.write(path, value)
        return
    try:
        os.write(handle, value.encode())
    finally:
        os.close(handle)


def _opens(path: str, flags: int) -> Possible:
    try:
        os.close(os.open(path, flags))
    except OSError as error:
        return Possible(False, f"{path}: {error.strerror}", "run as root")
    return YES


def _vmstat(names: Sequence[str]) -> dict[str, str]:
    rows = (line.split() for line in Path("/proc/vmstat").read_text().splitlines())
    return {name: value for name, value in rows if name in names}


class Flush(Prepared):
    """What is dirty is written out before the run (sync(2), which returns when it is done)."""

    @contextmanager
    def held(self, workload: Workload) -> Iterator[None]:
        os.sync()
        yield from _done(self)


@dataclass(frozen=True)
class WarmFiles(Prepared):
    """The program and the files named in its command are in the page cache when it starts; `more`
    are further files.
    """

    more: Sequence[str] = ()

    @contextmanager
    def held(self, workload: Workload) -> Iterator[None]:
        paths = [word for word in (*workload.command, *self.more) if os.path.isfile(word)]
        shown = [self._read(path) for path in dict.fromkeys(paths)]
        if shown and all(shown):
            yield from _done(self)
        else:
            yield

    def check(self, pid: int) -> str | None:
        if self.done:
            return None
        return Unproven("nothing shows that files named in the command are in memory")

    def _read(self, path: str) -> bool:
        """Read, then ask for single pages without waiting (preadv2(2), RWF_NOWAIT): EAGAIN for what
        is not in memory. False: the file system does not tell.
        """
        try:
            with open(path, "rb", buffering=0) as file:
                while file.read(1 << 20):
                    pass
                size = os.fstat(file.fileno()).st_size
                for offset in range(0, size, max(4096, size // 64)):
                    os.preadv(file.fileno(), [bytearray(1)], offset, os.RWF_NOWAIT)
            return True
        except BlockingIOError:
            raise SettingError(
                "the file does not stay in the page cache",
                where=path,
                why="runs would begin with more or less of it in memory",
                fix="free --mega; it may be larger than the memory",
            ) from None
        except OSError as error:
            if error.errno != errno.EOPNOTSUPP:  # a file system without RWF_NOWAIT
                raise SettingError(
                    f"the file cannot be read: {error.strerror}", where=path
                ) from None
            return False


@dataclass(frozen=True)
class CoolDown(Prepared):
    """A pause before the run, s; nothing of it is timed."""

    seconds: float = 2.0

    @contextmanager
    def held(self, workload: Workload) -> Iterator[None]:
        until = time.monotonic() + self.seconds
        while (left := until - time.monotonic()) > 0:
            time.sleep(max(left, _SMALLEST_WAIT_S))
        yield from _done(self)


@dataclass(frozen=True)
class Latency(Action):
    """No idle state with a longer wake-up than this, µs: a request that holds while its file is
    open, and ends with our process whatever happens.

    Proof: the strictest request on the machine, and that since the program waits no CPU has entered
    such a state more than once; the request itself ends the states that CPUs are in.
    """

    us: int = 0
    _path = "/dev/cpu_dma_latency"
    _states = "/sys/devices/system/cpu"
    _before: Mapping[str, int] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def risk(self) -> str:
        return "low"

    def arm(self, pid: int) -> None:
        object.__setattr__(self, "_before", self._entered())

    def _entered(self) -> dict[str, int]:
        """Of the states that the request forbids: how often each was entered."""
        entered = {}
        for folder in glob.glob(f"{self._states}/cpu[0-9]*/cpuidle/state[1-9]*"):
            with suppress(OSError, ValueError):
                if int(Path(folder, "latency").read_text()) > self.us:
                    entered[folder] = int(Path(folder, "usage").read_text())
        return entered

    def possible(self, workload: Workload | None = None) -> Possible:
        states = glob.glob("/sys/devices/system/cpu/cpu[0-9]*/cpuidle/state[1-9]*")
        if not states:
            return Possible(
                False,
                "the kernel has no idle states to choose from, as in most virtual machines",
                "a machine with cpuidle, or the host",
            )
        return YES if privileged.helper() else _opens(self._path, os.O_RDONLY)

    @contextmanager
    def held(self, workload: Workload) -> Iterator[None]:
        handle = self._requested()
        try:
            yield
        finally:
            os.close(handle)

    def _requested(self) -> int:
        """The file that holds the request while it is open."""
        try:
            handle = os.open(self._path, os.O_RDWR)
        except PermissionError:
            return privileged.latency(self.us)
        os.write(handle, struct.pack("=i", self.us))
        return handle

    def _strictest(self) -> int:
        """Reading a fresh file tells the strictest request on the machine."""
        try:
            handle = os.open(self._path, os.O_RDONLY)
        except PermissionError:
            handle = privileged.latency(_NO_REQUEST_US)
        with open(handle, "rb", buffering=0) as file:
            return struct.unpack("=i", file.read(4))[0]

    def check(self, pid: int) -> str | None:
        has = self._strictest()
        if has > self.us:
            return f"the wake-up latency requested is {has} µs, not {self.us} µs"
        if not self._before:
            return Unproven("nothing counts the idle states of the CPUs")
        for state, entered in self._entered().items():
            if entered > self._before.get(state, entered) + 1:
                return f"{state} was entered {entered - self._before[state]} times"
        return None
