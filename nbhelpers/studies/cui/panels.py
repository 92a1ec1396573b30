"""The data of the figures of Cui et al. 2023, and of Persson et al. 2025, section 3.

Pure: repetitions and their statistics in, tables out.
"""

from collections.abc import Mapping, Sequence

import pandas as pd

from ..design import Design

STREAM_KERNELS = ("copy", "mul", "add", "triad", "dot")
# of configurations of as many threads: a thread a core first, two a core last
_RANK = {"TP-S": 0, "TP": 1, "TP-M": 2}


def of_compiler(table: pd.DataFrame, compiler: str) -> pd.DataFrame:
    """The rows of one compiler."""
    return table[table["compiler"] == compiler]


def of_configurations(table: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """The rows of some configurations."""
    return table[table["config"].isin(names)]


def of_benchmarks(table: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """The rows of some operations."""
    return table[table["benchmark"].isin(names)]


def stream_rows(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of BabelStream's kernels."""
    return of_benchmarks(table, STREAM_KERNELS)


def construct_rows(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of syncbench's constructs; a schedule's name has its chunk size: ``dynamic_1``."""
    schedules = table["benchmark"].str.contains("_")
    return table[~table["benchmark"].isin(STREAM_KERNELS) & ~schedules]


def thread_scaling(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of pinned threads, of each number of threads those of one configuration: a thread a
    core as long as there are cores (figures 1 to 3).

    Parameters
    ----------
    table
        `config` and `threads`, of `run_statistics` or `repetitions`, of one compiler.
    """
    pinned = table[table["config"].str.fullmatch(r"TP(-[SM]T\d+)?")]
    configs = pinned[["threads", "config"]].drop_duplicates()
    first = (
        configs.assign(rank=configs["config"].str[:4].map(_RANK))
        .sort_values(["threads", "rank", "config"])
        .drop_duplicates("threads")
    )
    return pinned[pinned["config"].isin(first["config"])].sort_values(
        "threads", kind="stable", ignore_index=True
    )


def smt_pair(design: Design) -> tuple[str, str] | None:
    """The measured configurations of most threads of which there is one with a thread a core and
    one with two.
    """
    numbers = [
        int(name.removeprefix("TP-MT"))
        for name in design.chosen
        if name.startswith("TP-MT") and name.replace("MT", "ST") in design.chosen
    ]
    return (f"TP-ST{max(numbers)}", f"TP-MT{max(numbers)}") if numbers else None


def smt_sides(design: Design) -> dict[str, str]:
    """The two rows of figure 5, a thread a core and two: configuration -> why it is not there ("":
    it is).

    Parameters
    ----------
    design
        Of `runtime_design`.
    """
    pair = smt_pair(design)
    if pair:
        return dict.fromkeys(pair, "")
    reasons = [
        configuration.missing
        for configuration in design.listed
        if configuration.name.startswith("TP-MT")
    ]
    return {
        "TP": "" if "TP" in design.chosen else "TP was not measured",
        "two threads a core": next(iter(reasons), "") or "no such pair was measured",
    }


def node_sides(design: Design) -> dict[str, str]:
    """The two rows of figures 6 and 7: threads of one NUMA node and of two, as `smt_sides`.

    Parameters
    ----------
    design
        Of `runtime_design`.
    """
    names = ("TP-one-node", "TP-two-nodes")
    if set(names) <= set(design.chosen):
        return dict.fromkeys(names, "")
    listed = {configuration.name: configuration.missing for configuration in design.listed}
    return {
        "TP": "" if "TP" in design.chosen else "TP was not measured",
        names[1]: listed.get(names[1], "") or "not measured",
    }


def reserved_sides(repeated: pd.DataFrame, cores: Mapping[str, int]) -> pd.DataFrame:
    """Repetitions of configurations without and with a core left to the system (Persson et al.
    2025, figures 1 and 2).

    Parameters
    ----------
    repeated
        Of `repetitions`.
    cores
        Configuration -> cores that it leaves free (`cores_left`).

    Returns
    -------
    The repetitions with `reserved` (bool).
    """
    left = repeated["config"].map(cores)
    return repeated[left.notna()].assign(reserved=left.dropna() > 0)


def cores_left(design: Design) -> dict[str, int]:
    """How many CPUs each measured configuration leaves to the system, on purpose or because it has
    fewer threads.

    Parameters
    ----------
    design
        Of `runtime_design`.
    """
    usable = max(
        (len(configuration.cpus) + len(configuration.house) for configuration in design.listed),
        default=0,
    )
    return {name: usable - len(design.configuration(name).cpus) for name in design.chosen}
