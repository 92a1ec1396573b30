"""Replays of losses that are calibrated: the replay is itself measured, the loss of each CPU
compared with what was planned, and the plan corrected.

Owns that loop, its corrections and what they leave. What is compared is time without the CPU, never
the run time of the anomaly: a replay that hits that has not been fitted to it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from ..injection import Injector, read_logs
from ..injection.log import DONE, noise_ns, shared_noise_ns
from ..measurement import Attachment, Campaign, Cell, finished
from ..noise import NoiseConfig
from ..noise.losses import INTERVAL_NS
from ..speed import SpeedProbe, read_speed
from ..statistics import percentile_interval
from ..workloads import Workload
from .worst_runs import WorstCase

UNDISTURBED, REPLAY = "undisturbed", "replay"
# lengths of events are corrected apart: what an event costs beyond its length depends on that
CLASSES_NS = (0, 150_000, 500_000, 2_000_000)
_SMALL_SHARE = 0.05  # of all loss: a CPU that has less decides nothing
_MOST = 1.25  # no length is corrected by more than this factor, or less than its inverse
_QUIET_SHARE = 0.1  # undisturbed runs that are longer without a CPU say nothing of the noise
_REPEATS = 2000


@dataclass(frozen=True, repr=False)
class CalibratedReplay:
    """A noise config whose replay takes what was lost, as far as it could be reached.

    Attributes
    ----------
    config
        What was to be lost.
    injected
        What is to be injected for that.
    scales
        One row a CPU and class of lengths: `cpu`, `class`, `scale` (injected over asked length).
    rounds
        One row a round of replays; see `calibrated_replay`.
    intervals
        Of the last round, means of its replays, one row a CPU and 10 ms: `cpu`, `start_ns`,
        `planned_ms`, `observed_ms` (by the injector), `without_cpu_ms` (by the program's own
        clocks beyond the undisturbed runs; NaN without probe).
    tolerance
        Of the loss of a CPU.
    """

    config: NoiseConfig
    injected: NoiseConfig
    scales: pd.DataFrame
    rounds: pd.DataFrame
    intervals: pd.DataFrame
    tolerance: float

    def __repr__(self) -> str:
        error = self.rounds["error"].iloc[-1] if len(self.rounds) else float("nan")
        return f"CalibratedReplay({self.injected!r}, {len(self.rounds)} rounds, {error:+.2%})"

    @property
    def is_within(self) -> bool:
        """Whether the last round lost what was planned, on every CPU."""
        return bool(len(self.rounds)) and bool(self.rounds["within"].iloc[-1])

    def corrected(self, config: NoiseConfig) -> NoiseConfig:
        """Another config with the corrections of this one, which are the machine's."""
        return _scaled(config, self.scales)

    def sentences(self) -> list[str]:
        """How close the replay came, in sentences."""
        if not len(self.rounds):
            return ["The replay was not calibrated: no replay was measured."]
        last = self.rounds.iloc[-1]
        verdict = "is within" if self.is_within else "is **not** within"
        return [
            f"The replay took **{last['observed_ms']:.1f} ms** of the {last['planned_ms']:.1f} ms"
            f" that were to be lost ({last['error']:+.2%} [{last['error_low']:+.2%},"
            f" {last['error_high']:+.2%}], n = {last['runs']}), after {len(self.rounds)}"
            f" round{'s' if len(self.rounds) > 1 else ''}; at worst {last['worst_error']:+.2%} on"
            f" CPU {last['worst_cpu']}. That {verdict} {self.tolerance:.0%}."
        ]


