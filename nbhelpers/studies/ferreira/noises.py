"""What a detour loop loses under a signature, which its window holds whole; the campaigns of
stage 70 stand on the page.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from ...injection import Injector
from ...injection.observed_loss import meets_an_event
from ...noise.signature import Signature
from ...tracing import DetourTracer, read_detours_run


def staggered(signature: Signature, cpus: Sequence[int]) -> Signature:
    """The signature with the CPUs' first events spread evenly over the first period.

    No event is cut at the ends of the window then. What is co-scheduled stays so.
    """
    if signature.simultaneous:
        return signature
    period_us = 1e6 / signature.frequency_hz
    phase = {cpu: period_us * (i + 0.5) / len(cpus) for i, cpu in enumerate(cpus)}
    return signature.with_(phase=phase, coscheduled=False)


class LostShares(DetourTracer):
    """Adds what the loop lost as columns; keeps the detours of the first run only."""

    def __init__(self, folder: str | Path, injector: Injector | None):
        super().__init__(folder)
        self._injector, self._kept = injector, False

    def after(self, run: dict) -> dict:
        """The columns `lost_share` and, where noise was injected, `met_share`."""
        columns = super().after(run)
        path = self.folder / f"run-{run['run']:06d}.detours.gz"
        if not path.exists() or columns["trace_lost"]:
            return columns
        detours = read_detours_run(path)
        columns["lost_share"] = _mean_share(detours)
        if self._injector is not None and run["run"] in self._injector.logs:
            log = self._injector.logs.pop(run["run"])
            later_ns = int(run["start_ns"] - run["t0_ns"])
            moved = detours.assign(
                start_ns=detours["start_ns"] + later_ns, end_ns=detours["end_ns"] + later_ns
            )
            met = detours[meets_an_event(log, moved)]
            met.attrs = detours.attrs
            columns["met_share"] = _mean_share(met)
        if self._kept:
            path.unlink()
        self._kept = True
        return columns


def _mean_share(detours: pd.DataFrame) -> float:
    """Share of the watched time that the detours take, mean of the CPUs."""
    lost_ns = detours.groupby("cpu")["duration_ns"].sum()
    watched = detours.attrs["watched"].items()
    return float(np.mean([lost_ns.get(cpu, 0) / (end - begin) for cpu, (begin, end) in watched]))
