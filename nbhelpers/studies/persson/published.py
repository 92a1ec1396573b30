"""The printed tables 3 to 5 of Persson et al. 2025 as evidence, to be judged by the same rule."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from ...statistics.claims import Evidence
from ..design import BENCHMARKS

NOT_READ = "the published tables were not read"
_TRACE = ["platform", "benchmark", "noise_config"]  # a worst-case trace: what was chosen anew
_ROW = ["smt", "model", "config"]


@dataclass(frozen=True, eq=False)
class Published:
    """Logs of the printed means: `slowdown` under noise, and `undisturbed` (the printed time over
    its increase); None: nothing was read.

    Each row is a mean of 200 runs that were measured one after the other, without their spread. So
    what differs by chance is the trace, or without noise the platform.
    """

    table: pd.DataFrame | None

    @classmethod
    def of(cls, published: pd.DataFrame | None) -> "Published":
        """Of tables 3 to 5, one below the other."""
        if published is None:
            return cls(None)
        ratio = 1 + published["increase_percent"] / 100
        return cls(
            published.assign(
                slowdown=np.log(ratio), undisturbed=np.log(published["seconds"] / ratio)
            )
        )

    def slowdown(self, level: str, first: str, second: str) -> Evidence:
        """Slowdowns of two configurations or models under the same trace; the unit is the trace."""
        if self.table is None:
            return Evidence(unmeasurable=NOT_READ)
        pairs = self._differences("slowdown", level, first, second)
        units = pairs[_TRACE].astype(str).agg(" ".join, axis=1)
        return Evidence(pairs["log"].to_numpy(), units, pairs["benchmark"], unit="traces")

    def undisturbed(self, level: str, first: str, second: str, program: str = "") -> Evidence:
        """Undisturbed times of two configurations or models; the unit: program and platform."""
        if self.table is None:
            return Evidence(unmeasurable=NOT_READ)
        pairs = self._differences("undisturbed", level, first, second)
        if program:
            pairs = pairs[pairs["benchmark"] == BENCHMARKS[program]]
        units = pairs["platform"] + " " + pairs["benchmark"]
        unit = "programs on platforms"
        return Evidence(pairs["log"].to_numpy(), units, pairs["benchmark"], unit=unit)

    def _differences(self, column: str, level: str, first: str, second: str) -> pd.DataFrame:
        """`log` (first less second) of rows that agree in everything else."""
        assert self.table is not None
        keys = [*_TRACE, *(name for name in _ROW if name != level)]
        sides = [
            self.table[self.table[level] == name].set_index(keys)[column]
            for name in (first, second)
        ]
        return (sides[0] - sides[1]).rename("log").dropna().reset_index()