def calibrated_replay(
    folder: str | Path,
    workload: Workload,
    config: NoiseConfig,
    *,
    rounds: int = 3,
    runs: int = 5,
    tolerance: float = 0.01,
    placement: str = "faithful",
    seed: int = 0,
    recorded_only: bool = False,
    attachments: Sequence[Attachment] = (),
    **options,
) -> CalibratedReplay:
    """Replay losses a few times, compare what was taken with what was to be, correct the lengths.

    Parameters
    ----------
    folder
        Holds a campaign for each round, with the injector's logs and the samples of speed.
    workload
        The program.
    config
        Of `loss_config`.
    rounds
        At most; it ends when every CPU is within the tolerance.
    runs
        Replays of a round, and as many undisturbed runs, in turn.
    tolerance
        Share of the planned loss of a CPU.
    placement, options
        Of `Injector`.
    seed, recorded_only, attachments
        Of the campaigns; recorded data give the same corrections again.

    Returns
    -------
    CalibratedReplay : its `rounds` has one row a round: `round`, `noise` (digest), `runs`,
    `planned_ms`, `observed_ms` (mean of a replay, all CPUs, until its end), `error` with a 95 %
    bootstrap interval over the replays (`error_low`, `error_high`), `worst_error` and `worst_cpu`,
    `reached_share` (of the time that the injector took, what the program was without: below 1 where
    noise met an idle CPU, NaN where it is not known), `undisturbed_seconds`, `replay_seconds`
    (medians), `within`.

    Notes
    -----
    The injector logs since when the program was without the CPU and when it gave it back. The
    clocks of the program's threads say whether it was the program that waited: wall time less CPU
    time, beyond that of the undisturbed runs, is no less than the time in which the injector ran.
    """
    plan, scales, rows = config, _ones(config), []
    intervals = pd.DataFrame()
    for number in range(1, rounds + 1):
        own = Path(folder) / plan.digest
        if recorded_only and not own.exists():
            break
        cells = _cells(own, workload, plan, placement, recorded_only, options)
        with_probe = (*attachments, *([] if recorded_only else [SpeedProbe(own / "speed")]))
        ok = finished(Campaign(own, cells, runs, seed, recorded_only, with_probe).run())
        parts = _compare(own, ok, config, plan)
        intervals = _intervals(parts)
        rows.append({"round": number, "noise": plan.digest} | _summary(ok, parts, tolerance, seed))
        if rows[-1]["within"]:
            break
        scales = _corrected_scales(scales, parts)
        plan = _scaled(config, scales)
    return CalibratedReplay(config, plan, scales, pd.DataFrame(rows), intervals, tolerance)


def calibrated_cases(
    folder: str | Path, workload: Workload, cases: Sequence[WorstCase], **options
) -> tuple[list[WorstCase], CalibratedReplay | None]:
    """The cases with corrected losses: calibrated for the first that has any, corrected for all.

    Parameters
    ----------
    folder, workload, options
        Of `calibrated_replay`.
    cases
        Of `worst_cases`.
    """
    first = next((case.losses for case in cases if case.losses is not None), None)
    if first is None:
        return list(cases), None
    found = calibrated_replay(folder, workload, first, **options)
    corrected = [
        replace(case, losses=found.corrected(case.losses)) if case.losses is not None else case
        for case in cases
    ]
    return corrected, found


def _cells(
    own: Path,
    workload: Workload,
    plan: NoiseConfig,
    placement: str,
    recorded_only: bool,
    options: dict,
) -> list[Cell]:
    injector = () if recorded_only else (Injector(plan, placement, log_folder=own, **options),)
    return [
        Cell(UNDISTURBED, workload),
        Cell(REPLAY, workload, noise=plan.digest, attachments=injector),
    ]


# --- what was lost ---------------------------------------------------------------------------


@dataclass(frozen=True)
class _Round:
    """Times of one round in ns: `lost` by run, CPU, interval (planned_ns, observed_ns), `events` by
    CPU and class (asked_ns, observed_ns), `reached` by run, `without` by run, CPU, interval.
    """

    lost: pd.DataFrame
    events: pd.DataFrame
    reached: pd.Series
    without: pd.DataFrame


def _compare(own: Path, runs: pd.DataFrame, config: NoiseConfig, plan: NoiseConfig) -> _Round:
    replays = runs[runs["cell"] == REPLAY]
    held = _held(read_logs(own, replays), replays)
    planned = pd.concat([_planned(config, run) for run in replays.to_dict("records")])
    keys = ["run", "cpu", "interval"]
    lost = pd.DataFrame(
        {"planned_ns": _by_interval(planned, keys), "observed_ns": _by_interval(held, keys)}
    ).fillna(0.0)
    events = held.groupby(["cpu", "class"])[["asked_ns", "length_ns"]].sum()
    events = events.rename(columns={"length_ns": "observed_ns"})
    if not (own / "speed").exists():
        nothing = pd.Series(np.nan, index=replays["run"])
        return _Round(lost, events, nothing, pd.DataFrame(columns=["cpu", "interval", "off_ns"]))
    speed = read_speed(own / "speed", runs)
    speed["off_ns"] = (speed["wall_ns"] - speed["cpu_ns"]).clip(lower=0)
    reached = _reached(speed, held, runs)
    return _Round(lost, events, reached, speed[speed["run"].isin(replays["run"])])


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
    log = log.assign(took_ns=noise_ns(log), shared_ns=shared_noise_ns(log))
    end_ns = log["run"].map(runs.set_index("run")["region_seconds"] * 1e9)
    log = log[log["outcome"].isin([*DONE, "cut"]) & (log["taken_ns"] < end_ns)]
    inside = ((end_ns - log["taken_ns"]) / log["took_ns"].clip(lower=1)).clip(upper=1)[log.index]
    lengths = pd.cut(log["replayed_ns"], [*CLASSES_NS, np.inf], labels=False, right=False)
    return pd.DataFrame(
        {
            "run": log["run"],
            "cpu": log["cpu"],
            "ran_on": log["ran_on"],
            "class": lengths,
            "start_ns": log["taken_ns"],
            "length_ns": log["took_ns"] * inside,
            "ran_ns": (log["end_ns"] - log["start_ns"]) * inside,
            "asked_ns": log["replayed_ns"] * inside,
        }
    )


