"""How often the referee would be wrong or late: its operating curve, from runs of this machine.

Owns the resampling of measured quads as campaigns without and with a planted change.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from ..errors import InputError
from ..statistics.claims import MARGIN
from ..statistics.sequential import BETTER, LEVEL, OPEN, WITHIN, WORSE, pseudo_median, settle

CHANGES = (0.0, 0.005, 0.01, 0.02, 0.05)
PAIRS = (20, 50, 100, 200)
CAMPAIGNS = 500
FEWEST_QUADS = 20
COLUMNS = ["change", "pairs", "worse", "better", "within", "open", "median_pairs"]


def operating_curve(
    quads: np.ndarray,
    changes: Sequence[float] = CHANGES,
    pairs: Sequence[int] = PAIRS,
    margin: float = MARGIN,
    level: float = LEVEL,
    campaigns: int = CAMPAIGNS,
    seed: int = 0,
) -> pd.DataFrame:
    """Verdicts of resampled campaigns, by the planted change and by the number of pairs.

    Parameters
    ----------
    quads
        Log ratios of quads, n × 2, of two equal sides or not: what the sides differ by is taken
        out.
    changes
        Planted: every new run takes so much longer, as a share.
    pairs
        Budgets.
    margin, level
        Of the referee.
    campaigns
        Resampled for each change.
    seed
        Of the resampling.

    Returns
    -------
    DataFrame, a row a change and a budget; columns change, pairs; worse, better, within, open:
    shares of the campaigns with this verdict; median_pairs: until the verdict, of the campaigns
    that have one (NaN: none has).

    Raises
    ------
    InputError
        Fewer than 20 quads.

    Notes
    -----
    Stretches of neighbouring quads are drawn, so that dependence between them stays; then a coin
    says for each which side is called new, as when they are measured.

    Examples
    --------
    >>> quads = np.random.default_rng(1).normal(0, 0.02, (60, 2))
    >>> curve = operating_curve(quads, changes=[0.0, 0.05], pairs=[100], campaigns=100)
    >>> curve["worse"].tolist()[0] <= 0.05, curve["worse"].tolist()[1]
    (True, 1.0)
    """
    if len(quads) < FEWEST_QUADS:
        raise InputError(
            f"{2 * len(quads)} pairs say too little of the noise for an operating curve",
            fix=f"measure {2 * FEWEST_QUADS} pairs or more, by a larger budget or a margin that"
            " takes more of them",
        )
    rests = np.asarray(quads) - pseudo_median(np.mean(quads, axis=1))
    drawn = drawn_campaigns(rests, campaigns, max(pairs) // 2, seed)
    rows = []
    for change in changes:
        found = settle(drawn + np.log1p(change), margin, level)
        rows += [_row(change, count, found.units, found.verdicts) for count in pairs]
    return pd.DataFrame(rows, columns=COLUMNS)


def drawn_campaigns(rests: np.ndarray, campaigns: int, size: int, seed: int) -> np.ndarray:
    """Campaigns of `size` quads from stretches of measured ones, sides by a coin.

    Parameters
    ----------
    rests
        Log ratios of quads of equal sides, n × 2, in the order of time.
    campaigns, size, seed
        How many, of how many quads, and the seed of the drawing.

    Returns
    -------
    campaigns × size × 2.
    """
    random = np.random.default_rng(seed)
    length = max(1, round(2 * len(rests) ** (1 / 3)))
    starts = random.integers(len(rests), size=(campaigns, -(-size // length)))
    places = (starts[..., None] + np.arange(length)) % len(rests)
    chosen = rests[places.reshape(campaigns, -1)[:, :size]]
    return chosen * random.choice([-1.0, 1.0], (campaigns, size, 1))


def _row(change: float, pairs: int, units: np.ndarray, verdicts: np.ndarray) -> tuple:
    in_time = np.where(2 * units <= pairs, verdicts, OPEN)
    shares = [float(np.mean(in_time == name)) for name in (WORSE, BETTER, WITHIN, OPEN)]
    known = 2 * units[in_time != OPEN]
    return change, pairs, *shares, float(np.median(known)) if known.size else np.nan


def curve_text(curve: pd.DataFrame) -> str:
    """The curve as lines of text, shares in percent."""
    table = curve.copy()
    for name in ("change", "worse", "better", "within", "open"):
        table[name] = [f"{100 * share:.3g} %" for share in table[name]]
    table["median_pairs"] = [
        "–" if np.isnan(count) else f"{count:.0f}" for count in table["median_pairs"]
    ]
    return table.rename(columns={"median_pairs": "median pairs"}).to_string(index=False)
