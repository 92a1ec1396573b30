"""How fast a program is today, beside when the noise was recorded that is injected into it.

Owns what the times of an injection are multiplied by. The plain way injects at the recorded times:
a program that is faster today ends before it has met all of its noise
(benchmarks/foreign_worst.py measures both).
"""

from collections import deque

import pandas as pd

from ..measurement import Attachment, region_seconds

LATEST = 5  # undisturbed runs


class Pace(Attachment):
    """Accompanies the undisturbed runs of a campaign, for the injectors of its other runs.

    Parameters
    ----------
    ordinary
        Runs table: ordinary runs of the time when the noise was recorded.

    Examples
    --------
    >>> import pandas as pd
    >>> pace = Pace(pd.DataFrame({"region_seconds": [1.0, 1.2, 1.4]}))
    >>> pace.factor, pace.after({"status": "ok", "region_seconds": 0.9}), pace.factor
    (1.0, {}, 0.75)
    """

    def __init__(self, ordinary: pd.DataFrame):
        self._ordinary_s = float(region_seconds(ordinary).median())
        self._latest_s: deque[float] = deque(maxlen=LATEST)

    @property
    def factor(self) -> float:
        """The fastest of the last five undisturbed runs over the median ordinary one; 1 before the
        first. The fastest: noise that comes too early is met, noise after the end of a run is not.
        """
        return round(min(self._latest_s) / self._ordinary_s, 2) if self._latest_s else 1.0

    def after(self, run: dict) -> dict:
        """Note how long it took."""
        if run["status"] == "ok":
            self._latest_s.append(run["region_seconds"])
        return {}
