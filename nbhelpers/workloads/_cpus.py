"""CPUs and cores that a workload may use, and those that a placement leaves to the system."""

import math
import os
from pathlib import Path

from ..errors import InputError
from ..machine import cpu_list

HOUSEKEEPING_SHARES = {"": 0.0, "HK": 0.125, "HK2": 0.25}  # Persson et al. 2025, sec. 5


def format_cpu_list(cpus: tuple[int, ...]) -> str:
    """Return the CPUs as text, for example "0,1,4", the form that nbstart and the kernel read.

    Parameters
    ----------
    cpus
        CPU numbers.

    Returns
    -------
    str
    """
    return ",".join(str(cpu) for cpu in cpus)


def cores(
    cpus: tuple[int, ...], sysfs: str | Path = "/sys/devices/system/cpu"
) -> list[tuple[int, ...]]:
    """The CPUs grouped by physical core, in the order of each core's first CPU."""
    grouped: dict[tuple[int, ...], list[int]] = {}
    for cpu in sorted(cpus):
        grouped.setdefault(_siblings(cpu, Path(sysfs)), []).append(cpu)
    return [tuple(core) for core in grouped.values()]


def _siblings(cpu: int, sysfs: Path) -> tuple[int, ...]:
    try:
        return cpu_list((sysfs / f"cpu{cpu}/topology/thread_siblings_list").read_text()) or (cpu,)
    except (OSError, ValueError):
        return (cpu,)  # containers hide the topology: then every CPU is taken for a core


def house_cores(cores: int, share: float) -> int:
    """How many cores a share reserves for the system: none for 0, else the nearest whole number
    (half upwards), at least one.
    """
    return max(1, math.floor(share * cores + 0.5)) if share else 0


def keep_house(cpus: tuple[int, ...], share: float, config: str) -> tuple[int, ...]:
    """The CPUs that are left to the workload when `share` of the cores, and at least one, is
    reserved for the system.

    The first cores are reserved: CPU 0 gets most interrupts, timers and unbound kernel work
    unless somebody configured otherwise.
    """
    by_core = cores(cpus)
    reserved = house_cores(len(by_core), share)
    if reserved >= len(by_core):
        raise InputError(
            f"{config} needs at least 2 cores, and there is {len(by_core)}",
            where=f"CPUs {format_cpu_list(cpus)}",
            why="a housekeeping core is one that the workload does without",
            fix="use Rm or TP here",
        )
    return tuple(sorted(cpu for core in by_core[reserved:] for cpu in core))


def usable_cpus() -> tuple[int, ...]:
    """The CPUs that this process may use."""
    return tuple(sorted(os.sched_getaffinity(0)))
