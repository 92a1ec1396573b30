"""What a program loses during a replay: the detour loop runs in its place and records every time
that it was without its CPU.

Owns that run: the loop, pinned to each CPU, under the config, with each event where it was
recorded.
"""

import os
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..errors import InputError
from ..measurement import Attachment, Campaign, Cell, finished
from ..noise import NoiseConfig
from ..tracing import DetourTracer, detour_workload, read_detours_run
from ._limits import REALTIME
from .injector import Injector
from .log import DONE, noise_ns, occupies, read_logs, replay_start_ns, replayed_ns

_SHIELD_PRIORITY = 10
_CELL = "observed loss"
_DEMONSTRATION_US = (50, 100, 200, 500, 1000, 1500, 2000, 3000, 4000, 8000)


@dataclass(frozen=True)
class ObservedLoss:
    """One replay: what the injector logged, and what a loop in the program's place lost.

    Attributes
    ----------
    log
        The injection log, one row an event; times from t0.
    gaps
        One row an interruption of the loop: `cpu`, `start_ns`, `end_ns`, `duration_ns`, from t0.
        Interruptions by the machine itself are among them.
    run
        The row of the runs table.
    watched
        When the loop looked: cpu -> (from, to), ns from t0. A CPU that is missing here was watched
        all the time.
    """

    log: pd.DataFrame
    gaps: pd.DataFrame
    run: pd.Series
    watched: Mapping[int, tuple[int, int]] = field(default_factory=dict)

    def __repr__(self) -> str:
        return (
            f"ObservedLoss({len(self.log)} events planned, {len(self.gaps)} gaps observed,"
            f" {self.gaps['duration_ns'].sum() / 1e6:.2f} ms)"
        )

    @property
    def drawn(self) -> pd.DataFrame:
        """The log with `took_ns`, what each event took, as `figure_observed_loss` draws it."""
        return self.log.assign(took_ns=noise_ns(self.log))

    def table(self) -> pd.DataFrame:
        """What the loop lost to each injected event.

        Returns
        -------
        One row an injected event: `cpu`, `event`, `kind`, `planned_ms` (start), `planned_us`
        (length, with what the event carries of others), `injected_us` (`noise_ns`), `observed_us`
        (whole length of the gaps that overlap the event). `observed_us` is NaN where the loop did
        not look from the beginning of the event to its end.
        """
        done = self.log[self.log["outcome"].isin(DONE) & occupies(self.log)]
        observed_ns = pd.Series(np.nan, done.index)
        for cpu, events in done.groupby("ran_on"):
            observed_ns[events.index] = self._observed_ns(int(cpu), events)
        return pd.DataFrame(
            {
                "cpu": done["ran_on"],
                "event": done["event"],
                "kind": done["kind"],
                "planned_ms": replay_start_ns(done) / 1e6,
                "planned_us": replayed_ns(done) / 1e3,
                "injected_us": noise_ns(done) / 1e3,
                "observed_us": observed_ns / 1e3,
            }
        ).reset_index(drop=True)

    def sentences(self) -> list[str]:
        """What a replayed event costs, in a sentence."""
        table = self.table().dropna(subset="observed_us")
        if not len(table):
            return [
                "What a replayed event costs is not known here: none lay within the time in which"
                " the loop looked."
            ]
        more_us = (table["observed_us"] - table["planned_us"]).median()
        sign = "−" if more_us < 0 else "+"
        return [
            f"A replayed event costs its length {sign} {abs(more_us):.1f} µs (median of"
            f" {len(table)})."
        ]

    def _observed_ns(self, cpu: int, events: pd.DataFrame) -> pd.Series:
        first, last = self.watched.get(cpu, (-np.inf, np.inf))
        lost_ns = _lost_ns(events, self.gaps[self.gaps["cpu"] == cpu])
        return lost_ns.where((events["taken_ns"] >= first) & (events["end_ns"] <= last))


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
    seconds: float | None = None,
    recorded_only: bool = False,
    shielded: bool = False,
    **options: Any,
) -> ObservedLoss:
    """Run the detour loop under a config one time, and read what it lost.

    Parameters
    ----------
    folder
        Of such runs; each config gets a folder in it.
    config
        What to inject.
    seconds
        Undisturbed time that each loop needs; None: the config's window.
    recorded_only
        True: use recorded data, measure nothing.
    shielded
        The loop runs under SCHED_FIFO 10 where that is permitted, so that other programs of a busy
        machine do not interrupt it. Ordinary noise cannot either, so the config must have none.
    options
        Of `Injector`; the default of `placement` is "origin" here.

    Raises
    ------
    InputError
        The loop is shielded from events of the config.
    LostEvents
        More gaps than the loop has room for.
    """
    if shielded and not set(config.events()["policy"].astype(str)) <= set(REALTIME):
        raise InputError(
            "a shielded loop cannot be interrupted by ordinary noise",
            where=repr(config),
            fix="shielded=False, or a config of real-time noise only",
        )
    folder = Path(folder) / config.digest
    workload = detour_workload(seconds or config.window_ns / 1e9, folder)
    attachments: tuple[Attachment, ...] = ()
    if not recorded_only:
        defaults: dict[str, Any] = {"placement": "origin", "log_folder": folder / "logs"}
        attachments = (Injector(config, **(defaults | options)), DetourTracer(folder))
        attachments += (Shield(),) if shielded else ()
    cell = Cell(_CELL, workload, noise=config.digest, attachments=attachments)
    runs = finished(Campaign(folder, [cell], runs=1, recorded_only=recorded_only).run())
    run = runs.iloc[0]
    gaps, watched = _read_gaps(folder, run)
    return ObservedLoss(read_logs(folder / "logs", runs), gaps, run, watched)


