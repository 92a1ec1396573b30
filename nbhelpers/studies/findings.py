"""Findings of papers, judged by our runs, all of a page together: one of the five verdicts of
`statistics.claims`.

Owns the table of findings and the sentences that are read off it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..statistics.claims import (
    INCONCLUSIVE,
    NOT_MEASURABLE,
    REPRODUCED,
    VERDICTS,
    Claim,
    Estimate,
    Estimated,
    Evidence,
    Judgement,
    judge,
    p_text,
)
from ..statistics.robust import trimmed_count, trimmed_interval
from .design import PRINTED_MODELS

MARGIN = 0.05  # a change below this share counts as none, where a finding is about a gain
PERSSON = "Persson et al. 2025, sec. "
CUI = "Cui et al. 2023, sec. "
NOT_PRINTED = "the paper prints no numbers of it"


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
        By how much more the hypervisor took of the first than of the second of each pair of
        `here` (s), where that is known.
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
        As the study makes them.

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
    """
    judged = _judged(findings, [finding.here for finding in findings])
    trimmed = _judged(findings, [_trimmed(finding.here) for finding in findings])
    papers = judge([(finding.claim, finding.paper) for finding in findings])
    rows = [
        _row(finding, here)
        | _numbers(by_trimmed, "trimmed_")
        | {"trimmed_verdict": by_trimmed.verdict}
        | _numbers(paper, "paper_")
        | {
            "paper_verdict": paper.verdict,
            "paper_p_corrected": paper.p_adjusted,
            "paper_units": paper.units,
            "paper_why": _paper_why(paper),
        }
        for finding, here, by_trimmed, paper in zip(findings, judged, trimmed, papers, strict=True)
    ]
    return pd.DataFrame(rows)[_COLUMNS]


_COLUMNS = [
    "finding",
    "source",
    "verdict",
    "effect_percent",
    "low_percent",
    "high_percent",
    "margin_percent",
    "adjusted_percent",
    "trimmed_percent",
    "trimmed_low_percent",
    "trimmed_high_percent",
    "trimmed_verdict",
    "run_time_percent",
    "longer_cells",
    "p_value",
    "p_corrected",
    "rounds",
    "pairs",
    "needed_rounds",
    "dose",
    "paper_verdict",
    "paper_percent",
    "paper_low_percent",
    "paper_high_percent",
    "paper_p_corrected",
    "paper_units",
    "paper_why",
    "why",
]


def papers_table(table: pd.DataFrame) -> pd.DataFrame:
    """What the papers' own printed numbers say: the columns `paper_…` of `findings_table`.

    Parameters
    ----------
    table
        Of `findings_table`.
    """
    names = [name for name in table if name.startswith("paper_")]
    return table[["finding", "source", *names]]


def _judged(findings: Sequence[Finding], evidence: Sequence[Evidence]) -> list[Judgement]:
    """All claims and conditions together; a claim whose condition is not shown says nothing."""
    conditions = {
        finding.claim: finding.condition for finding in findings if finding.condition is not None
    }
    different = {id(condition): condition for condition in conditions.values()}
    claims = [(finding.claim, one) for finding, one in zip(findings, evidence, strict=True)]
    judged = judge([*claims, *different.values()])
    shown = dict(zip(different, judged[len(claims) :], strict=True))
    return [
        _under_condition(finding, one, shown.get(id(finding.condition)))
        for finding, one in zip(findings, judged, strict=False)
    ]


def _under_condition(finding: Finding, judged: Judgement, condition: Judgement | None) -> Judgement:
    if condition is None or condition.verdict == REPRODUCED or judged.verdict == NOT_MEASURABLE:
        return judged
    numbers = f" ({condition.effect:+.1%})" if np.isfinite(condition.effect) else ""
    reason = condition.why or condition.verdict
    why = f"{finding.unmet}{numbers}: {reason}"
    return Judgement(
        judged.claim,
        NOT_MEASURABLE,
        judged.effect,
        judged.low,
        judged.high,
        units=judged.units,
        unit=judged.unit,
        why=why,
    )


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


def _row(finding: Finding, judged: Judgement) -> dict[str, object]:
    """What stands in a row, without trimmed means and the paper's numbers."""
    return {
        "finding": finding.claim.text,
        "source": finding.claim.source,
        "verdict": judged.verdict,
        **_numbers(judged),
        "effect_percent": 100 * judged.effect,
        "margin_percent": 100 * finding.claim.margin,
        "adjusted_percent": _adjusted(finding),
        "run_time_percent": _run_time(finding),
        "longer_cells": _longer_cells(finding),
        "p_value": judged.p_value,
        "p_corrected": judged.p_adjusted,
        "rounds": judged.units,
        "pairs": len(finding.here.effects),
        "needed_rounds": judged.needed,
        "dose": finding.dose,
        "why": judged.why,
    }


