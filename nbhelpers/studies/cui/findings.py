"""The findings of Cui et al. 2023, section 5, as comparisons of our runs."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from ...statistics.claims import Claim, Evidence
from ...statistics.variation import variation_evidence
from ..design import Design
from ..dose import other_housekeeping
from ..findings import CUI, MARGIN, PERSSON, Finding
from .panels import smt_pair
from .tables import KEYS

_STRATA = ["benchmark", "compiler"]
_MORE_THREADS = ("TP", "TP-ST1")
_TWO_NODES = ("TP-two-nodes", "TP-one-node")
_WHY_NO_CV = "its table 2 has the means of runs, and no repetitions"


def runtime_findings(
    statistics: pd.DataFrame, design: Design, published: pd.DataFrame | None = None
) -> list[Finding]:
    """The findings of Cui et al. 2023, section 5, and the motivation of Persson et al. 2025,
    section 3.

    What the paper says of repetitions is judged by the coefficient of variation within a run (as in
    figure 5); what it says of runs by how much the means of runs vary. Compared are runs of the
    same round, benchmark and compiler; the unit is the round.

    Parameters
    ----------
    statistics
        Of `run_statistics`.
    design
        What was measured, and what this machine lacks.
    published
        The published table 2; None: it is not weighed.
    """
    compared = _Compared(statistics, design)
    one_thread, two_threads, no_pair = _smt_pair(design)
    smt = f"{one_thread or 'ST'} / {two_threads or 'MT'}"
    paper = _paper(published)
    return [
        *_of_threads(compared, paper),
        compared.between(
            _claim(
                "pinned threads vary less from run to run (means of runs, TP / Rm)", "below", "5.2"
            ),
            ("TP", "Rm"),
        ),
        compared.within(
            _claim(f"one thread a core is steadier than two (CV, {smt})", "below", "5.3"),
            (one_thread, two_threads),
            no_pair,
        ),
        compared.within(
            _claim("threads on two NUMA nodes vary more than on one (CV)", "above", "5.4"),
            _TWO_NODES,
        ),
        compared.within(
            _claim(
                "with a core reserved for the system programs vary less (CV, RmHK / Rm)",
                "below",
                "3",
                PERSSON,
            ),
            ("RmHK", "Rm"),
            other_housekeeping(design, "RmHK"),
            dose="12.5 % of the CPUs in the paper, 4 % on the A64FX of its section 3",
        ),
    ]


def _claim(text: str, direction: str, section: str, source: str = CUI) -> Claim:
    return Claim(text, direction, MARGIN, source + section)


def _of_threads(compared: "_Compared", paper: dict[str, Evidence]) -> list[Finding]:
    """Section 5.1: what more threads do, within a run, from run to run, and to the time."""
    claims = {
        "within": _claim("more threads vary more (CV, TP / one thread)", "above", "5.1"),
        "between": _claim(
            "more threads vary more from run to run (means of runs, TP / one thread)",
            "above",
            "5.1",
        ),
        "time": _claim(
            "a schedule costs more with more threads (time of dynamic_1, TP / one thread)",
            "above",
            "5.1",
        ),
    }
    dose = f"threads: {compared.threads(_MORE_THREADS)} here, 254 to 4 and 30 to 4 in the paper"
    return [
        compared.within(claims["within"], _MORE_THREADS, paper=paper["within"], dose=dose),
        compared.between(claims["between"], _MORE_THREADS, paper=paper["between"], dose=dose),
        compared.time(claims["time"], _MORE_THREADS, paper=paper["time"], dose=dose),
    ]


class _Compared:
    """Comparisons of two configurations, by what of the runs is compared."""

    def __init__(self, statistics: pd.DataFrame, design: Design):
        self._statistics, self._design = statistics, design

    def within(
        self, claim: Claim, configs: tuple[str, str], unmeasurable: str = "", **more: Any
    ) -> Finding:
        """How much repetitions vary within a run."""
        why = unmeasurable or _unmeasured(self._design, *configs)
        return _finding(claim, self._pairs("cv", configs), why, **more)

    def between(self, claim: Claim, configs: tuple[str, str], **more: Any) -> Finding:
        """How much the means of runs vary."""
        pairs = self._pairs("mean_us", configs)
        why = _unmeasured(self._design, *configs)
        return Finding(claim, variation_evidence(pairs, _STRATA, unmeasurable=why), **more)

    def time(self, claim: Claim, configs: tuple[str, str], **more: Any) -> Finding:
        """How long a loop of schedbench takes."""
        pairs = self._pairs("mean_us", configs)
        loops = pairs[pairs["benchmark"] == "dynamic_1"]
        return _finding(claim, loops, _unmeasured(self._design, *configs), **more)

    def _pairs(self, column: str, configs: tuple[str, str]) -> pd.DataFrame:
        """`first`, `second` of the same benchmark, compiler and round."""
        values = self._statistics.set_index([*KEYS, "round"])[column].unstack("config")
        values = values.reindex(columns=list(configs)).set_axis(["first", "second"], axis=1)
        pairs = values.where(values > 0).dropna().reset_index()
        return pairs

    def threads(self, configs: Sequence[str]) -> str:
        """How many threads two configurations have, such as "2 to 1"."""
        listed = {one.name: one.threads for one in self._design.listed}
        return " to ".join(str(listed.get(name, "?")) for name in configs)


def _finding(claim: Claim, pairs: pd.DataFrame, unmeasurable: str, **more: Any) -> Finding:
    """By the ratio of each pair."""
    logs = np.log(pairs["first"]) - np.log(pairs["second"])
    strata = pairs["benchmark"] + " " + pairs["compiler"]
    here = Evidence(logs.to_numpy(), pairs["round"].to_numpy(), strata.to_numpy(), unmeasurable)
    return Finding(claim, here, **more)


def _paper(published: pd.DataFrame | None) -> dict[str, Evidence]:
    """Table 2 as evidence: the means of ten runs with most and with fewest threads, two platforms.

    The runs of a platform are independent of each other: which of them make a pair is arbitrary.
    """
    no_repetitions = Evidence(unmeasurable=_WHY_NO_CV)
    if published is None:
        unread = Evidence(unmeasurable="the published table was not read")
        return dict.fromkeys(("within", "between", "time"), unread)
    threads = published.groupby("platform")["threads"]
    sides = [
        published[published["threads"] == extreme].set_index(["platform", "run"])["mean_us"]
        for extreme in (threads.transform("max"), threads.transform("min"))
    ]
    pairs = pd.concat(sides, axis=1, keys=["first", "second"], join="inner").reset_index()
    units = pairs["platform"] + " " + pairs["run"].astype(str)
    logs = np.log(pairs["first"] / pairs["second"]).to_numpy()
    between = variation_evidence(pairs.assign(unit=units), ["platform"], "unit")
    return {
        "within": no_repetitions,
        "between": Evidence(between.effects, between.units, between.strata, unit="runs"),
        "time": Evidence(logs, units, pairs["platform"], unit="runs"),
    }


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
