"""Where noise of files makes its files: the choice of a folder on a real disk, its scratch folder,
the size of a file.
"""

import os
import re
import shutil
import tempfile
from pathlib import Path

import pandas as pd

from ..errors import InputError

MIB = 2**20
DISK_SHARE = 0.1  # of what is free on the disk
PREFIX = "noisebook-noise-"
IN_MEMORY = ("tmpfs", "ramfs", "devtmpfs")


def disk_kind(folder: str | Path) -> str:
    """The type of the file system that a folder lies on (ext4, tmpfs, …); empty if unknown."""
    path, best, kind = os.path.realpath(folder), "", ""
    for line in Path("/proc/self/mountinfo").read_text(errors="replace").splitlines():
        fields, _, rest = line.partition(" - ")
        place = re.sub(r"\\(\d{3})", lambda match: chr(int(match[1], 8)), fields.split()[4])
        inside = path == place or path.startswith(place.rstrip("/") + "/")
        if inside and len(place) >= len(best):
            best, kind = place, rest.split()[0]
    return kind


def scratch_base(folder: str | Path | None = None, direct: bool = False) -> Path:
    """The folder in which scratch folders are made.

    Parameters
    ----------
    folder
        Make them there; None: a folder for temporary files, on a real disk if there is one.
    direct
        The noise bypasses the page cache, so the folder must lie on a disk.

    Raises
    ------
    InputError
        There is none, it is full, or lies in memory although a disk is to be disturbed.
    """
    # in them mkdtemp makes a folder of its own
    spare = Path("/var/tmp")  # nosec B108
    candidates = [Path(tempfile.gettempdir()), spare, Path.home(), Path.cwd()]
    if folder:
        candidates = [Path(folder)]
    writable = [place for place in candidates if place.is_dir() and os.access(place, os.W_OK)]
    if not writable:
        raise InputError(
            "no folder for file noise",
            where=", ".join(map(str, candidates)),
            fix="StressorOptions(folder=…) of a folder that exists",
        )
    on_disk = [place for place in writable if disk_kind(place) not in IN_MEMORY]
    if direct and not on_disk:
        raise InputError(
            "the folder for file noise lies in memory",
            where=writable[0],
            fix="StressorOptions(folder=…) of a folder on a disk",
            why="past the page cache there is no disk that could be disturbed",
        )
    return (on_disk or writable)[0]


def make_scratch(base: Path) -> Path:
    """A folder for one injection, named for this process; those of processes that are no more are
    removed.
    """
    for old in base.glob(f"{PREFIX}*"):
        owner = re.fullmatch(rf"{PREFIX}(\d+)-\w+", old.name)
        if owner and not Path("/proc", owner[1]).exists():
            remove_scratch(old)
    return Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=base))


def remove_scratch(folder: Path | None) -> None:
    """Remove a scratch folder, if it is still there."""
    if folder:
        shutil.rmtree(folder, ignore_errors=True)


def lane_file_bytes(events: pd.DataFrame, file_mib: float, folder: Path) -> int:
    """Size of one process's file; all of them take at most a tenth of the disk's free space."""
    of_files = events["kind"].isin(["io_read", "io_write", "io_sync"])
    lanes = len(events.loc[of_files, ["cpu", "kind"]].drop_duplicates())
    free = shutil.disk_usage(folder).free
    return int(min(file_mib * MIB, free * DISK_SHARE / max(lanes, 1)))
