"""The first campaign of stage 70: a detour loop on each CPU, without noise and under each
signature, in turn. The signatures, and the campaign of N-body, stand on the page.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from ...errors import InputError
from ...injection import Injector, Rules
from ...injection.observed_loss import Shield, meets_an_event
from ...measurement import Campaign, Cell, finished
from ...noise import NoiseConfig
from ...noise.signature import Signature
from ...tracing import DetourTracer, detour_workload, read_detours_run

CARRIED = "short events carried"
QUIET = "none"
# A signature is its frequency, too: no event is carried by another, however short.
_SHAPE_KEPT = Rules(shortest_us=0.0)


def whole_periods(frequencies_hz: Sequence[str], loop_seconds: float) -> list[float]:
    """Frequencies of which a loop holds a whole number of periods, so that each run has its exact
    share.

    Parameters
    ----------
    frequencies_hz
        Frequencies in Hz, as numbers or words.
    loop_seconds
        Length of a loop.

    Raises
    ------
    InputError
        A period that the loop does not hold a whole number of times.

    Examples
    --------
    >>> whole_periods(["10", "1000"], 0.8)
    [10.0, 1000.0]
    """
    for hz in map(float, frequencies_hz):
        periods = hz * loop_seconds
        if periods < 0.5 or abs(periods - round(periods)) > 1e-9:
            raise InputError(
                f"{loop_seconds:g} s are not a whole number of periods of {hz:g} Hz",
                where="loop_seconds",
                why="the loop would lose more or less than the share, by where the window ends",
                fix="choose a multiple of all periods, for instance 0.8",
            )
    return [float(hz) for hz in frequencies_hz]


def staggered(signature: Signature, cpus: Sequence[int]) -> Signature:
    """The signature with the CPUs' first events spread evenly over the first period.

    No event is cut at the ends of the window then. What is co-scheduled stays so.
    """
    if signature.simultaneous:
        return signature
    period_us = 1e6 / signature.frequency_hz
    phase = {cpu: period_us * (i + 0.5) / len(cpus) for i, cpu in enumerate(cpus)}
    return signature.with_(phase=phase, coscheduled=False)


def loop_configs(
    signatures: Mapping[str, Signature], cpus: Sequence[int], seconds: float
) -> dict[str, NoiseConfig]:
    """What is injected into loops of this length, by the signatures' names."""
    return {name: staggered(one, cpus).config(seconds, cpus) for name, one in signatures.items()}


def loop_runs(
    folder: Path,
    configs: Mapping[str, NoiseConfig],
    rounds: int,
    seconds: float,
    seed: int = 0,
    recorded_only: bool = False,
) -> pd.DataFrame:
    """Run a loop on each CPU without noise and under each config, in turn.

    Parameters
    ----------
    folder
        The campaign's folder.
    configs
        Noise configs by name, as `loop_configs` makes them.
    rounds
        Each has one run of every cell, in random order.
    seconds
        Length of a run, a whole number of every period. Below 0.95 s: after that the kernel lets
        ordinary tasks in.
    seed
        Seed of the random order.
    recorded_only
        True: use recorded data, measure nothing.

    Returns
    -------
    The finished runs, with `lost_share` (mean of the CPUs) and `met_share` (of it the detours that
    overlap an injected event).
    """
    workload = detour_workload(seconds, folder, fixed="time")
    # reverse order at the end: the injector's log is there when the loop's file is read
    cells = [Cell(QUIET, workload, attachments=(LostShares(folder, None), Shield()))]
    for name, config in configs.items():
        rules = None if CARRIED in name else _SHAPE_KEPT
        injector = Injector(
            config, "origin", rules=rules, keep_logs=True, recorded_only=recorded_only
        )
        beside = (LostShares(folder, injector), injector, Shield())
        cells.append(Cell(name, workload, config.digest, beside, (QUIET,)))
    return finished(Campaign(folder, cells, rounds, seed, recorded_only).run())


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
