"""perf_event_open(2): a counter of the kernel on a thread or a CPU, as a file descriptor.

Owns the call with its numbers and its attributes; where this user may not, the helper is asked.
"""

import ctypes
import errno
import os
import platform
import struct

from . import privileged

EXCLUDE_KERNEL_AND_HYPERVISOR = 1 << 5 | 1 << 6
_CALLS = {
    "x86_64": 298,
    "aarch64": 241,
    "riscv64": 241,
    "loongarch64": 241,
    "ppc64le": 319,
    "s390x": 331,
}
_TIMES = 1 | 2  # read_format: time_enabled, time_running
_CLOSE_ON_EXEC = 8
_libc = ctypes.CDLL(None, use_errno=True)


def open_counter(
    kind: int, config: int, pid: int = 0, cpu: int = -1, flags: int = 0, group: int = -1
) -> int:
    """Open a counter; reading it gives the value and two times, see `read_counter`.

    Parameters
    ----------
    kind, config, flags
        Type of the event, its number, and bits of its attributes; see perf_event_open(2).
    pid
        A thread (0: this one); −1: all of the CPU.
    cpu
        −1: any.
    group
        File descriptor of the group's leader; −1: none.

    Raises
    ------
    OSError
        ENOENT or EOPNOTSUPP: no such event here; EACCES or EPERM: not allowed
        (kernel.perf_event_paranoid); ESRCH: no such thread; EINVAL: the group is full; ENOSYS.
    """
    attributes = struct.pack("IIQQQQQ", kind, 112, config, 0, 0, _TIMES, flags)
    try:
        return opened(attributes, pid, cpu, group)
    except PermissionError:
        return privileged.counter(kind, config, pid, cpu, flags, group)


def opened(attributes: bytes, pid: int = 0, cpu: int = -1, group: int = -1) -> int:
    """The file descriptor of an event by its attributes (struct perf_event_attr); see
    `open_counter`.
    """
    call = _CALLS.get(platform.machine())
    if call is None:
        raise OSError(errno.ENOSYS, f"perf_event_open on {platform.machine()}")
    # long arguments, or the upper halves of the registers would be left to chance
    numbers = [ctypes.c_long(value) for value in (pid, cpu, group, _CLOSE_ON_EXEC)]
    handle = _libc.syscall(ctypes.c_long(call), attributes.ljust(112, b"\0"), *numbers)
    if handle < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return handle


def read_counter(fd: int) -> tuple[int, int, int]:
    """Value, time enabled and time running (ns); the two times differ where counters had to take
    turns.
    """
    return struct.unpack("QQQ", os.read(fd, 24))
