"""What a machine is, as far as it bears on run times: the record that every result carries.

Owns the `Machine` record and how it is read; it holds no host name, no user name and no path.
"""

import gzip
import os
import platform
import re
import subprocess
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..facts import as_words
from ..files import digest, to_json
from ..places import shipped
from ..reading import read_yaml
from ._read import boot_words, chosen, fields, located, read
from .cpus import CPU_FOLDER, online_cpus, smt_state, topology

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, repr=False)
class Machine:
    """What the machine is; None where the kernel does not say."""

    cpu_model: str
    cpus: tuple[int, ...]
    cores: int
    packages: int
    smt: str
    numa_nodes: int
    memory_bytes: int
    kernel: str
    preemption: str
    hz: int | None
    virtualisation: str
    clocksource: str | None
    governor: str | None
    frequency_driver: str | None
    boost: str | None
    boot_parameters: dict[str, str]
    transparent_huge_pages: str | None
    python: str
    compiler: str | None

    def to_dict(self) -> dict:
        """The record as plain JSON types."""
        return asdict(self) | {"cpus": list(self.cpus)}

    @property
    def digest(self) -> str:
        """16 hexadecimal digits of everything but the memory.

        What the kernel reserves of the memory differs from boot to boot.
        """
        return digest(
            to_json(
                {name: value for name, value in self.to_dict().items() if name != "memory_bytes"}
            )
        )

    def __repr__(self) -> str:
        return in_words(self.to_dict())


def in_words(record: Mapping[str, Any]) -> str:
    """The record of a machine as a line for people, as far as it goes.

    Examples
    --------
    >>> in_words(
    ...     {"cpu_model": "EPYC", "cpus": [0, 1], "kernel": "6.1.0-8", "virtualisation": "kvm"}
    ... )
    'EPYC, 2 CPUs, Linux 6.1.0, virtual (kvm)'
    """
    model, kernel = record.get("cpu_model") or "CPU of unknown model", record.get("kernel") or "?"
    virtual = record.get("virtualisation") or "unknown"
    known = {"none": "bare metal", "unknown": "bare metal or virtual"}
    where = known.get(virtual, f"virtual ({virtual})")
    return f"{model}, {len(record.get('cpus') or ())} CPUs, Linux {kernel.split('-')[0]}, {where}"


def as_table(record: Mapping[str, Any]) -> "pd.DataFrame":
    """The record of a machine as a table: property, value."""
    import pandas

    rows = [(name.replace("_", " "), as_words(value)) for name, value in record.items()]
    return pandas.DataFrame(rows, columns=["property", "value"])


def describe(root: str | Path = "/") -> Machine:
    """Read what the machine is.

    Parameters
    ----------
    root
        Folder of a recorded sysfs and procfs tree; "/" is this machine. Python and the compiler are
        always those at hand.

    Returns
    -------
    Machine; readable without any privilege.
    """
    layout = topology(root)
    return Machine(
        cpu_model=_cpu_model(root),
        cpus=online_cpus(root),
        cores=layout.cores,
        packages=layout.packages,
        smt=smt_state(root),
        numa_nodes=layout.numa_nodes,
        memory_bytes=1024
        * int(fields(read("/proc/meminfo", root)).get("MemTotal", "0").split()[0]),
        kernel=read("/proc/sys/kernel/osrelease", root) or "unknown",
        preemption=_preemption(root),
        hz=_hz(root),
        virtualisation=virtualisation(root),
        clocksource=read("/sys/devices/system/clocksource/clocksource0/current_clocksource", root),
        governor=governor(root),
        frequency_driver=read(
            f"{CPU_FOLDER}/cpu{online_cpus(root)[0]}/cpufreq/scaling_driver", root
        ),
        boost=boost(root),
        boot_parameters=_boot_parameters(root),
        transparent_huge_pages=_selected("/sys/kernel/mm/transparent_hugepage/enabled", root),
        python=f"{platform.python_implementation()} {platform.python_version()}",
        compiler=compiler(),
    )


def virtualisation(root: str | Path = "/") -> str:
    """What the machine runs on: "none" (bare metal), "kvm", "xen", "vmware", … or "unknown"."""
    xen = read("/sys/hypervisor/type", root)
    tree = read("/proc/device-tree/hypervisor/compatible", root)
    flags = fields(read("/proc/cpuinfo", root)).get("flags", "").split()
    maker = _maker(root)
    # Clouds rent out bare metal with their name in DMI: on x86 the CPU's hypervisor flag decides.
    if xen or tree:
        return xen or ("kvm" if "kvm" in (tree or "") else "unknown")
    if flags and "hypervisor" not in flags:
        return "none"
    return maker or _by_clock(root) or ("unknown" if flags else "none")


