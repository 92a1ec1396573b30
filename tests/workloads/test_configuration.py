"""Configurations on recorded machines: counted by hand from the papers' definitions, not by the
arithmetic of the code.
"""

import pytest

from nbhelpers.errors import InputError
from nbhelpers.machine import Cpu, Topology
from nbhelpers.workloads import (
    Workload,
    configurations,
    environment_table,
    existing_configurations,
    nbody,
    program,
)
from nbhelpers.workloads.configuration import configuration_table


def machine(packages: int, cores: int, threads: int, nodes: int = 1) -> Topology:
    """CPUs numbered as x86 servers do: first one of each core, then the second."""
    total = packages * cores
    return Topology(
        tuple(
            Cpu(
                core + total * thread,
                core,
                core // cores,
                core * packages * nodes // total,
                tuple(core + total * other for other in range(threads) if other != thread),
            )
            for thread in range(threads)
            for core in range(total)
        )
    )


TWO_CORES = machine(1, 2, 1)
EPYC = machine(2, 64, 2, nodes=4)  # Dardel in Cui et al. 2023
VERA = machine(2, 16, 1)
# Four performance cores with two threads each, then eight efficiency cores with one: a hybrid
# laptop.
HYBRID = Topology(
    tuple(
        [Cpu(cpu, cpu // 2, 0, 0, (cpu ^ 1,)) for cpu in range(8)]
        + [Cpu(cpu, cpu - 4, 0, 0, ()) for cpu in range(8, 16)]
    )
)


def named(topology: Topology) -> dict:
    return {configuration.name: configuration for configuration in configurations(topology)}


def test_two_cores_have_one_core_of_housekeeping_and_say_what_is_missing():
    found = named(TWO_CORES)
    assert (found["Rm"].cpus, found["RmHK"].cpus, found["RmHK"].house) == ((0, 1), (1,), (0,))
    assert "the same as TPHK" in found["TPHK2"].missing
    assert "one thread" in found["Rm-SMT"].missing
    assert "one NUMA node" in found["TP-two-nodes"].missing
    existing = {one.name for one in existing_configurations(tuple(found.values()))}
    assert existing == {"Rm", "RmHK", "TP", "TPHK", "TP-ST1", "TP-ST2"}


def test_the_papers_server_keeps_16_and_32_of_its_128_cores():
    found, names = named(EPYC), ("Rm", "RmHK", "RmHK2", "Rm-SMT", "RmHK-SMT", "RmHK2-SMT")
    assert [found[name].threads for name in names] == [128, 112, 96, 256, 224, 192]
    assert set(found["TPHK"].house) == {*range(16), *range(128, 144)}
    assert not set(found["TPHK"].cpus) & set(found["TPHK"].house)
    assert all(cpu < 128 for cpu in found["TP"].cpus)
    missing = [one.name for one in found.values() if one.missing]
    assert all(name.startswith("TP-ST") for name in missing)
    assert "128 cores" in found["TP-ST256"].missing
    few = {one.name: one for one in configurations(EPYC, usable=range(4))}
    assert few["Rm"].cpus == (0, 1, 2, 3) and few["Rm-SMT"].missing


def test_one_or_two_threads_a_core_are_the_same_number_of_threads():
    found = named(EPYC)
    assert found["TP-ST8"].cpus == tuple(range(8))
    assert set(found["TP-MT8"].cpus) == {0, 1, 2, 3, 128, 129, 130, 131}


def test_the_papers_numbers_of_threads_exist_and_what_cannot_be_says_why():
    """Table 2 of Cui et al. 2023: 4 and 254 threads on Dardel, 4 and 30 on Vera."""
    found, vera = named(EPYC), named(VERA)
    assert set(range(256)) - set(found["TP-MT254"].cpus) == {127, 255}, "the last core is spared"
    assert vera["TP-ST30"].cpus == tuple(range(30)) and vera["TP-ST4"].threads == 4
    for name in ("TP-ST4", "TP-ST30", "TP-MT30", "TP-ST126", "TP-MT4"):
        assert found[name].threads == int(name[5:]) and not found[name].missing
    assert found["TP-ST254"].missing == "there are 128 cores"
    assert vera["TP-ST254"].missing == "there are 32 cores"
    assert vera["TP-MT254"].missing == "each core runs one thread"


def test_a_number_of_threads_that_is_requested_is_listed_on_any_machine():
    listed = configurations(EPYC, names=["TP-ST12", "TP-MT300", "Rm"])
    found = {one.name: one for one in listed}
    assert found["TP-ST12"].cpus == tuple(range(12))
    assert found["TP-MT300"].missing == "there are 256 CPUs"
    assert len(found) == len(listed) == len(configurations(EPYC)) + 4


@pytest.mark.parametrize("server", [EPYC, VERA], ids=["Dardel", "Vera"])
def test_two_nodes_are_of_two_sockets_and_share_what_one_node_has_alone(server):
    """Vera, where the paper compares them, has a node a socket; Dardel has four."""
    found = named(server)
    one, two = found["TP-one-node"], found["TP-two-nodes"]
    node = {cpu.cpu: cpu.numa for cpu in server.cpus}
    socket = {cpu.cpu: cpu.package for cpu in server.cpus}
    assert one.threads == two.threads == 16
    assert {node[cpu] for cpu in one.cpus} == {0} and len({node[cpu] for cpu in two.cpus}) == 2
    assert [socket[cpu] for cpu in two.cpus] == [0] * 8 + [1] * 8
    assert len({cpu % 128 for cpu in two.cpus}) == 16, "a core each"


def test_nodes_of_one_socket_are_not_the_papers():
    assert "on one socket" in named(machine(1, 16, 2, nodes=4))["TP-two-nodes"].missing


def test_one_core_has_nothing_to_keep_house_with():
    found = named(machine(1, 1, 1))
    assert "there is 1" in found["RmHK"].missing and not found["TP"].missing
    with pytest.raises(InputError, match="does not exist"):
        found["RmHK"].of(nbody(64, 1))


def test_pinned_openmp_threads_have_a_place_each_and_roaming_ones_none():
    pinned = named(EPYC)["TP-MT4"].of(nbody(64, 1))
    places = {"OMP_PROC_BIND": "close", "OMP_PLACES": "{0},{128},{1},{129}"}
    assert dict(pinned.env) == places | {"OMP_NUM_THREADS": "4"}
    back = named(EPYC)["Rm"].of(pinned)
    assert (dict(back.env)["OMP_PROC_BIND"], back.config) == ("false", "Rm")
    assert "OMP_PLACES" not in dict(back.env)
    sycl = dict(named(EPYC)["TP-ST4"].of(nbody(64, 1, model="sycl")).env)
    assert (sycl["NOISEBOOK_PLACES"], sycl["DPCPP_CPU_NUM_CUS"]) == ("0:1:2:3", "4")


def test_half_the_cores_are_close_or_every_second_one():
    found = named(EPYC)
    assert found["TP-close"].cpus == tuple(range(64))
    assert found["TP-spread"].cpus == tuple(range(0, 128, 2))
    assert named(HYBRID)["TP-spread"].cpus == (0, 4, 8, 10, 12, 14)
    assert "2 cores" in named(TWO_CORES)["TP-spread"].missing


# Rank 0 first, as each launcher's documentation has it: Open MPI 4 (MCA), Open MPI 5 (PRRTE),
# MPICH's Hydra, Intel MPI.
PINNED = {
    "OMPI_MCA_hwloc_base_binding_policy": "cpu-list:ordered",
    "OMPI_MCA_hwloc_base_cpu_list": "0,128,1,129",
    "PRTE_MCA_hwloc_default_binding_policy": "hwthread",
    "PRTE_MCA_hwloc_default_cpu_list": "0,128,1,129",
    "HYDRA_BINDING": "user:0,128,1,129",
    "I_MPI_PIN": "1",
    "I_MPI_PIN_PROCESSOR_LIST": "0,128,1,129",
}
ROAMING = {
    "OMPI_MCA_hwloc_base_binding_policy": "none",
    "PRTE_MCA_hwloc_default_binding_policy": "none",
    "HYDRA_BINDING": "none",
    "I_MPI_PIN": "0",
}


def test_the_ranks_of_mpi_are_pinned_or_set_free_by_the_launchers_variables():
    ranks = program("sleep 0", model="mpi", env={"MINE": "1"})
    pinned = named(EPYC)["TP-MT4"].of(ranks)
    assert dict(pinned.env) == PINNED | {"MINE": "1"} and pinned.cpus == (0, 1, 128, 129)
    assert dict(named(EPYC)["Rm"].of(pinned).env) == ROAMING | {"MINE": "1"}
    row = environment_table(configurations(EPYC)).set_index("name").loc["TP-MT4"]
    assert row["mpich"] == "HYDRA_BINDING=user:0,128,1,129"
    assert row["intel_mpi"] == "I_MPI_PIN=1 I_MPI_PIN_PROCESSOR_LIST=0,128,1,129"
    assert row["openmp"] == "OMP_NUM_THREADS=4 OMP_PLACES={0},{128},{1},{129} OMP_PROC_BIND=close"


def test_the_table_lists_all_and_unknown_names_are_refused():
    listed = configurations(TWO_CORES)
    table = configuration_table(listed).set_index("name")
    assert table.loc["TPHK", "cpus"] == "1"
    assert table.loc[["TPHK", "TPHK2"], "exists"].tolist() == [True, False]
    with pytest.raises(InputError, match="no configuration 'TPX'"):
        existing_configurations(listed, ["TPX"])
    assert [one.name for one in existing_configurations(listed, ["TPHK2", "Rm"])] == ["Rm"]


def test_a_limit_of_threads_follows_the_placement():
    """Programs that ask for more threads than there are CPUs are held by it."""
    limited = Workload("w", "omp", ("true",), env={"OMP_THREAD_LIMIT": "64"})
    for one in existing_configurations(configurations(TWO_CORES)):
        assert dict(one.of(limited).env)["OMP_THREAD_LIMIT"] == str(one.threads)
