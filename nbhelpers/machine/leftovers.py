"""What of ours stands on the machine without a live owner, found by its name.

Owns how tracefs instances and control groups of dead processes are found, and the private folders
for files of a run. What lies there is in use as long as somebody holds a lock on it.
"""

import contextlib
import errno
import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ..errors import Unavailable
from . import guardian, kernel, run_groups

# Below them only folders are used that belong to this user alone: `private_folder`.
ON_DISK = ("/var/tmp",)  # nosec B108 (/tmp often lies in memory)
IN_MEMORY = "/dev/shm"  # nosec B108


def remove() -> list[str]:
    """Remove what dead processes have left, as far as this user may; a sentence for each thing
    removed, or not to be removed.
    """
    return [*_instances(), *_groups(), *remove_scratch()]


def _instances() -> Iterator[str]:
    """Unmounted tracefs is searched, too: an instance goes on recording unseen."""
    with contextlib.suppress(OSError), kernel.file_system(kernel.TRACEFS) as tracefs:
        for name, owner in kernel.instances(tracefs):
            if not kernel.alive(owner):
                yield from _gone(
                    f"{tracefs}/instances/{name}", f"the tracefs instance {name}", owner
                )


def _groups() -> Iterator[str]:
    """Those of version 1 lie below a mount; those of version 2 below the group of their maker,
    wherever that is. Those of another user are left to that user's next start and to root's.
    """
    for place, kind in dict.fromkeys(kernel.mounts()):
        if kind not in ("cgroup", "cgroup2"):
            continue
        for folder, below, _ in os.walk(place):
            for name in below:
                owner = kernel.owner_of(name)
                path = f"{folder}/{name}"
                if (
                    owner
                    and not kernel.alive(owner)
                    and os.getpid() not in run_groups.members(path)
                    and _may_remove(path)
                ):
                    yield from _gone(path, f"the control group {path}", owner)
            wanted = kind == "cgroup2"
            below[:] = [name for name in below if wanted and not kernel.owner_of(name)]


def _may_remove(path: str) -> bool:
    with contextlib.suppress(OSError):  # it is gone
        return os.geteuid() in (0, os.stat(path).st_uid)
    return False


def _gone(path: str, what: str, owner: dict) -> Iterator[str]:
    """Remove a folder of the kernel, with the processes that hold it; sentences on it."""
    try:
        if run_groups.is_group(path):
            if names := run_groups.end_group(path):
                yield f"{guardian.ENDED}: {', '.join(names)}"
            run_groups.remove(path)
            yield f"removed: {what}, left by process {owner['pid']}, which is dead"
            return
        acted, _ = kernel.undo_folder({"path": path}, 0)
    except OSError as error:
        reason = error.strerror or error
        yield f"not removed: {what}, left by process {owner['pid']}, which is dead: {reason}"
    else:
        if acted:
            yield f"removed: {what}, left by process {owner['pid']}, which is dead"


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
        As `private_folder`.

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
        parent = private_folder("scratch", IN_MEMORY, *ON_DISK)
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


def scratch_folder() -> Path:
    """The private folder, on a disk, for files that a run reads or writes.

    Files in it belong to whoever holds a `flock` on them, and are removed when nobody does.

    Returns
    -------
    Path of the folder, which exists.

    Raises
    ------
    Unavailable
        As `private_folder`.
    """
    return private_folder("scratch", *ON_DISK)


def private_folder(name: str, *places: str) -> Path:
    """A folder that only this user can read and write; the same at each call.

    Parameters
    ----------
    name
        What it is for: a part of its name.
    places
        Where it may lie, the best first; then where temporary files do. None: on a disk.

    Returns
    -------
    Path of the folder, which exists.

    Raises
    ------
    Unavailable
        There is no place for it, or somebody else has taken its name.
    """
    for parent in (*(places or ON_DISK), tempfile.gettempdir()):
        folder = Path(parent) / f"noisebook-{name}-{os.geteuid()}"
        with contextlib.suppress(OSError):
            folder.mkdir(mode=0o700, exist_ok=True)
            if _private(folder):
                return folder
    raise Unavailable(
        "there is no private folder for the files of a run",
        where=folder,
        why="a file that others can change would change what is measured",
        fix=f"make room for it: df {folder.parent}; ls -ld {folder}",
    )


def _private(folder: Path) -> bool:
    found = os.lstat(folder)
    return (
        stat.S_ISDIR(found.st_mode)
        and found.st_uid == os.geteuid()
        and not found.st_mode & 0o077
        and os.access(folder, os.W_OK | os.X_OK)
    )


def remove_scratch() -> list[str]:
    """Remove this user's files and folders of runs that nobody holds a lock on.

    Returns
    -------
    A sentence for each that was removed.
    """
    removed: list[str] = []
    for parent in dict.fromkeys((*ON_DISK, IN_MEMORY, tempfile.gettempdir())):
        folder = Path(parent) / f"noisebook-scratch-{os.geteuid()}"
        with contextlib.suppress(OSError):
            if _private(folder):
                removed += [
                    f"removed: {path}, left by a dead process"
                    for path in folder.iterdir()
                    if remove_if_unused(path)
                ]
    return removed


def remove_if_unused(path: Path) -> bool:
    """Remove a file or folder of a run unless somebody holds a lock on it."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        path.unlink(missing_ok=True)
        return True
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
