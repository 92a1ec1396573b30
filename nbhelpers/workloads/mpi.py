"""The variables by which MPI's launchers place the ranks of a program in a configuration: Open MPI,
MPICH (Hydra) and Intel MPI.

Owns their names and forms, from the three's documentation. Each library ignores the others'
variables, so a program gets them all.
"""

from collections.abc import Mapping, Sequence

LAUNCHERS = ("open_mpi", "mpich", "intel_mpi")


def placed_env(base: str, cpus: Sequence[int]) -> dict[str, str]:
    """All variables of a placement; see `launcher_env`."""
    return {
        name: value
        for launcher in LAUNCHERS
        for name, value in launcher_env(launcher, base, cpus).items()
    }


def launcher_env(launcher: str, base: str, cpus: Sequence[int]) -> dict[str, str]:
    """The variables of one launcher: Rm: ranks may run on all CPUs that the launcher may use; TP:
    each rank on one of the CPUs.

    Parameters
    ----------
    launcher
        One of `LAUNCHERS`.
    base
        Rm or TP.
    cpus
        CPU numbers, in the order of the ranks.

    Notes
    -----
    Tried with Open MPI 5.0 and MPICH 5.0; Open MPI 4 and Intel MPI by their documentation only.
    Open MPI 5 assigns the CPUs to the ranks in the order of the machine, and counts CPUs by place,
    core after core. It takes a list in another order on the command line only (--map-by
    pe-list=…:ordered). Where ranks are is therefore to be read from the running ranks
    (`nbhelpers.measurement.placement.running_threads`).
    """
    listed = ",".join(map(str, cpus))
    if launcher == "mpich":
        return {"HYDRA_BINDING": "none" if base == "Rm" else f"user:{listed}"}
    if launcher == "intel_mpi":
        return (
            {"I_MPI_PIN": "0"}
            if base == "Rm"
            else {"I_MPI_PIN": "1", "I_MPI_PIN_PROCESSOR_LIST": listed}
        )
    if base == "Rm":
        return {
            "PRTE_MCA_hwloc_default_binding_policy": "none",
            "OMPI_MCA_hwloc_base_binding_policy": "none",
        }
    return {
        "PRTE_MCA_hwloc_default_cpu_list": listed,
        "PRTE_MCA_hwloc_default_binding_policy": "hwthread",
        "OMPI_MCA_hwloc_base_cpu_list": listed,
        "OMPI_MCA_hwloc_base_binding_policy": "cpu-list:ordered",
    }


def without_placement(env: Mapping[str, str]) -> dict[str, str]:
    """The environment less what an earlier placement set."""
    placing = {*placed_env("Rm", ()), *placed_env("TP", (0,))}
    return {name: value for name, value in env.items() if name not in placing}
