"""The findings of Cui et al. 2023, section 5, as comparisons of our runs."""

import numpy as np
import pandas as pd

from ..design import Design
from ..findings import CUI, PERSSON, Finding
from .panels import smt_pair
from .tables import KEYS


def runtime_findings(statistics: pd.DataFrame, design: Design) -> list[Finding]:
    """The findings of Cui et al. 2023, section 5, and the motivation of Persson et al. 2025,
    section 3.

    Variability is the coefficient of variation of the repetitions of a run, as in figure 5; what is
    compared are runs of the same round, benchmark and compiler.

    Parameters
    ----------
    statistics
        Of `run_statistics`.
    design
        What was measured, and what this machine lacks.
    """
    spread, time = (_logs(statistics, column) for column in ("cv", "mean_us"))
    schedules = time[time.index.get_level_values("benchmark") == "dynamic_1"]
    one_thread, two_threads, no_pair = _smt_pair(design)
    two_nodes = ("TP-two-nodes", "TP-one-node")
    smt = f"{one_thread or 'ST'} / {two_threads or 'MT'}"
    # claim, section, direction, logs, first and second configuration
    comparisons = [
        ("more threads vary more (CV, TP / one thread)", "5.1", "above", spread, "TP", "TP-ST1"),
        (
            "a schedule costs more with more threads (time of dynamic_1, TP / one thread)",
            "5.1",
            "above",
            schedules,
            "TP",
            "TP-ST1",
        ),
        ("pinned threads vary less (CV, TP / Rm)", "5.2", "below", spread, "TP", "Rm"),
        (
            "threads on two NUMA nodes vary more than on one (CV)",
            "5.4",
            "above",
            spread,
            *two_nodes,
        ),
    ]
    findings = [
        _finding(claim, CUI + section, direction, logs, (first, second), design)
        for claim, section, direction, logs, first, second in comparisons
    ]
    pair = _differences(spread, one_thread, two_threads)
    smt_claim = f"one thread a core is steadier than two (CV, {smt})"
    findings.insert(3, Finding(smt_claim, CUI + "5.3", "below", pair, no_pair))
    reserved = "with a core reserved for the system programs vary less (CV, RmHK / Rm)"
    return [
        *findings,
        _finding(reserved, PERSSON + "3", "below", spread, ("RmHK", "Rm"), design),
    ]


def _finding(
    claim: str,
    source: str,
    direction: str,
    logs: pd.Series,
    configs: tuple[str, str],
    design: Design,
) -> Finding:
    effects = _differences(logs, *configs)
    return Finding(claim, source, direction, effects, _unmeasured(design, *configs))


def _logs(statistics: pd.DataFrame, column: str) -> pd.Series:
    values = statistics.set_index([*KEYS, "round"])[column]
    return np.log(values.replace(0, np.nan)).dropna()


def _differences(logs: pd.Series, first: str, second: str) -> np.ndarray:
    table = logs.unstack("config")
    if not {first, second} <= set(table.columns):
        return np.empty(0)
    return (table[first] - table[second]).dropna().to_numpy()


def _unmeasured(design: Design, *names: str) -> str:
    """Why a comparison cannot be made: the machine lacks a configuration, or it was not
    measured.
    """
    listed = {configuration.name: configuration.missing for configuration in design.listed}
    for name in names:
        if name not in listed:
            return f"this machine has no {name}"
        if listed[name]:
            return listed[name]
        if name not in design.chosen:
            return f"{name} was not measured"
    return ""


def _smt_pair(design: Design) -> tuple[str, str, str]:
    """The measured configurations of most threads with one and with two threads a core; else why
    there are none.
    """
    pair = smt_pair(design)
    if pair:
        return *pair, ""
    has_smt = any(
        configuration.name.startswith("TP-MT") and not configuration.missing
        for configuration in design.listed
    )
    return "", "", "no such pair was measured" if has_smt else "each core runs one thread"
