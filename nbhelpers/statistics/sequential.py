"""An interval of a change that may be looked at after every run, and what it says so far.

Owns the confidence sequence of a log ratio over quads (ABBA or BAAB, by a coin toss), its verdict,
and the forecast of what is still needed.

The only thing that it takes for random is the coin. Without a difference, old and new are names
that the coin gave, so a quad's ratios could as well have the opposite signs. A bet on these signs
wins nothing in the long run, whatever the noise: heavy tails, drifts, dependent runs. A true change
wins. A change is excluded as soon as a bet against it has won 1 / level times its stake: over any
number of looks that happens with a probability of at most `level` (Ville's inequality). Of 2,000
campaigns without a change, looked at after each of 60 quads at 1 %, 0.8 % are called changed; by
Student's test 8.4 %.

Looking costs power. A change of 2 % is found in 40 quads of normal noise, sd 2, 3, 4 and 5 % a run,
by Student's test at 1 %, looked at once, in 100, 93, 68 and 44 % of 2,000 campaigns; here, after
any quad, in 99, 70, 34 and 15. Even a bet that knows effect and spread finds 99, 88, 58 and 28:
from 4 % on less than nine tenths of the test's. Bets by the ranks of the sizes find 99, 69, 33 and
17; under heavy tails (t with 3 degrees of freedom, sd 3 and 4 %) 85 and 56, these 96 and 73, the
test 93 and 74. So they are left out.

References: Ramdas, Grünwald, Vovk and Shafer, Game-theoretic statistics and safe anytime-valid
inference (2023); Howard and others, Time-uniform confidence sequences (2021), for mixtures of bets.
"""

import numpy as np

from ..errors import InputError
from .claims import MARGIN

LEVEL = 0.01  # of ever excluding the true change
BETTER, WORSE, WITHIN, OPEN = "better", "worse", "within the margin", "can't tell yet"
_TAIL = 3.0  # degrees of freedom of Student's t, by whose shape bets are made
_EFFECTS = np.array([1, 2, 4, 8, 16, 32])  # bets are on these multiples of the margin, both ways
_STAKES = np.array([0.25, 0.25, 0.2, 0.15, 0.1, 0.05]) / 2
_FIRST = 3  # quads' worth of weight that the size of all ratios has in the scale
_FINEST = 1e-6  # scale of equal ratios
_NORMAL = 0.6745  # median of the absolute values of a normal distribution
_WIDEST = 2.3  # log ratio (a factor of ten), to which the interval reaches


class ConfidenceSequence:
    """What is known of a change after each quad, valid at all of them together.

    Parameters
    ----------
    margin
        Share of change that counts as none.
    level
        Probability that the interval ever excludes the true change, over all looks.

    Notes
    -----
    A quad is two log ratios, new over old. A change is a shift of both; the interval is of the
    centre about which they are symmetric. The scale of a bet comes from the absolute ratios so far,
    which say nothing of signs.

    Examples
    --------
    >>> sequence = ConfidenceSequence(margin=0.01)
    >>> random = np.random.default_rng(1)
    >>> for first, second in random.normal(0.05, 0.01, (20, 2)):
    ...     sequence.add(first, second)
    >>> sequence.verdict
    'worse'
    """

    def __init__(self, margin: float = MARGIN, level: float = LEVEL):
        for name, value in (("margin", margin), ("level", level)):
            if not 0 < value < 1:
                raise InputError(f"a {name} of {value}", fix="a share between 0 and 1")
        self.margin, self.level = float(margin), float(level)
        self._checked = _checkpoints(self.margin)
        self._changes = np.union1d(_grid(self.margin), self._checked)
        self._effects, stakes = _bets(self.margin)
        self._gains = np.tile(np.log(stakes), (self._changes.size, 1))
        self._best = np.full((2, self._changes.size), -np.inf)
        self._quads: list[tuple[float, float]] = []

    def add(self, first: float, second: float) -> None:
        """One more quad: the log ratios of its two pairs."""
        if not np.isfinite([first, second]).all():
            raise InputError(f"log ratios of {first} and {second}", why="a cost must be positive")
        self._quads.append((float(first), float(second)))
        quads = np.array(self._quads)
        rests = quads[-1] - self._changes[:, None]
        self._gains += _log_gains(rests, self._effects, _scale(quads))
        sides = np.split(self._gains, 2, axis=1)  # bets that it is more, bets that it is less
        self._best = np.maximum(self._best, [np.logaddexp.reduce(side, axis=1) for side in sides])

    @property
    def units(self) -> int:
        """Quads so far."""
        return len(self._quads)

    @property
    def interval(self) -> tuple[float, float]:
        """Smallest and largest change that is not excluded, as shares (−0.02: 2 % less)."""
        too_low, too_high = self._best >= -np.log(self.level)
        first, last = np.searchsorted(self._changes, self._checked[[0, -1]])
        low = _end(self._changes[first:], too_low[first:])
        high = -_end(-self._changes[last::-1], too_high[last::-1])
        above, below = self._beyond(0)
        ends = max(low, 0.0) if above else low, min(high, 0.0) if below else high
        return float(np.expm1(ends[0])), float(np.expm1(ends[1]))

    @property
    def estimate(self) -> float:
        """The change as a share: the pseudo-median of the quads' means (Hodges and Lehmann)."""
        return float(np.expm1(pseudo_median(np.mean(self._quads, axis=1))))

    @property
    def verdict(self) -> str:
        """BETTER, WORSE, WITHIN or OPEN; what lies within the margin is that, even if not 0."""
        if all(self._beyond(1)):
            return WITHIN
        above, below = self._beyond(0)
        return WORSE if above else BETTER if below else OPEN

    def _beyond(self, offset: int) -> tuple[bool, bool]:
        """Whether the change is above a checkpoint, and whether it is below another.

        `offset`: how far the two lie outward from no change, the first downward, the second upward
        (1: the margin). All that lie beyond them must be excluded, too.
        """
        excluded = self._best[:, np.searchsorted(self._changes, self._checked)]
        too_low, too_high = excluded >= -np.log(self.level)
        middle = self._checked.size // 2
        return bool(too_low[: middle - offset + 1].all()), bool(too_high[middle + offset :].all())

    @property
    def more_units(self) -> float:
        """Quads that are still needed, if they are like those so far; 0 once there is a verdict;
        NaN where bets do not win so far, or of fewer than four quads.
        """
        if self.verdict != OPEN:
            return 0.0
        if self.units < 4:
            return float("nan")
        low, high = np.log1p([-self.margin, self.margin])
        directed = min(self._needed(0.0, 0), self._needed(0.0, 1))
        needed = min(directed, max(self._needed(low, 0), self._needed(high, 1)))
        return float(np.ceil(needed)) if np.isfinite(needed) else float("nan")

    def _needed(self, change: float, side: int) -> float:
        """Quads until this change is excluded as too low (0) or too high (1), by the mean gain of
        the bet that is there first.
        """
        place = int(np.argmin(np.abs(self._changes - change)))
        if self._best[side, place] >= -np.log(self.level):
            return 0.0
        bets = np.array_split(np.arange(self._effects.size), 2)[side]
        quads = np.array(self._quads)
        gains = _log_gains(quads - change, self._effects[bets], _scale(quads)).mean(axis=0)
        missing = -np.log(self.level) - self._gains[place, bets]
        with np.errstate(divide="ignore", invalid="ignore"):
            needed = np.where(gains > 0, missing / gains, np.inf)
        return float(max(needed.min(), 1.0))


