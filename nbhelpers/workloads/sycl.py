"""Our SYCL programs: whether they are here, and the variables by which their threads are placed."""

import os
from collections.abc import Mapping
from pathlib import Path

from ..errors import InputError
from ..places import programs
from ._cpus import cores

PROGRAMS = ("nbody", "stream", "minife")
ROAMING = "all"
THREADS, PLACES = "DPCPP_CPU_NUM_CUS", "NOISEBOOK_PLACES"
_PINNED = {"DPCPP_CPU_CU_AFFINITY": "close", "DPCPP_CPU_PLACES": "cores"}


def available() -> bool:
    """Whether the SYCL programs are built here, an optional extra (`make sycl`)."""
    folder = programs() / "sycl"
    return all((folder / name).exists() for name in (*PROGRAMS, ".runtime"))


def placed_env(
    env: Mapping[str, str],
    base: str,
    cpus: tuple[int, ...],
    ours: bool = True,
    sysfs: str | Path = "/sys/devices/system/cpu",
) -> dict[str, str]:
    """The environment of a SYCL program in a placement (Persson et al. 2025, sec. 5).

    Intel's runtime pins (DPCPP_CPU_CU_AFFINITY=close, DPCPP_CPU_PLACES=cores) only a process that
    may use every CPU of the machine, and unasked pins some threads of most runs. Our programs
    therefore place each thread themselves once they are warm: roaming ones anywhere that the
    process may run, pinned ones by NOISEBOOKPLACES.

    Parameters
    ----------
    env
        The environment so far; a number of threads in it is cut to the number of CPUs.
    base
        Rm or TP.
    cpus
        CPUs that the program may use.
    ours
        Whether it is one of our programs; others have only the pinning of the runtime.
    sysfs
        Where the machine's cores are described.

    Raises
    ------
    InputError
        Somebody else's program is to be pinned to a part of the machine.
    """
    env = {name: value for name, value in env.items() if name not in (*_PINNED, PLACES)}
    threads = min(int(env.get(THREADS, len(cpus))), len(cpus))
    whole_machine = len(cpus) == os.cpu_count()
    if THREADS in env:
        env[THREADS] = str(threads)
    if base == "Rm":
        return env | {PLACES: ROAMING}
    if not ours and not whole_machine:
        raise InputError(
            "Intel's SYCL runtime does not pin the threads of a program that is confined to some"
            " CPUs",
            where=f"CPUs {cpus}",
            fix=(
                "use TP, which takes the whole machine, or a program that includes"
                " workloads/sycl/placement.hpp"
            ),
        )
    places = ":".join(",".join(map(str, place)) for place in _places(cpus, threads, sysfs))
    return env | {PLACES: places} | (_PINNED if whole_machine else {})


def _places(cpus: tuple[int, ...], threads: int, sysfs: str | Path) -> list[tuple[int, ...]]:
    """A core a thread, the first cores first; where several share a core, a CPU each, those of a
    core side by side.
    """
    by_core = cores(cpus, sysfs)
    if threads <= len(by_core):
        return by_core[:threads]
    each: list[tuple[int, ...]] = [(cpu,) for core in by_core for cpu in core]
    return each[:threads]
