"""How the begin and the end of a timed region are observed, for each kind that a run does not
report itself.

Owns the private folder of a run (records of processes), and the message when a region never began
or ended.
"""

import fcntl
import os
import re
import struct
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from ..machine.leftovers import RunFolder
from ..workloads import Region
from ._output import Capture, NoRegion
from ._stamps import StampedCapture

_RECORD = struct.Struct("=7q")  # struct nb_record of workloads/nbregion.h
_NOTE = struct.Struct("=2i")
_UNBUFFERED = {"PYTHONUNBUFFERED": "1", "GFORTRAN_UNBUFFERED_PRECONNECTED": "y"}


@dataclass(frozen=True)
class Times:
    """A region as observed, CLOCK_MONOTONIC in ns; `paused_ns`: between an end and a begin."""

    start_ns: int
    end_ns: int
    paused_ns: int = 0


class Watch:
    """Kinds whose times are known otherwise: process, marks. Others override what they need.

    Attributes
    ----------
    library
        The preload library that the program needs for it; "": none.
    stamped
        The program's output and errors must be `StampedCapture`s.
    env
        What it adds to the program's environment.
    arrivals
        File descriptor on which processes announce that they wait.
    """

    library = ""
    stamped = False

    def __init__(self, region: Region):
        self.region = region
        self.env: dict[str, str] = {}
        self.arrivals = self._go = -1

    def barrier(self, pipe: Callable[[], tuple[int, int]]) -> dict[str, int]:
        """The ends of two pipes that the program inherits, by the variables that name them."""
        (self.arrivals, ready), (go, self._go) = pipe(), pipe()
        return {"NOISEBOOK_READY_FD": ready, "NOISEBOOK_GO_FD": go}

    def listen(self, streams: Sequence[Capture]) -> None:
        """Take note of the streams of the program, which are stamped where this needs it."""

    def arrived(self) -> bool | None:
        """Read `arrivals`; whether all processes wait; None: they never will, as a process that
        dies shows before its end.
        """
        return bool(os.read(self.arrivals, 1)) or None

    def release(self, t0_ns: int) -> None:
        """Announce the common start to the processes that wait."""
        with suppress(BrokenPipeError):
            os.write(self._go, t0_ns.to_bytes(8, sys.byteorder, signed=True))

    def begun(self) -> int | None:
        """When the region began, as soon as it was seen; only of kinds that cannot be armed."""
        return None

    def times(self) -> Times | None:
        """The region, after the end; None: the run reports it.

        Raises
        ------
        NoRegion
            It never began, or never ended.
        """
        return None

    def close(self) -> None:
        """Leave nothing behind; safe to call again."""


