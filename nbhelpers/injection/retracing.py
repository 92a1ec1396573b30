"""Replays checked by our tracer: a replayed run is traced, and the trace is compared with average
noise + planned noise.

Owns the campaign of such runs, the matching of each event of the log with the trace, and the sums.
The log is what the injector states. The trace is what the kernel states, by the method that the
noise was recorded with. Where no kernel tracer can be used the detour loop runs in the program's
place, and its gaps are the trace.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..measurement import Attachment, Campaign, Cell, finished, region_seconds
from ..noise import NoiseConfig
from ..tracing import Tracer, read_traces
from ..workloads import Workload
from ._limits import REALTIME
from .injector import NOISE_START, Injector
from .log import DONE, noise_ns, occupies, read_logs, replay_start_ns, replayed_ns
from .observed_loss import gaps_of_events, meets_an_event

WAKES_NS = 100_000  # an interrupt that ends so shortly before a lane is switched in has woken it
KERNEL, LOOP = "the kernel", "a loop in the program's place"
_LANES = "injector_pids"
_UNSEEN = {
    "traced_from_ns": np.nan,
    "traced_to_ns": np.nan,
    "traced_cpu_ns": np.nan,
    "woken": False,
}


@dataclass(frozen=True)
class Retrace:
    """What the kernel, or a loop in the program's place, saw of replays.

    Attributes
    ----------
    runs
        The replayed runs, traced.
    events
        One row an injected event: `run`, `cpu`, `event`, `kind`, `realtime`, `replayed_ns`
        (planned), `logged_ns` (by the log), `traced_ns` (by the trace), `start_error_us` and
        `duration_error_us` (traced less planned). `traced_ns` of a real-time event is the time from
        the interrupt that woke its injector to the injector's switch-out; of an ordinary event it
        is the injector's CPU time; by the loop it is the gaps that overlap the event; NaN: nothing
        was seen of it.
    errors
        Bias, spread and 99th percentile of these errors by class.
    totals
        One row a class: `expected_ms` (planned, or average noise × time), `logged_ms`, `traced_ms`,
        `traced_over_expected`.
    sources
        The same for each source of noise that is not an injector.
    inferred_switches
        Switches that the kernel did not report and that were inferred. An injector's switch among
        them hides where its event began or ended.
    ambiguous_ms
        CPU time that could be either thread's.
    witness
        Who saw it, in words: the kernel, or the loop.
    """

    runs: pd.DataFrame
    events: pd.DataFrame
    errors: pd.DataFrame
    totals: pd.DataFrame
    sources: pd.DataFrame
    inferred_switches: int
    ambiguous_ms: float
    witness: str = KERNEL

    def __repr__(self) -> str:
        seen = self.events["traced_ns"].notna()
        return (
            f"Retrace({len(self.runs)} runs, {int(seen.sum())} of {len(seen)} events seen by"
            f" {self.witness})"
        )

    def sentences(self) -> list[str]:
        """State what was seen of the replays."""
        runs, seen = len(self.runs), self.events["traced_ns"].notna()
        if not len(seen):
            return [
                f"Re-traced over {runs} runs: no event was injected, so there was none to be seen."
            ]
        injected = self.totals.loc[self.totals.index.str.startswith("injected")]
        planned_ms, traced_ms = injected["expected_ms"].sum(), injected["traced_ms"].sum()
        sentence = (
            f"Re-traced over {runs} runs: {self.witness} saw"
            f" **{traced_ms / max(planned_ms, 1e-9):.3f}** of the CPU time that was planned"
            f" ({traced_ms:.1f} of {planned_ms:.1f} ms), and {int(seen.sum())} of {len(seen)}"
            " injected events"
        )
        if self.witness == KERNEL:
            sentence += (
                f"; {self.inferred_switches / max(runs, 1):.1f} switches a run were not reported by"
                " the kernel and were inferred"
            )
        return [sentence + "."]


class _Lanes(Attachment):
    """Records the injector's processes, so that their threads are known in the trace."""

    def __init__(self, injector: Injector):
        self._injector = injector
        self._pids: tuple[int, ...] = ()

    def released(self, t0_ns: int) -> None:
        self._pids = self._injector.pids

    def after(self, run: dict) -> dict:
        return {_LANES: " ".join(map(str, self._pids))}