def governor(root: str | Path = "/") -> str | None:
    """The frequency governor, several joined by ", "; None: the kernel sets no frequency."""
    found = {
        read(f"{CPU_FOLDER}/cpu{cpu}/cpufreq/scaling_governor", root) for cpu in online_cpus(root)
    }
    return ", ".join(sorted(filter(None, found))) or None


def compiler() -> str | None:
    """Name and version of the C compiler (`$CC`, else cc); None where there is none."""
    command = (os.environ.get("CC") or "cc").split()
    try:
        shown = subprocess.run(
            [*command, "--version"], capture_output=True, text=True, timeout=20
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    first = (shown.splitlines() or [""])[0]
    name = _compiler_name(first, shown)
    version = re.search(r"\d+\.\d+(\.\d+)?", re.sub(r"\([^)]*\)", "", first))
    return f"{name} {version[0]}" if version else name


def _compiler_name(first: str, shown: str) -> str:
    """The compiler's name, from the first line, or all lines, of its version."""
    if "clang" in first:
        return "clang"
    if "Intel" in first:
        return "icx"
    return "gcc" if "Free Software" in shown else "cc"


def _cpu_model(root: str | Path) -> str:
    """x86 has "model name", POWER "cpu", arm64 only numbers."""
    found = fields(read("/proc/cpuinfo", root))
    arm = f"arm implementer {found.get('CPU implementer')} part {found.get('CPU part')}"
    return (
        found.get("model name")
        or found.get("cpu")
        or (arm if "CPU part" in found else "")
        or "unknown"
    )


def _preemption(root: str | Path) -> str:
    """The model the kernel was built with and, where it is chosen at boot, the one in force."""
    build = re.search(r"PREEMPT\w*", read("/proc/sys/kernel/version", root) or "")
    if not build:
        return "none"
    if build[0] != "PREEMPT_DYNAMIC":
        return {"PREEMPT": "full", "PREEMPT_RT": "rt"}.get(
            build[0], build[0].removeprefix("PREEMPT_").lower()
        )
    running = (
        _selected("/sys/kernel/debug/sched/preempt", root)
        or boot_words(root).get("preempt")
        or _preempt_built(root)
    )
    return f"dynamic ({running})" if running else "dynamic"


def _preempt_built(root: str | Path) -> str | None:
    options = _kernel_options(root)
    for model in ("none", "voluntary", "lazy"):
        if options.get(f"CONFIG_PREEMPT_{model.upper()}") == "y":
            return model
    return "full" if options.get("CONFIG_PREEMPT") == "y" else None


def _hz(root: str | Path) -> int | None:
    value = _kernel_options(root).get("CONFIG_HZ")
    return int(value) if value else None


def _kernel_options(root: str | Path) -> dict[str, str]:
    """The options that the kernel was built with; empty where they cannot be read."""
    try:
        text = gzip.decompress(located("/proc/config.gz", root).read_bytes()).decode(
            errors="replace"
        )
    except (OSError, EOFError):
        text = read(f"/boot/config-{read('/proc/sys/kernel/osrelease', root)}", root) or ""
    return dict(
        line.split("=", 1)
        for line in text.splitlines()
        if line.startswith("CONFIG_") and "=" in line
    )


def _maker(root: str | Path) -> str | None:
    names = " ".join(
        read(f"/sys/class/dmi/id/{name}", root) or ""
        for name in ("sys_vendor", "product_name", "bios_vendor")
    )
    return next((kind for word, kind in _known()["makers"].items() if word in names.lower()), None)


def _by_clock(root: str | Path) -> str | None:
    """Micro-VMs have no DMI, but offer the hypervisor's clock."""
    clocks = read("/sys/devices/system/clocksource/clocksource0/available_clocksource", root) or ""
    kinds = {"kvm-clock": "kvm", "hyperv": "hyper-v", "xen": "xen"}
    return next((kind for word, kind in kinds.items() if word in clocks), None)


def boost(root: str | Path) -> str | None:
    """Whether the CPUs may exceed their nominal frequency; Intel's file says the opposite."""
    general = read(f"{CPU_FOLDER}/cpufreq/boost", root)
    intel = read(f"{CPU_FOLDER}/intel_pstate/no_turbo", root)
    answers = {"1": "on", "0": "off"}
    return answers.get(general or "") or {"0": "on", "1": "off"}.get(intel or "")


def _boot_parameters(root: str | Path) -> dict[str, str]:
    recorded = _known()["boot_parameters"]
    return {name: value for name, value in sorted(boot_words(root).items()) if name in recorded}


@cache
def _known() -> dict:
    return read_yaml(
        shipped() / "data/knowledge/machine.yml", "list of a machine's facts", fast=True
    )


def _selected(path: str, root: str | Path) -> str | None:
    return chosen(read(path, root) or "") or None