def _by_interval(times: pd.DataFrame, keys: list[str], value: str = "length_ns") -> pd.Series:
    """Sums of times, each cut at multiples of 10 ms and shared out."""
    start_ns, length_ns = times["start_ns"].to_numpy(float), times["length_ns"].to_numpy(float)
    first = (start_ns // INTERVAL_NS).astype(np.int64)
    counts = ((start_ns + np.maximum(length_ns, 1) - 1) // INTERVAL_NS).astype(np.int64) - first + 1
    row = np.repeat(np.arange(len(times)), counts)
    within = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
    interval = first[row] + within
    low_ns = np.maximum(start_ns[row], interval * INTERVAL_NS)
    high_ns = np.minimum((start_ns + length_ns)[row], (interval + 1) * INTERVAL_NS)
    share = (high_ns - low_ns) / np.maximum(length_ns[row], 1)
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


def _intervals(found: _Round) -> pd.DataFrame:
    """Means over the replays by CPU and 10 ms, in ms."""
    means = found.lost.groupby(["cpu", "interval"]).mean() / 1e6
    means.columns = pd.Index(["planned_ms", "observed_ms"])
    without = found.without
    if len(without):
        times = without.assign(
            start_ns=without["start_ns"] - without["wall_ns"], length_ns=without["wall_ns"]
        )
        runs = without["run"].nunique()
        sums = _by_interval(times, ["cpu", "interval"], "off_ns")
        means["without_cpu_ms"] = sums.reindex(means.index) / runs / 1e6
    means = means.reset_index()
    means.insert(1, "start_ns", means.pop("interval") * INTERVAL_NS)
    return means.reindex(columns=["cpu", "start_ns", "planned_ms", "observed_ms", "without_cpu_ms"])


def _summary(runs: pd.DataFrame, found: _Round, tolerance: float, seed: int) -> dict:
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
    rows = np.random.default_rng(seed).integers(0, len(whole), (_REPEATS, len(whole)))
    planned, observed = (whole[f"{name}_ns"].to_numpy()[rows] for name in ("planned", "observed"))
    low, high = percentile_interval(observed.sum(axis=1) / planned.sum(axis=1) - 1)
    return float(low), float(high)


# --- corrections -----------------------------------------------------------------------------


def _ones(config: NoiseConfig) -> pd.DataFrame:
    index = pd.MultiIndex.from_product(
        [config.cpus, range(len(CLASSES_NS))], names=["cpu", "class"]
    )
    return pd.DataFrame({"scale": 1.0}, index=index).reset_index()


def _corrected_scales(scales: pd.DataFrame, found: _Round) -> pd.DataFrame:
    """Each scale with what its events took more or less than asked, and what reached nobody."""
    took_ns = found.events["observed_ns"] * found.reached.fillna(1.0).median()
    keys = pd.MultiIndex.from_frame(scales[["cpu", "class"]])
    # what was asked is longer than what was to be lost by the scale of this round
    scale = (found.events["asked_ns"] / took_ns.clip(lower=1)).reindex(keys).to_numpy()
    new = np.where(np.isfinite(scale), scale, scales["scale"])
    return scales.assign(scale=new.clip(1 / _MOST, _MOST))


def _scaled(config: NoiseConfig, scales: pd.DataFrame) -> NoiseConfig:
    """The config with each length times the scale of its CPU and class, about the same middle."""
    events = config.events().drop(columns="event")
    lengths = pd.cut(events["duration_ns"], [*CLASSES_NS, np.inf], labels=False, right=False)
    keys = pd.MultiIndex.from_arrays([events["cpu"], lengths])
    scale = scales.set_index(["cpu", "class"])["scale"].reindex(keys).fillna(1.0).to_numpy()
    length_ns = (events["duration_ns"] * scale).round().astype(np.int64)
    start_ns = events["start_ns"] - (length_ns - events["duration_ns"]) // 2
    events = events.assign(run=0, duration_ns=length_ns, start_ns=start_ns.clip(lower=0))
    return NoiseConfig.from_events(events, window_ns=config.window_ns, provenance=config.provenance)
