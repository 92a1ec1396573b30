"""System calls that Python has no function for, and the question whether this user may make them.
Owns their numbers.
"""

import ctypes
import os
import platform
from collections.abc import Callable
from contextlib import suppress

from ..errors import SettingError
from .action import YES, Possible

libc = ctypes.CDLL(None, use_errno=True)
CALLS = {
    "x86_64": {"ioprio_set": 251, "ioprio_get": 252, "set_mempolicy": 238, "get_mempolicy": 239},
    "aarch64": {"ioprio_set": 30, "ioprio_get": 31, "set_mempolicy": 237, "get_mempolicy": 236},
}


def system_call(name: str, *arguments: int) -> int:
    """Make a call of `CALLS`.

    Raises
    ------
    SettingError
        The kernel refuses.
    """
    done = libc.syscall(
        ctypes.c_long(CALLS[platform.machine()][name]),
        *(ctypes.c_long(value) for value in arguments),
    )
    if done < 0:
        raise SettingError(
            f"{name}: {os.strerror(ctypes.get_errno())}",
            why="the mitigation would not be in effect",
        )
    return done


def allowed_here(change: Callable[[], object], fix: str) -> Possible:
    """Try something in a child, which takes it along when it ends."""
    child = os.fork()
    if child == 0:
        with suppress(BaseException):
            change()
            os._exit(0)
        os._exit(1)
    return (
        YES
        if os.waitpid(child, 0)[1] == 0
        else Possible(False, "this user may not do that here", fix)
    )
