"""Actions before a run that leave nothing to undo: caches dropped, memory compacted, a pause; and a
request that ends with our process.

Each proves at once that it was done: by a counter of the kernel, or by reading the request back.
"""

import glob
import os
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ..machine import privileged
from ..workloads import Workload
from .action import YES, Action, Possible, Prepared

_SMALLEST_WAIT_S = 0.002
_NO_REQUEST_US = 2_000_000_000  # longer than any wake-up: it changes nothing


def _done(action: Prepared) -> Iterator[None]:
    """For the run that follows, the action counts as done."""
    object.__setattr__(action, "done", True)  # a frozen dataclass may note it, too
    try:
        yield
    finally:
        object.__setattr__(action, "done", False)


def _opens(path: str, flags: int) -> Possible:
    try:
        os.close(os.open(path, flags))
    except OSError as error:
        return Possible(False, f"{path}: {error.strerror}", "run as root")
    return YES


class Flush(Prepared):
    """What is dirty is written out before the run (sync(2), which returns when it is done)."""

    @contextmanager
    def held(self, workload: Workload) -> Iterator[None]:
        os.sync()
        yield from _done(self)


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

    Proof: the strictest request on the machine, which the kernel obeys.
    """

    us: int = 0
    _path = "/dev/cpu_dma_latency"

    @property
    def risk(self) -> str:
        return "low"

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
        return None
