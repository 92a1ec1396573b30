"""The injection log: what was planned and what was achieved, event by event, and how accurate that is.

Owns the log's table (data/README.md) and `Accuracy`. Vocabulary of metrology: bias, spread, and the 99th percentile of the error.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from ..errors import InputError
from .plan import POLICY_NAMES, REALTIME
from .replay import Replay

OUTCOMES = ("not reached", "injected", "late", "cut", "dropped")
DONE = ("injected", "late")


def make_log(replay: Replay) -> pd.DataFrame:
    """One row an event, in the order of the lanes; the columns of numbers are views of the shared memory.

    Returns
    -------
    Columns `cpu`, `event`, `planned_start_ns`, `planned_duration_ns`, `start_ns`, `end_ns` (from t0; 0 when not reached), `cpu_time_ns`,
    `ran_on`, `policy` (it really had), `priority`, `outcome`; and `kind`, `taken_ns` (since when the workload was without the
    CPU: the planned start if the timer took it), `gap_ns` (longest time without progress within the event).
    """
    events, log = replay.plan.events, replay.log
    return pd.DataFrame({
        "cpu": events["cpu"], "event": events["event"], "planned_start_ns": events["start_ns"],
        "planned_duration_ns": events["duration_ns"], "start_ns": log["start_ns"], "end_ns": log["end_ns"],
        "cpu_time_ns": log["cpu_time_ns"], "ran_on": log["ran_on"], "policy": _policies(log), "priority": events["priority"],
        "outcome": pd.Categorical.from_codes(log["outcome"], OUTCOMES), "kind": events["kind"], "taken_ns": log["taken_ns"],
        "gap_ns": log["gap_ns"],
    }, copy=False)


def _policies(log: dict[str, np.ndarray]) -> pd.Categorical:
    """Empty for an event that was not reached."""
    names = ["", *POLICY_NAMES.values()]
    codes = np.select([log["policy"] == code for code in POLICY_NAMES], range(1, len(names)), 0)
    return pd.Categorical.from_codes(np.where(log["outcome"] == 0, 0, codes), names)


def noise_ns(log: pd.DataFrame) -> pd.Series:
    """What each event took from the workload: real-time ones the time from `taken_ns` to their end (the workload loses the CPU when the
    timer fires, waking up included), ordinary ones the CPU time that they consumed; dropped ones nothing.
    """
    took = (log["end_ns"] - log["taken_ns"]).where(log["policy"].isin(REALTIME), log["cpu_time_ns"])
    return took.where(log["outcome"] != "dropped", 0)


def summarise(log: pd.DataFrame) -> dict[str, int | float]:
    """What a run's row says of its injection.

    Returns
    -------
    `injected_ns` (noise, see `noise_ns`), `injected_planned_ns` (planned for the events that were reached and not cut), `injected_cpu_ns`
    (CPU time consumed), `injected_events`, `late_events`, `dropped_events`, `cut_events`, `not_reached_events`, `worst_lateness_us` (from
    planned start to wake-up).
    """
    counts = log["outcome"].value_counts()
    reached = log[log["outcome"] != "not reached"]
    lateness = reached["start_ns"] - reached["planned_start_ns"]
    planned = reached.loc[reached["outcome"] != "cut", "planned_duration_ns"]
    return {"injected_ns": int(noise_ns(reached).sum()), "injected_planned_ns": int(planned.sum()),
            "injected_cpu_ns": int(reached["cpu_time_ns"].sum()), "injected_events": int(counts[list(DONE)].sum()),
            "late_events": int(counts["late"]), "dropped_events": int(counts["dropped"]), "cut_events": int(counts["cut"]),
            "not_reached_events": int(counts["not reached"]), "worst_lateness_us": float(lateness.max()) / 1e3 if len(reached) else 0.0}


def log_path(folder: str | Path, run: int) -> Path:
    """Where the log of a run is kept."""
    return Path(folder) / f"injection-{run:06d}.parquet"


def read_logs(folder: str | Path, runs: pd.DataFrame) -> pd.DataFrame:
    """The logs that an `Injector` kept of finished runs, one below the other, with the column `run`.

    Raises
    ------
    InputError : a run has no log, or a damaged one.
    """
    logs = [_read_log(log_path(folder, int(run))).assign(run=int(run)) for run in runs["run"]]
    if not logs:
        raise InputError("no injected run", where=folder)
    return pd.concat(logs, ignore_index=True)


def _read_log(path: Path) -> pd.DataFrame:
    try:
        return pd.read_parquet(path)
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read an injection log: {error}", where=path, why="its run could not be judged") from None


@dataclass(frozen=True)
class Accuracy:
    """How far the injection was from its plan.

    `events`: one row a class ("real-time", "ordinary"): `events` (injected or late), then for the errors of start and duration in
    us the `bias` (median), `spread` (90th less 10th percentile) and `p99` (of the absolute error).
    `classes`: one row a kind of noise: events by outcome; `planned_ms`, `injected_ms` (`noise_ns`) and `cpu_ms` without the events that the
    run's end cut or left out; `injected_over_planned`.
    """

    events: pd.DataFrame
    classes: pd.DataFrame

    def __repr__(self) -> str:
        total = self.classes[["planned_ms", "injected_ms"]].sum()
        return f"Accuracy({self.events['events'].sum()} events, {total['injected_ms']:.3f} of {total['planned_ms']:.3f} ms injected)"

    def _repr_html_(self) -> str:
        return self.events.to_html(float_format="%.2f") + self.classes.to_html(float_format="%.3f")


def accuracy_of(log: pd.DataFrame) -> Accuracy:
    """Accuracy of one injection, or of several put together.

    What an event took is `noise_ns`; the duration's error is that less what was planned.
    """
    done = log[log["outcome"].isin(DONE)]
    realtime = done["policy"].isin(REALTIME)
    rows = {"real-time": _errors(done[realtime]), "ordinary": _errors(done[~realtime])}
    return Accuracy(pd.DataFrame(rows).T.astype({"events": int}), _classes(log))


def _errors(done: pd.DataFrame) -> dict[str, float]:
    start_us = (done["start_ns"] - done["planned_start_ns"]) / 1e3
    duration_us = (noise_ns(done) - done["planned_duration_ns"]) / 1e3
    return {"events": len(done)} | _spread("start", start_us) | _spread("duration", duration_us)


def _spread(name: str, errors_us: pd.Series) -> dict[str, float]:
    low, middle, high = errors_us.quantile([0.1, 0.5, 0.9])
    return {f"{name}_bias_us": middle, f"{name}_spread_us": high - low, f"{name}_p99_us": errors_us.abs().quantile(0.99)}


def _classes(log: pd.DataFrame) -> pd.DataFrame:
    kinds = log["kind"].astype(str)
    counts = pd.crosstab(kinds, log["outcome"].astype(str)).reindex(columns=OUTCOMES, fill_value=0)
    whole = log["outcome"].isin((*DONE, "dropped"))
    took = pd.DataFrame({"planned_ms": log["planned_duration_ns"], "injected_ms": noise_ns(log), "cpu_ms": log["cpu_time_ns"]}) / 1e6
    table = counts.join(took[whole].groupby(kinds[whole]).sum().reindex(counts.index, fill_value=0.0))
    table["injected_over_planned"] = table["injected_ms"] / table["planned_ms"].where(table["planned_ms"] > 0)
    return table.rename_axis(index="kind", columns=None)
