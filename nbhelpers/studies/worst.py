"""The slowest runs of a campaign as cases to replay: which are chosen, what is replayed of each.

Owns the gate in front of a replay: a run of which too little can be replayed is shown, but another
stands beside it. Page 37 splits the excess by what the replays bring back.

Losses are replayed as they are planned: correcting their lengths by rounds of replays changed
nothing (recorded: −0.02 % [−0.16, 0.06] in the first round, the same config afterwards).
"""

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from ..errors import InputError
from ..measurement import region_seconds
from ..noise import NoiseConfig, average_noise, delta_noise
from ..noise.lost_time import loss_config, replayable_shares
from ..outcomes import ordinary_runs, worst_first
from ..tracing import with_stolen_time
from .known import SLOW_SHARE

UNDISTURBED, KERNEL, BOTH, LOSSES = "undisturbed", "kernel", "kernel and hypervisor", "losses"
BY_TIME, REPLAYABLE = "by time", "replayable"
ENOUGH = 0.8  # of the excess: a replay of less cannot come near the anomaly


@dataclass(frozen=True)
class WorstCase:
    """One slow run and what is to be replayed of it.

    Parameters
    ----------
    case, run, seconds
        Number of the case, from 1, the slowest run first; its run, and the time of that.
    kernel
        The config of its kernel events; None where nothing is left to replay.
    both
        With the time that the hypervisor took; None where it took nothing beyond the average.
    losses
        The config of all that was lost (`loss_config`); None where nothing is known of that.
    shares
        What of the excess that config holds (`replayable_shares`).
    chosen
        How it was chosen: by time, or because enough of it can be replayed.
    """

    case: int
    run: int
    seconds: float
    kernel: NoiseConfig | None
    both: NoiseConfig | None
    losses: NoiseConfig | None
    shares: pd.DataFrame
    chosen: str = BY_TIME

    @property
    def replayable_share(self) -> float:
        """Share of the excess that can be replayed."""
        return float(self.shares["share"].sum())

    @property
    def configs(self) -> dict[str, NoiseConfig]:
        """What is replayed of it, by name."""
        known = {KERNEL: self.kernel, BOTH: self.both, LOSSES: self.losses}
        return {name: config for name, config in known.items() if config is not None}


def worst_cases(
    runs: pd.DataFrame,
    events: pd.DataFrame,
    stolen: pd.DataFrame,
    losses: pd.DataFrame,
    count: int = 10,
    method: str = "paper",
    threads: str = "slices",
    **limits: Any,
) -> list[WorstCase]:
    """The slowest runs, each with its delta: its noise less what every run has. Beside them the
    slowest of those runs of which enough (80 to 125 % of the excess) can be replayed.

    Parameters
    ----------
    runs
        Finished, traced runs of one campaign.
    events
        Their noise events (`read_traces`).
    stolen
        What the hypervisor took of them (`stolen_times`).
    losses
        What these runs lost beyond the typical run: `run`, and the columns of `loss_config`; may
        have no rows.
    count
        How many by time, and how many of those that can be replayed.
    method
        What is taken off, as in `delta_noise`.
    threads
        How threads of the trace get the CPU, as in `NoiseConfig.from_events`.
    limits
        `shortest_ns` and `realtime` of `replayable_shares`.

    Raises
    ------
    InputError
        There are not more runs than `count`.
    """
    if not 1 <= count < len(runs):
        raise InputError(
            f"{count} worst runs of {len(runs)}",
            why="a run is slow only in comparison with others",
            fix="choose fewer, or trace more runs",
        )
    everything = with_stolen_time(events, stolen)
    usual = ordinary_runs(runs) if method == "time" else runs
    averages = average_noise(events, usual), average_noise(everything, usual)
    cases = []
    cpus = events.loc[events["interrupted"] == "workload", "cpu"].unique()
    for place, chosen in enumerate(_chosen(runs, losses, cpus, count, limits), start=1):
        kernel, both = (
            _config(noise, average, runs, chosen.run, method, threads)
            for noise, average in zip((events, everything), averages)
        )
        # a loop's detours are of kind hardware, too, and nobody knows whose they are
        known = len(stolen) > 0 and both and (both.events()["kind"] == "hardware").any()
        cases.append(replace(chosen, case=place, kernel=kernel, both=both if known else None))
    return cases


def _chosen(
    runs: pd.DataFrame,
    losses: pd.DataFrame,
    cpus: Collection[int],
    count: int,
    limits: dict[str, Any],
) -> list[WorstCase]:
    """The runs that are replayed, slowest first, with what of their losses can be replayed."""
    runs = worst_first(runs)
    runs = runs.assign(region_ns=region_seconds(runs) * 1e9)
    typical_ns = float(runs["region_ns"].median())
    chosen: list[WorstCase] = []
    replayable = 0
    for place, row in enumerate(runs.to_dict("records")):
        excess_ns = row["region_ns"] - typical_ns
        if place >= count and (replayable >= count or excess_ns <= 0):
            break
        case = _of_losses(row, losses[losses["run"] == row["run"]], cpus, excess_ns, limits)
        # one that lost more than it took longer made up for it elsewhere
        enough = ENOUGH <= case.replayable_share <= 1 / ENOUGH
        enough = enough and excess_ns > SLOW_SHARE * typical_ns
        replayable += enough
        if place < count or enough:
            chosen.append(replace(case, chosen=BY_TIME if place < count else REPLAYABLE))
    return chosen


def _of_losses(
    row: dict[str, Any],
    losses: pd.DataFrame,
    cpus: Collection[int],
    excess_ns: float,
    limits: dict[str, Any],
) -> WorstCase:
    window_ns, run = round(row["region_ns"]), int(row["run"])
    shares = replayable_shares(losses, excess_ns, window_ns, **limits)
    config = None
    if shares["replayable_ms"].sum() > 0:
        shortest = {name: limits[name] for name in limits.keys() & {"shortest_ns"}}
        config = loss_config(losses, window_ns, cpus, provenance={"run": run}, **shortest)
    return WorstCase(0, run, float(row["seconds"]), None, None, config, shares)


def _config(
    events: pd.DataFrame,
    average: pd.DataFrame,
    runs: pd.DataFrame,
    run: int,
    method: str,
    threads: str,
) -> NoiseConfig | None:
    delta = delta_noise(events, average, runs, run=run, method=method)
    if not (delta["duration_ns"] > 0).any():
        return None
    return NoiseConfig.from_events(delta, threads=threads)
