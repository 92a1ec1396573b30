"""What replays of losses took: by the injector's log, and by the clocks of the program's threads.

Owns the comparison with what was planned, by CPU and 10 ms and by length of the events.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from ..injection import read_logs
from ..injection.log import DONE, noise_ns
from ..noise import NoiseConfig
from ..noise.losses import INTERVAL_NS, cut_at_intervals
from ..speed import read_speed
from ..statistics.intervals import ratio_of_sums_interval

UNDISTURBED, REPLAY = "undisturbed", "replay"
# lengths of events are corrected apart: what an event costs beyond its length depends on that
CLASSES_NS = (0, 150_000, 500_000, 2_000_000)
_SMALL_SHARE = 0.05  # of all loss: a CPU that has less decides nothing
_QUIET_SHARE = 0.1  # undisturbed runs that are longer without a CPU say nothing of the noise


@dataclass(frozen=True)
class Replayed:
    """What the replays of one round took.

    Attributes
    ----------
    lost
        `planned_ns` and `observed_ns` by run, CPU and interval of 10 ms, until the run ended.
    events
        `asked_ns` and `observed_ns` by CPU and class of lengths, of all replays.
    reached
        Run -> share of that in which the program was without its CPUs; NaN: not known.
    speed
        The samples of the replays, with `off_ns`: time without a CPU since the sample before.
    """

    lost: pd.DataFrame
    events: pd.DataFrame
    reached: pd.Series
    speed: pd.DataFrame


def compare(folder: Path, runs: pd.DataFrame, config: NoiseConfig) -> Replayed:
    """Compare what the replays of a round took with what was to be lost.

    Parameters
    ----------
    folder
        Of the injector's logs; its folder `speed` has the samples, if there are any.
    runs
        Finished runs of the round.
    config
        What was to be lost.
    """
    replays = runs[runs["cell"] == REPLAY]
    held = _held(read_logs(folder, replays), replays)
    planned = pd.concat([_planned(config, run) for run in replays.to_dict("records")])
    keys = ["run", "cpu", "interval"]
    lost = pd.DataFrame(
        {"planned_ns": _by_interval(planned, keys), "observed_ns": _by_interval(held, keys)}
    ).fillna(0.0)
    events = held.groupby(["cpu", "class"])[["asked_ns", "length_ns"]].sum()
    events = events.rename(columns={"length_ns": "observed_ns"})
    if not (folder / "speed").exists():
        nothing = pd.Series(np.nan, index=replays["run"])
        return Replayed(lost, events, nothing, pd.DataFrame())
    speed = read_speed(folder / "speed", runs)
    speed["off_ns"] = (speed["wall_ns"] - speed["cpu_ns"]).clip(lower=0)
    reached = _reached(speed, held, runs)
    return Replayed(lost, events, reached, speed[speed["run"].isin(replays["run"])])


def _planned(config: NoiseConfig, run: dict) -> pd.DataFrame:
    """The config's events until the run ended: `run`, `cpu`, `start_ns`, `length_ns`."""
    events = config.events()
    ends_ns = (events["start_ns"] + events["duration_ns"]).clip(upper=run["region_seconds"] * 1e9)
    events["length_ns"] = ends_ns - events["start_ns"]
    events = events[events["length_ns"] > 0]
    return events.assign(run=run["run"])[["run", "cpu", "start_ns", "length_ns"]]


