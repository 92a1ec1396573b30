"""How the begin and the end of a timed region are observed, for each kind that a run does not
report itself.

Owns the private folder of a run (records of processes, the FIFO of scripts), and the message when a
region never began or ended.
"""

import fcntl
import os
import re
import struct
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from ..machine.leftovers import RunFolder
from ..workloads import Region
from ._output import Capture
from ._stamps import StampedCapture, monotonic_less_realtime_ns

_RECORD = struct.Struct("=7q")  # struct nb_record of workloads/nbregion.h
_ENDS = ("begin", "end")
_NOTE = struct.Struct("=2i")
_UNBUFFERED = {"PYTHONUNBUFFERED": "1", "GFORTRAN_UNBUFFERED_PRECONNECTED": "y"}


class NoRegion(Exception):
    """A region that never began or ended; the text has the fix."""


@dataclass(frozen=True)
class Times:
    """A region as observed: CLOCK_MONOTONIC in ns; `paused_ns` between its pairs of begin and end.

    `slack_ns` is how much later than these times the begin or the end may have been.
    """

    start_ns: int
    end_ns: int
    paused_ns: int = 0
    slack_ns: int = 0


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
        File descriptor on which processes announce that they wait; None: the barrier's pipe.
    written
        File descriptor of begin and end lines that are stamped when we wake up; None: none.
    """

    library = ""
    stamped = False
    arrivals: int | None = None
    written: int | None = None

    def __init__(self, region: Region):
        self.region = region
        self.env: dict[str, str] = {}

    def listen(self, streams: Sequence[Capture]) -> None:
        """Take note of the streams of the program, which are stamped where this needs it."""

    def arrived(self) -> bool:
        """Read `arrivals`; whether all processes wait."""
        raise NotImplementedError

    def release(self, t0_ns: int) -> None:
        """Announce the common start to the processes that wait."""
        raise NotImplementedError

    def read(self, stamp_ns: int, slack_ns: int) -> None:
        """Read `written`, into which something was written at `stamp_ns`, or up to `slack_ns`
        later.
        """
        raise NotImplementedError

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
        self._folder = _StampFolder()
        self.env = {"NOISEBOOK_REGION": region.kind, "NOISEBOOK_REGION_FOLDER": self._folder.path}
        self.arrivals = self._ready = self._folder.fifo("ready")
        self._go = self._folder.open("go", os.O_RDWR | os.O_CREAT)
        fcntl.flock(self._go, fcntl.LOCK_EX)
        self._waiting, self._expected = 0, 1

    def arrived(self) -> bool:
        for _, expected in _NOTE.iter_unpack(os.read(self._ready, 512 * _NOTE.size)):
            self._waiting += 1
            self._expected = max(self._expected, expected)
        return self._waiting >= self._expected

    def release(self, t0_ns: int) -> None:
        os.pwrite(self._go, t0_ns.to_bytes(8, sys.byteorder, signed=True), 0)
        # explicitly: an injector holds a copy of the descriptor
        fcntl.flock(self._go, fcntl.LOCK_UN)

    def _records(self) -> list[tuple[int, ...]]:
        paths = Path(self._folder.path).glob("record.*")
        records = [path.read_bytes().ljust(_RECORD.size, b"\0") for path in paths]
        return [_RECORD.unpack(record) for record in records]

    def close(self) -> None:
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
            which: re.compile(getattr(region, which), re.MULTILINE) for which in _ENDS
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
        missing = {
            which: f"no line of its output matches {pattern.pattern!r}, the {which} of its region"
            for which, pattern in self._patterns.items()
        }
        return _paired(
            found,
            missing,
            "both lines came in one write: let it flush its output after each line (fflush(stdout),"
            " stdbuf -oL), or mark its region otherwise",
        )


class RoiWatch(Watch):
    """From a line `begin` to a line `end`, written to a FIFO; a line with a time counts with
    that time.
    """

    def __init__(self, region: Region):
        super().__init__(region)
        self._folder = _StampFolder()
        self.written = self._fifo = self._folder.fifo("roi")
        self.env = {"NOISEBOOK_ROI": f"{self._folder.path}/roi"}
        self._rest = ""
        self._found: dict[str, list[int]] = {which: [] for which in _ENDS}
        self._slack_ns = 0
        self._unknown_line = ""

    def read(self, stamp_ns: int, slack_ns: int) -> None:
        with suppress(BlockingIOError):
            self._rest += os.read(self._fifo, 1 << 16).decode(errors="replace")
        *lines, self._rest = self._rest.split("\n")
        for words in filter(None, map(str.split, lines)):
            program_ns = _program_stamp(words[1:])
            if words[0] in _ENDS and (program_ns or len(words) == 1):
                self._found[words[0]].append(program_ns or stamp_ns)
                self._slack_ns = max(self._slack_ns, 0 if program_ns else slack_ns)
            else:
                self._unknown_line = " ".join(words)

    def begun(self) -> int | None:
        return min(self._found["begin"], default=None)

    def times(self) -> Times:
        if self._unknown_line:
            raise NoRegion(
                f"what it wrote to $NOISEBOOK_ROI is neither begin nor end: {self._unknown_line!r};"
                " a time after the word is CLOCK_MONOTONIC in ns, or bash's $EPOCHREALTIME"
            )
        missing = {
            which: f"it never wrote the line '{which}' to the file $NOISEBOOK_ROI"
            for which in _ENDS
        }
        times = _paired(
            self._found,
            missing,
            "its end was written before its begin was read: "
            "write a time with both, or mark its region otherwise",
        )
        return replace(times, slack_ns=self._slack_ns)

    def close(self) -> None:
        self._folder.close()


_WATCHES: dict[str, type[Watch]] = {
    "symbols": SymbolsWatch,
    "mpi": MpiWatch,
    "lines": LinesWatch,
    "roi": RoiWatch,
}


def watch(region: Region) -> Watch:
    """What observes a region of this kind."""
    return _WATCHES.get(region.kind, Watch)(region)


class _StampFolder:
    """The folder of a run's stamps, with its open files."""

    def __init__(self) -> None:
        self._folder = RunFolder("region")
        self.path = str(self._folder.path)
        self._fds: list[int] = []

    def open(self, name: str, flags: int) -> int:
        """A file in it, closed with it."""
        self._fds.append(os.open(f"{self.path}/{name}", flags | os.O_CLOEXEC, 0o600))
        return self._fds[-1]

    def fifo(self, name: str) -> int:
        """A FIFO that is read without waiting, and that has a reader as long as the folder is
        there.
        """
        os.mkfifo(f"{self.path}/{name}", 0o600)
        return self.open(name, os.O_RDWR | os.O_NONBLOCK)

    def close(self) -> None:
        """Remove it; safe to call again."""
        while self._fds:
            os.close(self._fds.pop())
        self._folder.close()


