"""When something was written: output through sockets that the kernel stamps."""

import re
import socket
import struct
import time
from bisect import bisect_left
from collections.abc import Iterator

from ._output import TAIL, Capture

_WRITES_AT_ONCE = 256
_MOST_WAITING = 1 << 17  # small writes that fill the socket's buffer; an orphan may print for ever
_SO_TIMESTAMPNS = 35
_SO_SNDBUFFORCE = 32
_ROOM_FOR_A_WRITE = 16 << 20  # a single write to a socket must fit into its buffer


class StampedCapture(Capture):
    """A socket that is read to its end, with the time at which each write came to it.

    The kernel stamps a message when it is written (SO_TIMESTAMPNS), so it does not matter how late
    we are woken to read it. A pipe has no stamps.
    """

    def __init__(self, fd: int, tail: int = TAIL):
        super().__init__(fd, tail)
        self._socket = socket.socket(fileno=fd)
        self._buffer = memoryview(bytearray(_ROOM_FOR_A_WRITE))
        self._seen = 0
        self._stamps: list[tuple[int, int]] = []  # bytes up to the end of a write, when it came
        self._wanted: re.Pattern | None = None
        self._line = b""
        self.first_ns: int | None = None

    def look_for(self, pattern: re.Pattern) -> None:
        """Set `first_ns` as soon as a line matches."""
        self._wanted = pattern

    def read(self) -> bool:
        return all(self._read_one() for _ in range(_WRITES_AT_ONCE))

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
            seconds, ns = struct.unpack("=qq", ancillary[0][2])
            stamp_ns = seconds * 10**9 + ns + _monotonic_less_realtime_ns()
            self._take(bytes(self._buffer[:length]), stamp_ns)
        return self.open

    def _take(self, data: bytes, stamp_ns: int) -> None:
        self._seen += len(data)
        self._stamps.append((self._seen, stamp_ns))
        self._store(data)
        if self._wanted:
            self._line = self._line.rpartition(b"\n")[2] + data
            if self._wanted.search(self._line.decode(errors="replace")):
                self.first_ns, self._wanted = stamp_ns, None

    def stamps_of(self, pattern: re.Pattern) -> Iterator[int]:
        """When the last character of each match was written; the part of the middle that was not
        stored is not searched.
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
    """A pair of sockets in place of a pipe: a write to the second has a time at the first."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
    try:
        theirs.setsockopt(socket.SOL_SOCKET, _SO_SNDBUFFORCE, _ROOM_FOR_A_WRITE // 2)
    except PermissionError:
        theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _ROOM_FOR_A_WRITE // 2)
    return ours.detach(), theirs.detach()


def _monotonic_less_realtime_ns() -> int:
    """CLOCK_MONOTONIC less CLOCK_REALTIME, now: the narrowest of a few brackets."""
    brackets = []
    for _ in range(5):
        before, real, after = time.monotonic_ns(), time.time_ns(), time.monotonic_ns()
        brackets.append((after - before, (before + after) // 2 - real))
        if after - before < 2000:
            break
    return min(brackets)[1]
