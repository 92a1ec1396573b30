"""How many rounds a trial needs, and how many mitigations a budget allows, by what the first
measurement shows of the spread of the runs.

Owns the forecasts. Fewer mitigations with enough rounds are better than many that show nothing.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from ..outcomes import COST, with_cost
from ..statistics.claims import LEVEL, Judgement
from .trials import TIME_MARGIN

FEWEST_ROUNDS = 12
MOST_ROUNDS = 100
POWER = 0.95  # of the trial, and of the confirmation
GAIN_SHARE = 0.7  # of what a mitigation would gain that removes the cause altogether


def expected_gain(runs: pd.DataFrame, slow: Sequence[bool] | np.ndarray) -> tuple[float, float]:
    """What a mitigation gains that takes most of the slowness away, and the spread of a round.

    Parameters
    ----------
    runs
        Of the first measurement.
    slow
        Which of them are slow.

    Returns
    -------
    The mean log ratio of treated to untreated runs, made positive, and its standard deviation by
    round. The gain is at least the margin within which a change counts as none.

    Examples
    --------
    >>> runs = pd.DataFrame({"seconds": [1.0, 1.0, 2.0, 2.0]})
    >>> gain, spread = expected_gain(runs, [False, False, True, True])
    >>> round(gain, 2), round(spread, 2)
    (0.24, 0.4)
    """
    logs = np.log(with_cost(runs)[COST].to_numpy(float))
    fast = logs[~np.asarray(slow, bool)]
    gain = GAIN_SHARE * float(logs.mean() - fast.mean()) if fast.size else 0.0
    spread = float(np.sqrt(logs.var(ddof=1) + (fast.var(ddof=1) if fast.size > 1 else 0.0)))
    return max(gain, TIME_MARGIN), spread


def rounds_to_show(gain: float, spread: float, claims: int = 1) -> int:
    """Rounds in which a change is shown with a probability of 95 %.

    Parameters
    ----------
    gain, spread
        Mean and standard deviation of the log ratio of a round.
    claims
        That are judged together with it, itself included.

    Returns
    -------
    At least 12.

    Examples
    --------
    >>> rounds_to_show(0.7, 0.8), rounds_to_show(0.1, 0.2, claims=8)
    (19, 79)
    """
    from scipy.stats import norm

    quantiles = norm.ppf(1 - LEVEL / (2 * claims)) + norm.ppf(POWER)
    # two more, since the spread is estimated from these very rounds
    return max(FEWEST_ROUNDS, int(np.ceil((quantiles * spread / gain) ** 2)) + 2)


def rounds_to_confirm(judgement: Judgement) -> int:
    """Rounds in which most of an effect that was seen is shown again.

    Parameters
    ----------
    judgement
        Of the trial that showed it.
    """
    from scipy.stats import t

    effect, low, high = np.log1p([judgement.effect, judgement.low, judgement.high])
    error = (high - low) / 2 / t.ppf(0.975, judgement.units - 1)
    spread = float(error * np.sqrt(judgement.units))
    return rounds_to_show(GAIN_SHARE * abs(float(effect)), spread)


def affordable_trials(
    seconds: float, round_s: float, wanted: int, gain: float, spread: float
) -> int:
    """How many mitigations can be tried in rounds enough, with the best measured again.

    Parameters
    ----------
    seconds
        That are left.
    round_s
        One round of a treated and an untreated run.
    wanted
        How many there are to try.
    gain, spread
        Of `expected_gain`.

    Returns
    -------
    At least 1, also where the time does not suffice for it.

    Examples
    --------
    >>> affordable_trials(60, 0.4, wanted=6, gain=0.7, spread=0.8)
    4
    """
    for tried in range(wanted, 1, -1):
        rounds = min(rounds_to_show(gain, spread, 2 * tried), MOST_ROUNDS)
        if (tried + 1) * rounds * round_s <= seconds:
            return tried
    return 1
