"""The configurations of the two single-node studies, from a machine's real topology: which exist
there, and why the others do not.

Owns the placements of Persson et al. 2025 (roaming, pinned, housekeeping, with and without SMT
siblings) and of Cui et al. 2023 (thread counts, one or two threads a core, close or spread over
cores and NUMA nodes) as lists of CPUs; `Configuration.of` puts a workload there.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass

import pandas as pd

from ..errors import InputError, check_choice
from ..machine import Cpu, Topology
from . import mpi
from ._cpus import HOUSEKEEPING_SHARES, format_cpu_list, house_cores
from .workload import Workload

FAMILIES = ("mitigation", "threads", "nodes")
_SCALING_ALWAYS = (1, 2, 4, 30, 254)  # one, two, and those of Cui et al. 2023, Table 2
_SPARED = 2  # CPUs that Cui et al. 2023, sec. 5.1, leave free where all others work
_SCALED = re.compile(r"TP-[SM]T([1-9]\d*)")


@dataclass(frozen=True)
class Configuration:
    """Where a workload runs, and with how many threads.

    Parameters
    ----------
    name
        Such as ``"TPHK"``, ``"TPHK-SMT"``, ``"TP-ST4"``, ``"TP-one-node4"``.
    family
        "mitigation" (Persson et al. 2025, sec. 5), "threads" (Cui et al. 2023, sec. 5.1 and 5.3) or
        "nodes" (sec. 5.4).
    base
        Rm: threads roam over the CPUs; TP: each thread has one CPU for itself.
    cpus
        CPUs of the workload, in the order in which threads get them.
    house
        CPUs that are left to the system on purpose.
    threads
        One a CPU of `cpus`.
    missing
        Why it does not exist on this machine; empty where it does.
    """

    name: str
    family: str
    base: str
    cpus: tuple[int, ...]
    house: tuple[int, ...]
    threads: int
    missing: str = ""

    def of(self, workload: Workload) -> Workload:
        """The workload in this configuration.

        OpenMP programs get OMP_NUM_THREADS, OMP_PROC_BIND and OMP_PLACES (a place a thread), SYCL
        programs the variables of `sycl.placed_env`, launchers of MPI those of
        `mpi.placed_env` (their command line has the number of ranks). Others
        are confined to the CPUs.

        Raises
        ------
        InputError
            It does not exist here, or pinning is requested of a program of none of these.
        """
        if self.missing:
            raise InputError(
                f"configuration {self.name} does not exist on this machine",
                why=self.missing,
                fix="configuration_table() lists those that do",
            )
        return workload.on(self.name, self.base, self.cpus, self.threads)


def configurations(
    topology: Topology,
    usable: Collection[int] | None = None,
    families: Collection[str] = FAMILIES,
    names: Collection[str] = (),
) -> tuple[Configuration, ...]:
    """Return all configurations of the two studies; those that this machine lacks have the reason.

    Parameters
    ----------
    topology
        Topology of the machine (`nbhelpers.machine.cpus`).
    usable
        Its CPUs that may be used; None: all that are online.
    families
        "mitigation", "threads", "nodes", or several of them.
    names
        Requested ones: of numbers of threads (``"TP-ST12"``) those are listed, too.

    Returns
    -------
    tuple of Configuration

    Raises
    ------
    InputError
        No CPU may be used, or an unknown family.

    Notes
    -----
    Numbers of threads are the powers of two, all cores, all CPUs, each less two, and those of Cui
    et al. 2023, Table 2. Their two NUMA nodes lie on two sockets, and so do ours.

    Without ``-SMT`` in its name a mitigation has one thread a core, with it one a CPU. Housekeeping
    reserves 12.5 % (HK) or 25 % (HK2) of the cores, to the nearest whole number and at least one,
    counted from the first, which gets most interrupts; on two cores the two are the same, and HK2
    is left out.
    """
    for family in families:
        check_choice("family", family, FAMILIES)
    cpus = [cpu for cpu in topology.cpus if usable is None or cpu.cpu in set(usable)]
    if not cpus:
        raise InputError("no CPU may be used")
    counts = {int(match[1]) for name in names if (match := _SCALED.fullmatch(name))}
    by_core: dict[int, list[Cpu]] = {}  # the cores in the order of their first CPU
    for cpu in sorted(cpus, key=lambda cpu: cpu.cpu):
        by_core.setdefault(cpu.core, []).append(cpu)
    cores = list(by_core.values())
    found = (*_mitigations(cores), *_scaling(cores, counts), *_nodes(cores))
    return tuple(one for one in found if one.family in families)


def configuration_table(listed: Collection[Configuration]) -> pd.DataFrame:
    """Return configurations as a table.

    Parameters
    ----------
    listed
        The configurations, as `configurations` returns them.

    Returns
    -------
    DataFrame
        One row a configuration: `name`, `family`, `base`, `threads`, `cpus` and `house` (lists of
        CPUs as text), `exists`, `missing` (why it does not exist).
    """
    columns = ["name", "family", "base", "threads", "cpus", "house", "exists", "missing"]
    table = pd.DataFrame(list(map(asdict, listed)), columns=columns)
    table["exists"] = table["missing"] == ""
    for name in ("cpus", "house"):
        table[name] = table[name].map(format_cpu_list)
    return table


def environment_table(listed: Collection[Configuration]) -> pd.DataFrame:
    """Return the environment variables that place a program in each configuration that exists.

    Parameters
    ----------
    listed
        The configurations, as `configurations` returns them.

    Returns
    -------
    DataFrame
        One row a configuration: `name`, `openmp`, `open_mpi`, `mpich`, `intel_mpi`, as in a shell.
    """
    rows = []
    for one in (one for one in listed if not one.missing):
        openmp = one.of(Workload("any", "omp", ("/bin/true",))).env
        launchers = {
            launcher: _words(mpi.launcher_env(launcher, one.base, one.cpus))
            for launcher in mpi.LAUNCHERS
        }
        rows.append({"name": one.name, "openmp": _words(dict(openmp)), **launchers})
    return pd.DataFrame(rows, columns=["name", "openmp", *mpi.LAUNCHERS])


def _words(env: Mapping[str, str]) -> str:
    return " ".join(f"{name}={value}" for name, value in sorted(env.items()))


def existing_configurations(
    listed: Collection[Configuration], names: Collection[str] = ()
) -> tuple[Configuration, ...]:
    """Return the configurations that exist on this machine.

    Parameters
    ----------
    listed
        The configurations, as `configurations` returns them.
    names
        Only these; empty: all. Those that do not exist here are listed with the reason.

    Returns
    -------
    tuple of Configuration
        In the order of `listed`.

    Raises
    ------
    InputError
        A name that is no configuration on any machine.
    """
    for name in names:
        if not _SCALED.fullmatch(name):
            check_choice("configuration", name, [one.name for one in listed])
    return tuple(
        configuration
        for configuration in listed
        if not configuration.missing and (not names or configuration.name in names)
    )


def _mitigations(cores: list[list[Cpu]]) -> Iterator[Configuration]:
    has_smt = any(len(core) > 1 for core in cores)
    for suffix in ("", "-SMT"):
        for base in ("Rm", "TP"):
            for house, share in HOUSEKEEPING_SHARES.items():
                name = f"{base}{house}{suffix}"
                if suffix and not has_smt:
                    yield _missing(name, "mitigation", base, "each core runs one thread")
                else:
                    yield _mitigation(name, base, cores, share, both=bool(suffix))


def _mitigation(
    name: str, base: str, cores: list[list[Cpu]], share: float, both: bool
) -> Configuration:
    count, reserved = len(cores), house_cores(len(cores), share)
    if reserved >= count:
        reason = f"a core for the system and one for the workload are needed; there is {count}"
        return _missing(name, "mitigation", base, reason)
    if "HK2" in name and reserved == house_cores(count, HOUSEKEEPING_SHARES["HK"]):
        same = f"the same as {name.replace('HK2', 'HK')}"
        reason = f"{same}: 25 % of {count} cores is {reserved} core, as 12.5 % is"
        return _missing(name, "mitigation", base, reason)
    house = [cpu.cpu for core in cores[:reserved] for cpu in core]
    places = [cpu.cpu for core in cores[reserved:] for cpu in (core if both else core[:1])]
    return Configuration(name, "mitigation", base, tuple(places), tuple(house), len(places))


def _scaling(cores: list[list[Cpu]], requested: Collection[int]) -> Iterator[Configuration]:
    """Pinned threads by number: one a core (ST), and on the same number of CPUs two a core (MT)."""
    first, mates = [core[0].cpu for core in cores], [cpu.cpu for core in cores for cpu in core]
    has_smt = len(mates) > len(first)
    all_of = {len(first), len(mates)}
    spared = {count - _SPARED for count in all_of if count > _SPARED}
    powers = {2**power for power in range(len(mates).bit_length())}
    counts = sorted({*powers, *_SCALING_ALWAYS, *all_of, *spared, *requested})
    for count in counts:
        yield _threads(f"TP-ST{count}", first, count, f"there are {len(first)} cores")
    lacking = f"there are {len(mates)} CPUs" if has_smt else "each core runs one thread"
    for count in counts:
        if count > 1:
            yield _threads(f"TP-MT{count}", mates if has_smt else [], count, lacking)


def _threads(name: str, places: list[int], count: int, otherwise: str) -> Configuration:
    if count > len(places):
        return _missing(name, "threads", "TP", otherwise)
    return Configuration(name, "threads", "TP", tuple(places[:count]), (), count)


def _nodes(cores: list[list[Cpu]]) -> Iterator[Configuration]:
    """Pin as many threads, one a core: close and spread over the cores, on one NUMA node and
    on two (Cui et al. 2023, figures 6 and 7).
    """
    yield from _apart([core[0].cpu for core in cores])
    by_node: dict[int, list[Cpu]] = {}
    for core in cores:
        by_node.setdefault(core[0].numa, []).append(core[0])
    nodes = list(by_node.values())
    far = next((node for node in nodes if node[0].package != nodes[0][0].package), [])
    count = 2 * (min(len(nodes[0]), 2 * len(far)) // 2)
    if reason := _no_two_nodes(len(nodes), bool(far), count):
        for name in ("TP-one-node", "TP-two-nodes"):
            yield _missing(name, "nodes", "TP", reason)
        return
    near = tuple(cpu.cpu for cpu in nodes[0][:count])
    across = (*near[: count // 2], *(cpu.cpu for cpu in far[: count // 2]))
    yield Configuration("TP-one-node", "nodes", "TP", near, (), count)
    yield Configuration("TP-two-nodes", "nodes", "TP", across, (), count)


def _no_two_nodes(nodes: int, two_sockets: bool, threads: int) -> str:
    """Why threads on one NUMA node and on two cannot be compared; "" if they can."""
    if nodes < 2:
        return "there is one NUMA node"
    if not two_sockets:
        return f"the {nodes} NUMA nodes are on one socket; the paper's two are on two sockets"
    return "a NUMA node has one core" if threads < 2 else ""


def _apart(places: list[int]) -> Iterator[Configuration]:
    """Half as many threads as cores, on the first of them and on every second."""
    count = len(places) // 2
    reason = f"{len(places)} cores: a thread for every second is {count}"
    for name, chosen in (("close", places[:count]), ("spread", places[: 2 * count : 2])):
        if count < 2:
            yield _missing(f"TP-{name}", "nodes", "TP", reason)
        else:
            yield Configuration(f"TP-{name}", "nodes", "TP", tuple(chosen), (), count)


def _missing(name: str, family: str, base: str, reason: str) -> Configuration:
    return Configuration(name, family, base, (), (), 0, reason)
