"""What only a trial can show: counters, real-time scheduling.

Each trial leaves the machine as it was: a counter that is released again, a thread that ends.
"""

import errno
import os
from dataclasses import dataclass

from .. import privileged
from ..perf_event import EXCLUDE_KERNEL_AND_HYPERVISOR, open_counter, read_counter

HARDWARE_INSTRUCTIONS, SOFTWARE_CONTEXT_SWITCHES = (0, 1), (1, 3)


@dataclass(frozen=True)
class Trial:
    """How a trial went: `state` "yes", "limited" or "no", and a `message` on what was found."""

    state: str
    message: str
    errno: int = 0


_NOT_TRIED = Trial("no", "not tried: a recorded machine")


@dataclass(frozen=True)
class Trials:
    """The trials of one machine; those of a recorded machine were not made."""

    hardware: Trial = _NOT_TRIED
    software: Trial = _NOT_TRIED
    fifo: Trial = _NOT_TRIED


def try_out() -> Trials:
    """Try everything on this machine, as this user; takes some tenths of a second."""
    hardware, software = map(try_counter, *zip(HARDWARE_INSTRUCTIONS, SOFTWARE_CONTEXT_SWITCHES))
    return Trials(hardware, software, try_fifo())


def try_counter(kind: int, config: int) -> Trial:
    """Open a counter on this process with perf_event_open(2); one of the hardware has to count."""
    refusal = OSError()
    ways = (("yes", "", 0), ("limited", " in user space only", EXCLUDE_KERNEL_AND_HYPERVISOR))
    for state, where, flags in ways:
        try:
            handle = open_counter(kind, config, flags=flags)
        except PermissionError as error:
            refusal = error
            continue
        except OSError as error:
            refusal = error
            break
        try:
            count, *_ = read_counter(handle)
        finally:
            os.close(handle)
        if kind == 0 and count == 0:
            return Trial("no", "the counter opens but stays at 0")
        return Trial(state, f"counting{where}")
    number = refusal.errno or 0
    name = errno.errorcode.get(number, number)
    return Trial("no", f"perf_event_open: {os.strerror(number)} ({name})", number)


def try_fifo() -> Trial:
    """Request SCHED_FIFO 50, the priority of an interrupt thread."""
    number = privileged.realtime_refusal(50)
    if number:
        return Trial("no", f"SCHED_FIFO: {os.strerror(number)}", number)
    return Trial("yes", "SCHED_FIFO granted")
