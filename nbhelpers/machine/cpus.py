"""Which CPU is which: cores, packages, NUMA nodes and SMT siblings of the CPUs that are online.

Reads /sys/devices/system/cpu and /sys/devices/system/node, nothing else.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from ._read import cpu_list, names, read

CPU_FOLDER = "/sys/devices/system/cpu"
NODE_FOLDER = "/sys/devices/system/node"


@dataclass(frozen=True)
class Cpu:
    """One CPU as the scheduler knows it.

    Attributes
    ----------
    cpu
        Its number.
    core
        Number of its core, from 0 over the machine.
    package
        Number of its socket.
    numa
        Number of its NUMA node.
    siblings
        The other CPUs of its core.
    """

    cpu: int
    core: int
    package: int
    numa: int
    siblings: tuple[int, ...]


@dataclass(frozen=True, repr=False)
class Topology:
    """The CPUs that are online, in ascending order."""

    cpus: tuple[Cpu, ...]

    @property
    def cores(self) -> int:
        """The number of physical cores that are online."""
        return len({cpu.core for cpu in self.cpus})

    @property
    def packages(self) -> int:
        """The number of sockets."""
        return len({cpu.package for cpu in self.cpus})

    @property
    def numa_nodes(self) -> int:
        """The number of NUMA nodes that have CPUs."""
        return len({cpu.numa for cpu in self.cpus})

    def __repr__(self) -> str:
        return (
            f"Topology({len(self.cpus)} CPUs, {self.cores} cores, {self.packages} packages, "
            f"{self.numa_nodes} NUMA nodes)"
        )


def topology(root: str | Path = "/") -> Topology:
    """Read the topology of the CPUs that are online.

    Parameters
    ----------
    root
        Folder of a recorded sysfs and procfs tree; "/" is this machine.

    Returns
    -------
    Topology; without topology files each CPU is one core, on package 0 and node 0.
    """
    online = online_cpus(root)
    together = {cpu: _core_mates(cpu, online, root) for cpu in online}
    core_of = {mates: number for number, mates in enumerate(dict.fromkeys(together.values()))}
    nodes = _nodes(root)
    return Topology(
        tuple(
            Cpu(
                cpu,
                core_of[together[cpu]],
                _package(cpu, root),
                nodes.get(cpu, 0),
                tuple(other for other in together[cpu] if other != cpu),
            )
            for cpu in online
        )
    )


def online_cpus(root: str | Path = "/") -> tuple[int, ...]:
    """The numbers of the CPUs that are online, at least one.

    Where the kernel has no list, they are those of the cpuN folders, or CPU 0.
    """
    listed = cpu_list(read(f"{CPU_FOLDER}/online", root))
    folders = [int(name[3:]) for name in names(CPU_FOLDER, root) if re.fullmatch(r"cpu\d+", name)]
    return listed or tuple(sorted(folders)) or (0,)


def smt_state(root: str | Path = "/") -> str:
    """Whether cores run several threads: "on", "off" (could, but doesn't) or "absent"."""
    active = read(f"{CPU_FOLDER}/smt/active", root)
    control = read(f"{CPU_FOLDER}/smt/control", root)
    if active is None:
        return "on" if any(cpu.siblings for cpu in topology(root).cpus) else "absent"
    if active == "1":
        return "on"
    return "off" if control in ("on", "off", "forceoff") else "absent"


def core_kinds(root: str | Path = "/") -> dict[str, tuple[int, ...]]:
    """Which online CPUs are of which kind of core, the fastest kind first; {"all": …}: of one kind.

    Kinds are what the kernel names: Intel's counters of performance and efficiency cores, the
    capacities of arm64 cores.
    """
    online = online_cpus(root)
    kinds = _intel_kinds(online, root) or _capacities(online, root)
    return kinds if len(kinds) > 1 else {"all": online}


def frequency_limits(root: str | Path = "/") -> str:
    """Lowest and highest frequency that the CPUs may have, in kHz: "800000-3900000", several
    joined by ", "; empty: the kernel sets no frequency.
    """
    folders = [f"{CPU_FOLDER}/cpu{cpu}/cpufreq" for cpu in online_cpus(root)]
    found = {
        "-".join(read(f"{folder}/scaling_{end}_freq", root) or "" for end in ("min", "max"))
        for folder in folders
    }
    return ", ".join(sorted(found - {"-"}))


def last_level_caches(cpus: Collection[int] = (), root: str | Path = "/") -> int:
    """Bytes of all last-level caches of some CPUs together, each cache counted once; 0: unknown.

    Parameters
    ----------
    cpus
        Whose caches; empty: of all that are online.
    root
        Folder of a recorded sysfs tree; "/" is this machine.
    """
    return sum(dict(_last_level(cpu, root) for cpu in cpus or online_cpus(root)).values())


def _last_level(cpu: int, root: str | Path) -> tuple[tuple[int, ...], int]:
    """The CPUs that share the last-level cache of a CPU, and its bytes."""
    folder = f"{CPU_FOLDER}/cpu{cpu}/cache"
    levels = {
        int(read(f"{folder}/{name}/level", root) or 0): name
        for name in names(folder, root)
        if name.startswith("index") and read(f"{folder}/{name}/type", root) != "Instruction"
    }
    if not levels:
        return (cpu,), 0
    last = f"{folder}/{levels[max(levels)]}"
    sharing = cpu_list(read(f"{last}/shared_cpu_list", root)) or (cpu,)
    return sharing, _bytes(read(f"{last}/size", root) or "")


def _bytes(text: str) -> int:
    """The bytes of a size as sysfs writes it, such as "32768K"."""
    number = re.fullmatch(r"(\d+)([KMG]?)", text)
    return int(number[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[number[2]] if number else 0


def _intel_kinds(online: tuple[int, ...], root: str | Path) -> dict[str, tuple[int, ...]]:
    files = {"performance": "cpu_core", "efficiency": "cpu_atom", "low power": "cpu_lowpower"}
    listed = {
        name: cpu_list(read(f"/sys/devices/{file}/cpus", root)) for name, file in files.items()
    }
    kinds = {name: tuple(cpu for cpu in cpus if cpu in online) for name, cpus in listed.items()}
    named = {cpu for cpus in kinds.values() for cpu in cpus}
    return {name: cpus for name, cpus in kinds.items() if cpus} if named == set(online) else {}


def _capacities(online: tuple[int, ...], root: str | Path) -> dict[str, tuple[int, ...]]:
    found = {cpu: int(read(f"{CPU_FOLDER}/cpu{cpu}/cpu_capacity", root) or 0) for cpu in online}
    levels = sorted(set(found.values()), reverse=True)
    if not all(levels):
        return {}
    return {
        f"capacity {level}": tuple(cpu for cpu, value in found.items() if value == level)
        for level in levels
    }


def _core_mates(cpu: int, online: tuple[int, ...], root: str | Path) -> tuple[int, ...]:
    """The online CPUs of the same core; core_id alone repeats on each package and die."""
    folder = f"{CPU_FOLDER}/cpu{cpu}/topology"
    text = read(f"{folder}/core_cpus_list", root) or read(f"{folder}/thread_siblings_list", root)
    return tuple(mate for mate in cpu_list(text) if mate in online) or (cpu,)


def _package(cpu: int, root: str | Path) -> int:
    """The socket's number; arm64 firmware without the table reports -1."""
    return max(0, int(read(f"{CPU_FOLDER}/cpu{cpu}/topology/physical_package_id", root) or 0))


def _nodes(root: str | Path) -> dict[int, int]:
    """NUMA node of each CPU."""
    folders = [name for name in names(NODE_FOLDER, root) if re.fullmatch(r"node\d+", name)]
    return {
        cpu: int(name[4:])
        for name in folders
        for cpu in cpu_list(read(f"{NODE_FOLDER}/{name}/cpulist", root))
    }
