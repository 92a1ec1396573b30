"""Findings of papers, judged by our runs: supported here, contradicted here, or not to be seen
here.

Owns the rule, which looks at nothing but an interval, and the comparison that each finding stands
for.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..statistics import holm
from ..statistics.robust import trimmed_interval
from .design import PRINTED_MODELS

SUPPORTED = "supported here"
CONTRADICTED = "contradicted here"
UNSEEN = "can't be seen on this machine"
# a change below this share counts as none, where a finding says that something does not help
MARGIN = 0.05
FEWEST = 6  # pairs of runs; of fewer the interval says next to nothing
PERSSON = "Persson et al. 2025, sec. "
CUI = "Cui et al. 2023, sec. "
EFFECT_COLUMNS = ("effect_percent", "low_percent", "high_percent", "adjusted_percent")
TRIMMED_COLUMNS = ("trimmed_percent", "trimmed_low_percent", "trimmed_high_percent")


@dataclass(frozen=True)
class Finding:
    """What a paper found, as a comparison that can be made here.

    Parameters
    ----------
    claim, source
        In a few words; paper and section.
    direction
        "below" (the first is less than the second), "above", or "no gain" (not less by 5 % or
        more).
    effects
        Logarithms of the ratio first / second, a pair of runs each.
    unseen
        Why it cannot be compared here at all; empty if it can.
    steal
        By how much more the hypervisor took of the first than of the second, for each effect (s),
        where that is known.
    """

    claim: str
    source: str
    direction: str
    effects: np.ndarray
    unseen: str = ""
    steal: np.ndarray | None = None


def interval_verdict(direction: str, low: float, high: float) -> str:
    """What an interval of log ratios says of a finding.

    Below: supported if the whole interval is below 0, contradicted if it is above. Above: the other
    way round. No gain: contradicted if the whole interval is below 0, supported if it excludes a
    gain of 5 % or more, in this order. In all other cases the interval holds both answers, and
    nothing can be seen.

    Parameters
    ----------
    direction
        As of `Finding`.
    low, high
        Of the interval of log ratios.
    """
    if direction == "no gain":
        return CONTRADICTED if high < 0 else SUPPORTED if low > np.log(1 - MARGIN) else UNSEEN
    low, high = (low, high) if direction == "below" else (-high, -low)
    return SUPPORTED if high < 0 else CONTRADICTED if low > 0 else UNSEEN


def findings_table(findings: Sequence[Finding]) -> pd.DataFrame:
    """Each finding with what our runs say of it.

    Student's interval and test of the mean log ratio, over pairs of runs of the same round; p is
    adjusted for the number of findings (Holm). Pairs of one round share what disturbed the machine
    in it, and pairs of several programs their programs: the interval holds for these programs, not
    for all.

    Parameters
    ----------
    findings
        As the study makes them.

    Returns
    -------
    One row a finding: `finding`, `source`, `verdict`, `effect_percent` with its 95 % interval
    (`low_percent`, `high_percent`), `adjusted_percent`, `trimmed_percent` with its interval
    (`trimmed_low_percent`, `trimmed_high_percent`), `trimmed_verdict`, `p_value`, `p_holm`,
    `pairs`, `why`. `adjusted_percent` is the effect where the hypervisor took as much of both (a
    straight line through the effects by the difference in stolen time); `trimmed_percent` that of
    the trimmed mean of the log ratios, and `trimmed_verdict` what its interval says by the same
    rule. The verdict is by the mean.
    """
    table = pd.DataFrame([judge(finding) for finding in findings])
    tested = table["p_value"].notna()
    table["p_holm"] = np.nan
    if tested.any():
        table.loc[tested, "p_holm"] = holm(table.loc[tested, "p_value"])
    columns = ["finding", "source", "verdict", *EFFECT_COLUMNS, *TRIMMED_COLUMNS]
    return table[[*columns, "trimmed_verdict", "p_value", "p_holm", "pairs", "why"]]


def judge(finding: Finding) -> dict[str, object]:
    """One row of `findings_table`, without `p_holm`."""
    effects, steal = finding.effects, finding.steal
    row: dict[str, object] = {
        "finding": finding.claim,
        "source": finding.source,
        "verdict": UNSEEN,
        **dict.fromkeys((*EFFECT_COLUMNS, *TRIMMED_COLUMNS), np.nan),
        "trimmed_verdict": UNSEEN,
        "p_value": np.nan,
        "pairs": len(effects),
        "why": finding.unseen,
    }
    if finding.unseen:
        return row
    if len(effects) < FEWEST or not np.ptp(effects) > 0:
        few = f"{len(effects)} pairs of runs; at least {FEWEST} that differ are needed"
        return row | {"why": few}
    effect, p_value = mean_effect(effects, steal)
    verdict = interval_verdict(finding.direction, effect.low, effect.high)
    why = "the interval holds both answers" if verdict == UNSEEN else ""
    row |= _trimmed(finding)
    return row | effect.percent() | {"verdict": verdict, "p_value": p_value, "why": why}


def _trimmed(finding: Finding) -> dict[str, object]:
    """Effect and verdict by the trimmed mean of the log ratios."""
    found = trimmed_interval(finding.effects)
    percent = {name: 100 * np.expm1(log) for name, log in zip(TRIMMED_COLUMNS, found[:3])}
    verdict = interval_verdict(finding.direction, found.low, found.high)
    return percent | {"trimmed_verdict": verdict}


@dataclass(frozen=True)
class Effect:
    """A mean log ratio with its 95 % interval, and what it is at equal stolen time."""

    mean: float
    low: float
    high: float
    adjusted: float

    def percent(self) -> dict[str, object]:
        """The four as changes in per cent, by their columns."""
        logs = (self.mean, self.low, self.high, self.adjusted)
        return {name: 100 * np.expm1(log) for name, log in zip(EFFECT_COLUMNS, logs)}


def mean_effect(effects: np.ndarray, steal: np.ndarray | None) -> tuple[Effect, float]:
    """The mean of log ratios with Student's interval, and the p-value of its test against 0.

    Parameters
    ----------
    effects
        At least two that differ.
    steal
        The difference in stolen time (s) of each; None: not known.
    """
    from statsmodels.stats.weightstats import DescrStatsW

    sample = DescrStatsW(effects)
    low, high = sample.tconfint_mean()
    adjusted = np.nan if steal is None else at_equal_steal(effects, steal)
    return Effect(sample.mean, low, high, adjusted), sample.ttest_mean()[1]


def at_equal_steal(effects: np.ndarray, steal: np.ndarray) -> float:
    """The intercept of a straight line through the effects by the difference in stolen time; their
    mean where that does not vary.
    """
    if not np.ptp(steal) > 0:
        return float(effects.mean())
    return float(np.polyfit(steal, effects, 1)[1])


def finding_sentences(table: pd.DataFrame, models: Sequence[str]) -> list[str]:
    """How many findings are supported, contradicted or not to be seen, and each that is seen.

    Parameters
    ----------
    table
        Of `findings_table`.
    models
        Of the programs that were run: omp, sycl.
    """
    counts = table["verdict"].value_counts()
    numbers = ", ".join(
        f"**{counts[name]} {name}**" for name in (SUPPORTED, CONTRADICTED, UNSEEN) if name in counts
    )
    seen = [
        f"{row['verdict'].capitalize()}: {row['finding']}, {row['effect_percent']:+.1f} %"
        f" ({row['low_percent']:+.1f} to {row['high_percent']:+.1f}, n = {row['pairs']} pairs)."
        for row in table.to_dict("records")
        if row["verdict"] != UNSEEN
    ]
    names = {"omp": "OpenMP", "sycl": "SYCL"}
    programs = " and ".join(names[model] for model in models if model in PRINTED_MODELS)
    first = f"Of {len(table)} findings judged with {programs} programs: {numbers}."
    return [first, *seen, *_other_verdicts(table)]


def _other_verdicts(table: pd.DataFrame) -> list[str]:
    """The findings that a trimmed mean judges differently."""
    others = table[table["trimmed_verdict"] != table["verdict"]]
    return [
        f"Judged by the trimmed mean it is otherwise: {row['finding']}: {row['trimmed_verdict']},"
        f" {row['trimmed_percent']:+.1f} % ({row['trimmed_low_percent']:+.1f} to"
        f" {row['trimmed_high_percent']:+.1f}, n = {row['pairs']} pairs)."
        for row in others.to_dict("records")
    ]