def _held(log: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """What the injector took in the runs: `run`, `cpu`, `class`, `start_ns`, `length_ns`,
    `ran_ns` (without the ways into the kernel and out), `asked_ns`.

    An event that others carry adds to what was asked, and nothing to what was taken.
    """
    log = log.assign(took_ns=noise_ns(log))
    end_ns = log["run"].map(runs.set_index("run")["region_seconds"] * 1e9)
    log = log[log["outcome"].isin([*DONE, "cut"]) & (log["taken_ns"] < end_ns)]
    inside = ((end_ns - log["taken_ns"]) / log["took_ns"].clip(lower=1)).clip(upper=1)[log.index]
    return pd.DataFrame(
        {
            "run": log["run"],
            "cpu": log["cpu"],
            "ran_on": log["ran_on"],
            "class": length_class(log["replayed_ns"]),
            "start_ns": log["taken_ns"],
            "length_ns": log["took_ns"] * inside,
            "ran_ns": (log["end_ns"] - log["start_ns"]) * inside,
            "asked_ns": log["replayed_ns"] * inside,
        }
    )


def _by_interval(times: pd.DataFrame, keys: list[str], value: str = "length_ns") -> pd.Series:
    """Sums of times, each cut at multiples of 10 ms and shared out."""
    row, interval, share = cut_at_intervals(times["start_ns"], times["length_ns"])
    parts = times.iloc[row].assign(interval=interval)
    return (parts[value] * share).groupby([parts[key] for key in keys]).sum()


def _reached(speed: pd.DataFrame, held: pd.DataFrame, runs: pd.DataFrame) -> pd.Series:
    """Share of the time in which the injector ran that the program was without its CPUs, by run; 1
    at most, NaN where undisturbed runs are often without.

    Only what lies before a CPU's last sample counts. The ways into the kernel and out are not in
    the injector's time, and only in part in the program's.
    """
    until_ns = speed.groupby(["run", "cpu"])["start_ns"].max()
    off_ns = speed.groupby("run")["off_ns"].sum()
    on_ns = until_ns.groupby("run").sum() - off_ns
    usual = (off_ns / on_ns).reindex(runs.loc[runs["cell"] == UNDISTURBED, "run"]).median()
    seen_ns = until_ns.reindex(pd.MultiIndex.from_frame(held[["run", "ran_on"]])).to_numpy()
    seen = ((seen_ns - held["start_ns"]) / held["length_ns"].clip(lower=1)).clip(0, 1)
    ran_ns = (held["ran_ns"] * seen).groupby(held["run"]).sum()
    share = ((off_ns - usual * on_ns) / ran_ns).reindex(ran_ns.index).clip(upper=1)
    return share if usual < _QUIET_SHARE else share * np.nan


def by_cpu_and_interval(found: Replayed) -> pd.DataFrame:
    """Means over the replays by CPU and 10 ms, in ms."""
    means = found.lost.groupby(["cpu", "interval"]).mean() / 1e6
    means.columns = pd.Index(["planned_ms", "observed_ms"])
    if len(found.speed):
        sums_ns = _by_interval(_since_sample(found.speed), ["cpu", "interval"], "off_ns")
        means["without_cpu_ms"] = sums_ns.reindex(means.index) / found.speed["run"].nunique() / 1e6
    means = means.reset_index()
    means.insert(1, "start_ns", means.pop("interval") * INTERVAL_NS)
    return means.reindex(columns=["cpu", "start_ns", "planned_ms", "observed_ms", "without_cpu_ms"])


def _since_sample(speed: pd.DataFrame) -> pd.DataFrame:
    """The time before each sample: `start_ns`, `length_ns`."""
    return speed.assign(start_ns=speed["start_ns"] - speed["wall_ns"], length_ns=speed["wall_ns"])


def summarise_round(runs: pd.DataFrame, found: Replayed, tolerance: float, seed: int) -> dict:
    by_run = found.lost.groupby(["run", "cpu"])[["planned_ns", "observed_ns"]].sum()
    by_run["observed_ns"] *= found.reached.fillna(1.0).reindex(by_run.index, level="run")
    by_cpu = by_run.groupby("cpu").sum()
    large = by_cpu[by_cpu["planned_ns"] >= _SMALL_SHARE * by_cpu["planned_ns"].sum()]
    errors = large["observed_ns"] / large["planned_ns"] - 1
    worst = errors.abs().idxmax()
    whole = by_run.groupby("run").sum()
    low, high = _error_interval(whole, seed)
    seconds = runs.groupby("cell")["seconds"].median()
    return {
        "runs": len(whole),
        "planned_ms": whole["planned_ns"].mean() / 1e6,
        "observed_ms": whole["observed_ns"].mean() / 1e6,
        "error": whole["observed_ns"].sum() / whole["planned_ns"].sum() - 1,
        "error_low": low,
        "error_high": high,
        "worst_error": errors[worst],
        "worst_cpu": int(worst),
        "reached_share": found.reached.median(),
        "undisturbed_seconds": seconds[UNDISTURBED],
        "replay_seconds": seconds[REPLAY],
        "within": bool((errors.abs() <= tolerance).all()),
    }


def _error_interval(whole: pd.DataFrame, seed: int) -> tuple[float, float]:
    """95 % bootstrap interval of observed / planned − 1, over the replays."""
    low, high = ratio_of_sums_interval(whole["observed_ns"], whole["planned_ns"], seed)
    return low - 1, high - 1


def length_class(lengths_ns: pd.Series) -> pd.Series:
    """Number of the class of each length."""
    return pd.cut(lengths_ns, [*CLASSES_NS, np.inf], labels=False, right=False)
