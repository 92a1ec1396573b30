"""The findings of Cui et al. 2023, section 5, as comparisons of our runs."""

import numpy as np
import pandas as pd

from ..design import Design
from ..findings import CUI, PERSSON, Finding
from .tables import KEYS


def runtime_findings(statistics: pd.DataFrame, design: Design) -> list[Finding]:
    """The findings of Cui et al. 2023, section 5, and the motivation of Persson et al. 2025,
    section 3.

    Variability is the coefficient of variation of the repetitions of a run, as in figure 5; what is
    compared are runs of the same round, benchmark and compiler.
    """
    spread, time = (
        np.log(statistics.set_index([*KEYS, "round"])[name].replace(0, np.nan)).dropna()
        for name in ("cv", "mean_us")
    )
    sched = time[time.index.get_level_values("benchmark") == "dynamic_1"]
    few, many = "TP-ST1", "TP"
    st, mt, no_pair = _smt_pair(design)
    return [
        Finding(
            "more threads vary more (CV, TP / one thread)",
            CUI + "5.1",
            "above",
            _pairs(spread, many, few),
            _lacking(design, many, few),
        ),
        Finding(
            "a schedule costs more with more threads (time of dynamic_1, TP / one thread)",
            CUI + "5.1",
            "above",
            _pairs(sched, many, few),
            _lacking(design, many, few),
        ),
        Finding(
            "pinned threads vary less (CV, TP / Rm)",
            CUI + "5.2",
            "below",
            _pairs(spread, "TP", "Rm"),
            _lacking(design, "TP", "Rm"),
        ),
        Finding(
            f"one thread a core is steadier than two (CV, {st or 'ST'} / {mt or 'MT'})",
            CUI + "5.3",
            "below",
            _pairs(spread, st, mt),
            no_pair,
        ),
        Finding(
            "threads on two NUMA nodes vary more than on one (CV)",
            CUI + "5.4",
            "above",
            _pairs(spread, "TP-two-nodes", "TP-one-node"),
            _lacking(design, "TP-two-nodes", "TP-one-node"),
        ),
        Finding(
            "with a core reserved for the system programs vary less (CV, RmHK / Rm)",
            PERSSON + "3",
            "below",
            _pairs(spread, "RmHK", "Rm"),
            _lacking(design, "RmHK", "Rm"),
        ),
    ]


def _pairs(logs: pd.Series, first: str, second: str) -> np.ndarray:
    table = logs.unstack("config")
    return (
        (table[first] - table[second]).dropna().to_numpy()
        if {first, second} <= set(table.columns)
        else np.empty(0)
    )


def _lacking(design: Design, *names: str) -> str:
    """Why a comparison can't be made: the machine lacks a configuration, or it was not measured."""
    for name in names:
        known = next((one for one in design.listed if one.name == name), None)
        if known is None or known.missing:
            return known.missing if known else f"this machine has no {name}"
        if name not in design.chosen:
            return f"{name} was not measured"
    return ""


def _smt_pair(design: Design) -> tuple[str, str, str]:
    """The measured configurations with the most threads of which there is one with one thread a
    core and one with two.
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
        return f"TP-ST{counts[0]}", f"TP-MT{counts[0]}", ""
    has_smt = any(one.name.startswith("TP-MT") and not one.missing for one in design.listed)
    return "", "", "no such pair was measured" if has_smt else "each core runs one thread"
