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
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from ..errors import NoisebookError, Unavailable
from ..progress import task
from . import kernel
from ._watch import state_folder

INHERITED = "NOISEBOOK_LOCK"
COMMON = "/sys/devices/system/cpu"  # what is shared; each user can lock it, and none can take it
PATIENCE_S = 7200.0  # no stage takes longer
_LONGEST = 300  # bytes of a signature
_SOMEBODY = "another measurement"
_WHY = "two measurements at the same time would disturb each other"


@contextlib.contextmanager
def measuring(
    exclusive: bool = True,
    wait: bool = True,
    doing: str = "",
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
    doing
        What the lock is held for; shown to those who wait.

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
        beside = _take_both(stack, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH, wait, doing)
        os.environ[INHERITED] = f"{wanted}: {beside}"
        stack.callback(os.environ.pop, INHERITED, None)
        yield beside


def _take_both(stack: contextlib.ExitStack, kind: int, wait: bool, doing: str) -> str:
    """Take this user's lock, then that of all users; beside whom this user measures, if at all."""
    own, beside, in_vain = _private(), "", b""
    common = -1 if os.environ.get("NOISEBOOK_STATE") else _common()
    if own >= 0:
        in_vain = os.pread(own, _LONGEST, _LONGEST)
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
        _sign(own, doing, in_vain)
    return beside


# ---- where they lie ------------------------------------------------------------------------------


def _private() -> int:
    """This user's lock on this machine, open; nobody else can open it. −1: there is no place."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    with contextlib.suppress(OSError, NoisebookError):
        # the folder may be a home that several machines share
        return os.open(state_folder() / f"measuring-{os.uname().nodename}.lock", flags, 0o600)
    return -1


def _common() -> int:
    """The lock of all users, open; −1: this machine has none."""
    with contextlib.suppress(OSError):
        return os.open(COMMON, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    return -1


# ---- holding -------------------------------------------------------------------------------------


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


def _sign(handle: int, doing: str, in_vain: bytes) -> None:
    """Write down who holds the lock, and after that for whom this user has waited in vain."""
    purpose = (doing or " ".join(sys.argv))[:80]
    line = f"process {os.getpid()} ({purpose}) since {time.strftime('%H:%M')}\n"
    text = line.encode(errors="replace")[:_LONGEST].ljust(_LONGEST) + in_vain
    with contextlib.suppress(OSError):
        os.pwrite(handle, text, 0)  # whole before it is cut: who reads in between sees a name
        os.ftruncate(handle, len(text))


def _holder(handle: int) -> str:
    """Who holds the lock, process and user as the kernel has them; what for stands in a file of
    one's own.
    """
    signed, holders = "", _holders(os.fstat(handle).st_ino)
    with contextlib.suppress(IsADirectoryError):
        signed = os.pread(handle, _LONGEST, 0).decode(errors="replace").partition("\n")[0]
    signer = re.match(r"process (\d+) ", signed)
    if signer and signer[1] in (holders or os.listdir("/proc")):
        return f"{signed} of {_user(signer[1])}"
    return f"process {holders[0]} of {_user(holders[0])}" if holders else _SOMEBODY


def _holders(inode: int) -> list[str]:
    """Processes that hold a flock on a file, as far as they are seen from here."""
    rows = map(str.split, Path("/proc/locks").read_text().splitlines())
    return [row[4] for row in rows if row[1] == "FLOCK" and row[5].endswith(f":{inode}")]


def _maker(holder: str) -> bytes:
    """Process and start time of who holds the lock; empty for one that is not seen from here."""
    found = re.match(r"process (\d+) ", holder)
    return f"{found[1]} {kernel.start_time(int(found[1]))}".encode() if found else b""


def _user(pid: str) -> str:
    with contextlib.suppress(OSError, KeyError):
        return f"user {pwd.getpwuid(os.stat(f'/proc/{pid}').st_uid).pw_name}"
    return "another user"
