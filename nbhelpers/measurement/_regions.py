"""How the begin and the end of a timed region are observed, for each kind that a run cannot tell by
itself.

Owns the private folder of a run (records of processes, the FIFO of scripts), the stamps of printed
lines, and what to say when a region never began or ended.
"""

import fcntl
import os
import re
import shutil
import socket
import struct
import sys
import tempfile
import time
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from ..workloads import Region
from ._output import TAIL, Capture

_FOLDER = "noisebook-region-"
_RECORD = struct.Struct("=7q")  # struct nb_record of workloads/nbregion.h
_ENDS = ("begin", "end")
_WRITES_AT_ONCE = 256
_MOST_WAITING = 1 << 17  # small writes that fill the socket's buffer; an orphan may print for ever
_NOTE = struct.Struct("=2i")
_SO_TIMESTAMPNS = 35
_SO_SNDBUFFORCE = 32
_ROOM_FOR_A_WRITE = 16 << 20  # a single write to a socket must fit into its buffer
_UNBUFFERED = {"PYTHONUNBUFFERED": "1", "GFORTRAN_UNBUFFERED_PRECONNECTED": "y"}


class NoRegion(Exception):
    """A region that never began or ended; the text says what to do."""


@dataclass(frozen=True)
class Times:
    """A region as observed: CLOCK_MONOTONIC in ns; `paused_ns` between its pairs of begin and end.

    `slack_ns` is how much later than said the begin or the end may have been.
    """

    start_ns: int
    end_ns: int
    paused_ns: int = 0
    slack_ns: int = 0


class Watch:
    """Kinds whose times are told otherwise: process, marks. Others override what they need.

    Attributes
    ----------
    library : the preload library that the program needs for it; "": none.
    stamped : the program's output and errors must be `StampedCapture`s.
    env : what it adds to the program's environment.
    arrivals
        File descriptor on which processes say that they wait; None: the barrier's pipe.
    written
        File descriptor of begin and end lines that are stamped when we wake up; None: none.
    """

    library = ""
    stamped = False
    arrivals: int | None = None
    written: int | None = None

    def __init__(self, region: Region):
        self.region, self.env = region, {}

    def listen(self, streams: "Sequence[StampedCapture]") -> None:
        """The streams, where they are stamped."""

    def arrived(self) -> bool:
        """Read `arrivals`; whether all processes wait."""
        raise NotImplementedError

    def release(self, t0_ns: int) -> None:
        """Tell the processes that wait the common start."""
        raise NotImplementedError

    def begun(self) -> int | None:
        """When the region began, as soon as it was seen; asked only for kinds that cannot be armed."""

    def times(self) -> Times | None:
        """The region, after the end; None: the run tells it.

        Raises
        ------
        NoRegion
            It never began, or never ended.
        """

    def close(self) -> None:
        """Leave nothing behind; safe to call again."""


