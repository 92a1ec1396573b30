"""What trials of mitigations show: whether the program gets faster, and whether its runs get more
alike.

Owns the two claims on a mitigation, the evidence for them, and the words of the verdicts. All
mitigations of a page are judged together.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pandas as pd

from ..outcomes import COST, with_cost
from ..statistics import Comparison, compare_costs, same_epochs
from ..statistics.claims import NONE, REPRODUCED, REVERSED, Claim, Evidence, Judgement, judge
from ..statistics.variation import FEWEST_RUNS, log_variations

HELPS = "helps"
SEEMS = "seems to help, not confirmed"
NOT_AGAIN = "not when measured again"
HARMS = "makes it worse"
MIXED = "a gain and a loss"
NO_EFFECT = "no effect on the run time"
TOO_FEW = "too few rounds"
# changes of the run time, and of its variation, that count as none
TIME_MARGIN = 0.02
SPREAD_MARGIN = 0.1
MARGINS = (
    f"A change of the mean below {TIME_MARGIN:.0%}, or of the variation below"
    f" {SPREAD_MARGIN:.0%}, counts as none."
)

Pair = tuple[pd.DataFrame, pd.DataFrame]
_SIDES = ("treated", "untreated")


@dataclass(frozen=True, eq=False)
class Trial:
    """A mitigation against the untreated program.

    Attributes
    ----------
    pair
        Untreated and treated runs.
    faster
        Whether the run time falls.
    evener
        Whether the runs vary less.
    seed
        Seed of the intervals of the comparison.
    """

    pair: Pair = field(repr=False)
    faster: Judgement
    evener: Judgement
    seed: int = 0

    @cached_property
    def comparison(self) -> Comparison:
        """Treated with untreated runs: ratios with their intervals."""
        return compare_costs(*self.pair, seed=self.seed)

    @property
    def verdict(self) -> str:
        """`SEEMS`, `HARMS`, `MIXED`, `NO_EFFECT` or `TOO_FEW`; `SEEMS` until it is measured again.

        The run time decides where runs are shown to be neither more nor less alike.
        """
        shown = {self.faster.verdict, self.evener.verdict}
        if {REPRODUCED, REVERSED} <= shown:
            return MIXED
        if REPRODUCED in shown:
            return SEEMS
        if REVERSED in shown:
            return HARMS
        return NO_EFFECT if self.faster.verdict == NONE else TOO_FEW

    @property
    def leading(self) -> Judgement:
        """The judgement that decides: of a gain or a loss that is shown, else of the run time."""
        if self.evener.verdict in (REPRODUCED, REVERSED) and self.faster.verdict == NONE:
            return self.evener
        is_open = self.faster.verdict not in (REPRODUCED, REVERSED, NONE)
        return self.evener if is_open and self.verdict in (SEEMS, HARMS) else self.faster

    @property
    def sentence(self) -> str:
        """What decides, with its interval."""
        told = self.leading
        return f"{'run time' if told is self.faster else 'variation'} {in_numbers(told)}"


def in_numbers(found: Judgement) -> str:
    """An effect with its interval and n."""
    interval = f"{found.low:+.1%} to {found.high:+.1%}"
    return f"{found.effect:+.1%} ({interval}, n = {found.units} {found.unit})"


def new_order(seed: int) -> int:
    """The seed of what is measured again: in the same order, what hangs on the order would be
    confirmed by it, too.
    """
    return seed + 1


def judge_trials(tables: Mapping[str, Pair], seed: int = 0) -> dict[str, Trial]:
    """Judge all mitigations that were tried, together.

    Parameters
    ----------
    tables
        Mitigation id -> untreated and treated runs of the same rounds.
    seed
        Seed of the intervals of the comparisons.

    Returns
    -------
    Mitigation id -> trial.

    Notes
    -----
    Two claims a mitigation: the cost of a run falls (margin 2 %; a log ratio a round), and so does
    the typical difference of two runs (margin 10 %; see `nbhelpers.statistics.variation`; here not
    relative, since a faster program with the same differences loses nothing). Of placebos neither
    is shown on more than 5 % of pages.

    Examples
    --------
    >>> random = np.random.default_rng(1)
    >>> def runs(mean):
    ...     seconds = random.normal(mean, 0.02, 20)
    ...     return pd.DataFrame({"seconds": seconds, "round": range(20)})
    >>> judge_trials({"jemalloc": (runs(1.0), runs(0.8))})["jemalloc"].verdict
    'seems to help, not confirmed'
    """
    pairs = [
        pair
        for name, (untreated, treated) in tables.items()
        for pair in _claims(name, untreated, treated)
    ]
    judged = judge(pairs)
    return {
        name: Trial(pair, judged[2 * at], judged[2 * at + 1], seed)
        for at, (name, pair) in enumerate(tables.items())
    }


def _claims(
    name: str, untreated: pd.DataFrame, treated: pd.DataFrame
) -> list[tuple[Claim, Evidence]]:
    costs = paired_costs(untreated, treated)
    return [
        (Claim(f"{name}: runs are faster", "below", TIME_MARGIN), log_ratios(costs)),
        (Claim(f"{name}: runs vary less", "below", SPREAD_MARGIN), variations(costs)),
    ]


def paired_costs(untreated: pd.DataFrame, treated: pd.DataFrame) -> pd.DataFrame:
    """Cost of the run of each side in each round that holds both: index round, columns treated,
    untreated.

    Where tables have no rounds, their rows are paired in order.
    """
    untreated, treated = same_epochs(untreated, treated)
    sides = {}
    for side, runs in zip(_SIDES, (treated, untreated)):
        costs = with_cost(runs)
        by = costs["round"] if "round" in costs else pd.RangeIndex(len(costs))
        sides[side] = costs[COST].groupby(np.asarray(by)).mean()
    return pd.DataFrame(sides).dropna().rename_axis("round")


def log_ratios(costs: pd.DataFrame) -> Evidence:
    """How the treated run of each round compares with the untreated one.

    Parameters
    ----------
    costs
        Costs of each round, as `paired_costs` returns them.
    """
    if not (costs > 0).all(axis=None):
        return Evidence(unmeasurable="what runs are judged by is not always positive")
    return Evidence(np.log(costs["treated"] / costs["untreated"]).to_numpy(), costs.index)


def variations(costs: pd.DataFrame) -> Evidence:
    """How the typical difference of two treated runs compares with that of two untreated ones.

    Parameters
    ----------
    costs
        Costs of each round, as `paired_costs` returns them.
    """
    if len(costs) < FEWEST_RUNS or not (costs > 0).all(axis=None):
        return Evidence()
    treated, untreated = (log_variations(costs[side].to_numpy()) for side in _SIDES)
    # of relative differences; with the ratio of the costs, of differences in seconds
    return Evidence(treated - untreated + log_ratios(costs).effects, costs.index)


def open_verdict(tried: pd.DataFrame) -> str:
    """What is known of mitigations of which none is confirmed; names none of them.

    Parameters
    ----------
    tried
        Table of `tried_table`.
    """
    verdicts, count, rounds = tried["verdict"], len(tried), _range(tried["runs"])
    if verdicts.isin([NO_EFFECT, HARMS, NOT_AGAIN]).all():
        return (
            f"None of {_counted(count)} tried helps: each changes the run time by less than"
            f" {TIME_MARGIN:.0%}, makes it worse, or failed when it was measured again"
            f" ({rounds} rounds)."
        )
    parts = [
        f"{len(part)} {word}{rounds_missing(part)}"
        for part, word in (
            (tried[verdicts == SEEMS], "may help and must be measured again"),
            (tried[verdicts == TOO_FEW], "had too few rounds"),
        )
        if len(part)
    ]
    return (
        f"Of {_counted(count)} tried none is confirmed to help ({rounds} rounds):"
        f" {'; '.join(parts) or 'each has a gain and a loss'}."
    )


def rounds_missing(tried: pd.DataFrame) -> str:
    """How many rounds would settle open verdicts; empty if that is not known.

    Examples
    --------
    >>> rounds_missing(pd.DataFrame({"needed": [40.0, 93.0, float("nan")]}))
    ' (about 40 to 93 rounds would do)'
    """
    needed = tried["needed"].dropna()
    return f" (about {_range(needed)} rounds would do)" if len(needed) else ""


def _counted(mitigations: int) -> str:
    return f"{mitigations} mitigation{'' if mitigations == 1 else 's'}"


def _range(values: pd.Series) -> str:
    low, high = int(values.min()), int(values.max())
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
