"""What is claimed of an effect, and what measurements say of it: one of five verdicts.

Owns the rule by which every finding, comparison and mitigation is judged, and the correction for
judging several of them at once. The plain way is Welch's test with Bonferroni's correction. Four
mitigations tried in 30 rounds, one of which saves 5 %: in recorded runs that finds it in 97 of 200
sets, this in 109; with two modes in 197 and 193. Where none helps, that claims one in 1 and 5, this
in 5 and 7 (benchmarks/rivals.py claims). So it is no better at gains; it is here for what a test
of a difference cannot say, that an effect is equivalent to none.

A p-value is Student's; from 20 units on the larger of Student's and Hall's, which takes the
skewness out of t. So often is an effect claimed, in per cent, where there is none (level 5 %,
10,000 draws each, ± 0.5; in brackets pages of eight claims; benchmarks/false_claims.py):

========  =========  ========  ========  ========  ========  ========  ========  ========
skewness  test       5         6         8         12        20        40        100
========  =========  ========  ========  ========  ========  ========  ========  ========
0         Student    4.9 (5)   4.5 (5)   5.1 (5)   5.3 (5)   5.3 (6)   4.8 (4)   5.1 (6)
0         larger     3.3 (3)   3.4 (2)   3.8 (3)   3.7 (4)   4.6 (5)   4.4 (3)   5.0 (6)
0         bootstrap  5.2       5.0       4.8       5.4       5.3       4.8       5.1
1         Student    6.9 (8)   6.5 (8)   6.4 (11)  6.6 (10)  6.0 (9)   5.2 (7)   5.0 (7)
1         larger     4.2 (5)   4.4 (5)   4.2 (6)   4.4 (6)   4.4 (4)   4.1 (4)   4.4 (4)
1         bootstrap  5.5       5.6       5.5       5.4       5.2       4.7       5.0
2         Student    11 (26)   11 (27)   11 (27)   9.4 (25)  7.8 (19)  6.9 (14)  6.0 (10)
2         larger     6.3 (15)  5.7 (12)  5.2 (12)  4.7 (9)   4.0 (6)   4.0 (4)   3.9 (5)
2         bootstrap  6.7       6.5       6.0       5.5       5.0       5.2       5.0
4         Student    27 (77)   25 (76)   22 (70)   19 (61)   15 (50)   11 (35)   7.9 (21)
4         larger     15 (57)   12 (47)   8.7 (33)  6.0 (18)  4.3 (7)   3.9 (4)   3.6 (3)
4         bootstrap  9.5       9.8       8.0       6.5       5.9       5.6       5.2
========  =========  ========  ========  ========  ========  ========  ========  ========

So from 20 units on single claims hold at all of these, pages to 8 %. Of fewer units, claims hold
for ratios without skewness, such as those of two sides of one shape; at skewness 1 single claims
are false in 7 %. There the larger p costs too much: of effects that Student finds in 80 % of cases
it finds 63, 68 and 73 % (6, 8 and 12 units), and 77 % from 20 on. The studentised bootstrap
(Efron) holds less from 20 on, and has no p-value small enough for many claims. Two more rules for 6
to 19 units hold no better (`--few`): the larger p of skewed samples alone (pages at skewness 2: 24,
13 and 9 % of 6, 12 and 19 units), and signs drawn at random (8 to 10 % of single claims at skewness
2, of 8 units and more, as Student's 8 to 11).

Runs that resemble their neighbours make no false claims, as the order in a round is drawn. Where a
change changes no run, a coin gives each log ratio its sign: none depends on another or is skewed,
whatever the runs do. Of log run times that are autoregressive, 0.5 or 0.9 from a round to the next,
3.9 to 5.2 % of claims are false, 3 to 6 % of pages (6 to 40 rounds of 2 or 4 cells). Of skewed ones
(4) it is 1.3 to 3.5 and 0 to 2 %. The test of this coin alone draws the signs at random: 3.0 to
5.4 %, 0 to 6 % of pages. Of effects that Student's finds in 80 to 86 % of cases it finds 62 to 81 %
(6 rounds), 77 to 86 (8) and 79 to 85 (12, 16); on pages nothing below 10 rounds. From 20 on it
finds 80 to 85 %, this rule 66 to 77 (`--runs`). Signs are not taken: where a change changes some
runs and no mean, they claim an effect in 16 % (skewness 4, 20 units; pages 49), this rule in 4 (7).
Student's alone finds what signs find, and claims as much. A mitigation by hand has no such coin: it
is measured before and after, twice.

Log ratios that resemble their neighbours are an effect that comes and goes. Such rounds (from 20
on, p at most 0.1) count as fewer. Under an autoregression of 0.5, 95 % intervals hold the truth in
90, 94 and 95 % of cases (20, 40 and 100 rounds; Student's in 74), of independent rounds in 96 %. Of
fewer rounds none is seen: 22 to 26 % of claims and 38 to 56 % of pages are false. To count them as
fewer whenever r is above 0 leaves 8 to 10 %, and 18 to 22 % of pages. Effects found in 80 % of
cases are then found in 54, 62 and 66 % (8, 12 and 16 rounds): that costs too much.
In 75 claims of the recorded campaign (12 to 19 rounds) 3 % had an autocorrelation of p at most 0.1.
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
    Two hypotheses of each claim are tested over units, by Student's t and from 20 on Hall's, too:
    that there is no effect (of a claim without direction: that the effect is as large as the
    margin), and that the effect is not within the margin (two one-sided tests, Schuirmann 1987). At
    most one of the two is true. They
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
    low, high = np.log1p(-claim.margin), np.log1p(claim.margin)
    within = max(found.above(low), found.below(high))
    beyond = min(found.below(low), found.above(high))
    one_sided = {
        "not below": (found.below(low), found.above(low)),
        "not above": (found.above(high), found.below(high)),
        "none": (min(1.0, 2 * beyond), within),
    }
    effect = min(1.0, 2 * min(found.above(0), found.below(0)))
    return one_sided.get(claim.direction, (effect, within))


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
    margin = f"an effect, and less than the margin of {100 * claim.margin:.3g} %"
    return f"the interval holds both answers, {margin}{forecast(needed, unit)}"


def forecast(needed: float, unit: str) -> str:
    """How many units would settle a claim, in words; "" where no number would do."""
    return f"; about {needed:,.0f} {unit} would settle it" if np.isfinite(needed) else ""


def p_text(p_value: float) -> str:
    """A p-value with its sign.

    Examples
    --------
    >>> p_text(0.04), p_text(0.00004)
    ('= 0.040', '< 0.001')
    """
    return f"= {p_value:.3f}" if p_value >= 0.001 else "< 0.001"
