"""How causes are planted that no other part makes: a dropped file, a shaken affinity, a quota; and the truth in the runs table."""

import contextlib
import os
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..measure import Attachment
from ..workloads import Workload
from .groups import Group

_PERIOD_US = 10_000
FILE_BYTES = 16 * 2**20


class Planted(Attachment):
    """Writes the truth into the runs table, and keeps out of it what those tell who plant it.

    Parameters
    ----------
    truth : value of the column `truth`.
    attachments : that make the disturbance.
    """

    follows_region = True

    def __init__(self, truth: str, attachments: Sequence[Attachment] = ()):
        self.truth, self.attachments = truth, tuple(attachments)

    def __repr__(self) -> str:
        return f"Planted({self.truth})"

    @property
    def notes(self) -> tuple[str, ...]:
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
        """`truth`; of what the attachments return only a status other than "ok", with its message."""
        told = [attachment.after(run) for attachment in reversed(self.attachments)]
        failed = [{name: columns[name] for name in ("status", "message") if name in columns} for columns in told if columns.get("status", "ok") != "ok"]
        return {"truth": self.truth, **(failed[0] if failed else {})}

    def close(self) -> None:
        for attachment in self.attachments:
            attachment.close()


class VictimFile(Attachment):
    """The file that a victim reads or writes: there for the length of a campaign, on the disk before a run begins."""

    def __init__(self, path: Path):
        self.path = path

    def before(self, workload: Workload) -> None:
        if not self.path.exists():
            with open(self.path, "wb") as file:
                file.write(os.urandom(FILE_BYTES))
                file.flush()
                os.fsync(file.fileno())

    def close(self) -> None:
        self.path.unlink(missing_ok=True)


class DroppedFile(Attachment):
    """Drops a file from the page cache before each run (posix_fadvise(2), POSIX_FADV_DONTNEED: of clean pages only)."""

    def __init__(self, path: Path):
        self.path = path

    def armed(self, pid: int) -> None:
        with open(self.path, "rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


class ShakenAffinity(Attachment):
    """Moves the process from CPU to CPU while it runs.

    Parameters
    ----------
    cpus : where to, in turn. pause_s : between two changes.
    """

    def __init__(self, cpus: Sequence[int], pause_s: float):
        self.cpus, self.pause_s = tuple(cpus), pause_s
        self._stop, self._thread, self._pidfd, self._pid = threading.Event(), None, -1, 0

    def armed(self, pid: int) -> None:
        self.close()
        self._stop.clear()
        self._pid = pid

    def released(self, t0_ns: int) -> None:
        self._thread = threading.Thread(target=self._shake, args=(t0_ns,), name="shaken affinity", daemon=True)
        self._thread.start()

    def _shake(self, t0_ns: int) -> None:
        self._stop.wait(max(0.0, (t0_ns - time.monotonic_ns()) * 1e-9))
        turn = 0
        with contextlib.suppress(OSError):  # it has ended
            while not self._stop.is_set():
                turn += 1
                os.sched_setaffinity(self._pid, {self.cpus[turn % len(self.cpus)]})
                time.sleep(self.pause_s)

    def ended(self, pid: int) -> None:
        """Stops while the process is not reaped yet, so that its pid cannot be somebody else's."""
        self.close()

    def close(self) -> None:
        self._stop.set()
        if self._thread:
            self._thread.join()
            self._thread = None


@dataclass(frozen=True)
class CpuQuota(Group):
    """At most a share of one CPU in every 10 ms, by a control group."""

    share: float = 0.7
    controller = "cpu"

    def values(self, version: int, parent: Path, workload: Workload | None) -> dict[str, str]:
        quota_us = round(self.share * _PERIOD_US)
        if version == 2:
            return {"cpu.max": f"{quota_us} {_PERIOD_US}"}
        return {"cpu.cfs_period_us": str(_PERIOD_US), "cpu.cfs_quota_us": str(quota_us)}
