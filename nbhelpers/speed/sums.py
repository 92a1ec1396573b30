"""Sums of columns over intervals, as functions of time.

Owns that interpolation.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd


class Sums:
    """Sums of columns over intervals up to a moment, as functions of time."""

    def __init__(self, intervals: pd.DataFrame, columns: Sequence[str]):
        intervals = intervals.sort_values("start_ns")
        self._at = intervals[["start_ns", "end_ns"]].to_numpy(float).ravel()
        self._sums = []
        for name in columns:
            after = intervals[name].cumsum().to_numpy(float)
            before = np.append(0.0, after[:-1])
            self._sums.append(np.column_stack([before, after]).ravel())

    def between(self, start_ns: np.ndarray, end_ns: np.ndarray) -> np.ndarray:
        """The sums within each interval, a row for each column."""
        return np.array(
            [
                np.interp(end_ns, self._at, sums) - np.interp(start_ns, self._at, sums)
                for sums in self._sums
            ]
        )
