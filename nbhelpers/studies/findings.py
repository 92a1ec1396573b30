"""Findings of papers, judged by our runs, all of a page together: one of the five verdicts of
`statistics.claims`.

Owns the table of findings, and how far a treatment may be from the paper's.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from ..statistics.claims import (
    NOT_MEASURABLE,
    REPRODUCED,
    Claim,
    Estimate,
    Estimated,
    Evidence,
    Judgement,
    judge,
)
from ..statistics.robust import trimmed_count, trimmed_interval
from .design import Design

MARGIN = 0.05  # a change below this share counts as none, where a finding is about a gain
NOT_PRINTED = "the paper prints no numbers of it"
HOUSEKEEPING = 0.125  # of the CPUs: what HK leaves to the system in Persson et al. 2025
MOST = 2.0  # a dose by more than this factor above or below the paper's is another treatment


@dataclass(frozen=True, eq=False)
class Finding:
    """What a paper found, as a comparison that can be made here.

    Attributes
    ----------
    claim
        What the paper says.
    here
        Our runs.
    condition
        What must be so before the claim means anything, with our runs of it; judged together with
        all claims. None: nothing.
    unmet
        How it reads where the condition is not shown.
    paper
        The paper's own numbers.
    steal
        Seconds that the hypervisor took more of the first than of the second of each pair of
        `here`; None: not known.
    run_times
        Logarithms of the ratio of the run times themselves, where the claim is about ratios of
        ratios; None elsewhere.
    dose
        The treatment here and in the paper, where they differ but not too much.
    """

    claim: Claim
    here: Evidence
    condition: tuple[Claim, Evidence] | None = None
    unmet: str = ""
    paper: Evidence = Evidence(unmeasurable=NOT_PRINTED)
    steal: np.ndarray | None = None
    run_times: Evidence | None = None
    dose: str = ""


def findings_table(findings: Sequence[Finding]) -> pd.DataFrame:
    """Each finding of a page with what our runs say of it, and what the paper's own numbers say.

    All claims of a page and their conditions are judged together. The unit is the round: all pairs
    of a round count as one, whatever their program, model or trace; these weigh the same. The
    interval holds for these programs, not for all.

    Parameters
    ----------
    findings
        The findings that a page weighs.

    Returns
    -------
    One row a finding: `finding`, `source`, `verdict`, `effect_percent` with its 95 % interval
    before correction (`low_percent`, `high_percent`), `margin_percent`, `adjusted_percent` (the
    effect where the hypervisor took as much of both), `trimmed_percent` with its interval
    (`trimmed_low_percent`, `trimmed_high_percent`), `trimmed_verdict`, `run_time_percent` (of the
    treated runs against the untreated ones, where the effect is a ratio of ratios), `longer_cells`
    (programs, models and traces in which they take longer), `p_value`, `p_corrected`, `rounds`,
    `pairs`, `needed_rounds`, `dose`, `paper_verdict`, `paper_percent` with its interval
    (`paper_low_percent`, `paper_high_percent`), `paper_p_corrected`, `paper_units`, `paper_why`,
    `why`.

    Examples
    --------
    >>> random = np.random.default_rng(1)
    >>> longer = Finding(Claim("it takes longer", "above"), Evidence(random.normal(0.3, 0.1, 20)))
    >>> findings_table([longer])["verdict"].item()
    'reproduced'
    """
    here = _judged(findings, [finding.here for finding in findings])
    trimmed = _judged(findings, [_trimmed(finding.here) for finding in findings])
    papers = judge([(finding.claim, finding.paper) for finding in findings])
    return pd.DataFrame([_row(*parts) for parts in zip(findings, here, trimmed, papers)])


def _judged(findings: Sequence[Finding], evidence: Sequence[Evidence]) -> list[Judgement]:
    """All claims and conditions together; a claim whose condition is not shown says nothing."""
    conditions = {id(one.condition): one.condition for one in findings if one.condition}
    claims = [(finding.claim, one) for finding, one in zip(findings, evidence, strict=True)]
    judged = judge([*claims, *conditions.values()])
    shown = dict(zip(conditions, judged[len(claims) :], strict=True))
    return [
        _under_condition(finding, one, shown.get(id(finding.condition)))
        for finding, one in zip(findings, judged, strict=False)
    ]


def _under_condition(finding: Finding, judged: Judgement, condition: Judgement | None) -> Judgement:
    if condition is None or condition.verdict == REPRODUCED or judged.verdict == NOT_MEASURABLE:
        return judged
    numbers = f" ({condition.effect:+.1%})" if np.isfinite(condition.effect) else ""
    why = f"{finding.unmet}{numbers}: {condition.why or condition.verdict}"
    judged = replace(judged, p_value=np.nan, p_adjusted=np.nan, needed=np.nan)
    return replace(judged, verdict=NOT_MEASURABLE, why=why)


def _trimmed(evidence: Evidence) -> Evidence:
    """The same effects; of the units a tenth is left out at each end."""
    plain, table = evidence.estimate, evidence.by_unit()
    if plain.units < 2 or not plain.error > 0:
        return evidence
    values = np.nanmean(table - np.nanmean(table, axis=0), axis=1) + plain.mean
    found = trimmed_interval(values)
    freedom = values.size - 2 * trimmed_count(values.size) - 1
    error = (found.high - found.low) / 2 / Estimate(0, 1, freedom, 0).interval()[1]
    known = Estimate(found.value, error, freedom, values.size)
    return Estimated(unmeasurable=evidence.unmeasurable, unit=evidence.unit, known=known)


def _row(finding: Finding, here: Judgement, trimmed: Judgement, paper: Judgement) -> dict:
    claim, times = finding.claim, finding.run_times
    return {
        "finding": claim.text,
        "source": claim.source,
        "verdict": here.verdict,
        "effect_percent": 100 * here.effect,
        "low_percent": 100 * here.low,
        "high_percent": 100 * here.high,
        "margin_percent": 100 * claim.margin,
        "adjusted_percent": adjusted_percent(finding.here.effects, finding.steal),
        **_numbers(trimmed, "trimmed"),
        "trimmed_verdict": trimmed.verdict,
        "run_time_percent": 100 * np.expm1(times.estimate.mean) if times else np.nan,
        "longer_cells": _longer_cells(times),
        "p_value": here.p_value,
        "p_corrected": here.p_adjusted,
        "rounds": here.units,
        "pairs": len(finding.here.effects),
        "needed_rounds": here.needed,
        "dose": finding.dose,
        "paper_verdict": paper.verdict,
        **_numbers(paper, "paper"),
        "paper_p_corrected": paper.p_adjusted,
        "paper_units": paper.units,
        "paper_why": paper.why or f"{paper.units} {paper.unit}",
        "why": here.why,
    }


def _numbers(judged: Judgement, name: str) -> dict[str, float]:
    ends = {"": judged.effect, "_low": judged.low, "_high": judged.high}
    return {f"{name}{end}_percent": 100 * value for end, value in ends.items()}


def _longer_cells(run_times: Evidence | None) -> str:
    """In how many strata treated runs take longer on average, such as "6 of 6"."""
    if run_times is None or not len(run_times.effects):
        return ""
    means = np.nanmean(run_times.by_unit(), axis=0)
    return f"{np.sum(means > 0)} of {means.size}"


def adjusted_percent(effects: np.ndarray, steal: np.ndarray | None) -> float:
    """The effect where the hypervisor took as much of both sides: the intercept of a straight line
    through the log ratios by the difference in stolen time (s).
    """
    if steal is None or len(effects) < 2:
        return np.nan
    varies = np.ptp(steal) > 0
    return 100 * float(np.expm1(np.polyfit(steal, effects, 1)[1] if varies else effects.mean()))


def claim_of(row: Any) -> Claim:
    """A claim that a paper makes.

    Parameters
    ----------
    row
        A row of a published table of claims: `claim`, `direction`, `margin`, `source`.
    """
    return Claim(row.claim, row.direction, row.margin, row.source)


def other_housekeeping(design: Design, config: str) -> str:
    """Why the housekeeping of a configuration is not the paper's; empty if it is, and where there
    is none.

    Parameters
    ----------
    design
        The design of the study.
    config
        Name of the configuration.
    """
    found = [one for one in design.listed if one.name == config and not one.missing]
    here = len(found[0].house) / len(found[0].house + found[0].cpus) if found else 0.0
    if not here or HOUSEKEEPING / MOST <= here <= HOUSEKEEPING * MOST:
        return ""
    than = "more than twice as much" if here > HOUSEKEEPING else "less than half as much"
    return (
        f"housekeeping ({config}) takes {100 * here:.3g} % of the CPUs here,"
        f" {100 * HOUSEKEEPING:.3g} % in the paper: {than}"
    )
