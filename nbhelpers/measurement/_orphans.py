"""Processes that a run leaves behind and no control group holds: they become children of this
process, are known by their process group and the mark in their environment, killed and reaped.

Owns being the parent of orphans, and that SIGTERM ends this process only after the cleaning up.
"""

import ctypes
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from ..machine.kernel import passing_over
from .families import children_of

MARK = "NOISEBOOK_RUN"
_SET_CHILD_SUBREAPER, _GET_CHILD_SUBREAPER = 36, 37
_libc = ctypes.CDLL(None, use_errno=True)


def children() -> frozenset[int]:
    """The children of this process, zombies among them; none where the kernel does not list them
    (CONFIG_PROC_CHILDREN).
    """
    try:  # without any, which one call says, there is nothing to list
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return frozenset()
    return frozenset(children_of("self"))


def kill_and_reap(pid: int) -> bool:
    """False: it belongs to another user (sudo) and cannot be killed, so it must not be waited for
    either.
    """
    with suppress(ProcessLookupError, ChildProcessError):
        try:
            os.kill(pid, signal.SIGKILL)
        except PermissionError:
            return False
        os.waitpid(pid, 0)
    return True


def belongs_to_run(pid: int, leader: int, mark: str) -> bool:
    """Whether an adopted child comes from a run: by the process group of its leader, the mark in
    its environment, or, dead and with no mark to read, its foreign session.
    """
    with passing_over(), open(f"/proc/{pid}/stat") as file:
        state, _, group, session = file.read().rpartition(")")[2].split()[:4]
        if int(group) == leader or (state == "Z" and int(session) != os.getsid(0)):
            return True
        with open(f"/proc/{pid}/environ", "rb") as variables:
            return os.fsencode(f"{MARK}={mark}") in variables.read().split(b"\0")
    return False


def new_mark() -> str:
    """The mark of one run: this process, and a number."""
    return f"{os.getpid()}.{time.monotonic_ns()}"


@contextmanager
def as_subreaper() -> Iterator[None]:
    """Orphans of a run become children of this process (prctl(2)), so that they can be found; what
    was set before is put back.
    """
    before = ctypes.c_int(0)
    _libc.prctl(_GET_CHILD_SUBREAPER, ctypes.byref(before), 0, 0, 0)
    _libc.prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        _libc.prctl(_SET_CHILD_SUBREAPER, before.value, 0, 0, 0)


class _Terminated(BaseException):
    """SIGTERM, on its way through the blocks that clean up."""


@contextmanager
def cleaned_up_on_sigterm() -> Iterator[None]:
    """SIGTERM unwinds the stack, so that everything is cleaned up, and then ends this process as it
    would have.
    """
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return

    def unwind(*_):
        raise _Terminated

    signal.signal(signal.SIGTERM, unwind)
    try:
        yield
    except _Terminated:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
