"""The measuring lock of the machine: two measuring stages never run at the same time.

Measuring holds it exclusively, analysing holds it shared. It is a flock: the kernel releases it
when its holder dies.
"""

import contextlib
import fcntl
import os
import pwd
import re
import stat
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from ..errors import Unavailable
from ..progress import task

INHERITED = "NOISEBOOK_LOCK"
# Minimal systems lack the first, or have it for root only. The file is empty; no link is followed.
COMMON = ("/run/lock", "/tmp", "/dev/shm")  # nosec B108
_TRIES, _MAKING_S = 5, 1  # of a file that another user makes just now
_LONGEST = 300  # bytes of a signature


@contextlib.contextmanager
def measuring(
    exclusive: bool = True,
    wait: bool = True,
    doing: str = "",
) -> Iterator[None]:
    """Hold the machine's measuring lock for the length of a `with` block.

    Inside the block this process and those it starts may request the lock again: they have it.

    Parameters
    ----------
    exclusive
        True to measure: nobody else measures or analyses meanwhile. False to analyse: others may
        analyse, too.
    wait
        Wait until the lock is free (asleep, no polling; shown as progress), else raise.
    doing
        What the lock is held for; shown to those who wait.

    Raises
    ------
    Unavailable
        The lock is held and `wait` is False; or shared is held around this block and exclusive
        wanted.
    """
    wanted = "exclusive" if exclusive else "shared"
    if _inherited(wanted):
        yield
        return
    handle = _opened(lock_path())
    try:
        _take(handle, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH, wait)
        _sign(handle, doing)
        os.environ[INHERITED] = wanted
        yield
    finally:
        os.environ.pop(INHERITED, None)
        # Forked children share the open file: closing ours alone would leave the lock with them.
        fcntl.flock(handle, fcntl.LOCK_UN)
        os.close(handle)


def lock_path() -> Path:
    """The lock's file: in $NOISEBOOK_STATE if set, else in a folder that all users can write.

    Raises
    ------
    Unavailable
        There is no such folder.
    """
    if named := os.environ.get("NOISEBOOK_STATE"):
        folder = Path(named).absolute()
        try:
            folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        except OSError as error:
            raise _no_lock(folder, error) from None
        return folder / "measuring.lock"
    for common in COMMON:
        path = Path(common) / "noisebook-measuring.lock"
        if _for_everybody(common) and _free_or_a_lock(path):
            return path
    raise Unavailable(
        "there is no folder where all users could find the measuring lock",
        where=", ".join(COMMON),
        why="two measurements at the same time would disturb each other",
        fix="as root: mkdir -p /tmp; chmod 1777 /tmp",
    )


def _for_everybody(folder: str) -> bool:
    """Whether every user may make files there; on a read-only file system nobody may."""
    with contextlib.suppress(OSError):
        return bool(os.stat(folder).st_mode & stat.S_IWOTH) and os.access(folder, os.W_OK | os.X_OK)
    return False


def _free_or_a_lock(path: Path) -> bool:
    """Whether nothing stands there, or a file that all users can open: else its maker would stop
    them all, and each user must come to the same answer.
    """
    with contextlib.suppress(FileNotFoundError):
        found = path.lstat()
        everybody = found.st_mode & 0o666 == 0o666 or time.time() - found.st_ctime < _MAKING_S
        return stat.S_ISREG(found.st_mode) and everybody
    return True


def _inherited(wanted: str) -> bool:
    held = os.environ.get(INHERITED)
    if held == "shared" and wanted == "exclusive":
        raise Unavailable(
            "this analysis holds the lock of the machine shared, and cannot measure",
            why="other analyses may run at the same time and would disturb the runs",
            fix="measure in a measuring stage, or outside of the analysis",
        )
    return held is not None


def _opened(path: Path) -> int:
    """The lock file, open; all users may write it, and reading it is enough.

    O_CREAT only where there is no file: fs.protected_regular refuses it, even to root, for another
    user's file in /tmp.
    """
    for _ in range(_TRIES):
        for flags in (os.O_RDWR, os.O_RDWR | os.O_CREAT | os.O_EXCL, os.O_RDONLY):
            try:
                handle = os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
            except OSError as error:
                failure = error
                continue
            if flags & os.O_CREAT:
                os.fchmod(handle, 0o666)  # nosec B103: all users share the lock
            return handle
        time.sleep(0.01)  # who has just made it is about to let others in
    raise _no_lock(path, failure)


def _no_lock(path: Path, error: OSError) -> Unavailable:
    there = os.path.lexists(path)
    fix = f"see what is wrong there: df {path.parent}; ls -ld {path.parent}"
    if there:
        fix = f"let its owner remove it: rm {path}"
    done = "opened" if there else "made"
    return Unavailable(
        f"the measuring lock cannot be {done}: {error.strerror}",
        where=path,
        why="two measurements could disturb each other",
        fix=fix,
    )


def _take(handle: int, kind: int, wait: bool) -> None:
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
        return
    except BlockingIOError:
        message = f"the machine is in use by {_holder(handle)}"
    if not wait:
        raise Unavailable(
            message,
            why="two measurements at the same time would disturb each other",
            fix="wait until it has ended; with NOISEBOOK_STATE=FOLDER you have a lock of your own",
        )
    with task(f"waiting: {message}", urgent=True):
        fcntl.flock(handle, kind)


def _sign(handle: int, doing: str) -> None:
    """Write down who holds the lock; not possible in a file that was opened for reading."""
    purpose = (doing or " ".join(sys.argv))[:80]
    user = ""
    with contextlib.suppress(KeyError):
        user = f" of {pwd.getpwuid(os.geteuid()).pw_name}"
    line = f"process {os.getpid()} ({purpose}){user} since {time.strftime('%H:%M')}\n"
    text = line.encode(errors="replace")[:_LONGEST]
    with contextlib.suppress(OSError):
        os.pwrite(handle, text, 0)  # whole before it is cut: who reads in between sees a name
        os.ftruncate(handle, len(text))


def _holder(handle: int) -> str:
    """Who holds the lock: what a live process signed; where the kernel names another one, as all
    users can write the file, that one's number and user.
    """
    signed = os.pread(handle, _LONGEST, 0).decode(errors="replace").partition("\n")[0]
    signer = re.match(r"process (\d+) ", signed)
    holders = _holders(os.fstat(handle).st_ino)
    if signer and signer[1] in (holders or os.listdir("/proc")):
        return signed
    for pid in holders:
        with contextlib.suppress(OSError):
            return f"process {pid} of user {os.stat(f'/proc/{pid}').st_uid}"
    return "another measurement"


def _holders(inode: int) -> list[str]:
    """Processes that hold a flock on a file, as far as they are seen from here."""
    rows = map(str.split, Path("/proc/locks").read_text().splitlines())
    return [row[4] for row in rows if row[1] == "FLOCK" and row[5].endswith(f":{inode}")]
