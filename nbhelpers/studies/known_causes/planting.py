"""How causes are planted: a dropped file, a changing affinity, limits of a control group; and the
truth in the runs table.

Owns the causes that no other part can make; noise and hogs are of `injection`.
"""

import contextlib
import fcntl
import functools
import hashlib
import math
import os
import random
import stat
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ...errors import RunError
from ...machine import leftovers
from ...measurement import Attachment
from ...mitigation.groups import Group
from ...workloads import Workload
from .disturbing import Disturbing

_PERIOD_US = 10_000
_PAGE = os.sysconf("SC_PAGE_SIZE")
FILE_BYTES = 16 * 2**20


class Truth(Attachment):
    """Writes the truth into the runs table, and nothing that the disturbance reports.

    Parameters
    ----------
    truth
        Value of the column `truth`.
    attachments
        That make the disturbance.
    dose
        Value of the column `dose`; empty: none.
    """

    follows_region = True

    def __init__(self, truth: str, attachments: Sequence[Attachment] = (), dose: str = ""):
        self.truth, self.attachments, self.dose = truth, tuple(attachments), dose

    def __repr__(self) -> str:
        return f"Truth({self.truth})"

    @property
    def identity(self) -> str:  # type: ignore[override]  # that of its attachments
        return "; ".join(one.identity for one in self.attachments if one.identity)

    @property
    def notes(self) -> tuple[str, ...]:  # type: ignore[override]  # they grow
        return tuple(note for attachment in self.attachments for note in attachment.notes)

    def before(self, workload: Workload) -> None:
        for attachment in self.attachments:
            attachment.before(workload)

    def armed(self, pid: int) -> None:
        for attachment in self.attachments:
            attachment.armed(pid)

    def released(self, t0_ns: int) -> None:
        for attachment in self.attachments:
            attachment.released(t0_ns)

    def ended(self, pid: int) -> None:
        for attachment in reversed(self.attachments):
            attachment.ended(pid)

    def after(self, run: dict) -> dict:
        """`truth` and `dose`; of the attachments' columns only a status other than "ok", with its
        message.
        """
        truth = {"truth": self.truth, "dose": self.dose}
        reports = [attachment.after(run) for attachment in reversed(self.attachments)]
        for report in reports:
            if report.get("status", "ok") != "ok":
                failure = {name: report[name] for name in ("status", "message") if name in report}
                return truth | failure
        return truth

    def close(self) -> None:
        for attachment in self.attachments:
            attachment.close()


class VictimFile(Attachment):
    """The file that a victim reads or writes; whole and on the disk before each run.

    It exists for the length of a campaign.

    Parameters
    ----------
    path
        In a folder that only this user can look into, see
        `nbhelpers.machine.leftovers.scratch_folder`.
    written
        The victim writes it, so that only its size is known.

    Raises
    ------
    RunError
        From `before`: the file cannot be made, for want of room for example.
    """

    def __init__(self, path: Path, written: bool = False):
        self.path, self.written = path, written
        self._handle, self._made = -1, False

    def before(self, workload: Workload) -> None:
        """Make the file anew if somebody changed it; the lock shows others that it is in use."""
        if not self._whole():
            if self._made:
                changed = f"{self.path} had been changed by somebody else"
                self.notes = (*self.notes, f"{changed}, and was made anew before a run")
            self._make()
        self._made = True

    def _whole(self) -> bool:
        """Whether the file at the path is the open one, only ours, and of the same length and
        content.
        """
        try:
            named = os.lstat(self.path)
            held = os.fstat(self._hold())
        except OSError:
            return False
        safe = held.st_mode == stat.S_IFREG | 0o600 and held.st_uid == os.geteuid()
        same = (named.st_dev, named.st_ino) == (held.st_dev, held.st_ino)
        if not (safe and same and held.st_size == FILE_BYTES):
            return False
        return self.written or _read_digest(self._handle) == _digest()

    def _hold(self) -> int:
        if self._handle < 0:
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            self._handle = os.open(self.path, flags)
            fcntl.flock(self._handle, fcntl.LOCK_SH)
        return self._handle

    def _make(self) -> None:
        """Write the file under another name, onto the disk, and only then give it its own."""
        self._let_go()
        try:
            handle, temporary = _new_file(self.path.parent)
        except OSError as error:
            raise self._no_room(error) from None
        try:
            with open(handle, "wb", closefd=False) as file:
                file.write(_content())
            os.fsync(handle)
            os.replace(temporary, self.path)
        except BaseException as error:
            os.close(handle)
            Path(temporary).unlink(missing_ok=True)
            if isinstance(error, OSError):
                raise self._no_room(error) from None
            raise
        self._handle = handle

    def _no_room(self, error: OSError) -> RunError:
        return RunError(
            f"the file of a victim cannot be written: {error.strerror}",
            where=self.path,
            why=f"without its {FILE_BYTES >> 20} MiB the cause cannot be planted",
            fix=f"make room for it: df {self.path.parent}",
        )

    def _let_go(self) -> None:
        handle, self._handle = self._handle, -1
        if handle >= 0:
            os.close(handle)

    def close(self) -> None:
        """Remove the file, unless another process uses it too."""
        self._let_go()
        if self._made:
            self._made = False
            leftovers.remove_if_unused(self.path)


