"""What of ours stands on the machine without a live owner, found by its name.

Owns how tracefs instances, control groups and mounts of dead processes are found, and the private
folder for large files of a run. Such a file is in use as long as somebody holds a lock on it.
"""

import contextlib
import errno
import fcntl
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ..errors import Unavailable
from . import guardian, kernel

TRACEFS = "/sys/kernel/tracing"
ON_DISK = ("/var/tmp",)  # /tmp often lies in memory


def remove(state: Path) -> list[str]:
    """Remove what dead processes have left, as far as this user may.

    Parameters
    ----------
    state
        Folder of journals; a mount in the journal of a live process is not left over.

    Returns
    -------
    list of str, a sentence for each thing removed, or not to be removed.
    """
    return [*_instances(), *_groups(), *_mounts(state), *_scratch_files()]


def _instances() -> Iterator[str]:
    """Unmounted tracefs is searched, too: an instance goes on recording unseen."""
    with contextlib.suppress(OSError), kernel.file_system("tracefs", TRACEFS) as tracefs:
        for name, owner in kernel.instances(tracefs):
            if not kernel.alive(owner):
                yield from _gone(
                    f"{tracefs}/instances/{name}", f"the tracefs instance {name}", owner
                )


def _groups() -> Iterator[str]:
    for place in {place for _, place, kind in kernel.mounts() if kind in ("cgroup", "cgroup2")}:
        with contextlib.suppress(OSError):
            for name in os.listdir(place):
                owner = kernel.owner_of(name)
                if owner and not kernel.alive(owner):
                    yield from _gone(f"{place}/{name}", f"the control group {place}/{name}", owner)


def _gone(path: str, what: str, owner: dict) -> Iterator[str]:
    """Remove a folder of the kernel; a sentence on it."""
    try:
        acted, _ = kernel.undo_folder({"path": path}, 0)
    except OSError as error:
        reason = error.strerror or error
        yield f"not removed: {what}, left by process {owner['pid']}, which is dead: {reason}"
    else:
        if acted:
            yield f"removed: {what}, left by process {owner['pid']}, which is dead"


def _mounts(state: Path) -> Iterator[str]:
    """A mount in use stays until a later start."""
    for source, place, kind in kernel.mounts():
        owner = kernel.owner_of(source)
        if not owner or kind not in kernel.KERNEL_FOLDERS or kernel.alive(owner):
            continue
        change = {"kind": "umount", "path": place, "fstype": kind, "shared": True}
        with contextlib.suppress(OSError), guardian.locked(state):
            if not guardian.partners(str(state), change) and kernel.undo_mount(change, 0)[0]:
                who = f"mounted by process {owner['pid']}, which is dead"
                yield f"unmounted: {place} ({kind}), {who}"


# ---- files of a run ------------------------------------------------------------------------------


def scratch_folder() -> Path:
    """The private folder for files that a run reads or writes.

    Files in it belong to whoever holds a `flock` on them, and are removed when nobody does.

    Returns
    -------
    Path of the folder, which exists.

    Raises
    ------
    Unavailable
        As `private_folder`.
    """
    return private_folder("scratch")


def private_folder(name: str) -> Path:
    """A folder on a disk that only this user can read and write; the same at each call.

    Parameters
    ----------
    name
        What it is for: a part of its name.

    Returns
    -------
    Path of the folder, which exists.

    Raises
    ------
    Unavailable
        There is no place for it, or somebody else has taken its name.
    """
    for parent in (*ON_DISK, tempfile.gettempdir()):
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


def _scratch_files() -> Iterator[str]:
    for parent in {*ON_DISK, tempfile.gettempdir()}:
        folder = Path(parent) / f"noisebook-scratch-{os.geteuid()}"
        with contextlib.suppress(OSError):
            if _private(folder):
                yield from (
                    f"removed: {path}, left by a dead process"
                    for path in folder.iterdir()
                    if remove_if_unused(path)
                )


def remove_if_unused(path: Path) -> bool:
    """Remove a scratch file unless somebody holds a lock on it."""
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
        path.unlink(missing_ok=True)
        return True
    except BlockingIOError:
        return False
    finally:
        os.close(handle)
