"""A private tracefs instance: our buffers and events, so that nobody's tracing is disturbed,
and it goes when we go.

Owns the knobs of tracefs that a recording needs; the folder itself is made, and removed after a
crash, by `machine.settings`.
"""

import contextlib
import os
from collections.abc import Iterable
from itertools import count
from pathlib import Path

from ..errors import Unavailable
from ..machine import kernel, privileged, settings

ROOT = Path(kernel.TRACEFS)
WORKLOAD = "OSNOISE_WORKLOAD"
_READ_BYTES = 1 << 16  # a read gives one page at most; pages have up to 64 KiB
_LOSSES = ("overrun", "commit overrun", "dropped events")


def opened_tracefs() -> int:
    """A descriptor of the root of tracefs, mounted or not.

    Raises
    ------
    Unavailable
        This user may not use it, or the kernel has none.
    """
    with contextlib.suppress(OSError):
        folder = kernel.file_system(kernel.TRACEFS)
        if os.access(f"{folder}/instances", os.W_OK):  # open, nobody can unmount it
            return os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    raise Unavailable(
        "tracefs cannot be used",
        where=ROOT,
        why="the noise of the kernel cannot be recorded",
        fix=(
            f"let the helper do it ({privileged.INSTALL}), or run as root; without:"
            ' Tracer(…, source="detours")'
        ),
    )


_numbers = count(1)  # two tracers of one campaign have an instance each


class Instance:
    """A private instance; made by the constructor, removed by `close`.

    Where this user may not use tracefs, the helper makes it and turns its knobs.

    Parameters
    ----------
    purpose
        Last word of the folder's name below tracefs' `instances`; the rest states whose it is.
    buffer_kib
        Size of each CPU's buffer. When it is full the newest events are dropped and counted.

    Attributes
    ----------
    repaired : sentences on what dead processes had left on the machine and what became of it.
    """

    def __init__(self, purpose: str, buffer_kib: int = 4096):
        self._change: settings.Change | None = None
        self._pin = -1
        self.repaired = tuple(settings.repair())
        try:
            self.place = ROOT / "instances" / kernel.owned_name(f"{purpose}-{next(_numbers)}")
            self.path = self._made()
            for file, value in (
                ("tracing_on", 0),
                ("options/overwrite", 0),
                ("trace_clock", "mono"),  # what programs read as CLOCK_MONOTONIC
                ("buffer_size_kb", buffer_kib),
            ):
                self.write(file, value)
        except BaseException:
            self.close()
            raise

    def _made(self) -> Path:
        """Make it; a folder that this user cannot reach by its name is opened by the helper."""
        if privileged.is_hidden_instance(str(self.place)):
            self._change = settings.make_folder(self.place)
            self._pin = privileged.open_instance(str(self.place))
            return Path(f"/proc/self/fd/{self._pin}")
        self._pin = opened_tracefs()
        self._change = settings.make_folder(self.place)
        return Path(f"/proc/self/fd/{self._pin}/instances/{self.place.name}")

    def __repr__(self) -> str:
        return f"Instance({self.place})"

    def write(self, file: str, value: object) -> None:
        """Give a knob a value."""
        try:
            try:
                (self.path / file).write_text(str(value))
            except PermissionError:
                privileged.write(str(self.place / file), str(value))
        except OSError as error:
            raise Unavailable(
                f"tracefs does not take {value!r}: {error.strerror}", where=self.place / file
            ) from None

    def can_only_watch(self) -> bool:
        """Whether osnoise has the mode that only watches (Linux 6.2)."""
        options = privileged.OSNOISE_OPTIONS
        try:
            return kernel.read_value(options, WORKLOAD).endswith(WORKLOAD)
        except OSError:
            return False

    def read(self, file: str) -> str:
        """The text of a file of the instance."""
        return (self.path / file).read_text()

    def existing(self, events: Iterable[str]) -> list[str]:
        """Those of the events (SYSTEM/NAME, * allowed) that this kernel has, sorted."""
        folder = self.path / "events"
        return sorted(
            {
                str(found.relative_to(folder))
                for event in events
                for found in folder.glob(event)
                if (found / "enable").exists()
            }
        )

    def enable(self, events: Iterable[str]) -> None:
        """Record these events and no others; one write for all, because each one patches the
        running kernel.
        """
        self.write("set_event", "\n".join(event.replace("/", ":") for event in events))

    def start(self) -> None:
        """Begin to record into empty buffers."""
        self.write("trace", "")
        self.write("tracing_on", 1)

    def stop(self) -> None:
        """End recording; what was recorded can be read now, without a reader having disturbed the
        run.
        """
        self.write("tracing_on", 0)

    def cpus(self) -> list[int]:
        """The CPUs that have a buffer."""
        return sorted(int(folder.name[3:]) for folder in (self.path / "per_cpu").glob("cpu[0-9]*"))

    def drain(self) -> dict[int, bytes]:
        """Take all pages out of the buffers: {cpu: bytes}."""
        return {cpu: _drain(self.path / f"per_cpu/cpu{cpu}/trace_pipe_raw") for cpu in self.cpus()}

    def stats(self) -> dict[int, dict[str, int]]:
        """The kernel's account of each CPU's buffer: entries, overrun, dropped events, …"""
        return {cpu: _stats(self.read(f"per_cpu/cpu{cpu}/stats")) for cpu in self.cpus()}

    def close(self) -> None:
        """Remove the instance; a second call does nothing."""
        pin, self._pin = self._pin, -1
        if pin >= 0:
            os.close(pin)
        if self._change is not None:
            self._change.restore()


def lost_events(stats: dict[int, dict[str, int]]) -> int:
    """How many events the buffers of all CPUs lost, in whichever way."""
    return sum(account.get(kind, 0) for account in stats.values() for kind in _LOSSES)


def _drain(path: Path) -> bytes:
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    pages = []
    try:
        while page := os.read(handle, _READ_BYTES):
            pages.append(page)
    except BlockingIOError:
        pass  # empty
    finally:
        os.close(handle)
    return b"".join(pages)


def _stats(text: str) -> dict[str, int]:
    pairs = (line.split(": ", 1) for line in text.splitlines() if ": " in line)
    return {name: int(value) for name, value in pairs if value.strip().isdigit()}