def _new_file(folder: Path) -> tuple[int, str]:
    """A locked file of a new name (O_EXCL, mode 0600); one that was removed before it was locked is
    replaced.
    """
    while True:
        handle, path = tempfile.mkstemp(dir=folder, prefix=".victim-")
        fcntl.flock(handle, fcntl.LOCK_SH)
        if os.fstat(handle).st_nlink:
            return handle, path
        os.close(handle)


def _content() -> bytes:
    """Always the same bytes, which a file system cannot compress."""
    return random.Random(FILE_BYTES).randbytes(FILE_BYTES)


@functools.cache
def _digest() -> bytes:
    return hashlib.blake2b(_content()).digest()


def _read_digest(handle: int) -> bytes:
    state = hashlib.blake2b()
    for at in range(0, FILE_BYTES, 1 << 20):
        state.update(os.pread(handle, 1 << 20, at))
    return state.digest()


class DroppedFile(Attachment):
    """Drops the first part of a file from the page cache before each run (posix_fadvise(2),
    POSIX_FADV_DONTNEED: of clean pages only).

    Parameters
    ----------
    path
        Of the file.
    share
        Of the file, from its beginning.
    """

    def __init__(self, path: Path, share: float = 1.0):
        self.path, self.share = path, share
        self.identity = f"{share:.0%} of the file dropped"

    def armed(self, pid: int) -> None:
        with open(self.path, "rb") as file:
            end = round(os.fstat(file.fileno()).st_size * self.share) // _PAGE * _PAGE
            if end:  # a length of 0 means: to the end
                os.posix_fadvise(file.fileno(), 0, end, os.POSIX_FADV_DONTNEED)


class ShakenAffinity(Disturbing):
    """Moves the process from CPU to CPU while it runs.

    Parameters
    ----------
    cpus
        Where to, in turn.
    pause_s
        Between two changes.
    """

    def __init__(self, cpus: Sequence[int], pause_s: float):
        super().__init__()
        self.cpus, self.pause_s = tuple(cpus), pause_s
        self.identity = f"on {self.cpus} in turn, every {pause_s} s"

    def _disturb(self, t0_ns: int) -> None:
        self._stop.wait(max(0.0, (t0_ns - time.monotonic_ns()) * 1e-9))
        turn = 0
        with contextlib.suppress(OSError):  # it has ended
            while not self._stop.is_set():
                turn += 1
                os.sched_setaffinity(self._pid, {self.cpus[turn % len(self.cpus)]})
                time.sleep(self.pause_s)


@dataclass(frozen=True)
class CpuQuota(Group):
    """At most a share of one CPU in every 10 ms, by a control group; infinite: no limit."""

    share: float = 0.7
    controller = "cpu"

    def values(self, version: int, parent: Path, workload: Workload | None) -> dict[str, str]:
        free = math.isinf(self.share)
        quota_us = 0 if free else round(self.share * _PERIOD_US)
        if version == 2:
            return {"cpu.max": f"{'max' if free else quota_us} {_PERIOD_US}"}
        quota = "-1" if free else str(quota_us)
        return {"cpu.cfs_period_us": str(_PERIOD_US), "cpu.cfs_quota_us": quota}


@dataclass(frozen=True)
class MemoryLimit(Group):
    """At most so much memory, the file pages that the program reads included; 0: no limit."""

    limit_bytes: int = 0
    controller = "memory"

    def values(self, version: int, parent: Path, workload: Workload | None) -> dict[str, str]:
        if version == 2:
            return {"memory.max": str(self.limit_bytes or "max")}
        return {"memory.limit_in_bytes": str(self.limit_bytes or -1)}