def _paired(found: Mapping[str, list[int]], missing: Mapping[str, str], no_length: str) -> Times:
    """From the first begin to the last end, and the time between an end and the next begin."""
    for which in _ENDS:
        if not found[which]:
            raise NoRegion(missing[which])
    first, last = min(found["begin"]), max(found["end"])
    if last <= first:
        raise NoRegion(no_length if last == first else "its end came before its begin")
    if max(found["begin"]) >= last:
        raise NoRegion("it begins again after its last end")
    paused_ns, paused_since = 0, None
    stamps = [(stamp, which) for which in _ENDS for stamp in found[which]]
    for stamp, which in sorted(stamps):
        if which == "begin" and paused_since is not None:
            paused_ns, paused_since = paused_ns + stamp - paused_since, None
        elif which == "end" and stamp > first:
            paused_since = stamp
    return Times(first, last, paused_ns)


def _program_stamp(words: Sequence[str]) -> int | None:
    """A time that the program wrote itself, as CLOCK_MONOTONIC in ns."""
    if len(words) == 1 and re.fullmatch(r"\d+", words[0]):
        return int(words[0])
    if len(words) == 1 and re.fullmatch(r"\d+[.,]\d+", words[0]):
        seconds, _, fraction = words[0].replace(",", ".").partition(".")
        return int(seconds) * 10**9 + int(fraction[:9].ljust(9, "0")) + monotonic_less_realtime_ns()
    return None


def _times_word(count: int) -> str:
    return {0: "never", 1: "once"}.get(count, f"{count} times")
