"""What a program feels of a replay: the detour loop runs in its place and notes every time that it
was without its CPU.

Owns that run: the loop, pinned to each CPU, under the config, with each event where it was
recorded.
"""

import os
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

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
_DEMONSTRATION_US = (50, 100, 200, 500, 1000, 1500, 2000, 3000, 4000, 8000)


@dataclass(frozen=True)
class Felt:
    """One replay, seen from both sides; times from t0.

    `log`: of the injector. `gaps`: one row an interruption of the loop: `cpu`, `start_ns`,
    `end_ns`, `duration_ns`; those of the machine itself are among them. `run`: the row of the runs
    table. `watched`: when the loop looked, cpu -> (from, to), ns; a CPU that is not in it: always.
    """

    log: pd.DataFrame
    gaps: pd.DataFrame
    run: pd.Series
    watched: Mapping[int, tuple[int, int]] = field(default_factory=dict)

    def __repr__(self) -> str:
        return (
            f"Felt({len(self.log)} events planned, {len(self.gaps)} gaps felt,"
            f" {self.gaps['duration_ns'].sum() / 1e6:.2f} ms)"
        )

    @property
    def drawn(self) -> pd.DataFrame:
        """The log with `took_ns`, what each event took, as `figure_felt` draws it."""
        return self.log.assign(took_ns=noise_ns(self.log))

    def table(self) -> pd.DataFrame:
        """One row an injected event: `cpu`, `event`, `kind`, `planned_ms` (start) and `planned_us`
        (length, with what it carries of others), `injected_us` (`noise_ns`), `felt_us` (gaps of the
        loop that overlap the event, whole; NaN where the loop did not look from its beginning to
        its end).
        """
        done = self.log[self.log["outcome"].isin(DONE) & occupies(self.log)]
        felt = (
            pd.concat([self._felt(cpu, own) for cpu, own in done.groupby("ran_on")])
            if len(done)
            else pd.Series(dtype=float)
        )
        return pd.DataFrame(
            {
                "cpu": done["ran_on"],
                "event": done["event"],
                "kind": done["kind"],
                "planned_ms": replay_start_ns(done) / 1e6,
                "planned_us": replayed_ns(done) / 1e3,
                "injected_us": noise_ns(done) / 1e3,
                "felt_us": felt.reindex(done.index) / 1e3,
            }
        ).reset_index(drop=True)

    def findings(self) -> list[str]:
        """What a program felt, in a sentence."""
        table = self.table().dropna(subset="felt_us")
        if not len(table):
            return [
                "No replayed event lay within the time in which the loop looked, so what a program"
                " feels of one is not known here."
            ]
        more_us = (table["felt_us"] - table["planned_us"]).median()
        return [
            f"Of a replayed event a program feels its length and {more_us:.1f} µs more (median of"
            f" {len(table)})."
        ]

    def _felt(self, cpu: int, events: pd.DataFrame) -> pd.Series:
        first, last = self.watched.get(cpu, (-np.inf, np.inf))
        return _felt(events, self.gaps[self.gaps["cpu"] == cpu]).where(
            (events["taken_ns"] >= first) & (events["end_ns"] <= last)
        )


class _Shield(Attachment):
    """Puts the threads of the run above all ordinary programs of the machine, below injected
    real-time noise.
    """

    def armed(self, pid: int) -> None:
        with suppress(PermissionError):  # then nothing else is real-time either
            for thread in os.listdir(f"/proc/{pid}/task"):
                os.sched_setscheduler(int(thread), os.SCHED_FIFO, os.sched_param(_SHIELD_PRIORITY))


