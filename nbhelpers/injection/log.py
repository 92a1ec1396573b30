"""The injection log: what was planned and what was achieved, event by event.

Owns the log's table (data/README.md) and its files.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from ..errors import InputError
from ..noise._vocabulary import KINDS, REAL_TIME
from ..reading import read_parquet
from .replay import Replay
from .rules import POLICY_NAMES, Plan

REPLAYED = (
    "not reached",
    "injected",
    "late",
    "cut",
    "dropped",
    "truncated",
)  # in the order of the C core's codes
OUTCOMES = (*REPLAYED, "coalesced", "below floor")
DONE = ("injected", "late", "truncated")


def make_log(replay: Replay) -> pd.DataFrame:
    """One row an event of the config, in the order of the plan; most columns of numbers are views
    of the shared memory.

    Returns
    -------
    What was planned: `cpu`, `event`, `planned_start_ns`, `planned_duration_ns` (of the config; the
    planned end is their sum), `kind`, `priority`, `intensity` (NaN: it occupies the CPU);
    `replay_start_ns`, `replayed_ns` (where and how long it was to be replayed, with what it carries
    of others; 0: not itself), `carrier` (index, in this log, of the event that carries it; −1:
    none), `lane` (number of its process). What was achieved, from t0, 0 where it was not replayed:
    `start_ns` (awake, on a CPU), `taken_ns` (since when the workload was without the CPU: the
    planned start if the timer took it), `end_ns`, `exit_ns` (of a real-time event: what giving the
    CPU back takes after that, as measured), `cpu_time_ns`, `gap_ns` (longest time without
    progress), `preempted_ns` (others had the CPU meanwhile, which it made up for), `ran_on`,
    `policy` (it really had), `achieved` (intensity), `outcome`: one of `OUTCOMES`.
    """
    events, log, itself = replay.plan.events, replay.log, np.arange(len(replay.plan.events))
    into = events["into"].to_numpy()
    table = pd.DataFrame(
        {
            "cpu": events["cpu"],
            "event": events["event"],
            "planned_start_ns": events["recorded_start_ns"],
            "planned_duration_ns": events["recorded_duration_ns"],
            "start_ns": log["start_ns"],
            "end_ns": log["end_ns"],
            "cpu_time_ns": log["cpu_time_ns"],
            "ran_on": log["ran_on"],
            "policy": _policies(log),
            "priority": events["priority"],
            "outcome": _outcomes(log["outcome"], into, itself),
            "kind": events["kind"],
            "taken_ns": log["taken_ns"],
            "gap_ns": log["gap_ns"],
            "preempted_ns": log["preempted_ns"],
            "replay_start_ns": events["start_ns"],
            "replayed_ns": np.where(into == itself, events["duration_ns"], 0),
            "carrier": np.where(into == itself, -1, into),
            "lane": _lanes(replay.plan.lanes, len(events)),
            "intensity": events["intensity"].where(~events["kind"].isin(KINDS)),
            "achieved": log["achieved"],
        },
        copy=False,
    )
    return table.assign(exit_ns=_exit_ns(table, replay.plan))


def _outcomes(codes: np.ndarray, into: np.ndarray, itself: np.ndarray) -> pd.Categorical:
    """An event that is carried shares the outcome of its carrier only in the sums; its outcome
    states that it was carried.
    """
    coalesced, below_floor = OUTCOMES.index("coalesced"), OUTCOMES.index("below floor")
    return pd.Categorical.from_codes(
        np.select([into < 0, into != itself], [below_floor, coalesced], codes), OUTCOMES
    )


def _lanes(lanes: pd.DataFrame, count: int) -> np.ndarray:
    """Number of the process that replays each event; −1: none."""
    number = np.full(count, -1, np.int32)
    for lane, (first, length) in enumerate(zip(lanes["first"], lanes["count"])):
        number[first : first + length] = lane
    return number


def _exit_ns(log: pd.DataFrame, plan: Plan) -> np.ndarray:
    """The exit cost as the C core predicts it (`predict_exit` of lane.c).

    An event that woke slowly leaves slowly.
    """
    fixed_us = plan.rules.exit_cost_us
    late_ns = (log["start_ns"] - log["replay_start_ns"]).to_numpy(float)
    late_ns[late_ns > plan.rules.wake_allowance_us * 1e3] = np.nan
    cost_ns = np.full(len(log), 0.0 if fixed_us is None else fixed_us * 1e3)
    if fixed_us is None:
        kind = plan.overheads.kind_of(log["ran_on"])
        for number, costs in enumerate(plan.overheads.kinds):
            of_kind = kind == number
            cost_ns[of_kind] = costs.exit_ns(log["replayed_ns"][of_kind], late_ns[of_kind])
    realtime = log["policy"].isin(REAL_TIME) & log["outcome"].isin(DONE)
    return np.where(realtime, cost_ns, 0).round().astype(np.int64)


def _policies(log: dict[str, np.ndarray]) -> pd.Categorical:
    """Empty for an event that was not reached."""
    names = ["", *POLICY_NAMES.values()]
    codes = np.select([log["policy"] == code for code in POLICY_NAMES], range(1, len(names)), 0)
    return pd.Categorical.from_codes(np.where(log["outcome"] == 0, 0, codes), names)


def occupies(log: pd.DataFrame) -> pd.Series:
    """Which events take CPU time from the workload; the others (memory bandwidth, cache, …) use
    something else.
    """
    return log["kind"].isin(KINDS)


def noise_ns(log: pd.DataFrame) -> pd.Series:
    """What each event took from the workload. Real-time ones: from `taken_ns` until the workload
    has the CPU back (`exit_ns` after their end), less what others had of it. The workload loses the
    CPU when the timer fires, so waking up is part of it. Ordinary ones: the CPU time that they
    consumed. Dropped ones, and those that do not occupy a CPU: nothing.
    """
    held = log["end_ns"] - log["taken_ns"] + log["exit_ns"] - log["preempted_ns"]
    took = held.where(log["policy"].isin(REAL_TIME), log["cpu_time_ns"])
    return took.where((log["outcome"] != "dropped") & occupies(log), 0)


def summarise(log: pd.DataFrame) -> dict[str, int | float]:
    """Summarise an injection as columns of the runs table.

    Returns
    -------
    `injected_ns` (noise, see `noise_ns`), `injected_planned_ns` (planned for the events that were
    reached and not cut), `injected_cpu_ns` (CPU time consumed), `injected_events`, `late_events`,
    `dropped_events`, `truncated_events`, `cut_events`, `not_reached_events`, `coalesced_events`,
    `below_floor_events`, `below_floor_ns`, `worst_lateness_us` (from planned start to wake-up).
    """
    counts = log["outcome"].astype(str).value_counts().reindex(OUTCOMES, fill_value=0)
    reached = log[log["outcome"].isin(REPLAYED[1:])]
    lateness = reached["start_ns"] - reached["replay_start_ns"]
    planned = reached["replayed_ns"][(reached["outcome"] != "cut") & occupies(reached)]
    return {
        "injected_ns": int(noise_ns(reached).sum()),
        "injected_planned_ns": int(planned.sum()),
        "injected_cpu_ns": int(reached["cpu_time_ns"].sum()),
        "injected_events": int(counts[list(DONE)].sum()),
        **{
            f"{outcome.replace(' ', '_')}_events": int(counts[outcome])
            for outcome in OUTCOMES
            if outcome != "injected"
        },
        "below_floor_ns": int(
            log.loc[log["outcome"] == "below floor", "planned_duration_ns"].sum()
        ),
        "worst_lateness_us": float(lateness.max()) / 1e3 if len(reached) else 0.0,
    }


def log_path(folder: str | Path, run: int) -> Path:
    """The file of the log of a run."""
    return Path(folder) / f"injection-{run:06d}.parquet"


def read_logs(folder: str | Path, runs: pd.DataFrame) -> pd.DataFrame:
    """Read the logs that an `Injector` wrote of finished runs, one below the other.

    Parameters
    ----------
    folder
        The injector's `log_folder`.
    runs
        The runs table; only rows with status "ok" count.

    Returns
    -------
    One row an event: `run` and the columns of `make_log`.

    Raises
    ------
    InputError
        a run has no log, or a damaged one.
    """
    logs = {
        int(run): read_parquet(log_path(folder, int(run)), "injection log") for run in runs["run"]
    }
    if not logs:
        raise InputError("no injected run", where=folder)
    return join_logs(logs)


def tracks_of_log(log: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """What was planned, and what was done, as slices for `nbhelpers.perfetto.write_tracks`.

    Parameters
    ----------
    log
        Of one run.
    """
    events = log.rename(columns={"cpu": "track", "kind": "name", "outcome": "by"})
    planned = events.assign(start_ns=events["planned_start_ns"])
    planned["end_ns"] = events["planned_start_ns"] + events["planned_duration_ns"]
    return {"planned, by CPU": planned, "injected, by CPU": events[events["by"].isin(DONE)]}


def join_logs(logs: dict[int, pd.DataFrame]) -> pd.DataFrame:
    """Logs one below the other, with the column `run`; `carrier` is the index in the whole."""
    before = np.cumsum([0, *map(len, logs.values())])
    moved = [
        log.assign(
            run=run, carrier=log["carrier"].where(log["carrier"] < 0, log["carrier"] + offset)
        )
        for (run, log), offset in zip(logs.items(), before.tolist())
    ]
    return pd.concat(moved, ignore_index=True)
