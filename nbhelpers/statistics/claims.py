"""What is claimed of an effect, and what measurements say of it: one of five verdicts.

Owns the rule by which every finding, comparison and mitigation is judged, and the correction for
judging several of them at once. The plain way is Welch's test with Bonferroni's correction. Four
mitigations tried in 30 rounds, one of which saves 5 %: in recorded runs that finds it in 97 of 200
sets, this in 109; with two modes in 197 and 193. Where none helps, that claims one in 1 and 5, this
in 5 and 7 (benchmarks/rivals.py claims). So it is no better at gains; it is here for what a test
of a difference cannot say, that an effect is equivalent to none.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import InputError
from .evidence import Estimate as Estimate
from .evidence import Estimated as Estimated
from .evidence import Evidence as Evidence

REPRODUCED = "reproduced"
REVERSED = "reversed"
NONE = "equivalent to none"
INCONCLUSIVE = "inconclusive"
NOT_MEASURABLE = "not measurable here"
VERDICTS = (REPRODUCED, REVERSED, NONE, INCONCLUSIVE, NOT_MEASURABLE)

DIRECTIONS = ("below", "above", "none", "not below", "not above")
LEVEL = 0.05  # of at least one false verdict among all that are judged together
MARGIN = 0.01  # a change by less than this share counts as none
FEWEST_UNITS = 6  # of fewer, Student's interval says next to nothing
POWER = 0.8  # with which the forecast number of units settles a claim


@dataclass(frozen=True)
class Claim:
    """What is said of the effect of a change, before it is measured.

    Attributes
    ----------
    text
        In a few words.
    direction
        "below" (the ratio is less than 1), "above"; "none" (it lies within the margin); "not
        below", "not above" (no gain, no loss, of the margin or more).
    margin
        The share of change within which an effect counts as none; stated beforehand.
    source
        Paper and section.
    """

    text: str
    direction: str
    margin: float = MARGIN
    source: str = ""

    def __post_init__(self) -> None:
        if self.direction not in DIRECTIONS:
            raise InputError(
                f"unknown direction {self.direction!r} of a claim",
                fix=f"use one of {', '.join(DIRECTIONS)}",
            )
        if not 0 < self.margin < 1:
            raise InputError(
                f"a margin of {self.margin}", fix="a share between 0 and 1, such as 0.01"
            )


@dataclass(frozen=True)
class Judgement:
    """What the measurements say of a claim.

    Attributes
    ----------
    claim
        What was judged.
    verdict
        One of `VERDICTS`.
    effect, low, high
        The change as a share (−0.1: a tenth less) with its 95 % interval, before correction.
    p_value, p_adjusted
        p-value of the test that is nearest to a verdict, and the same adjusted for all claims
        judged together.
    units, unit
        How many units the effect rests on, and what they are.
    needed
        Units that would settle it with a probability of 80 %, by this effect and its spread; NaN
        for settled claims and where no number would do.
    why
        The reason of an open verdict.
    """

    claim: Claim
    verdict: str
    effect: float = np.nan
    low: float = np.nan
    high: float = np.nan
    p_value: float = np.nan
    p_adjusted: float = np.nan
    units: int = 0
    needed: float = np.nan
    why: str = ""
    unit: str = "rounds"

    @property
    def is_open(self) -> bool:
        """Whether nothing was decided."""
        return self.verdict in (INCONCLUSIVE, NOT_MEASURABLE)

    def sentence(self) -> str:
        """The verdict with its numbers."""
        numbers = ""
        if np.isfinite(self.effect):
            numbers = (
                f", {self.effect:+.1%} ({self.low:+.1%} to {self.high:+.1%}, n = {self.units}"
                f" {self.unit})"
            )
        reason = f"; {self.why}" if self.why else ""
        return f"{self.verdict.capitalize()}: {self.claim.text}{numbers}{reason}."


def judge(pairs: Sequence[tuple[Claim, Evidence]], level: float = LEVEL) -> list[Judgement]:
    """Judge all claims of a page together.

    Parameters
    ----------
    pairs
        Claims with their evidence.
    level
        Probability of at least one false verdict among them.

    Returns
    -------
    A judgement a claim, in the same order.

    Notes
    -----
    Two hypotheses of each claim are tested by Student's t over units: that there is no effect (of a
    claim without direction: that the effect is as large as the margin), and that the effect is not
    within the margin (two one-sided tests, Schuirmann 1987). At most one of the two is true. They
    are corrected together, step by step, for as many as can still be true (Shaffer 1986).

    An effect that lies within the margin is equivalent to none, even if it is not 0.

    Examples
    --------
    >>> claim = Claim("pinned runs are faster", "below")
    >>> faster = Evidence(np.log([0.90, 0.91, 0.89, 0.92, 0.90, 0.88, 0.91]))
    >>> judge([(claim, faster)])[0].verdict
    'reproduced'
    """
    tests = [_tests(claim, evidence) for claim, evidence in pairs]
    adjusted = shaffer(np.array([test.p_values for test in tests]).reshape(-1, 2))
    together = sum(not test.why for test in tests)
    return [
        _judgement(test, p_adjusted, level, together)
        for test, p_adjusted in zip(tests, adjusted, strict=True)
    ]


@dataclass(frozen=True, eq=False)
class _Tests:
    """The two tests of a claim: of a direction, and of being within the margin (p-values; NaN where
    nothing can be tested, then `why` has the reason).
    """

    claim: Claim
    evidence: Evidence
    p_values: tuple[float, float] = (np.nan, np.nan)
    why: str = ""
    verdict: str = INCONCLUSIVE  # where nothing can be tested


def _tests(claim: Claim, evidence: Evidence) -> _Tests:
    if evidence.unmeasurable:
        return _Tests(claim, evidence, why=evidence.unmeasurable, verdict=NOT_MEASURABLE)
    found = evidence.estimate
    if found.units < FEWEST_UNITS or not found.error > 0:
        few = f"{found.units} {evidence.unit}; at least {FEWEST_UNITS} that differ are needed"
        return _Tests(claim, evidence, why=few)
    return _Tests(claim, evidence, _p_values(claim, found))


def _p_values(claim: Claim, found: Estimate) -> tuple[float, float]:
    from scipy.special import stdtr

    def above(log: float) -> float:  # that the effect is not above this
        return float(stdtr(found.freedom, (log - found.mean) / found.error))

    low, high = np.log1p(-claim.margin), np.log1p(claim.margin)
    within = max(above(low), 1 - above(high))
    one_sided = {
        "not below": (1 - above(low), above(low)),
        "not above": (above(high), 1 - above(high)),
        "none": (min(1.0, 2 * min(1 - above(low), above(high))), within),
    }
    return one_sided.get(claim.direction, (2 * min(above(0), 1 - above(0)), within))


def shaffer(p_values: np.ndarray) -> np.ndarray:
    """Correct pairs of p-values, of which at most one hypothesis a row is true.

    Parameters
    ----------
    p_values
        n × 2; NaN is passed over.

    Returns
    -------
    Corrected p-values, n × 2.

    Notes
    -----
    Holm's procedure, but multiplied by the number of rows that still hold an open hypothesis
    (Shaffer, Modified sequentially rejective multiple test procedures, 1986).

    Examples
    --------
    >>> shaffer(np.array([[0.25, 0.5], [0.125, 1.0]])).tolist()
    [[0.5, 1.0], [0.25, 1.0]]
    """
    adjusted = np.full(p_values.shape, np.nan)
    left = np.isfinite(p_values).sum(axis=1)
    largest = 0.0
    for place in np.argsort(p_values, axis=None):
        row, column = divmod(int(place), 2)
        if np.isnan(p_values[row, column]):
            break
        largest = max(largest, min(1.0, p_values[row, column] * np.count_nonzero(left)))
        adjusted[row, column] = largest
        left[row] -= 1
    return adjusted


def _judgement(tests: _Tests, adjusted: np.ndarray, level: float, together: int) -> Judgement:
    claim, found = tests.claim, tests.evidence.estimate
    units: dict[str, Any] = {"units": found.units, "unit": tests.evidence.unit}
    if tests.why:
        return Judgement(claim, tests.verdict, *_changes(found), **units, why=tests.why)
    verdict = _verdict(claim, found.mean, adjusted <= level)
    nearest = int(np.argmin(adjusted)) if verdict != NONE else 1
    needed = _needed(claim, found, level / together) if verdict == INCONCLUSIVE else np.nan
    return Judgement(
        claim,
        verdict,
        *_changes(found),
        p_value=tests.p_values[nearest],
        p_adjusted=float(adjusted[nearest]),
        **units,
        needed=needed,
        why=_open(claim, needed, tests.evidence.unit) if verdict == INCONCLUSIVE else "",
    )


def _changes(found: Estimate) -> tuple[float, float, float]:
    """Effect and 95 % interval as shares of change; of too few units there is no interval."""
    ends = found.interval() if found.units >= FEWEST_UNITS else (np.nan, np.nan)
    effect, low, high = np.expm1([found.mean, *ends])
    return float(effect), float(low), float(high)


def _verdict(claim: Claim, mean: float, shown: np.ndarray) -> str:
    """The verdict, from which of two hypotheses are rejected: no effect, not within the margin."""
    effect, within = bool(shown[0]), bool(shown[1])
    if claim.direction in ("none", "not below", "not above"):
        return REPRODUCED if within else REVERSED if effect else INCONCLUSIVE
    if within:
        return NONE
    if not effect:
        return INCONCLUSIVE
    return REPRODUCED if (mean < 0) == (claim.direction == "below") else REVERSED


def _needed(claim: Claim, found: Estimate, level: float) -> float:
    """Units that would settle it, if the effect is what it seems to be."""
    from scipy.special import ndtri

    spread = found.error * np.sqrt(found.units)
    low, high = np.log1p(-claim.margin), np.log1p(claim.margin)
    distances = {
        "not below": [abs(found.mean - low)],
        "not above": [abs(found.mean - high)],
        "none": [min(abs(found.mean - low), abs(found.mean - high))],
    }.get(claim.direction, [abs(found.mean), min(found.mean - low, high - found.mean)])
    distance = max(*distances, 0.0)
    quantiles = float(ndtri(1 - level / 2) + ndtri(POWER))
    if not distance > 0:
        return np.nan
    return float(np.ceil(max((quantiles * spread / distance) ** 2, found.units + 1)))


def _open(claim: Claim, needed: float, unit: str) -> str:
    forecast = f"; about {needed:,.0f} {unit} would settle it" if np.isfinite(needed) else ""
    margin = f"an effect, and less than the margin of {100 * claim.margin:.3g} %"
    return f"the interval holds both answers, {margin}{forecast}"


def p_text(p_value: float) -> str:
    """A p-value with its sign.

    Examples
    --------
    >>> p_text(0.04), p_text(0.00004)
    ('= 0.040', '< 0.001')
    """
    return f"= {p_value:.3f}" if p_value >= 0.001 else "< 0.001"
