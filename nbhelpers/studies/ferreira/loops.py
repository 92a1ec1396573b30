"""Noise signatures on real CPUs: a detour loop on each measures what the injector takes.

Owns the campaign of loops of stage 70: every signature and no noise, in turn.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from ...injection import Injector, Rules
from ...injection.observed_loss import Shield, meets_an_event
from ...measurement import Attachment, Cell, finished
from ...noise import NoiseConfig
from ...tracing import DetourTracer, detour_workload, read_detours_run
from .design import CARRIED, QUIET, SignatureCampaign, staggered

# A signature is its frequency, too: no event is carried by another, however short.
SHAPE_KEPT = Rules(shortest_us=0.0)


@dataclass(frozen=True)
class Loops(SignatureCampaign):
    """The loops of the stage: what they lost under each signature, and without noise.

    Parameters
    ----------
    folder, signatures, rounds, seed, recorded_only
        As in `SignatureCampaign`.
    cpus
        A loop runs on each.
    seconds
        Length of a run, a whole number of every period. Below 0.95 s: after that the kernel lets
        ordinary tasks in.
    """

    @cached_property
    def configs(self) -> dict[str, NoiseConfig]:
        """What is injected, by name."""
        return {
            name: staggered(one, self.cpus).config(self.seconds, self.cpus)
            for name, one in self.signatures.items()
        }

    @cached_property
    def runs(self) -> pd.DataFrame:
        """The finished runs, with `lost_share` (mean of the CPUs) and `met_share` (of it the
        detours that overlap an injected event).
        """
        workload = detour_workload(self.seconds, self.folder, fixed="time")
        cells = [Cell(QUIET, workload, attachments=self._attachments(None))] + [
            Cell(
                name,
                workload,
                noise=config.digest,
                attachments=self._attachments(config, None if CARRIED in name else SHAPE_KEPT),
                compared_with=(QUIET,),
            )
            for name, config in self.configs.items()
        ]
        return finished(self._measured(cells))

    def detours(self, names: Sequence[str]) -> dict[str, pd.DataFrame]:
        """What the loop lost over time, in the first run of each of these signatures."""
        first = self.runs.sort_values("run").drop_duplicates("cell").set_index("cell")["run"]
        found = {}
        for name in names:
            path = file_of_run(self.folder, int(first[name]))
            if path.exists():
                detours = read_detours_run(path)
                detours.attrs["seconds"] = self.seconds
                found[name] = detours
        return found

    def _attachments(
        self, config: NoiseConfig | None, rules: Rules | None = None
    ) -> tuple[Attachment, ...]:
        if self.recorded_only:
            return ()
        # reverse order at the end: the injector's log is there when the loop's file is read
        if config is None:
            return LostShares(self.folder, None), Shield()
        injector = Injector(config, "origin", rules=rules, keep_logs=True)
        return LostShares(self.folder, injector), injector, Shield()


def file_of_run(folder: Path, run: int) -> Path:
    """The detours of a run, where they were kept."""
    return Path(folder) / f"run-{run:06d}.detours.gz"


class LostShares(DetourTracer):
    """Adds what the loop lost as columns; keeps the detours of the first run only."""

    def __init__(self, folder: str | Path, injector: Injector | None):
        super().__init__(folder)
        self._injector, self._kept = injector, False

    def after(self, run: dict) -> dict:
        """The columns `lost_share` and, where noise was injected, `met_share`."""
        columns = super().after(run)
        path = file_of_run(self.folder, run["run"])
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
    shares = [
        lost_ns.get(cpu, 0) / (end - begin)
        for cpu, (begin, end) in detours.attrs["watched"].items()
    ]
    return float(np.mean(shares))
