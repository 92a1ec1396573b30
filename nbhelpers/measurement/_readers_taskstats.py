"""Run-queue wait of a process with all its threads, the ended ones too: the kernel's taskstats,
requested over generic netlink.

/proc has it for living threads only. The kernel adds each thread that ends to its process
(Documentation/accounting/taskstats.rst).
"""

import os
import socket
import struct
from contextlib import suppress
from pathlib import Path

from ._knowledge import MetricReader, Source

_NETLINK_GENERIC, _CONTROLLER, _GET_FAMILY, _TASKSTATS_GET = 16, 16, 3, 1
# of linux/genetlink.h and linux/taskstats.h
_FAMILY_ID = 1
_FAMILY_NAME = 2
_BY_PROCESS = 2
_ANSWER_PROCESS = 5
_STATS = 3
_FIELDS = (
    "timeslices",
    "wait_ns",
    "io_waits",
    "io_wait_ns",
    "swap_waits",
    "swap_wait_ns",
    "ticked_cpu_ns",
    "cpu_ns",
)  # from byte 16 on


class TaskstatsReader(MetricReader):
    """The metrics of a source of taskstats, which needs CAP_NET_ADMIN; `field` of a metric is one
    of timeslices, wait_ns, io_wait_ns, cpu_ns, ….

    A process whose threads all ended but that never had a second one is not summed up by the
    kernel; until it is reaped its schedstat has the same numbers.
    """

    def __init__(self, source: Source, root: str | Path = "/"):
        super().__init__(source)
        self._pid = self._family = 0
        self._socket: socket.socket | None = None

    def lacking(self) -> str:
        """Why nothing can be read here; "" if something can."""
        try:
            self._sums(os.getpid())
        except OSError as error:
            return (
                f"taskstats does not answer: {error.strerror} (it needs CONFIG_TASKSTATS, and root"
                " or CAP_NET_ADMIN)"
            )
        except (KeyError, struct.error):
            return "this kernel has no taskstats (CONFIG_TASKSTATS)"
        finally:
            self.close()
        return ""

    def open(self, pid: int) -> None:
        """A run is about to start."""
        self._pid = pid

    def read(self) -> dict[str, float]:
        """Column: value, as it is now."""
        with suppress(OSError, KeyError, struct.error):
            sums = self._sums(self._pid)
            if not sums["timeslices"]:
                with open(f"/proc/{self._pid}/schedstat") as file:
                    cpu_ns, wait_ns, timeslices = map(int, file.read().split())
                sums |= {"cpu_ns": cpu_ns, "wait_ns": wait_ns, "timeslices": timeslices}
            return {metric.id: sums[metric.where["field"]] for metric in self.source.metrics}
        return {}

    def close(self) -> None:
        """Close the socket; the next reading opens it again."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _sums(self, pid: int) -> dict[str, int]:
        """The sums over the threads of a process.

        Raises
        ------
        OSError
            ESRCH: no such process, not even one that waits to be reaped; EPERM: not allowed.
        """
        if self._socket is None:
            self._socket = socket.socket(
                socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _NETLINK_GENERIC
            )
            self._socket.settimeout(1)
            self._socket.bind((0, 0))
            answer = self._query(_CONTROLLER, _GET_FAMILY, _FAMILY_NAME, b"TASKSTATS\0")
            (self._family,) = struct.unpack("H", answer[_FAMILY_ID])
        asked = struct.pack("I", pid)
        found = self._query(self._family, _TASKSTATS_GET, _BY_PROCESS, asked)
        answer = _attributes(found[_ANSWER_PROCESS])
        return dict(zip(_FIELDS, struct.unpack_from(f"{len(_FIELDS)}Q", answer[_STATS], 16)))

    def _query(self, family: int, command: int, attribute: int, value: bytes) -> dict[int, bytes]:
        assert self._socket is not None  # `_sums` has opened it
        padded = value + b"\0" * (-len(value) % 4)
        body = struct.pack("BBHHH", command, 1, 0, 4 + len(value), attribute) + padded
        self._socket.send(struct.pack("IHHII", 16 + len(body), family, 1, 0, 0) + body)
        answer = self._socket.recv(1 << 14)
        if struct.unpack_from("H", answer, 4)[0] == 2:  # NLMSG_ERROR
            code = -struct.unpack_from("i", answer, 16)[0]
            raise OSError(code, os.strerror(code))
        return _attributes(answer[20:])


def _attributes(data: bytes) -> dict[int, bytes]:
    found, at = {}, 0
    while at + 4 <= len(data):
        length, kind = struct.unpack_from("HH", data, at)
        if length < 4:
            break
        found[kind & 0x3FFF] = data[at + 4 : at + length]
        at += (length + 3) & ~3
    return found