def feel(
    folder: Path,
    config: NoiseConfig,
    seconds: float | None = None,
    recorded_only: bool = False,
    shielded: bool = False,
    **options,
) -> Felt:
    """Run the detour loop under a config, once, and keep what it felt.

    Parameters
    ----------
    folder
        Of such runs; each config gets a folder of its own in it.
    config
        What to inject.
    seconds
        Undisturbed time that each loop needs; None: the config's window.
    recorded_only
        Never measure.
    shielded
        The loop runs under SCHED_FIFO 10 where that is permitted, so that other programs of a busy
        machine do not come between; ordinary noise does not either, so the config must have none.
    options
        Of `Injector`; placement is "origin" unless given.

    Raises
    ------
    InputError
        Shielded from what it is to feel.
    LostEvents
        More gaps than the loop has room for.
    """
    if shielded and not set(config.events()["policy"].astype(str)) <= set(REALTIME):
        raise InputError(
            "a shielded loop cannot feel ordinary noise",
            where=repr(config),
            fix="shielded=False, or a config of real-time noise only",
        )
    folder = Path(folder) / config.digest
    workload = detour_workload(seconds or config.window_ns / 1e9, folder)
    options = {"placement": "origin", "log_folder": folder / "logs"} | options
    cell = Cell(
        "felt",
        workload,
        noise=config.digest,
        attachments=(
            ()
            if recorded_only
            else (
                Injector(config, **options),
                DetourTracer(folder),
                *([_Shield()] if shielded else []),
            )
        ),
    )
    runs = finished(Campaign(folder, [cell], runs=1, recorded_only=recorded_only).run())
    run = runs.iloc[0]
    detours = read_detours_run(folder / f"run-{int(run['run']):06d}.detours.gz")
    later = int(run["start_ns"] - run["t0_ns"])
    gaps = detours[["cpu", "start_ns", "end_ns", "duration_ns"]].assign(
        start_ns=detours["start_ns"] + later, end_ns=detours["end_ns"] + later
    )
    watched = {
        cpu: (first + later, last + later)
        for cpu, (first, last) in detours.attrs["watched"].items()
    }
    return Felt(read_logs(folder / "logs", runs), gaps, run, watched)


def demonstration(cpus: Collection[int], seed: int = 0) -> NoiseConfig:
    """Interrupt-like noise that an eye can follow: on each CPU ten events of 50 us to 8 ms, in a
    random order over 0.14 s.

    Parameters
    ----------
    cpus
        Where.
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
    """Which gaps overlap an event on the same CPU, as bool; the others are the machine's own."""
    met = np.zeros(len(gaps), bool)
    for cpu, own in events.groupby("ran_on"):
        own, here = own.sort_values("taken_ns"), (gaps["cpu"] == cpu).to_numpy()
        begun = np.searchsorted(
            own["taken_ns"].to_numpy(), gaps["end_ns"].to_numpy()[here], side="left"
        )
        ended = np.searchsorted(
            np.sort(own["end_ns"].to_numpy()), gaps["start_ns"].to_numpy()[here], side="right"
        )
        met[here] = begun > ended
    return met


def gaps_of_events(events: pd.DataFrame, gaps: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """When the first gap that overlaps each event of a CPU began (NaN: there is none), and the
    length of all of them, ns.
    """
    gaps = gaps.sort_values("start_ns")
    first = np.searchsorted(gaps["end_ns"].to_numpy(), events["taken_ns"].to_numpy(), side="right")
    felt = _felt(events, gaps).to_numpy()
    begin = np.append(gaps["start_ns"].to_numpy(float), np.nan)[first]
    return np.where(felt > 0, begin, np.nan), felt


def _felt(events: pd.DataFrame, gaps: pd.DataFrame) -> pd.Series:
    """Whole length of the gaps that overlap each event, ns; a gap that holds several events is
    shared by their lengths.
    """
    gaps = gaps.sort_values("start_ns")
    start, end = gaps["start_ns"].to_numpy(), gaps["end_ns"].to_numpy()
    begin, finish = events["taken_ns"].to_numpy(), events["end_ns"].to_numpy()
    first = np.searchsorted(end, begin, side="right")
    last = np.searchsorted(start, finish, side="left")
    owners = pd.DataFrame(
        {
            "event": np.repeat(np.arange(len(events)), np.maximum(last - first, 0)),
            "gap": np.concatenate(
                [np.arange(low, high) for low, high in zip(first, last)] or [np.array([], int)]
            ),
        }
    )
    weight = (finish - begin)[owners["event"]].astype(float)
    shared = (
        weight / pd.Series(weight).groupby(owners["gap"].to_numpy()).transform("sum").to_numpy()
    )
    felt = np.bincount(
        owners["event"], weights=(end - start)[owners["gap"]] * shared, minlength=len(events)
    )
    return pd.Series(felt, events.index)
