"""How causes are planted: a dropped file, a memory limit; and the truth in the runs table.

Owns the causes that no other part can make; noise and hogs are of `injection`.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nbhelpers.measurement import Attachment
from nbhelpers.mitigation.groups import Group
from nbhelpers.workloads import Workload

_PAGE = os.sysconf("SC_PAGE_SIZE")


class Truth(Attachment):
    """Writes the truth into the runs table, and nothing that the disturbance reports.

    Parameters
    ----------
    truth
        Value of the column `truth`.
    attachments
        The attachments that make the disturbance.
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


class DroppedFile(Attachment):
    """Drops the first part of a file from the page cache before each run (posix_fadvise(2),
    POSIX_FADV_DONTNEED: of clean pages only).

    Parameters
    ----------
    path
        Path of the file.
    share
        Share of the file that is dropped, from its beginning (0 to 1).
    """

    def __init__(self, path: Path, share: float = 1.0):
        self.path, self.share = path, share
        self.identity = f"{share:.0%} of the file dropped"

    def armed(self, pid: int) -> None:
        with open(self.path, "rb") as file:
            end = round(os.fstat(file.fileno()).st_size * self.share) // _PAGE * _PAGE
            if end:  # a length of 0 means: to the end
                os.posix_fadvise(file.fileno(), 0, end, os.POSIX_FADV_DONTNEED)


@dataclass(frozen=True)
class MemoryLimit(Group):
    """At most so much memory, the file pages that the program reads included; 0: no limit."""

    limit_bytes: int = 0
    controller = "memory"

    def values(self, version: int, parent: Path, workload: Workload | None) -> dict[str, str]:
        if version == 2:
            return {"memory.max": str(self.limit_bytes or "max")}
        return {"memory.limit_in_bytes": str(self.limit_bytes or -1)}