class _FolderWatch(Watch):
    """Processes that record their stamps in a private folder (workloads/nbregion.h)."""

    def __init__(self, region: Region):
        super().__init__(region)
        self._folder = RunFolder("region")
        path = str(self._folder.path)
        self.env = {"NOISEBOOK_REGION": region.kind, "NOISEBOOK_REGION_FOLDER": path}
        os.mkfifo(f"{path}/ready", 0o600)
        # open for writing, too: it has a reader and a writer as long as the folder is there
        self.arrivals = os.open(f"{path}/ready", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        self._go = os.open(f"{path}/go", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._fds = [self.arrivals, self._go]
        fcntl.flock(self._go, fcntl.LOCK_EX)
        self._waiting, self._expected = 0, 1

    def barrier(self, pipe: Callable[[], tuple[int, int]]) -> dict[str, int]:
        return {}

    def arrived(self) -> bool:
        for _, expected in _NOTE.iter_unpack(os.read(self.arrivals, 512 * _NOTE.size)):
            self._waiting += 1
            self._expected = max(self._expected, expected)
        return self._waiting >= self._expected

    def release(self, t0_ns: int) -> None:
        os.pwrite(self._go, t0_ns.to_bytes(8, sys.byteorder, signed=True), 0)
        # explicitly: an injector holds a copy of the descriptor
        fcntl.flock(self._go, fcntl.LOCK_UN)

    def _records(self) -> list[tuple[int, ...]]:
        records = [path.read_bytes() for path in self._folder.path.glob("record.*")]
        return [_RECORD.unpack(record.ljust(_RECORD.size, b"\0")) for record in records]

    def close(self) -> None:
        while self._fds:
            os.close(self._fds.pop())
        self._folder.close()


class SymbolsWatch(_FolderWatch):
    """From the first `noisebook_begin()` to the last `noisebook_end()`."""

    library = "libnbstart.so"

    def times(self) -> Times:
        records = self._records()
        begun, ended = (sum(record[place] for record in records) for place in (4, 5))
        if not ended or begun != ended:
            raise NoRegion(
                f"it called noisebook_begin() {_times_word(begun)} and noisebook_end() "
                f"{_times_word(ended)}; each begin needs its end"
            )
        first, last = min(record[0] for record in records), max(record[1] for record in records)
        inside = records[0][2] if len(records) == 1 else last - first
        return Times(first, last, last - first - inside)


class MpiWatch(_FolderWatch):
    """From the first end of MPI_Init to the last begin of MPI_Finalize."""

    library = "libnbmpi.so"

    def times(self) -> Times:
        records = self._records()
        open_ranks = sorted(record[6] for record in records if not record[5])
        if open_ranks or not records:
            ranks = ", ".join(map(str, open_ranks))
            raise NoRegion(f"rank {ranks} of {len(records)} never called MPI_Finalize")
        return Times(min(record[0] for record in records), max(record[1] for record in records))


class LinesWatch(Watch):
    """From a printed line to another; the kernel stamps each write to the sockets that stand for
    its output.
    """

    library = "libnbstart.so"
    stamped = True

    def __init__(self, region: Region):
        super().__init__(region)
        self.env = {"NOISEBOOK_REGION": "lines"}
        self.env |= {name: value for name, value in _UNBUFFERED.items() if name not in os.environ}
        self._patterns = {
            which: re.compile(getattr(region, which), re.MULTILINE) for which in ("begin", "end")
        }
        self._streams: tuple[StampedCapture, ...] = ()

    def listen(self, streams: Sequence[Capture]) -> None:
        self._streams = tuple(one for one in streams if isinstance(one, StampedCapture))
        for stream in self._streams:
            stream.look_for(self._patterns["begin"])

    def begun(self) -> int | None:
        seen = (stream.first_ns for stream in self._streams if stream.first_ns is not None)
        return min(seen, default=None)

    def times(self) -> Times:
        found = {
            which: [stamp for stream in self._streams for stamp in stream.stamps_of(pattern)]
            for which, pattern in self._patterns.items()
        }
        for which, stamps in found.items():
            if not stamps:
                sought = f"{self._patterns[which].pattern!r}, the {which} of its region"
                raise NoRegion(f"no line of its output matches {sought}")
        return _paired(found["begin"], found["end"])


_WATCHES: dict[str, type[Watch]] = {
    "symbols": SymbolsWatch,
    "mpi": MpiWatch,
    "lines": LinesWatch,
}


def watch(region: Region) -> Watch:
    """What observes a region of this kind."""
    return _WATCHES.get(region.kind, Watch)(region)


def _paired(begins: list[int], ends: list[int]) -> Times:
    """From the first begin to the last end, and the time between an end and the next begin."""
    first, last = min(begins), max(ends)
    if last == first:
        raise NoRegion(
            "both lines came in one write: let it flush its output after each line (fflush(stdout),"
            " stdbuf -oL), or mark its region otherwise"
        )
    if last < first:
        raise NoRegion("its end came before its begin")
    if max(begins) >= last:
        raise NoRegion("it begins again after its last end")
    paused_ns, paused_since = 0, None
    for stamp, is_end in sorted([(one, False) for one in begins] + [(one, True) for one in ends]):
        if is_end and stamp > first:
            paused_since = stamp
        elif not is_end and paused_since is not None:
            paused_ns, paused_since = paused_ns + stamp - paused_since, None
    return Times(first, last, paused_ns)


def _times_word(count: int) -> str:
    return {0: "never", 1: "once"}.get(count, f"{count} times")