def retrace(
    folder: Path,
    workload: Workload,
    config: NoiseConfig,
    average: pd.DataFrame,
    runs: int = 3,
    seed: int = 0,
    recorded_only: bool = False,
    source: str = "auto",
    **options: Any,
) -> Retrace:
    """Trace replays of a config, and compare the traced events with average noise + planned noise.

    Where this user has no kernel tracer the detour loop runs in place of the workload
    (`Tracer.stand_in`), and its gaps take the place of the kernel's events.

    Parameters
    ----------
    folder
        Of the campaign, with its traces in ``traces`` and its logs in ``logs``.
    workload
        What is run.
    config
        What is injected.
    average
        Noise that every run has (`average_noise` of undisturbed, traced runs).
    runs
        How many runs are traced.
    seed
        Of the random order of the campaign.
    recorded_only
        True: use recorded data, measure nothing.
    source
        Of `Tracer`: tracepoints, osnoise, detours or auto.
    options
        Of `Injector`.

    Returns
    -------
    Retrace : events as planned, logged and traced, with errors and sums.

    Raises
    ------
    InputError
        The noise cannot be injected here.
    """
    folder = Path(folder)
    tracer = Tracer(folder / "traces", source, recorded_only=recorded_only)
    attachments = () if recorded_only else _watched(folder, config, tracer, options)
    cell = Cell("retraced", tracer.stand_in(workload), noise=config.digest, attachments=attachments)
    table = finished(
        Campaign(folder, [cell], runs=runs, seed=seed, recorded_only=recorded_only).run()
    )
    return compare_retraced(
        table, read_logs(folder / "logs", table), read_traces(folder / "traces", table), average
    )


def _watched(
    folder: Path, config: NoiseConfig, tracer: Tracer, options: dict
) -> tuple[Attachment, ...]:
    """The tracer comes last: it is armed when the injectors are there, and read before they go."""
    injector = Injector(config, log_folder=folder / "logs", **options)
    return injector, _Lanes(injector), tracer


def compare_retraced(
    runs: pd.DataFrame, logs: pd.DataFrame, events: pd.DataFrame, average: pd.DataFrame
) -> Retrace:
    """Compare traced replays with average noise + planned noise.

    Parameters
    ----------
    runs
        Finished runs with the column `injector_pids` (supervisor, then lanes).
    logs
        Their injection logs, with `run` and `lane`.
    events
        Their noise events.
    average
        Noise that every run has (`average_noise`).

    Returns
    -------
    Retrace : events as planned, logged and traced, with errors and sums.
    """
    by_loop = events.attrs.get("tracer") == "detours"
    matched_parts, other_parts = [], []
    for _, run in runs.iterrows():
        log, traced = logs[logs["run"] == run["run"]], events[events["run"] == run["run"]]
        matched_of_run, others_of_run = _of_run(run, log, traced, by_loop)
        matched_parts.append(matched_of_run)
        other_parts.append(others_of_run)
    matched, others = pd.concat(matched_parts, ignore_index=True), pd.concat(other_parts)
    seconds = float(region_seconds(runs).sum())
    return Retrace(
        runs,
        matched,
        _errors(matched),
        _totals(matched, others, average, seconds),
        _sources(others, average, seconds),
        int(events.attrs.get("inferred_switches", 0)),
        events.attrs.get("ambiguous_ns", 0) / 1e6,
        LOOP if by_loop else KERNEL,
    )