def _checkpoints(margin: float) -> np.ndarray:
    """The changes by which a verdict is found: none, and those that are bet on; log ratios."""
    effects, _ = _bets(margin)
    return np.sort([*effects, 0.0])


def _grid(margin: float) -> np.ndarray:
    """Changes among which the interval ends: dense where they are smaller than the margin."""
    return np.sinh(np.linspace(-1, 1, 1001) * np.arcsinh(_WIDEST / margin)) * margin


def _end(changes: np.ndarray, excluded: np.ndarray) -> float:
    """The last change up to which all are excluded; minus infinity: not even the first is."""
    count = int(np.argmin(excluded)) if not excluded.all() else excluded.size
    return float(changes[count - 1]) if count else -np.inf


def _bets(margin: float) -> tuple[np.ndarray, np.ndarray]:
    """Changes that are bet on, half of them upward, and the stake of each."""
    effects = np.log1p(_EFFECTS * margin)
    return np.concatenate([effects, -effects]), np.concatenate([_STAKES, _STAKES])


def _log_gains(rests: np.ndarray, effects: np.ndarray, scale: float) -> np.ndarray:
    """Logarithm of what a bet on each effect wins by quads from which the change is taken out.

    Given the absolute ratios, the two signs that a quad can have are equally likely; a bet pays
    twice the probability that Student's t with this effect gives to the sign that it has.
    """
    products = []
    for effect in (effects, -effects):
        first, second = ((rests[..., pair, None] - effect) / scale for pair in (0, 1))
        products.append((1 + first**2 / _TAIL) * (1 + second**2 / _TAIL))
    return np.log(2) - np.log1p((products[0] / products[1]) ** ((_TAIL + 1) / 2))


def _scale(quads: np.ndarray) -> float:
    """The spread of a log ratio from absolute values alone: by how the two ratios of a quad
    differ, which no change of the program moves; in the beginning also by how large they are.
    """
    count, own = len(quads), np.median(np.abs(quads[:, 0] - quads[:, 1])) / np.sqrt(2)
    size = np.median(np.abs(quads))
    mean_square = (count * own**2 + _FIRST * max(own, size) ** 2) / (count + _FIRST)
    return float(max(np.sqrt(mean_square) / _NORMAL, _FINEST))


def pseudo_median(values: np.ndarray) -> float:
    """The median of all means of two values, each with itself too.

    Parameters
    ----------
    values
        n numbers.

    Examples
    --------
    >>> pseudo_median(np.array([1.0, 2.0, 30.0]))
    8.75
    """
    rows, columns = np.triu_indices(len(values))
    return float(np.median((values[rows] + values[columns]) / 2))
