"""Interrupts as the kernel counts them."""

from pathlib import Path

import numpy as np
import pandas as pd

COUNTED = ("LOC", "RES", "CAL", "TLB")


def interrupt_counts() -> pd.DataFrame:
    """How many interrupts each CPU has had since the machine was started.

    One row a CPU, columns LOC (local timer), RES (rescheduling), CAL (function calls), TLB
    (shootdowns); those that the kernel does not count are missing.
    """
    lines = Path("/proc/interrupts").read_text().splitlines()
    cpus = [int(name.removeprefix("CPU")) for name in lines[0].split()]
    words = {line.split(":")[0].strip(): line.split(":")[1].split() for line in lines[1:]}
    columns = {name: np.array(words[name][: len(cpus)], int) for name in COUNTED if name in words}
    return pd.DataFrame(columns, index=pd.Index(cpus, name="cpu"))
