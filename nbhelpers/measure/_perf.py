"""perf_event_open(2) for a process that waits: one counter an event and thread, inherited by what the threads start later.

Counters are read as file descriptors; no process is started for them.
"""

import ctypes
import errno
import os
import platform
import struct
from functools import cache

from ..errors import Unavailable

SOFTWARE, HARDWARE = 1, 0
SOFTWARE_EVENTS = {"task_clock_ns": 1, "page_faults": 2, "context_switches": 3, "cpu_migrations": 4}
HARDWARE_EVENTS = {"cycles": 0, "instructions": 1, "cache_references": 2, "cache_misses": 3, "branches": 4, "branch_misses": 5,
                   "stalled_cycles_frontend": 7, "stalled_cycles_backend": 8, "reference_cycles": 9}
_NEEDS_KERNEL = {"context_switches", "cpu_migrations"}  # both happen in the kernel: with exclude_kernel they would count 0
_SYSCALLS = {"x86_64": 298, "aarch64": 241, "riscv64": 241, "ppc64le": 319, "s390x": 331}
_INHERIT, _EXCLUDE_KERNEL, _EXCLUDE_HYPERVISOR = 1 << 1, 1 << 5, 1 << 6
_TIMES = 1 | 2  # read_format: time_enabled, time_running
_CLOSE_ON_EXEC = 8
_libc = ctypes.CDLL(None, use_errno=True)


def open_counter(kind: int, config: int, pid: int, user_only: bool = False) -> int:
    """A counter on one thread (0: this one) and all that it starts from now on; returns a file descriptor.

    Raises
    ------
    OSError : ENOENT or EOPNOTSUPP: no such event here; EACCES or EPERM: not allowed (kernel.perf_event_paranoid); ESRCH: no such thread.
    """
    number = _SYSCALLS.get(platform.machine())
    if number is None:
        raise OSError(errno.ENOSYS, f"perf_event_open on {platform.machine()}")
    flags = _INHERIT | (_EXCLUDE_KERNEL | _EXCLUDE_HYPERVISOR if user_only else 0)
    attributes = struct.pack("IIQQQQQ", kind, 112, config, 0, 0, _TIMES, flags).ljust(112, b"\0")
    fd = _libc.syscall(number, attributes, pid, -1, -1, _CLOSE_ON_EXEC)
    if fd < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return fd


def read_counter(fd: int) -> tuple[int, int, int]:
    """Value, time enabled and time running (ns); the two times differ where counters had to take turns."""
    return struct.unpack("QQQ", os.read(fd, 24))


@cache
def available(kind: int) -> tuple[dict[str, tuple[int, bool]], dict[str, str]]:
    """The events of a kind that can be opened here, as (config, user only), and for the others the reason."""
    events = SOFTWARE_EVENTS if kind == SOFTWARE else HARDWARE_EVENTS
    usable, missing = {}, {}
    for name, config in events.items():
        for user_only in (False, True):
            try:
                os.close(open_counter(kind, config, 0, user_only))
            except OSError as error:
                missing[name] = _reason(error)
                if error.errno in (errno.EACCES, errno.EPERM) and name not in _NEEDS_KERNEL:
                    continue
            else:
                usable[name] = (config, user_only)
                missing.pop(name, None)
            break
    return usable, missing


def _reason(error: OSError) -> str:
    if error.errno in (errno.EACCES, errno.EPERM):
        return "not allowed to this user (kernel.perf_event_paranoid)"
    if error.errno in (errno.ENOENT, errno.EOPNOTSUPP, errno.ENODEV):
        return "this machine has no such counter (a virtual machine often hides them)"
    return error.strerror


def open_on_process(kind: int, pid: int) -> list[tuple[str, int]]:
    """Counters of all usable events on every thread that the process has; inheritance alone would miss threads that run already."""
    usable, _ = available(kind)
    opened: list[tuple[str, int]] = []
    try:
        for thread in _threads(pid) if usable else ():
            for name, (config, user_only) in usable.items():
                _open_on_thread(opened, name, kind, config, thread, user_only)
    except BaseException:
        for _, fd in opened:
            os.close(fd)
        raise
    return opened


def _threads(pid: int) -> list[int]:
    try:
        return [int(thread) for thread in os.listdir(f"/proc/{pid}/task")]
    except FileNotFoundError:
        return []


def _open_on_thread(opened: list[tuple[str, int]], name: str, kind: int, config: int, thread: int, user_only: bool) -> None:
    try:
        opened.append((name, open_counter(kind, config, thread, user_only)))
    except OSError as error:
        if error.errno == errno.EMFILE:
            raise Unavailable("too few file descriptors for a counter on every thread", where=f"thread {thread}, event {name}",
                              mend="ulimit -n 65536") from None
        if error.errno != errno.ESRCH:  # the thread has ended meanwhile
            raise
