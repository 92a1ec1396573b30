"""An interval of a change that may be looked at while runs are measured, and what it says so far.

Owns when is looked and at which level, the interval of a log ratio over pairs of runs (who goes
first is a coin toss), its verdict, and the forecast of what is still needed.

The only thing that it takes for random is the coin. Without a difference, old and new are names
that the coin gave, so a pair's log ratio could as well have the opposite sign. Signs that a
coin gives have a known distribution of Wilcoxon's signed-rank sum, whatever the noise: heavy tails,
drifts, dependent runs. The interval holds all changes that this test does not reject. The level is
divided among all looks: at fixed numbers of pairs, and where a budget ends.

A budget of time may end a duel as one of pairs may. Without a difference each run takes as long
under the one name as under the other. So when the time is up does not depend on the coin, and given
the number of pairs all signs are as likely as before. With a change that is no longer exact: of
10,000 campaigns ended by time, intervals of 99 % miss one of 5 % in 1.0 % (five kinds of noise).

The plain way is Student's test of the pairs, looked at once. So many of 10,000 campaigns of up to
80 pairs are called changed, in per cent, at level 1 %. The last two rules, as they are shipped, see
one side after the other (benchmarks/referee.py simulate; evaluate: three programs recorded on two
busy CPUs, 800 runs each):

==================  ====  ========  ============  ======  =========
noise, sd of a run  here  paired t  Mann–Whitney  pyperf  hyperfine
==================  ====  ========  ============  ======  =========
normal, no change    0.8       0.9           0.8     5.1        0.0
t₂, no change        0.9       0.7           1.0     4.2        0.2
skewed, no change    0.9       1.0           1.0     5.3        0.0
drift, no change     0.8       0.8           0.2      85         19
gzip, no change      0.8       0.7           0.0      60        3.8
nbody, no change     0.9       0.9           0.0      53        1.5
python, no change    0.8       0.7           0.0      52        1.4
normal 2 %, + 2 %    100       100           100     100        0.5
normal 3 %, + 2 %     92        94            93      99        0.0
normal 4 %, + 2 %     64        69            67      87        0.0
normal 5 %, + 2 %     41        45            43      69        0.0
t₂ 3 %, + 2 %         64        33            83      54        0.1
skewed 5 %, + 2 %     60        46            85      66        0.0
drift 5 %, + 2 %      41        45            23      93         39
gzip, + 5 %           64        38           3.6      61        3.0
nbody, + 5 %          45        22           7.2      56        0.9
python, + 5 %         25        18           2.7      54        1.1
==================  ====  ========  ============  ======  =========

Before, bets on both pairs of a quad (ABBA or BAAB) found 70, 34 and 15 of the normal at 3, 4 and
5 %. With a budget of 500 pairs they knew 2 % earlier: at an sd of 1, 2 and 4 % after 21, 38 and 121
pairs, here after 19, 49 and 180. At the tenth of the level that looks have here, it is 29, 52 and
170. Ranks of quads instead of pairs find 38 of the normal at 5 %, 47 of t₂ at 3 %.
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from ..errors import InputError
from .claims import MARGIN

LEVEL = 0.01  # of ever excluding the true change
BETTER, WORSE, WITHIN, OPEN = "better", "worse", "within the margin", "can't tell yet"
FIRST_LOOK = 14  # pairs: of fewer, equal signs of all are not rare enough
NEXT_LOOK = 1.25  # times as many
EARLY, END, FURTHER = 0.1, 0.86, 0.04  # of the level: fixed looks, a budget's end, further ends
MOST_EXACT = 500  # pairs; of more, the sum of ranks is taken for normal, whose tail is longer


class Looks:
    """What is known of a change, valid at all looks together.

    Parameters
    ----------
    margin
        Share of change that counts as none.
    level
        Probability that the interval ever excludes the true change, over all looks.

    Notes
    -----
    A change is a shift of the log ratios; the interval is of the centre about which they are
    symmetric. Of the part of the level for looks at fixed numbers of pairs, look i has
    4 / ((i + 3) (i + 4)); of that for further ends of budgets these have 1/2, 1/4 and so on.

    Examples
    --------
    >>> random = np.random.default_rng(1)
    >>> Looks(margin=0.01).over(random.normal(0.05, 0.01, 20)).verdict
    'worse'
    """

    def __init__(self, margin: float = MARGIN, level: float = LEVEL):
        for name, value in (("margin", margin), ("level", level)):
            if not 0 < value < 1:
                raise InputError(f"a {name} of {value}", fix="a share between 0 and 1")
        self.margin, self.level = float(margin), float(level)
        self._ratios: list[float] = []
        self._early = self._ends = 0
        self._next = FIRST_LOOK
        self._low, self._high = -np.inf, np.inf

    def over(self, ratios: Sequence[float] | np.ndarray, ends: Sequence[int] = ()) -> "Looks":
        """What is known of pairs, up to the verdict.

        Parameters
        ----------
        ratios
            Their log ratios, in the order of time.
        ends
            Pairs at which a budget ended, in the order of time.
        """
        for ratio in ratios:
            self.add(ratio)
            if self.units in ends:
                self.end(ends.index(self.units))
            if self.verdict != OPEN:
                break
        return self

    def add(self, ratio: float) -> None:
        """One more pair: its log ratio, new over old."""
        if not np.isfinite(ratio):
            raise InputError(f"a log ratio of {ratio}", why="a cost must be positive")
        self._ratios.append(float(ratio))
        if self.units == self._next:
            self._early += 1
            self._next = int(np.ceil(NEXT_LOOK * self._next))
            self._look(EARLY * 4 / ((self._early + 3) * (self._early + 4)))

    def end(self, number: int = 0) -> bool:
        """Look, because a budget ends here.

        Parameters
        ----------
        number
            How many budgets have ended before.

        Returns
        -------
        Whether that took a part of the level: of too few pairs there is nothing to see.
        """
        self._ends = number + 1
        return self._look(_share_of_end(number))

    def _look(self, share: float) -> bool:
        low, high = signed_rank_interval(np.array(self._ratios), share * self.level)
        self._low, self._high = max(low, self._low), min(high, self._high)
        return bool(np.isfinite(low))

    @property
    def units(self) -> int:
        """Pairs so far."""
        return len(self._ratios)

    @property
    def interval(self) -> tuple[float, float]:
        """Smallest and largest change that is not excluded, as shares (−0.02: 2 % less)."""
        low, high = np.expm1(sorted([self._low, self._high]))
        return float(low), float(high)

    @property
    def estimate(self) -> float:
        """The change as a share: the pseudo-median of the pairs (Hodges and Lehmann)."""
        return float(np.expm1(np.median(pair_means(np.array(self._ratios)))))

    @property
    def verdict(self) -> str:
        """BETTER, WORSE, WITHIN or OPEN; what lies within the margin is that, even if not 0."""
        low, high = self.interval
        if -self.margin <= low and high <= self.margin:
            return WITHIN
        return WORSE if low > 0 else BETTER if high < 0 else OPEN

    @property
    def more_units(self) -> float:
        """Pairs that are still needed until the end of the next budget, if they are like those so
        far; 0 once there is a verdict; NaN of too few pairs.
        """
        if self.verdict != OPEN:
            return 0.0
        share = _share_of_end(self._ends)
        low, high = signed_rank_interval(np.array(self._ratios), share * self.level)
        change = abs(np.log1p(self.estimate))
        distance = max(change, np.log1p(self.margin) - change)
        needed = self.units * ((high - low) / 2 / distance) ** 2 - self.units
        return float(np.ceil(max(needed, 1.0))) if np.isfinite(needed) else float("nan")


def _share_of_end(number: int) -> float:
    return END if number == 0 else FURTHER * 0.5**number


def pair_means(values: np.ndarray) -> np.ndarray:
    """All means of two values, each with itself too (Walsh averages), in order."""
    rows, columns = np.triu_indices(len(values))
    return np.sort((values[rows] + values[columns]) / 2)


def signed_rank_interval(values: np.ndarray, level: float) -> tuple[float, float]:
    """All centres of symmetry that Wilcoxon's signed-rank test does not reject.

    Parameters
    ----------
    values
        n numbers.
    level
        Of the test, of two sides.

    Examples
    --------
    >>> signed_rank_interval(np.arange(10.0), 0.05)
    (2.0, 7.0)
    >>> signed_rank_interval(np.arange(4.0), 0.05)
    (-inf, inf)
    """
    outside = _outside(len(values), level / 2)
    if not outside:
        return -np.inf, np.inf
    means = pair_means(values)
    return float(means[outside - 1]), float(means[-outside])


@lru_cache
def _outside(size: int, tail: float) -> int:
    """How many of the means of two, from either end, the interval leaves beyond or on its end."""
    if size > MOST_EXACT:
        from scipy.special import ndtri

        spread = np.sqrt(size * (size + 1) * (2 * size + 1) / 24)
        return int(size * (size + 1) / 4 + ndtri(tail) * spread) + 1
    chances = np.ones(1)  # of each sum of ranks
    for rank in range(1, size + 1):
        chances = (np.pad(chances, (0, rank)) + np.pad(chances, (rank, 0))) / 2
    return int(np.searchsorted(np.cumsum(chances), tail, side="right"))
