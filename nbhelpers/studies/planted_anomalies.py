"""The study of planted anomalies: schedules, a traced run of each, and its config. The campaign
that compares hog and replay stands on page 35.

Owns the design of that study. A case's truth is the schedule of a real hog; the replay knows only
what the trace of one run says: of several traced runs the one of median run time, since a run that
the hypervisor or a neighbour disturbed besides is no picture of the schedule.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..errors import InputError
from ..injection.hog import Hog, Schedule, random_schedule
from ..machine import doctor
from ..measurement import Campaign, Cell, finished
from ..noise import NoiseConfig, delta_noise
from ..statistics import mean_interval
from ..tracing import Tracer, read_traces
from ..workloads import Workload

LOWEST_SHARE, HIGHEST_SHARE = 0.2, 1.0  # of the undisturbed run time, over all CPUs together
MOST_CPUS = 4
NARROW = 0.015  # half of the 95 % interval of a disturbed mean; a wider one needs more runs


def planted_schedules(cases: int, seconds: float, cpus: int, seed: int = 0) -> list[Schedule]:
    """Schedules whose blocks sum to 20 to 100 % of an undisturbed run, evenly spread over the
    cases.

    Parameters
    ----------
    cases
        How many.
    seconds
        Length of an undisturbed run in seconds.
    cpus
        Number of CPUs of the machine; each case disturbs one to four of them, drawn at random.
    seed
        Equal seeds give equal schedules.
    """
    random = np.random.default_rng(seed)
    shares = (
        np.linspace(LOWEST_SHARE, HIGHEST_SHARE, cases)
        if cases > 1
        else [(LOWEST_SHARE + HIGHEST_SHARE) / 2]
    )
    return [
        random_schedule(
            seconds,
            float(share),
            _draw_cpus(random, cpus, float(share)),
            seed=int(random.integers(2**31)),
        )
        for share in shares
    ]


def _draw_cpus(random: np.random.Generator, cpus: int, share: float) -> list[int]:
    """Enough of them that none is taken for more than 90 % of the time."""
    fewest = int(share // 0.9) + 1
    count = int(random.integers(fewest, max(fewest, min(cpus, MOST_CPUS)) + 1))
    return sorted(random.choice(cpus, count, replace=False).tolist())


def traced_configs(
    folder: Path,
    workload: Workload,
    schedules: list[Schedule],
    average: pd.DataFrame,
    seed: int = 0,
    recorded_only: bool = False,
    merge: str = "improved",
    traces: int = 5,
    method: str = "paper",
) -> list[NoiseConfig | None]:
    """Trace runs under each schedule and turn the one of median run time into a noise config;
    nothing of the schedule itself is used.

    Parameters
    ----------
    folder
        The campaign's folder, with its traces in ``traces``.
    workload
        The program.
    schedules
        Schedules, a case each, as `planted_schedules` returns them.
    average
        Average noise of undisturbed runs (`average_noise`).
    seed, recorded_only
        Seed of the campaign, and whether only recorded data are used.
    merge
        What becomes of overlapping events of a CPU, as in `NoiseConfig.from_events`.
    traces
        Traced runs of each case, in rounds of random order; of recorded ones as many as there are,
        but no more.
    method
        How the average is taken off, as in `delta_noise`.

    Returns
    -------
    A config a case; its provenance names the case, the `run` and its `seconds`, and the
    `seconds_of_all` traced runs in order of size. Where nothing is left beyond ordinary runs, all
    noise of the run, and its provenance has `all_noise`. None: its trace has no noise.

    Raises
    ------
    InputError
        No trace has any noise.
    """
    tracer = Tracer(folder / "traces", recorded_only=recorded_only)
    program = tracer.stand_in(workload)
    cells = [
        Cell(f"case {case}", program, attachments=(real_time_hog(schedule), tracer))
        for case, schedule in enumerate(schedules, start=1)
    ]
    runs = finished(
        Campaign(folder, cells, runs=traces, seed=seed, recorded_only=recorded_only).run()
    )
    runs = runs[runs["round"] < traces]
    configs = [
        _config(folder / "traces", runs[runs["cell"] == cell.name], average, merge, method)
        for cell in cells
    ]
    if not any(configs):
        raise InputError("no trace has any noise: there is nothing to replay", where=folder)
    return configs


def real_time_hog(schedule: Schedule) -> Hog:
    """A hog at real-time priority where this user may have it, else at ordinary priority."""
    return Hog(schedule) if doctor().capabilities.fifo else Hog(schedule, priority=0)


def _config(
    traces: Path, runs: pd.DataFrame, average: pd.DataFrame, merge: str, method: str
) -> NoiseConfig | None:
    run = median_run(runs)
    provenance: dict[str, Any] = {
        "case": run["cell"].iloc[0],
        "run": int(run["run"].iloc[0]),
        "seconds": float(run["seconds"].iloc[0]),
        "seconds_of_all": sorted(map(float, runs["seconds"])),
    }
    events = read_traces(traces, run)
    delta = delta_noise(events, average, run, method=method)
    if delta.empty:  # other load made ordinary runs as noisy: all of it, not the end of the study
        delta, provenance["all_noise"] = events, True
    if not delta["duration_ns"].sum():
        return None
    return NoiseConfig.from_events(delta, merge=merge, provenance=provenance)


def median_run(runs: pd.DataFrame) -> pd.DataFrame:
    """The row of the run of median run time; of an even number the faster of the two middle
    ones.
    """
    return runs.sort_values(["seconds", "run"]).iloc[[(len(runs) - 1) // 2]]


def narrow_means(runs: pd.DataFrame) -> bool:
    """Whether the mean run time of each disturbed case is known to ± 1.5 % (half of its 95 %
    interval): enough runs.

    Parameters
    ----------
    runs
        Finished runs; the cell of a case with its hog begins with `disturbed`.
    """
    samples = [
        cell_runs["seconds"]
        for cell, cell_runs in runs.groupby("cell")
        if cell.startswith("disturbed")
    ]
    return all(mean_interval(seconds).half_width_share <= NARROW for seconds in samples)
