"""The two campaigns of stage 70: a detour loop on each CPU, and N-body alone and as a team, without
noise and under each signature, in turn. The signatures stand on the page.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ...errors import InputError
from ...injection import Injector, Rules
from ...injection.observed_loss import Shield, meets_an_event
from ...measurement import Campaign, Cell, calibrate, finished
from ...noise import NoiseConfig
from ...noise.signature import Signature
from ...tracing import DetourTracer, detour_workload, read_detours_run
from ...workloads.configuration import Configuration

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


def loop_detours(folder: Path, runs: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """What the loop lost over time, in the first run of each of these signatures.

    Returns
    -------
    `signature`, `cpu`, `start_ns`, `duration_ns`; without those that were not kept.
    """
    columns = ["signature", "cpu", "start_ns", "duration_ns"]
    first = runs.sort_values("run").drop_duplicates("cell").set_index("cell")["run"]
    paths = {name: _file(folder, int(first[name])) for name in names if name in first}
    parts = [
        read_detours_run(path).assign(signature=name)[columns]
        for name, path in paths.items()
        if path.exists()
    ]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)


def _file(folder: Path, run: int) -> Path:
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
        path = _file(self.folder, run["run"])
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


def program_runs(
    folder: Path,
    signatures: Mapping[str, Signature],
    cpus: Sequence[int],
    rounds: int,
    seconds: float,
    seed: int = 0,
    recorded_only: bool = False,
) -> pd.DataFrame:
    """Run N-body without noise and under each signature: one thread, which waits for nobody, and a
    team of a thread a CPU, which meets at barriers.

    All runs are shielded (SCHED_FIFO 10), so that no ordinary program interrupts them.

    Parameters
    ----------
    folder, rounds, seed, recorded_only
        The campaign's folder, number of rounds, seed, and whether only to read; see `loop_runs`.
    signatures, cpus
        Signatures by name, and the CPUs on which noise is injected.
    seconds
        Length of an undisturbed run.

    Returns
    -------
    The finished runs; `program` and `signature` say what each is.
    """
    teams = {"one thread": list(cpus)[:1]} | ({"team": list(cpus)} if len(cpus) > 1 else {})
    cells = []
    for program, places in teams.items():
        file, threads = folder / f"nbody-{len(places)}.json", len(places)
        options: dict[str, Any] = {"threads": threads, "recorded_only": recorded_only}
        workload = calibrate("nbody", target_seconds=seconds, file=file, **options)
        place = Configuration(program, "threads", "TP", tuple(places), (), threads)
        workload, quiet = place.of(workload), f"{program}: {QUIET}"
        cells.append(Cell(quiet, workload, "none", (Shield(),), ()))
        for name, signature in signatures.items():
            if threads == 1 and signature.simultaneous:
                continue  # of one CPU that is the periodic signature
            # a run that is slow for other reasons must still have noise at its end
            config = staggered(signature, places).config(3 * seconds, places)
            noise = Injector(config, "origin", rules=_SHAPE_KEPT, recorded_only=recorded_only)
            beside = (noise, Shield())
            cells.append(Cell(f"{program}: {name}", workload, config.digest, beside, (quiet,)))
    runs = Campaign(folder, cells, rounds, seed, recorded_only).run()
    names = runs["cell"].str.split(": ", n=1, expand=True)
    return finished(runs.assign(program=names[0], signature=names[1]))
