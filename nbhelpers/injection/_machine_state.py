"""What a calibration of the injector depends on: if any of it changes, it is measured anew.

Owns the record and the words for a difference; nothing here names a host or a path.
"""

from functools import cache
from pathlib import Path

from ..files import digest
from ..machine import online_cpus
from ..machine._read import read
from ..machine.cpus import core_kinds, frequency_limits, smt_state
from ..machine.description import boost, governor
from ..workloads import binary_folder
from ._native import PROGRAM, library


def machine_state(root: str | Path = "/") -> dict[str, str]:
    """Boot, kernel, CPUs, what bounds their speed, and the build of the injector.

    Parameters
    ----------
    root
        Folder of a recorded sysfs and procfs tree; "/" is this machine.
    """
    kinds = core_kinds(root)
    return {
        "boot": read("/proc/sys/kernel/random/boot_id", root) or "unknown",
        "kernel": read("/proc/version", root) or "unknown",
        "CPUs": " ".join(map(str, online_cpus(root))),
        "kinds of core": ", ".join(f"{name}: {len(cpus)}" for name, cpus in kinds.items()),
        "SMT": smt_state(root),
        "frequency governor": governor(root) or "none",
        "frequency limits": frequency_limits(root) or "none",
        "boost": boost(root) or "unknown",
        "injector": _build(Path(library), binary_folder() / PROGRAM),
    }


@cache
def _build(*parts: Path) -> str:
    return digest(b"".join(part.read_bytes() for part in parts if part.exists()))


def differences(before: dict[str, str], now: dict[str, str]) -> str:
    """What is not as it was: "frequency governor: powersave → performance"; empty: nothing."""
    changed = [name for name in now if before.get(name) != now[name]]
    long = {"boot", "kernel", "injector"}
    return ", ".join(
        f"another {name}"
        if name in long
        else f"{name}: {before.get(name, 'unknown')} → {now[name]}"
        for name in changed
    )