def _numbers(judged: Judgement, name: str = "") -> dict[str, float]:
    return {
        f"{name}percent": 100 * judged.effect,
        f"{name}low_percent": 100 * judged.low,
        f"{name}high_percent": 100 * judged.high,
    }


def _paper_why(paper: Judgement) -> str:
    """What the paper's numbers are, or why there is no verdict."""
    return paper.why or f"{paper.units} {paper.unit}"


def _adjusted(finding: Finding) -> float:
    effects, steal = finding.here.effects, finding.steal
    if steal is None or len(effects) < 2:
        return np.nan
    return 100 * float(np.expm1(at_equal_steal(effects, steal)))


def _run_time(finding: Finding) -> float:
    if finding.run_times is None:
        return np.nan
    return 100 * float(np.expm1(finding.run_times.estimate.mean))


def _longer_cells(finding: Finding) -> str:
    """In how many strata treated runs take longer on average, such as "6 of 6"."""
    if finding.run_times is None or not len(finding.run_times.effects):
        return ""
    means = np.nanmean(finding.run_times.by_unit(), axis=0)
    return f"{np.sum(means > 0)} of {means.size}"


def at_equal_steal(effects: np.ndarray, steal: np.ndarray) -> float:
    """The intercept of a straight line through the effects by the difference in stolen time; their
    mean where that does not vary.
    """
    if not np.ptp(steal) > 0:
        return float(effects.mean())
    return float(np.polyfit(steal, effects, 1)[1])


def finding_sentences(table: pd.DataFrame, models: Sequence[str]) -> list[str]:
    """How many findings have which verdict, each that is decided, and why the others are not.

    Parameters
    ----------
    table
        Of `findings_table`.
    models
        Of the programs that were run: omp, sycl.
    """
    counts = table["verdict"].value_counts()
    numbers = ", ".join(f"**{counts[name]} {name}**" for name in VERDICTS if name in counts)
    names = {"omp": "OpenMP", "sycl": "SYCL", "original": "original"}
    programs = " and ".join(names[model] for model in models if model in PRINTED_MODELS)
    first = f"Of {len(table)} findings judged with {programs} programs: {numbers}."
    rows = [_sentence(row) for row in table.to_dict("records")]
    return [first, *rows, *_other_verdicts(table), *_paper_sentences(table)]


def _sentence(row: dict) -> str:
    """The verdict on a finding, its numbers, and the reason of an open verdict."""
    numbers = ""
    if np.isfinite(row["effect_percent"]):
        numbers = f", {_effect(row, '')}"
        if np.isfinite(row["p_corrected"]):
            numbers += f", p {p_text(row['p_corrected'])} corrected"
        numbers += f", n = {row['rounds']} rounds"
    if np.isfinite(row["run_time_percent"]):
        numbers += (
            f"; the run time itself changes by {row['run_time_percent']:+.1f} % (longer in"
            f" {row['longer_cells']} cells)"
        )
    reasons = "".join(f"; {row[name]}" for name in ("dose", "why") if row[name])
    return f"{row['verdict'].capitalize()}: {row['finding']}{numbers}{reasons}."


def _effect(row: dict, name: str) -> str:
    effect = row[f"{name}percent" if name else "effect_percent"]
    low, high = row[f"{name}low_percent"], row[f"{name}high_percent"]
    interval = f" ({low:+.1f} to {high:+.1f})" if np.isfinite(low) else ""
    return f"{effect:+.1f} %{interval}"


def _other_verdicts(table: pd.DataFrame) -> list[str]:
    """The findings that trimmed means over rounds judge differently."""
    others = table[table["trimmed_verdict"] != table["verdict"]]
    return [
        f"Judged by the trimmed mean of rounds it is otherwise: {row['finding']}:"
        f" {row['trimmed_verdict']}, {_effect(row, 'trimmed_')}."
        for row in others.to_dict("records")
    ]


def _paper_sentences(table: pd.DataFrame) -> list[str]:
    """What the paper's own numbers say by the same rule, in one sentence; none without numbers."""
    weighed = table[np.isfinite(table["paper_low_percent"].astype(float))]
    cases = "; ".join(
        f"{row['finding'].split(' (')[0]}: {row['paper_verdict']} ({_effect(row, 'paper_')},"
        f" {row['paper_why']})"
        for row in weighed.to_dict("records")
    )
    return [f"The papers' own printed numbers by the same rule: {cases}."] if cases else []


def is_decided(verdicts: pd.Series) -> pd.Series:
    """Whether these verdicts settle their findings."""
    return ~verdicts.isin([INCONCLUSIVE, NOT_MEASURABLE])
