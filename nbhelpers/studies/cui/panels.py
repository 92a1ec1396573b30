"""What the figures of Cui et al. 2023 and of Persson et al. 2025, section 3, are drawn of: pure
functions of repetitions and their statistics.
"""

from collections.abc import Mapping, Sequence

import pandas as pd

from ..design import Design

STREAM_KERNELS = ("copy", "mul", "add", "triad", "dot")
_RANK = {
    "TP-S": 0,
    "TP": 1,
    "TP-M": 2,
}  # of configurations of as many threads: a thread a core first, two a core last


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


def smt_sides(design: Design) -> dict[str, str]:
    """The two rows of figure 5, a thread a core and two: configuration -> why it is not there ("":
    it is).
    """
    counts = sorted(
        (
            int(name[5:])
            for name in design.chosen
            if name.startswith("TP-MT") and f"TP-ST{name[5:]}" in design.chosen
        ),
        reverse=True,
    )
    if counts:
        return {f"TP-ST{counts[0]}": "", f"TP-MT{counts[0]}": ""}
    absent = (
        next((one.missing for one in design.listed if one.name.startswith("TP-MT")), "")
        or "no such pair was measured"
    )
    return {
        "TP": "" if "TP" in design.chosen else "TP was not measured",
        "two threads a core": absent,
    }


def node_sides(design: Design) -> dict[str, str]:
    """The two rows of figures 6 and 7: threads of one NUMA node and of two, as `smt_sides`."""
    names = ("TP-one-node", "TP-two-nodes")
    if set(names) <= set(design.chosen):
        return dict.fromkeys(names, "")
    listed = {one.name: one.missing for one in design.listed}
    return {
        "TP": "" if "TP" in design.chosen else "TP was not measured",
        names[1]: listed.get(names[1], "") or "not measured",
    }


def reserved_sides(repeated: pd.DataFrame, house: Mapping[str, int]) -> pd.DataFrame:
    """Repetitions of configurations without and with a core left to the system (Persson et al.
    2025, figures 1 and 2).

    Parameters
    ----------
    repeated
        Of `repetitions`.
    house
        Configuration -> cores that it leaves free (`cores_left`).

    Returns
    -------
    The repetitions with `reserved` (bool).
    """
    left = repeated["config"].map(house)
    return repeated[left.notna()].assign(reserved=left.dropna() > 0)


def cores_left(design: Design) -> dict[str, int]:
    """How many CPUs each measured configuration leaves to the system, on purpose or because it has
    fewer threads.
    """
    usable = max((len(one.cpus) + len(one.house) for one in design.listed), default=0)
    return {name: usable - len(design.configuration(name).cpus) for name in design.chosen}
