"""Does a counter rise because the run is longer, or is the run longer because it rises?

Owns that judgement. It is made within the fast runs: how a count goes with the run time there is
what a longer run alone does to it. A slow run on the same line is nothing new; one beside it is.
"""

import numpy as np

LINE, JUMP, UNKNOWN = 1, -1, 0
EVIDENCE = 1.0  # log odds from which one of the two is called shown, where one total rises
MOST_EVIDENCE = 3.0  # where many rise, each of which could be taken for a cause by chance
LARGEST_POWER = 1.5  # a count that rises faster than this power of the run time does more
PROPORTION = 1.3  # what cannot be told counts as a consequence up to this power
TIGHT = 0.7  # correlation with the run time that a consequence has, where no rate is known


class PowerLaw:
    """How each total goes with the run time: among the fast runs, and on to the slow ones.

    Parameters
    ----------
    totals
        n × k, not negative.
    times
        n run times, positive.
    slow
        n booleans, of which some are True and some False.
    rising
        k booleans: which of the totals are associated with a longer run.

    Attributes
    ----------
    within, within_error
        Power of the run time by which the total grows among the fast runs, and its standard error.
    across, across_error
        Power that would take the total from the fast to the slow runs.
    correlation
        With the run time over all runs, of relative deviations.

    Notes
    -----
    Two accounts are compared by their likelihood: one line through both classes (the power within
    the fast runs is the one across the classes), and a jump (within the fast runs the total does
    not depend on the run time).
    """

    def __init__(self, totals: np.ndarray, times: np.ndarray, slow: np.ndarray, rising: np.ndarray):
        self._evidence = min(MOST_EVIDENCE, EVIDENCE + np.log(max(int(rising.sum()), 1)))
        fast, logs = ~slow, np.log(times)
        # of what never happens in fast runs the ratio is large, but finite
        floor = 1e-6 * np.abs(totals).mean(axis=0) + 1e-300
        means = np.maximum(totals[fast].mean(axis=0), floor)
        relative = totals / means - 1
        self.within, self.within_error = _slopes(relative[fast], logs[fast])
        longer = logs[slow].mean() - logs[fast].mean()
        ratios = np.maximum(totals[slow].mean(axis=0) / means, 1e-6)
        noise = _squared_error(relative[slow]) / ratios**2 + _squared_error(relative[fast])
        self.across = np.log(ratios) / longer
        self.across_error = np.sqrt(noise) / longer
        self.correlation = _correlations(relative, logs)

    def verdicts(self) -> np.ndarray:
        """LINE, JUMP or UNKNOWN, for each total."""
        own = np.maximum(self.within_error**2, 1e-12)
        both = own + self.across_error**2
        # a power below 0 speaks for no rise at all, and no more than that
        within = np.maximum(self.within, 0)
        odds = (within**2 / own - (within - self.across) ** 2 / both) / 2
        shown = np.abs(odds) > self._evidence
        return np.where(shown, np.where(odds > 0, LINE, JUMP), UNKNOWN)

    def consequences(self) -> np.ndarray:
        """Which totals are no more than a longer run would have."""
        verdicts, rises = self.verdicts(), self.across > 0
        on_line = (verdicts == LINE) & (self.across <= LARGEST_POWER)
        in_doubt = (verdicts == UNKNOWN) & (self.across <= PROPORTION)
        return rises & (on_line | in_doubt)

    def jumps(self) -> np.ndarray:
        """Which totals are off the line in the slow runs."""
        return self.verdicts() == JUMP


def _slopes(relative: np.ndarray, logs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Least-squares slope of each column, and its standard error."""
    centred, values = logs - logs.mean(), relative - relative.mean(axis=0)
    length = max(float(centred @ centred), 1e-300)
    slopes = centred @ values / length
    left = values - centred[:, None] * slopes
    return slopes, np.sqrt((left**2).sum(axis=0) / max(len(logs) - 2, 1) / length)


def _squared_error(relative: np.ndarray) -> np.ndarray:
    """Squared standard error of the mean of each column."""
    return relative.var(axis=0, ddof=1 if len(relative) > 1 else 0) / len(relative)


def _correlations(relative: np.ndarray, logs: np.ndarray) -> np.ndarray:
    centred, values = logs - logs.mean(), relative - relative.mean(axis=0)
    lengths = np.sqrt((centred @ centred) * (values**2).sum(axis=0))
    return centred @ values / np.maximum(lengths, 1e-300)
