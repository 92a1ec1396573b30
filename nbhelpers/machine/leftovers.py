"""What of ours stands on the machine without a live owner, found by its name.

Owns how tracefs instances and control groups of dead processes are found, and the private folders
for files of a run. What lies there is in use as long as somebody holds a lock on it.
"""

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from ..errors import SettingError, Unavailable
from . import guardian, kernel, run_groups
from ._watch import is_ours, state_folder

# Below them only folders are used that belong to this user alone: `scratch_folder`.
ON_DISK = ("/var/tmp",)  # nosec B108 (/tmp often lies in memory)
IN_MEMORY = "/dev/shm"  # nosec B108
# of MPICH, of Open MPI 5 and 4, of Intel MPI
OF_MPI = ("mpich_shm_*", "sm_segment.*", "vader_segment.*", "Intel_MPI_*")
UNUSED_S = 600  # a job elsewhere, whose processes are not seen from here, may be starting
PRIVATE = 0o077  # what nobody else may


def remove() -> list[str]:
    """Remove what dead processes have left, as far as this user may; a sentence for each thing
    removed, or not to be removed.
    """
    return [*_kernel_folders(), *_segments(), *remove_scratch()]


def _kernel_folders() -> Iterator[str]:
    """Instances, also of unmounted tracefs, where they go on recording unseen. And control groups
    beside ours, of runs outside of a campaign: a campaign's is in the journal.
    """
    with contextlib.suppress(OSError), kernel.file_system(kernel.TRACEFS) as tracefs:
        for name, owner in kernel.instances(tracefs):
            yield from _gone(f"{tracefs}/instances/{name}", f"the tracefs instance {name}", owner)
    for path in Path(run_groups.base()).glob(f"{kernel.OURS}*") if run_groups.base() else ():
        if maker := kernel.owner_of(path.name):
            yield from _gone(str(path), f"the control group {path}", maker)


def _gone(path: str, what: str, owner: dict) -> Iterator[str]:
    """Remove a dead process's folder of the kernel, and the processes in it; sentences on it."""
    if kernel.alive(owner):
        return
    left = f"{what}, left by process {owner['pid']}, which is dead"
    try:
        if run_groups.is_group(path):
            if names := run_groups.end_group(path):
                yield f"{guardian.ENDED}: {', '.join(names)}"
            run_groups.remove(path)
        elif not kernel.undo_folder({"path": path}, 0)[0]:
            return
        yield f"removed: {left}"
    except OSError as error:
        yield f"not removed: {left}: {error.strerror or error}"


def _segments() -> Iterator[str]:
    """Memory that ranks of an MPI program shared, until they were killed: no process has it."""
    paths = (path for pattern in OF_MPI for path in Path(IN_MEMORY).glob(pattern))
    found = {str(path) for path in paths if _is_old(path)}
    for maps in Path("/proc").glob("[0-9]*/maps") if found else ():
        with contextlib.suppress(OSError):
            text = maps.read_text(errors="replace")
            found = {path for path in found if path not in text}
    for name in found:
        guardian.remove(name)
        yield f"removed: {name}, left by ranks of an MPI program that are dead"


def _is_old(path: Path) -> bool:
    """Whether it is this user's, and nobody wrote it of late."""
    with contextlib.suppress(FileNotFoundError):
        status = path.lstat()
        return status.st_uid == os.geteuid() and status.st_mtime < time.time() - UNUSED_S
    return False


# ---- files of a run ------------------------------------------------------------------------------


class RunFolder:
    """A private folder for the files of one run, in memory where there is any.

    It is locked as long as this process lives. What a killed one left is removed by
    `settings.repair`, and by whoever makes the next.

    Parameters
    ----------
    name
        What it is for: a part of its name.

    Attributes
    ----------
    path
        Where it lies.

    Raises
    ------
    Unavailable
        There is no folder for files of runs; see `scratch_folder`.

    Examples
    --------
    >>> folder = RunFolder("example")
    >>> folder.path.is_dir()
    True
    >>> folder.close()
    >>> folder.path.exists()
    False
    """

    def __init__(self, name: str):
        remove_scratch()
        parent = scratch_folder(IN_MEMORY)
        self._lock = -1
        while self._lock < 0:  # a sweep may come between making and locking it
            self.path = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=parent))
            self._lock = _locked(self.path)

    def close(self) -> None:
        """Remove it with all that is in it; safe to call again."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def _locked(folder: Path) -> int:
    """A descriptor that holds the lock on a folder; −1: it is gone."""
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return -1
    fcntl.flock(handle, fcntl.LOCK_EX)
    if folder.exists():
        return handle
    os.close(handle)
    return -1


def scratch_folder(*places: str) -> Path:
    """The folder for files of runs that only this user can read and write.

    Files in it belong to whoever holds a `flock` on them, and are removed when nobody does.

    Parameters
    ----------
    places
        Where it may lie, the best first; then on a disk, where temporary files do, and beside the
        journals of settings.

    Returns
    -------
    Path of the folder, which exists.

    Raises
    ------
    Unavailable
        There is no place for it, or somebody else has taken its name.
    """
    for folder in _scratch_folders(*places):
        with contextlib.suppress(OSError):
            folder.mkdir(mode=0o700, exist_ok=True)
            if is_ours(folder, PRIVATE):
                return folder
    raise Unavailable(
        "there is no private folder for the files of a run",
        where=folder,
        why="a file that others can change would change what is measured",
        fix=f"make room for it: df {folder.parent}; ls -ld {folder}",
    )


def _scratch_folders(*places: str) -> Iterator[Path]:
    """Where it may lie; last among this user's own files, where nobody else can take its name."""
    parents = [*places, *ON_DISK, tempfile.gettempdir()]
    with contextlib.suppress(SettingError):
        parents.append(str(state_folder()))
    for parent in dict.fromkeys(parents):
        yield Path(parent) / f"noisebook-scratch-{os.geteuid()}"


def remove_scratch() -> list[str]:
    """Remove this user's files and folders of runs that nobody holds a lock on.

    Returns
    -------
    A sentence for each that was removed.
    """
    removed: list[str] = []
    for folder in _scratch_folders(IN_MEMORY):
        with contextlib.suppress(OSError):
            if is_ours(folder, PRIVATE):
                removed += [
                    f"removed: {path}, left by a dead process"
                    for path in folder.iterdir()
                    if remove_if_unused(path)
                ]
    return removed


def remove_if_unused(path: Path) -> bool:
    """Remove a file or folder of a run unless somebody holds a lock on it."""
    if path.is_symlink():
        path.unlink(missing_ok=True)
        return True
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
        return True
    except BlockingIOError:
        return False
    finally:
        os.close(handle)