class _FolderWatch(Watch):
    """Processes that record their stamps in a private folder (workloads/nbregion.h)."""

    def __init__(self, region: Region):
        super().__init__(region)
        self._folder = _PrivateFolder()
        self.env = {"NOISEBOOK_REGION": region.kind, "NOISEBOOK_REGION_FOLDER": self._folder.path}
        self.arrivals = self._folder.fifo("ready")
        self._go = self._folder.open("go", os.O_RDWR | os.O_CREAT)
        fcntl.flock(self._go, fcntl.LOCK_EX)
        self._waiting, self._expected = 0, 1

    def arrived(self) -> bool:
        for _, expected in _NOTE.iter_unpack(os.read(self.arrivals, 512 * _NOTE.size)):
            self._waiting += 1
            self._expected = max(self._expected, expected)
        return self._waiting >= self._expected

    def release(self, t0_ns: int) -> None:
        os.pwrite(self._go, t0_ns.to_bytes(8, sys.byteorder, signed=True), 0)
        fcntl.flock(
            self._go, fcntl.LOCK_UN
        )  # explicitly: an injector holds a copy of the descriptor

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

    def listen(self, streams: "Sequence[StampedCapture]") -> None:
        self._streams = tuple(streams)
        for stream in streams:
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
    """From a line `begin` to a line `end`, written to a FIFO; a line with a time of its own is
    taken by that.
    """

    def __init__(self, region: Region):
        super().__init__(region)
        self._folder = _PrivateFolder()
        self.written = self._folder.fifo("roi")
        self.env = {"NOISEBOOK_ROI": f"{self._folder.path}/roi"}
        self._rest, self._found = "", {which: [] for which in _ENDS}
        self._slack_ns, self._odd = 0, ""

    def read(self, stamp_ns: int, slack_ns: int) -> None:
        """Take what was written at `stamp_ns`, or up to `slack_ns` later."""
        with suppress(BlockingIOError):
            self._rest += os.read(self.written, 1 << 16).decode(errors="replace")
        *lines, self._rest = self._rest.split("\n")
        for words in filter(None, map(str.split, lines)):
            own_ns = _own_stamp(words[1:])
            if words[0] in _ENDS and (own_ns or len(words) == 1):
                self._found[words[0]].append(own_ns or stamp_ns)
                self._slack_ns = max(self._slack_ns, 0 if own_ns else slack_ns)
            else:
                self._odd = " ".join(words)

    def begun(self) -> int | None:
        return min(self._found["begin"], default=None)

    def times(self) -> Times:
        if self._odd:
            raise NoRegion(
                f"what it wrote to $NOISEBOOK_ROI is neither begin nor end: {self._odd!r}; a time "
                "after the word is CLOCK_MONOTONIC in ns, or bash's $EPOCHREALTIME"
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


_WATCHES = {"symbols": SymbolsWatch, "mpi": MpiWatch, "lines": LinesWatch, "roi": RoiWatch}


def watch(region: Region) -> Watch:
    """What observes a region of this kind."""
    return _WATCHES.get(region.kind, Watch)(region)


class StampedCapture(Capture):
    """A socket that is read to its end, with the time at which each write came to it.

    The kernel stamps a message when it is written (SO_TIMESTAMPNS), so it does not matter how late
    we are woken to read it. A pipe has no stamps.
    """

    def __init__(self, fd: int, tail: int = TAIL):
        super().__init__(fd, tail)
        self._socket = socket.socket(fileno=fd)
        self._buffer = memoryview(bytearray(_ROOM_FOR_A_WRITE))
        self._seen, self._stamps = 0, []  # bytes up to the end of a write, when it came
        self._wanted, self._line = None, b""
        self.first_ns: int | None = None

    def look_for(self, pattern: re.Pattern) -> None:
        """Set `first_ns` as soon as a line matches."""
        self._wanted = pattern

    def read(self) -> bool:
        for _ in range(_WRITES_AT_ONCE):
            if not self._read_one():
                return False
        return True

    def drain(self) -> None:
        for _ in range(_MOST_WAITING // _WRITES_AT_ONCE):
            if not self.read():
                return

    def _read_one(self) -> bool:
        if not self.open:
            return False
        try:
            length, ancillary, _, _ = self._socket.recvmsg_into([self._buffer], 256)
        except BlockingIOError:
            return False
        self.open = bool(ancillary)  # a message has a stamp, even an empty one; the end has none
        if self.open:
            self._take(bytes(self._buffer[:length]), _monotonic_of(ancillary[0][2]))
        return self.open

    def _take(self, data: bytes, stamp_ns: int) -> None:
        self._seen += len(data)
        self._stamps.append((self._seen, stamp_ns))
        self._keep(data)
        if self._wanted:
            self._line = self._line.rpartition(b"\n")[2] + data
            if self._wanted.search(self._line.decode(errors="replace")):
                self.first_ns, self._wanted = stamp_ns, None

    def stamps_of(self, pattern: re.Pattern) -> Iterator[int]:
        """When the last character of each match was written; what is left out of the middle is not
        searched.
        """
        ends = [end for end, _ in self._stamps]
        for first, data in self.parts():
            text = data.decode(errors="surrogateescape")
            for match in pattern.finditer(text):
                end = first + len(text[: match.end()].encode(errors="surrogateescape"))
                yield self._stamps[bisect_left(ends, end)][1]

    def close(self) -> None:
        self._socket.detach()  # the descriptor is the child's


def stamped_pair() -> tuple[int, int]:
    """A pair of sockets in place of a pipe; what is written to the second has a time at the first."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
    try:
        theirs.setsockopt(socket.SOL_SOCKET, _SO_SNDBUFFORCE, _ROOM_FOR_A_WRITE // 2)
    except PermissionError:
        theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _ROOM_FOR_A_WRITE // 2)
    return ours.detach(), theirs.detach()


class WakeUps:
    """How late this thread was woken: the kernel's account of its time on a run queue (schedstat).

    Notes
    -----
    A thread that waits on a pipe is woken by the write itself, but runs only when a CPU is free for
    it.
    """

    def __init__(self):
        self._fd, self._before_ns = -1, 0
        with suppress(OSError):
            self._fd = os.open("/proc/thread-self/schedstat", os.O_RDONLY | os.O_CLOEXEC)

    def mark(self) -> None:
        """To be called before the sleep."""
        self._before_ns = self._waited_ns()

    def stamp(self) -> tuple[int, int]:
        """After the sleep: the earliest time at which we were woken, and how much later it may have
        been.
        """
        for _ in range(3):
            waited_ns, now_ns = self._waited_ns(), time.monotonic_ns()
            if self._waited_ns() == waited_ns:
                break
        slack_ns = waited_ns - self._before_ns
        return now_ns - slack_ns, slack_ns

    def _waited_ns(self) -> int:
        return int(os.pread(self._fd, 100, 0).split()[1]) if self._fd >= 0 else 0

    def close(self) -> None:
        """Safe to call again."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class _PrivateFolder:
    """A folder in memory for one run; one that a killed harness left is removed by the next."""

    def __init__(self):
        base = Path("/dev/shm")
        base = base if os.access(base, os.W_OK | os.X_OK) else Path(tempfile.gettempdir())
        for path in base.glob(f"{_FOLDER}*"):
            _remove_if_left(path)
        self.path = tempfile.mkdtemp(prefix=_FOLDER, dir=base)
        self._fds = [os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)]
        fcntl.flock(self._fds[0], fcntl.LOCK_EX)

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
        shutil.rmtree(self.path, ignore_errors=True)


def _remove_if_left(path: Path) -> None:
    """Its owner holds a lock on it; a folder that was made just now may not be locked yet."""
    with suppress(OSError):
        if time.time() - path.stat().st_mtime < 60:
            return
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path, ignore_errors=True)
        finally:
            os.close(fd)


