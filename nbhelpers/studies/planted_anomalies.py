"""What page 35 does not write out itself: the hog that a schedule of it is followed by, and how
many runs are enough.
"""

import pandas as pd

from ..injection.hog import Hog, Schedule
from ..machine import doctor
from ..statistics import mean_interval

NARROW = 0.015  # half of the 95 % interval of a disturbed mean; a wider one needs more runs


def real_time_hog(schedule: Schedule) -> Hog:
    """A hog at real-time priority where this user may have it, else at ordinary priority."""
    return Hog(schedule) if doctor().capabilities.fifo else Hog(schedule, priority=0)


def narrow_means(runs: pd.DataFrame) -> bool:
    """Whether the mean run time of each disturbed case is known to ± 1.5 % (half of its 95 %
    interval): enough runs.

    Parameters
    ----------
    runs
        Finished runs; the cell of a case with its hog begins with `disturbed`.
    """
    disturbed = runs[runs["cell"].str.startswith("disturbed")].groupby("cell")["seconds"]
    means = [mean_interval(seconds) for _, seconds in disturbed]
    return all((mean.high - mean.low) / 2 <= NARROW * mean.value for mean in means)
