"""The papers' findings weighed against our runs: supported here, contradicted here, or can't be
seen on this machine.

Owns the rule, which looks at nothing but an interval, and the comparison that each finding stands
for.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..statistics import holm
from .design import PRINTED_MODELS

SUPPORTED = "supported here"
CONTRADICTED = "contradicted here"
UNSEEN = "can't be seen on this machine"
# a change below this share counts as none, where a finding says that something does not help
MARGIN = 0.05
FEWEST = 6  # pairs of runs; of fewer the interval says next to nothing
PERSSON = "Persson et al. 2025, sec. "
CUI = "Cui et al. 2023, sec. "


@dataclass(frozen=True)
class Finding:
    """What a paper found, as a comparison that can be made here.

    `claim` in a few words; `source`; `direction`: "below" (the first is less than the second),
    "above", or "no gain" (not less by 5 % or more); `effects`: logarithms of the ratio first /
    second, a pair of runs each; `unseen`: why it can't be compared here at all, empty if it can;
    `steal`: by how much more the hypervisor took of the first than of the second, for each effect
    (s), where that is known.
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
    """
    if direction == "no gain":
        return CONTRADICTED if high < 0 else SUPPORTED if low > np.log(1 - MARGIN) else UNSEEN
    low, high = (low, high) if direction == "below" else (-high, -low)
    return SUPPORTED if high < 0 else CONTRADICTED if low > 0 else UNSEEN


def findings_table(findings: Sequence[Finding]) -> pd.DataFrame:
    """One row a finding: `finding`, `source`, `verdict`, `effect_percent` with its 95 % interval,
    `adjusted_percent`, `p_value`, `p_holm`, `pairs`, `why`.

    `adjusted_percent` is the effect where the hypervisor took as much of both (a straight line
    through the effects by the difference in steal).

    Student's interval and test of the mean log ratio, over pairs of runs of the same round; p
    adjusted for the number of findings (Holm). Pairs of one round share what disturbed the machine
    in it, and pairs of several programs their programs: the interval speaks of these programs, not
    of all.
    """
    table = pd.DataFrame([judged(finding) for finding in findings])
    tested = table["p_value"].notna()
    table["p_holm"] = np.nan
    if tested.any():
        table.loc[tested, "p_holm"] = holm(table.loc[tested, "p_value"])
    return table[
        [
            "finding",
            "source",
            "verdict",
            "effect_percent",
            "low_percent",
            "high_percent",
            "adjusted_percent",
            "p_value",
            "p_holm",
            "pairs",
            "why",
        ]
    ]


def judged(finding: Finding) -> dict:
    row = {
        "finding": finding.claim,
        "source": finding.source,
        "verdict": UNSEEN,
        "effect_percent": np.nan,
        "low_percent": np.nan,
        "high_percent": np.nan,
        "adjusted_percent": np.nan,
        "p_value": np.nan,
        "pairs": len(finding.effects),
        "why": finding.unseen,
    }
    if finding.unseen:
        return row
    if len(finding.effects) < FEWEST or not np.ptp(finding.effects) > 0:
        return row | {
            "why": f"{len(finding.effects)} pairs of runs; at least {FEWEST} that differ are needed"
        }
    from statsmodels.stats.weightstats import DescrStatsW

    sample = DescrStatsW(finding.effects)
    low, high = sample.tconfint_mean()
    said = interval_verdict(finding.direction, low, high)
    adjusted = np.nan if finding.steal is None else at_equal_steal(finding.effects, finding.steal)
    percent = {
        name: 100 * np.expm1(value)
        for name, value in (
            ("effect_percent", sample.mean),
            ("low_percent", low),
            ("high_percent", high),
            ("adjusted_percent", adjusted),
        )
    }
    return (
        row
        | percent
        | {
            "verdict": said,
            "p_value": sample.ttest_mean()[1],
            "why": "the interval holds both answers" if said == UNSEEN else "",
        }
    )


def at_equal_steal(effects: np.ndarray, steal: np.ndarray) -> float:
    """The intercept of a straight line through the effects by the difference in steal; their mean
    where that does not vary.
    """
    if not np.ptp(steal) > 0:
        return float(effects.mean())
    return float(np.polyfit(steal, effects, 1)[1])


def finding_sentences(table: pd.DataFrame, models: Sequence[str]) -> list[str]:
    """What was weighed, in sentences."""
    counts = table["verdict"].value_counts()
    told = ", ".join(
        f"**{counts[name]} {name}**" for name in (SUPPORTED, CONTRADICTED, UNSEEN) if name in counts
    )
    seen = [
        f"{row.verdict.capitalize()}: {row.finding}, {row.effect_percent:+.1f} %"
        f" ({row.low_percent:+.1f} to {row.high_percent:+.1f})."
        for row in table.itertuples()
        if row.verdict != UNSEEN
    ]
    named = " and ".join(
        {"omp": "OpenMP", "sycl": "SYCL"}[model] for model in models if model in PRINTED_MODELS
    )
    return [f"Of {len(table)} findings weighed with {named} programs: {told}.", *seen]
