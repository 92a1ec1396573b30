"""What a program loses during a replay: the detour loop runs in its place and records every time
that it was without its CPU.

Owns that run: the loop, pinned to each CPU, under the config, with each event where it was
recorded; and which gaps of a loop meet an injected event.
"""

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..errors import InputError
from ..measurement import Attachment, Campaign, Cell, finished
from ..noise import NoiseConfig
from ..noise._vocabulary import REAL_TIME
from ..tracing import DetourTracer, detour_workload, read_detours_run
from .injector import Injector
from .log import DONE, noise_ns, occupies, read_logs

_SHIELD_PRIORITY = 10
_CELL = "observed loss"


class Shield(Attachment):
    """Puts the threads of the run above all ordinary programs of the machine, below injected
    real-time noise.
    """

    def armed(self, pid: int) -> None:
        with suppress(PermissionError):  # then nothing else is real-time either
            for thread in os.listdir(f"/proc/{pid}/task"):
                os.sched_setscheduler(int(thread), os.SCHED_FIFO, os.sched_param(_SHIELD_PRIORITY))


def observe_loss(
    folder: Path,
    config: NoiseConfig,
    recorded_only: bool = False,
    **options: Any,
) -> pd.DataFrame:
    """Run the detour loop under a config one time, and read what it lost to each event.

    Events of a CPU should be some milliseconds apart: a gap of the loop counts for each event that
    it meets. The loop runs under SCHED_FIFO 10 where that is permitted, so that other programs of a
    busy machine do not interrupt it. Ordinary noise cannot either, so the config must have none.

    Parameters
    ----------
    folder
        Folder of such runs; each config gets a folder in it.
    config
        What to inject.
    recorded_only
        True: use recorded data, measure nothing.
    options
        Options of `Injector`; the default of `placement` is "origin" here.

    Returns
    -------
    DataFrame
        One row an injected event: `cpu`, `event`, `kind`, `planned_ms` (start), `planned_us`
        (length, with what the event carries of others), `injected_us` (what it took by the
        injector's log), `observed_us` (whole length of the gaps that overlap the event; NaN where
        the loop did not look from the beginning of the event to its end).

    Raises
    ------
    InputError
        The loop cannot be interrupted by some events of the config.
    LostEvents
        More gaps than the loop has room for.
    """
    if not set(config.events()["policy"].astype(str)) <= set(REAL_TIME):
        raise InputError(
            "a shielded loop cannot be interrupted by ordinary noise",
            where=repr(config),
            fix="choose a config of real-time noise only",
        )
    folder = Path(folder) / config.digest
    attachments: tuple[Attachment, ...] = ()
    if not recorded_only:
        defaults: dict[str, Any] = {"placement": "origin", "log_folder": folder / "logs"}
        attachments = (Injector(config, **(defaults | options)), DetourTracer(folder), Shield())
    workload = detour_workload(config.window_ns / 1e9, folder)
    cell = Cell(_CELL, workload, noise=config.digest, attachments=attachments)
    runs = finished(Campaign(folder, [cell], runs=1, recorded_only=recorded_only).run())
    return _losses(read_logs(folder / "logs", runs), folder, runs.iloc[0])


def _losses(log: pd.DataFrame, folder: Path, run: pd.Series) -> pd.DataFrame:
    detours = read_detours_run(folder / f"run-{int(run['run']):06d}.detours.gz")
    later_ns = int(run["start_ns"] - run["t0_ns"])  # the log's times are from t0
    done = log[log["outcome"].isin(DONE) & occupies(log)]
    observed_ns = pd.Series(np.nan, done.index)
    watched = detours.attrs["watched"]  # of the CPUs that this process may use
    for cpu, events in done[done["ran_on"].isin(watched)].groupby("ran_on"):
        first, last = (time + later_ns for time in watched[cpu])
        gaps = detours[detours["cpu"] == cpu].sort_values("start_ns")
        seen = (events["taken_ns"] >= first) & (events["end_ns"] <= last)
        lost_ns = _lost_ns(events, gaps["start_ns"] + later_ns, gaps["end_ns"] + later_ns)
        observed_ns[events.index] = lost_ns.where(seen)
    table = {
        "cpu": done["ran_on"],
        "event": done["event"],
        "kind": done["kind"],
        "planned_ms": done["replay_start_ns"] / 1e6,
        "planned_us": done["replayed_ns"] / 1e3,
        "injected_us": noise_ns(done) / 1e3,
        "observed_us": observed_ns / 1e3,
    }
    return pd.DataFrame(table).reset_index(drop=True)


def _lost_ns(events: pd.DataFrame, start_ns: pd.Series, end_ns: pd.Series) -> pd.Series:
    """Length of all gaps that overlap each event of a CPU; gaps are in the order of time."""
    first = np.searchsorted(end_ns, events["taken_ns"], side="right")
    last = np.maximum(np.searchsorted(start_ns, events["end_ns"], side="left"), first)
    so_far = np.concatenate([[0], np.cumsum(end_ns - start_ns)])
    return pd.Series((so_far[last] - so_far[first]).astype(float), events.index)


def meets_an_event(events: pd.DataFrame, gaps: pd.DataFrame) -> np.ndarray:
    """Which gaps overlap an event on the same CPU, as bool; the others are the machine's."""
    met = np.zeros(len(gaps), bool)
    for cpu, on_cpu in events.groupby("ran_on"):
        here = (gaps["cpu"] == cpu).to_numpy()
        gap_start_ns, gap_end_ns = (gaps[name].to_numpy()[here] for name in ("start_ns", "end_ns"))
        begun = np.searchsorted(np.sort(on_cpu["taken_ns"].to_numpy()), gap_end_ns, side="left")
        ended = np.searchsorted(np.sort(on_cpu["end_ns"].to_numpy()), gap_start_ns, side="right")
        met[here] = begun > ended
    return met
