"""Topology and kernel text: against the layout that a tree was written from, and against this
machine's own /proc.
"""

import os
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nbhelpers.machine import Cpu, topology
from nbhelpers.machine._read import boot_words, chosen, cpu_list, kernel_version, read
from nbhelpers.machine.cpus import core_kinds, frequency_limits, last_level_caches, smt_state

from ..trees import write_tree
from .conftest import cpu_files


@given(st.sets(st.integers(0, 300), min_size=1))
def test_a_list_of_cpus_is_read_in_any_of_its_forms(cpus):
    runs, ordered = [], sorted(cpus)
    for cpu in ordered:
        runs[-1].append(cpu) if runs and runs[-1][-1] + 1 == cpu else runs.append([cpu])
    short = ",".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)
    assert cpu_list(None) == cpu_list("\n") == ()
    assert cpu_list(short) == cpu_list(",".join(map(str, ordered))) == tuple(ordered)


def test_the_selected_word_is_found():
    assert chosen("always [madvise] never") == "madvise"
    assert chosen("none voluntary (full)") == "full"
    assert chosen("[local] global counter") == "local"
    assert chosen("32768\t60999\n") == "32768 60999"
    assert chosen("7 (expanded: 1408)") == "7 (expanded: 1408)"
    assert chosen("[a] [b]") == "[a] [b]"


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    data=st.data(), packages=st.integers(1, 3), cores=st.integers(1, 4), threads=st.integers(1, 4)
)
def test_any_numbering_of_any_machine_is_understood(
    tmp_path_factory, data, packages, cores, threads
):
    places = [
        (package, core * 3, package)
        for package in range(packages)
        for core in range(cores)
        for _ in range(threads)
    ]
    order = data.draw(st.permutations(range(len(places))))
    layout = {cpu * 2: places[place] for cpu, place in enumerate(order)}
    found = topology(write_tree(tmp_path_factory.mktemp("tree"), cpu_files(layout)))
    assert [cpu.cpu for cpu in found.cpus] == sorted(layout)
    assert (found.packages, found.cores, found.numa_nodes) == (packages, packages * cores, packages)
    for cpu in found.cpus:
        mates = {other for other, place in layout.items() if place == layout[cpu.cpu]}
        same_core = {other.cpu for other in found.cpus if other.core == cpu.core}
        assert {cpu.cpu, *cpu.siblings} == mates == same_core
        assert (cpu.package, cpu.numa) == layout[cpu.cpu][::2]


def test_this_machine_has_the_cpus_that_proc_stat_counts():
    counted = [int(number) for number in re.findall(r"^cpu(\d+)", read("/proc/stat"), re.MULTILINE)]
    assert [cpu.cpu for cpu in topology().cpus] == counted
    assert set(os.sched_getaffinity(0)) <= set(counted)


def test_a_kernel_without_topology_files_has_a_core_a_cpu(tmp_path):
    found = topology(write_tree(tmp_path, {"/sys/devices/system/cpu/online": "0-2"}))
    assert found.cpus == tuple(Cpu(cpu, cpu, 0, 0, ()) for cpu in range(3))
    assert len(topology(tmp_path / "empty").cpus) == 1


@pytest.mark.parametrize(
    "active, control, state",
    [("1", "on", "on"), ("0", "forceoff", "off"), ("0", "notsupported", "absent")],
)
def test_smt_is_on_off_or_absent(tmp_path, active, control, state):
    smt = "/sys/devices/system/cpu/smt"
    files = {f"{smt}/active": active, f"{smt}/control": control}
    assert smt_state(write_tree(tmp_path / "said", files)) == state
    unsaid = cpu_files({0: (0, 0, 0), 1: (0, 0, 0)})
    assert smt_state(write_tree(tmp_path / "unsaid", unsaid)) == "on"


def test_the_command_line_ends_where_init_begins(server):
    words = boot_words(server)
    assert words["isolcpus"] == "domain,1-7" and words["quiet"] == "" and "nosmt" not in words
    assert kernel_version(server) == (6, 8)


def kinds_of(folder, files):
    return core_kinds(write_tree(folder, {"/sys/devices/system/cpu/online": "0-5"} | files))


def test_intels_kinds_of_core_are_those_of_its_counters(tmp_path):
    files = {"/sys/devices/cpu_core/cpus": "0-3", "/sys/devices/cpu_atom/cpus": "4-11"}
    assert kinds_of(tmp_path, files) == {"performance": (0, 1, 2, 3), "efficiency": (4, 5)}


def test_arms_kinds_of_core_are_their_capacities(tmp_path):
    name = "/sys/devices/system/cpu/cpu{}/cpu_capacity"
    capacities = (446, 446, 1024, 1024, 446, 871)
    files = {name.format(cpu): str(capacity) for cpu, capacity in enumerate(capacities)}
    assert list(kinds_of(tmp_path, files).items()) == [
        ("capacity 1024", (2, 3)),
        ("capacity 871", (5,)),
        ("capacity 446", (0, 1, 4)),
    ]


def test_cores_of_one_kind_and_of_an_unnamed_one_are_all_alike(tmp_path):
    only = {"/sys/devices/cpu_core/cpus": "0-5"}
    for number, files in enumerate(({}, only)):
        assert kinds_of(tmp_path / str(number), files) == {"all": tuple(range(6))}
    assert sum(map(len, core_kinds().values()))


def test_frequency_limits_are_listed_once(tmp_path, server):
    name = "/sys/devices/system/cpu/cpu{}/cpufreq/scaling_{}_freq"
    limits = {0: (800, 3900), 1: (800, 3900), 2: (800, 2000)}
    files = {
        name.format(cpu, end): str(1000 * megahertz)
        for cpu, both in limits.items()
        for end, megahertz in zip(("min", "max"), both)
    }
    root = write_tree(tmp_path, files | {"/sys/devices/system/cpu/online": "0-2"})
    assert frequency_limits(root) == "800000-2000000, 800000-3900000"
    assert frequency_limits(tmp_path / "empty") == ""


def dardel(root):
    """The caches of two 64-core EPYC 7742: 16 MB of L3 for each four cores, 512 MB together."""
    files = {"/sys/devices/system/cpu/online": "0-255"}
    for cpu in range(256):
        first = cpu % 128 // 4 * 4
        shared = f"{first}-{first + 3},{first + 128}-{first + 131}"
        mates = f"{cpu % 128},{cpu % 128 + 128}"
        caches = [(1, "Data", "32K", mates), (1, "Instruction", "32K", mates)]
        caches += [(2, "Unified", "512K", mates), (3, "Unified", "16384K", shared)]
        for index, (level, kind, size, cpus) in enumerate(caches):
            folder = f"/sys/devices/system/cpu/cpu{cpu}/cache/index{index}"
            files |= {f"{folder}/level": str(level), f"{folder}/type": kind}
            files |= {f"{folder}/size": size, f"{folder}/shared_cpu_list": cpus}
    return write_tree(root, files)


def test_each_last_level_cache_counts_once(tmp_path):
    root = dardel(tmp_path)
    assert last_level_caches(root=root) == 512 * 2**20
    assert last_level_caches([0, 1, 128, 5], root) == 2 * 16 * 2**20
    assert last_level_caches(root=tmp_path / "nothing") == 0