def _read_gaps(folder: Path, run: pd.Series) -> tuple[pd.DataFrame, dict[int, tuple[int, int]]]:
    """The gaps of a run and when its loops looked, from t0 instead of the begin of the region."""
    detours = read_detours_run(folder / f"run-{int(run['run']):06d}.detours.gz")
    later_ns = int(run["start_ns"] - run["t0_ns"])
    gaps = detours[["cpu", "start_ns", "end_ns", "duration_ns"]].assign(
        start_ns=detours["start_ns"] + later_ns, end_ns=detours["end_ns"] + later_ns
    )
    watched = {
        cpu: (first + later_ns, last + later_ns)
        for cpu, (first, last) in detours.attrs["watched"].items()
    }
    return gaps, watched


def demonstration_noise(cpus: Collection[int], seed: int = 0) -> NoiseConfig:
    """A config that is easy to follow in a figure: ten events of 50 µs to 8 ms on each CPU.

    They look like interrupts and lie in random order over 0.14 s.

    Parameters
    ----------
    cpus
        CPUs to disturb.
    seed
        Equal seeds give equal configs.
    """
    random = np.random.default_rng(seed)
    lengths_us = np.tile(_DEMONSTRATION_US, (len(cpus), 1))
    starts_us = (
        np.arange(lengths_us.shape[1]) * 14_000 + 2000 + random.uniform(0, 4000, lengths_us.shape)
    )
    table = {
        "cpu": np.repeat(sorted(cpus), lengths_us.shape[1]),
        "start_ns": (starts_us * 1e3).ravel().astype(np.int64),
        "duration_ns": random.permuted(lengths_us, axis=1).ravel() * 1000,
    }
    return NoiseConfig.from_events(
        pd.DataFrame(table).assign(run=0, kind="irq", source="demonstration"),
        provenance={"demonstration": seed},
    )


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


def gaps_of_events(events: pd.DataFrame, gaps: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """When the first gap that overlaps each event of a CPU began (NaN: there is none), and the
    length of all of them, ns.
    """
    gaps = gaps.sort_values("start_ns")
    first = np.searchsorted(gaps["end_ns"].to_numpy(), events["taken_ns"].to_numpy(), side="right")
    lost_ns = _lost_ns(events, gaps).to_numpy()
    begin = np.append(gaps["start_ns"].to_numpy(float), np.nan)[first]
    return np.where(lost_ns > 0, begin, np.nan), lost_ns


def _lost_ns(events: pd.DataFrame, gaps: pd.DataFrame) -> pd.Series:
    """Whole length of the gaps that overlap each event; events share a gap by their lengths."""
    gaps = gaps.sort_values("start_ns")
    start, end = gaps["start_ns"].to_numpy(), gaps["end_ns"].to_numpy()
    begin, finish = events["taken_ns"].to_numpy(), events["end_ns"].to_numpy()
    first = np.searchsorted(end, begin, side="right")
    last = np.searchsorted(start, finish, side="left")
    overlapped = [np.arange(low, high) for low, high in zip(first, last)]
    event = np.repeat(np.arange(len(events)), np.maximum(last - first, 0))
    gap = np.concatenate([*overlapped, np.array([], int)])
    weight = (finish - begin)[event].astype(float)
    share = weight / np.bincount(gap, weights=weight, minlength=len(gaps))[gap]
    lost_ns = np.bincount(event, weights=(end - start)[gap] * share, minlength=len(events))
    return pd.Series(lost_ns, events.index)
