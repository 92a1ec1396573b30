"""The measuring lock of the machine: two measuring stages never run at the same time.

Measuring holds it exclusively, analysing holds it shared. It is two flocks, which the kernel
releases when their holder dies: one of this user's, in a file that nobody else can open, and one
of all users, on a folder of the kernel's, which anybody can hold. For that one nobody waits longer
than two hours, and for the same process only one time: what is measured then says beside whom.
"""

import contextlib
import fcntl
import os
import pwd
import re
import threading
from collections.abc import Iterator
from pathlib import Path

from ..errors import NoisebookError, Unavailable, printable
from ..progress import task
from . import kernel
from ._watch import state_folder

INHERITED = "NOISEBOOK_LOCK"
COMMON = "/sys/devices/system/cpu"  # what is shared; each user can lock it, and none can take it
PATIENCE_S = 7200.0  # no stage takes longer
_SOMEBODY = "another measurement"
_WHY = "two measurements at the same time would disturb each other"


@contextlib.contextmanager
def measuring(
    exclusive: bool = True,
    wait: bool = True,
) -> Iterator[str]:
    """Hold the machine's measuring lock for the length of a `with` block.

    Inside the block this process and those it starts may request the lock again: they have it.
    The block gets a sentence on who else measures, where somebody kept the lock of all users for
    two hours; else an empty one.

    Parameters
    ----------
    exclusive
        True to measure: nobody else measures or analyses meanwhile. False to analyse: others may
        analyse, too.
    wait
        Wait until the lock is free (asleep, no polling; shown as progress), else raise.

    Raises
    ------
    Unavailable
        The lock is held and `wait` is False; or shared is held around this block and exclusive
        wanted; or there is no place for it.
    """
    wanted = "exclusive" if exclusive else "shared"
    held, _, beside = os.environ.get(INHERITED, "").partition(": ")
    if held == "shared" and exclusive:
        raise Unavailable(
            "this analysis holds the lock of the machine shared, and cannot measure",
            why="other analyses may run at the same time and would disturb the runs",
            fix="measure in a measuring stage, or outside of the analysis",
        )
    if held:
        yield beside
        return
    with contextlib.ExitStack() as stack:
        beside = _take_both(stack, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH, wait)
        os.environ[INHERITED] = f"{wanted}: {beside}"
        stack.callback(os.environ.pop, INHERITED, None)
        yield beside


def _take_both(stack: contextlib.ExitStack, kind: int, wait: bool) -> str:
    """Take this user's lock, then that of all users; beside whom this user measures, if at all."""
    beside, in_vain = "", b""
    own = common = -1
    with contextlib.suppress(NoisebookError):  # it may lie in a home that several machines share
        place = state_folder() / f"measuring-{os.uname().nodename}.lock"
        own = _opened(place, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW)
    if not os.environ.get("NOISEBOOK_STATE"):
        common = _opened(COMMON, os.O_RDONLY | os.O_DIRECTORY)
    if own >= 0:
        in_vain = os.pread(own, 100, 0)
        if _take(own, kind, wait):
            own = -1
        else:
            stack.callback(_release, own)
    if common >= 0:
        if holder := _take(common, kind, wait, in_vain):
            in_vain = _maker(holder)
            who = f"process {in_vain.decode().split()[0]}" if in_vain else _SOMEBODY
            beside = f"measured beside {who}, which kept the lock of all users"
        else:
            stack.callback(_release, common)
    elif own < 0:
        raise Unavailable(
            "there is no folder for the measuring lock",
            where=os.environ.get("NOISEBOOK_STATE") or COMMON,
            why=_WHY,
            fix="name a folder of yours: NOISEBOOK_STATE=FOLDER",
        )
    if own >= 0:
        with contextlib.suppress(OSError):
            os.ftruncate(own, 0)
            os.pwrite(own, in_vain, 0)
    return beside


def _opened(place: str | Path, flags: int) -> int:
    """A lock, open; nobody else can open one that it makes. −1: there is none."""
    with contextlib.suppress(OSError):
        return os.open(place, flags | os.O_CLOEXEC, 0o600)
    return -1


def _take(handle: int, kind: int, wait: bool, in_vain: bytes | None = None) -> str:
    """Nothing: the lock is held. Else who holds it, after `PATIENCE_S`; at once if that is whom
    this user has waited for in vain. `None`: it is waited for without end.
    """
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
        return ""
    except BlockingIOError:
        holder = _holder(handle)
    except OSError:  # a file system without locks
        os.close(handle)
        return _SOMEBODY
    if in_vain and in_vain == _maker(holder):
        os.close(handle)
        return holder
    if wait:
        with task(f"waiting: the machine is in use by {holder}", urgent=True):
            return _sleep(handle, kind, None if in_vain is None else PATIENCE_S)
    os.close(handle)
    raise Unavailable(
        f"the machine is in use by {holder}",
        why=_WHY,
        fix="wait until it has ended; with NOISEBOOK_STATE=FOLDER you have a lock of your own",
    )


def _sleep(handle: int, kind: int, patience_s: float | None) -> str:
    """As `_take`, for one that is held. In a thread, as no flock has a time limit."""
    turn, came = threading.Lock(), []

    def request() -> None:
        fcntl.flock(handle, kind)
        with turn:
            came.append("")
            if len(came) > 1:  # nobody waits any more
                _release(handle)

    waiting = threading.Thread(target=request, daemon=True)
    try:
        waiting.start()
        waiting.join(patience_s)
    finally:
        with turn:
            came.append(_holder(handle))
    return came[0]


def _release(handle: int) -> None:
    # Forked children share the open file: closing ours alone would leave the lock with them.
    fcntl.flock(handle, fcntl.LOCK_UN)
    os.close(handle)


def _holder(handle: int) -> str:
    """Who holds the lock, as the kernel has it: process, command and user."""
    locked = f":{os.fstat(handle).st_ino}"
    rows = map(str.split, Path("/proc/locks").read_text().splitlines())
    for pid in [row[4] for row in rows if row[1] == "FLOCK" and row[5].endswith(locked)]:
        with contextlib.suppress(OSError):  # it has ended, or is not seen from here
            words = Path(f"/proc/{pid}/cmdline").read_text(errors="replace").replace("\0", " ")
            command = printable(" ".join(words.split())[:80])
            user: str | int = os.stat(f"/proc/{pid}").st_uid
            with contextlib.suppress(KeyError):
                user = pwd.getpwuid(int(user)).pw_name
            return f"process {pid} ({command}) of user {user}"
    return _SOMEBODY


def _maker(holder: str) -> bytes:
    """Process and start time of who holds the lock; empty for one that is not seen from here."""
    found = re.match(r"process (\d+) ", holder)
    return f"{found[1]} {kernel.start_time(int(found[1]))}".encode() if found else b""
