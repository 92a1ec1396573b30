"""Interrupts as the kernel counts them, and who may count those of other CPUs, or send them."""

import contextlib
import re
from pathlib import Path

import numpy as np
import pandas as pd

from ..errors import Unavailable

_COUNTED = ("LOC", "RES", "CAL", "TLB")
_CAP_SYS_ADMIN = 1 << 21
_CAP_PERFMON = 1 << 38


def interrupt_counts() -> pd.DataFrame:
    """How many interrupts each CPU has had, by kind, since the machine was started.

    Returns
    -------
    One row a CPU, columns LOC (local timer), RES (rescheduling), CAL (function calls), TLB
    (shootdowns; on x86 they count as function calls, too); those that the kernel does not count are
    missing.
    """
    lines = Path("/proc/interrupts").read_text().splitlines()
    cpus = [int(name.removeprefix("CPU")) for name in lines[0].split()]
    rows = {
        line.split(":")[0].strip(): line.split(":")[1].split()[: len(cpus)] for line in lines[1:]
    }
    return pd.DataFrame(
        {name: np.array(rows[name], np.int64) for name in _COUNTED if name in rows},
        index=pd.Index(cpus, name="cpu"),
    )


def may_count_cpus() -> bool:
    """Whether this user may open perf events of a whole CPU: everybody may, or it has CAP_PERFMON
    or CAP_SYS_ADMIN.
    """
    with contextlib.suppress(OSError, ValueError):
        status = Path("/proc/self/status").read_text()
        effective = re.search(r"^CapEff:\s*(\w+)", status, re.M)
        if effective and int(effective[1], 16) & (_CAP_PERFMON | _CAP_SYS_ADMIN):
            return True
        return int(Path("/proc/sys/kernel/perf_event_paranoid").read_text()) < 1
    return False


def check_interrupts() -> None:
    """Check that another CPU can be interrupted, and nobody need run on it.

    Raises
    ------
    Unavailable
        Interrupts would come by a helper, which competes for that CPU.
    """
    if not may_count_cpus():
        raise Unavailable(
            "no other CPU can be interrupted here without a helper on it",
            fix="run as root, or: sysctl kernel.perf_event_paranoid=0",
        )
