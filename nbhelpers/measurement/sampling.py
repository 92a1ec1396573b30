"""Sampling of a thread by its CPU time (perf_event_open(2)), as a profiler does it.

Owns the opening of such an event; who maps its ring buffer gets the samples.
"""

import errno
import platform
import struct

from . import _perf

_SOFTWARE_CPU_CLOCK = (1, 0)
_IP, _TID, _TIME, _CALL_CHAIN = 1, 2, 4, 32
_BY_FREQUENCY = 1 << 10


def open_sampler(pid: int, hertz: int) -> int:
    """Sample a thread so often in a second of its CPU time: where it is, and who called.

    Parameters
    ----------
    pid
        Of the thread; 0: this one.
    hertz
        Samples a second.

    Returns
    -------
    A file descriptor.

    Raises
    ------
    OSError
        As of `_perf.open_counter`; EINVAL: more than kernel.perf_event_max_sample_rate.

    Examples
    --------
    >>> import os
    >>> os.close(open_sampler(0, 10))
    """
    number = _perf._SYSCALLS.get(platform.machine())
    if number is None:
        raise OSError(errno.ENOSYS, f"perf_event_open on {platform.machine()}")
    kind, config = _SOFTWARE_CPU_CLOCK
    sample = _IP | _TID | _TIME | _CALL_CHAIN
    attributes = struct.pack("IIQQQQQ", kind, 112, config, hertz, sample, 0, _BY_FREQUENCY)
    return _perf._checked(
        _perf._libc.syscall(number, attributes.ljust(112, b"\0"), pid, -1, -1, _perf._CLOSE_ON_EXEC)
    )