def _paired(found: Mapping[str, list[int]], missing: Mapping[str, str], at_once: str) -> Times:
    """From the first begin to the last end, and the time between an end and the next begin."""
    for which in _ENDS:
        if not found[which]:
            raise NoRegion(missing[which])
    first, last = min(found["begin"]), max(found["end"])
    if last <= first:
        raise NoRegion(at_once if last == first else "its end came before its begin")
    if max(found["begin"]) >= last:
        raise NoRegion("it begins again after its last end")
    paused_ns, paused_since = 0, None
    for stamp, which in sorted([(stamp, which) for which in _ENDS for stamp in found[which]]):
        if which == "begin" and paused_since is not None:
            paused_ns, paused_since = paused_ns + stamp - paused_since, None
        elif which == "end" and stamp > first:
            paused_since = stamp
    return Times(first, last, paused_ns)


def _own_stamp(words: Sequence[str]) -> int | None:
    """A time that the program gave itself, as CLOCK_MONOTONIC in ns."""
    if len(words) == 1 and re.fullmatch(r"\d+", words[0]):
        return int(words[0])
    if len(words) == 1 and re.fullmatch(r"\d+[.,]\d+", words[0]):
        seconds, _, fraction = words[0].replace(",", ".").partition(".")
        return int(seconds) * 10**9 + int(fraction[:9].ljust(9, "0")) + _since_realtime_ns()
    return None


def _monotonic_of(timespec: bytes) -> int:
    seconds, nanoseconds = struct.unpack("=qq", timespec)
    return seconds * 10**9 + nanoseconds + _since_realtime_ns()


def _since_realtime_ns() -> int:
    """CLOCK_MONOTONIC less CLOCK_REALTIME, now: the narrowest of a few brackets."""
    brackets = []
    for _ in range(5):
        before, real, after = time.monotonic_ns(), time.time_ns(), time.monotonic_ns()
        brackets.append((after - before, (before + after) // 2 - real))
        if after - before < 2000:
            break
    return min(brackets)[1]


def _times_word(count: int) -> str:
    return {0: "never", 1: "once"}.get(count, f"{count} times")