def _of_run(
    run: pd.Series, log: pd.DataFrame, events: pd.DataFrame, by_loop: bool
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Every injected event of a run with what was seen of it, and the events of others."""
    done = _reached(run, log)
    if by_loop:
        return _matched(run, _match_gaps(done, events)), events[~meets_an_event(done, events)]
    pids = [int(pid) for pid in str(run[_LANES]).split()]
    seen = _match(done, events, pids)
    return _matched(run, seen), events[~(events["pid"].isin(pids) & (events["pid"] > 0))]


def _noise_start_ns(run: pd.Series) -> int:
    """When the plan began: at the common start, unless nobody could wait for the region's begin."""
    start_ns = run.get(NOISE_START)
    return int(run["t0_ns"] if start_ns is None or pd.isna(start_ns) else start_ns)


def _reached(run: pd.Series, log: pd.DataFrame) -> pd.DataFrame:
    """What was injected within the timed region; times from its start."""
    done = log[log["outcome"].isin(DONE) & occupies(log)].copy()
    for name in ("replay_start_ns", "start_ns", "taken_ns", "end_ns"):
        done[name] += int(_noise_start_ns(run) - run["start_ns"])
    length_ns = int(run["end_ns"] - run["start_ns"])
    return done[(replay_start_ns(done) >= 0) & (done["end_ns"] <= length_ns)]


def _matched(run: pd.Series, seen: pd.DataFrame) -> pd.DataFrame:
    """The columns of `Retrace.events`, of events with `begin_ns` and `traced_ns`."""
    planned = replayed_ns(seen)
    return pd.DataFrame(
        {
            "run": run["run"],
            "cpu": seen["cpu"],
            "event": seen["event"],
            "kind": seen["kind"].astype(str),
            "realtime": seen["policy"].isin(REALTIME),
            "replayed_ns": planned,
            "logged_ns": noise_ns(seen),
            "traced_ns": seen["traced_ns"].astype(float),
            "start_error_us": (seen["begin_ns"] - replay_start_ns(seen)).astype(float) / 1e3,
            "duration_error_us": (seen["traced_ns"] - planned).astype(float) / 1e3,
        }
    )


def _match_gaps(done: pd.DataFrame, gaps: pd.DataFrame) -> pd.DataFrame:
    """By the loop: an event is seen in the gaps that overlap it."""
    begin, length = (pd.Series(np.nan, done.index) for _ in range(2))
    for cpu, on_cpu in done.groupby("ran_on"):
        begin[on_cpu.index], length[on_cpu.index] = gaps_of_events(on_cpu, gaps[gaps["cpu"] == cpu])
    return done.assign(begin_ns=begin, traced_ns=length.where(length > 0))


def _match(done: pd.DataFrame, events: pd.DataFrame, pids: list[int]) -> pd.DataFrame:
    """By the kernel: an event is seen in its injector's stretches on the CPU, and in the interrupt
    that woke it.
    """
    parts = []
    for lane, of_lane in done.groupby("lane"):
        stretches = events[events["pid"] == pids[1 + int(lane)]]
        parts.append(_match_lane(of_lane.sort_values("start_ns", kind="stable"), stretches))
    seen = pd.concat(parts) if parts else done.assign(**_UNSEEN)
    realtime = seen["policy"].isin(REALTIME)
    begin = _interrupted_from(seen, events[events["kind"] == "irq"]).where(
        realtime & seen["woken"], seen["traced_from_ns"]
    )
    return seen.assign(
        begin_ns=begin,
        traced_ns=(seen["traced_to_ns"] - begin).where(realtime, seen["traced_cpu_ns"]),
    )


def _match_lane(log: pd.DataFrame, stretches: pd.DataFrame) -> pd.DataFrame:
    """What the kernel saw of each event of a lane: from where to where its injector ran for it, and
    its CPU time.

    Events that follow each other without a sleep share one stretch on the CPU: they are cut where
    the log says that one ended.
    """
    stretches = stretches.sort_values("start_ns", kind="stable")
    start, end, net = (
        stretches[name].to_numpy(float) for name in ("start_ns", "end_ns", "duration_ns")
    )
    before_ns = np.concatenate([[0.0], log["end_ns"].to_numpy(float)[:-1]])
    began_ns = np.maximum(np.minimum(log["taken_ns"], log["start_ns"]).to_numpy(float), before_ns)
    low = (before_ns + began_ns) / 2
    high = np.append(low[1:], np.inf)
    first = np.searchsorted(end, low, side="right")
    last = np.searchsorted(start, high, side="left") - 1
    seen = (first <= last) & (len(stretches) > 0)
    first, last = np.where(seen, first, 0), np.where(seen, last, 0)
    if not len(stretches):
        return log.assign(**_UNSEEN)
    used = _used_by(start, end, net)
    columns = {
        "traced_from_ns": np.maximum(start[first], low),
        "traced_to_ns": np.minimum(end[last], high),
        "traced_cpu_ns": used(np.minimum(high, end[-1])) - used(low),
    }
    return log.assign(
        **{name: np.where(seen, values, np.nan) for name, values in columns.items()},
        woken=seen & (start[first] >= low),
    )


def _used_by(
    start: np.ndarray, end: np.ndarray, net: np.ndarray
) -> Callable[[np.ndarray], np.ndarray]:
    """CPU time up to a time, evenly spread over each stretch."""
    after = np.cumsum(net)
    points = np.column_stack([start, np.maximum(end, start + 1)]).ravel()
    heights = np.column_stack([after - net, after]).ravel()
    return lambda times: np.interp(times, points, heights)


def _interrupted_from(seen: pd.DataFrame, interrupts: pd.DataFrame) -> pd.Series:
    """When the interrupt began that woke the injector: the earliest in one row without a pause
    before its switch-in, on the same CPU.
    """
    begin = seen["traced_from_ns"].copy()
    for cpu, on_cpu in seen.groupby("ran_on"):
        here = interrupts[interrupts["cpu"] == cpu].sort_values("start_ns")
        if not len(here):
            continue
        start, end = here["start_ns"].to_numpy(float), here["end_ns"].to_numpy(float)
        from_ns = on_cpu["traced_from_ns"].to_numpy(float)
        at = np.searchsorted(start, from_ns, side="right") - 1
        woke = (at >= 0) & (from_ns - end[at] < WAKES_NS)
        begin[on_cpu.index] = np.where(woke, start[at], from_ns)
    return begin


def _errors(matched: pd.DataFrame) -> pd.DataFrame:
    """Of the events that the kernel saw: `events`, `seen`, and bias, spread and p99 of start and
    duration, µs.
    """
    rows: dict[str, dict[str, float]] = {}
    for name, of_class in (
        ("real-time", matched[matched["realtime"]]),
        ("ordinary", matched[~matched["realtime"]]),
    ):
        rows[name] = {"events": len(of_class), "seen": int(of_class["traced_ns"].notna().sum())}
        for what in ("start", "duration"):
            errors = of_class[f"{what}_error_us"]
            low, middle, high = errors.quantile([0.1, 0.5, 0.9])
            rows[name] |= {
                f"{what}_bias_us": middle,
                f"{what}_spread_us": high - low,
                f"{what}_p99_us": errors.abs().quantile(0.99),
            }
    return pd.DataFrame(rows).T.astype({"events": int, "seen": int}).rename_axis("class")


def _totals(
    matched: pd.DataFrame, others: pd.DataFrame, average: pd.DataFrame, seconds: float
) -> pd.DataFrame:
    rows = {
        f"injected {'real-time' if realtime else 'ordinary'}": {
            "expected_ms": of_class["replayed_ns"].sum() / 1e6,
            "logged_ms": of_class["logged_ns"].sum() / 1e6,
            "traced_ms": of_class["traced_ns"].sum() / 1e6,
        }
        for realtime, of_class in matched.groupby("realtime", sort=True)
    }
    inherent = (
        (average["frequency_hz"] * average["duration_ns"])
        .groupby(average["kind"].astype(str))
        .sum()
        * seconds
        / 1e6
    )
    traced = others.groupby(others["kind"].astype(str))["duration_ns"].sum() / 1e6
    for kind in sorted(set(inherent.index) | set(traced.index)):
        rows[f"{kind} (not injected)"] = {
            "expected_ms": inherent.get(kind, 0.0),
            "logged_ms": np.nan,
            "traced_ms": traced.get(kind, 0.0),
        }
    table = pd.DataFrame(rows, index=["expected_ms", "logged_ms", "traced_ms"]).T
    return table.assign(
        traced_over_expected=table["traced_ms"]
        / table["expected_ms"].where(table["expected_ms"] > 0)
    ).rename_axis("class")


def _sources(others: pd.DataFrame, average: pd.DataFrame, seconds: float) -> pd.DataFrame:
    """Expected and traced, ms, of each source; the largest difference first."""
    keys = [others["kind"].astype(str), others["source"].astype(str)]
    traced = (others.groupby(keys)["duration_ns"].sum() / 1e6).rename("traced_ms")
    expected = average.astype({"kind": str, "source": str}).set_index(["kind", "source"])
    expected = (expected["frequency_hz"] * expected["duration_ns"] * seconds / 1e6).rename(
        "expected_ms"
    )
    table = pd.concat([expected, traced], axis=1).fillna(0.0)
    table["difference_ms"] = table["traced_ms"] - table["expected_ms"]
    return table.sort_values("difference_ms", key=np.abs, ascending=False).rename_axis(
        ["kind", "source"]
    )
