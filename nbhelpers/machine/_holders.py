"""Who holds the measuring lock, and how a waiting process learns of the next.

The holder signs the lock's file; the kernel's list (/proc/locks) shows whether that signature is
still the holder's.
"""

import contextlib
import ctypes
import os
import pwd
import select
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

_IN_MODIFY = 0x2  # inotify(7)
_LONGEST = 300  # bytes of a signature


def sign(handle: int, doing: str, proc: str | Path = "/proc") -> None:
    """Write down who holds the lock; neither possible nor needed in a file opened for reading."""
    line = f"{_described(os.getpid(), doing, Path(proc))} since {time.strftime('%H:%M')}\n"
    text = line.encode()[-_LONGEST:]
    with contextlib.suppress(OSError):
        os.pwrite(handle, text, 0)  # whole before it is cut: who reads in between sees a name
        os.ftruncate(handle, len(text))


def holder(handle: int, proc: str | Path = "/proc") -> str:
    """Who holds the lock: process, purpose, user, since when; one of several, and their number."""
    signed = _signature(handle)
    pids = _pids(handle, Path(proc))
    by_signature = [pid for pid in pids if signed.startswith(f"process {pid} ")]
    if not pids or by_signature:
        name = signed or "another measurement"
    else:
        name = _described(pids[0], "", Path(proc))
    return name + (f" and {len(pids) - 1} more" if len(pids) > 1 else "")


def _signature(handle: int) -> str:
    with contextlib.suppress(OSError):
        return os.pread(handle, _LONGEST, 0).decode(errors="replace").split("\n", 1)[0].strip()
    return ""


def _described(pid: int, doing: str, proc: Path) -> str:
    """As "process 81 (stage 30-injection) of root"; without a purpose, its command."""
    user = ""
    with contextlib.suppress(OSError, KeyError):
        user = f" of {pwd.getpwuid(os.stat(proc / str(pid)).st_uid).pw_name}"
    if not doing:
        with contextlib.suppress(OSError):
            doing = (
                (proc / str(pid) / "cmdline")
                .read_text(errors="replace")
                .replace("\0", " ")
                .strip()[:80]
            )
    return f"process {pid}{doing and f' ({doing})'}{user}"


def _pids(handle: int, proc: Path) -> list[int]:
    """Processes that hold the lock by the kernel's list; none in another PID namespace."""
    with contextlib.suppress(OSError, ValueError):
        file = os.fstat(handle)
        place = f"{os.major(file.st_dev):02x}:{os.minor(file.st_dev):02x}:{file.st_ino}"
        rows = [line.split() for line in (proc / "locks").read_text().splitlines()]
        # a waiter's second word is "->"
        found = [int(row[4]) for row in rows if row[1] == "FLOCK" and row[5] == place]
        return [pid for pid in found if pid > 0]
    return []


@contextlib.contextmanager
def following(handle: int, last: str, notify: Callable[[str], object]) -> Iterator[None]:
    """Within the block, call `notify` with the holder whenever it is another than the last one.

    The watching thread sleeps in between, so that nobody's run is disturbed.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    watch = libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
    if watch < 0:  # no watches are left on this machine: the first holder has been shown
        yield
        return
    libc.inotify_add_watch(watch, f"/proc/self/fd/{handle}".encode(), _IN_MODIFY)
    ours, theirs = os.pipe()
    thread = threading.Thread(target=_follow, args=(watch, ours, handle, last, notify), daemon=True)
    thread.start()
    try:
        yield
    finally:
        os.close(theirs)
        thread.join()
        os.close(watch)
        os.close(ours)


def _follow(watch: int, stop: int, handle: int, last: str, notify: Callable[[str], object]) -> None:
    poll = select.poll()
    poll.register(watch, select.POLLIN)
    poll.register(stop, select.POLLIN)
    news = _is_signed(handle)  # it may have changed since it was shown, before the watch began
    while True:
        now = holder(handle)
        if news and now != last:
            last = now
            notify(now)
        if stop in [fd for fd, _ in poll.poll()]:
            return
        os.read(watch, 4096)
        news = True


def _is_signed(handle: int) -> bool:
    """Whether the signature is the holder's; one that has just got the lock is about to sign."""
    signed = _signature(handle)
    return any(signed.startswith(f"process {pid} ") for pid in _pids(handle, Path("/proc")))
