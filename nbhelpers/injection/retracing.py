"""The proof by our own tracer: a replayed run is traced, and what was seen is held against inherent
noise + planned noise.

Owns the campaign of such runs, the matching of each event of the log with what the trace saw of it,
and the sums. The log is the injector's own word; the trace is the kernel's, by the very method that
the noise was recorded with. Where no kernel tracer can be used the detour loop runs in the
program's place: what it was without is the trace then.
"""

from dataclasses import dataclass
from pathlib import Path

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


@dataclass(frozen=True)
class Retrace:
    """What the kernel, or a loop in the program's place, saw of replays.

    `witness`: which of the two, in words. `runs`: the replayed runs, traced. `events`: one row an
    event that was injected: `run`, `cpu`, `event`, `kind`, `realtime`, `replayed_ns` (what it was
    to take), `logged_ns` (what it took by the log), `traced_ns` (by the trace: of a real-time event
    from the interrupt that woke its injector to the injector's switch-out, of an ordinary one the
    injector's CPU time; NaN: nothing was seen of it; by the loop: the gaps that overlap it) and
    `start_error_us`, `duration_error_us` (traced less planned). `errors`: bias, spread and p99 of
    these by class. `totals`: one row a class: `expected_ms` (planned of what was injected, or
    inherent: average noise × time), `logged_ms`, `traced_ms`, `traced_over_expected`. `sources`:
    the same for each source of noise that is not an injector. `mended`, `ambiguous_ms`: switches
    that the kernel did not report and that were inferred, and the CPU time that could be either
    thread's; an injector's switch among them hides where its event began or ended.
    """

    runs: pd.DataFrame
    events: pd.DataFrame
    errors: pd.DataFrame
    totals: pd.DataFrame
    sources: pd.DataFrame
    mended: int
    ambiguous_ms: float
    witness: str = KERNEL

    def __repr__(self) -> str:
        seen = self.events["traced_ns"].notna()
        return (
            f"Retrace({len(self.runs)} runs, {int(seen.sum())} of {len(seen)} events seen by"
            f" {self.witness})"
        )

    def sentences(self) -> list[str]:
        """What it shows, in sentences."""
        runs, seen = len(self.runs), self.events["traced_ns"].notna()
        if not len(seen):
            return [
                f"Re-traced over {runs} runs: no event was injected, so there was none to be seen."
            ]
        injected = self.totals.loc[self.totals.index.str.startswith("injected")]
        planned_ms, traced_ms = injected["expected_ms"].sum(), injected["traced_ms"].sum()
        told = (
            f"Re-traced over {runs} runs: {self.witness} saw"
            f" **{traced_ms / max(planned_ms, 1e-9):.3f}** of the CPU time that was planned"
            f" ({traced_ms:.1f} of {planned_ms:.1f} ms), and {int(seen.sum())} of {len(seen)}"
            " injected events"
        )
        inferred = (
            f"; {self.mended / max(runs, 1):.1f} switches a run were not reported by the kernel and"
            " were inferred"
        )
        return [told + (inferred if self.witness == KERNEL else "") + "."]


class _Lanes(Attachment):
    """Notes the injector's processes, so that the trace's threads can be told from them."""

    def __init__(self, injector: Injector):
        self._injector, self._pids = injector, ()

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
    **options,
) -> Retrace:
    """Trace replays of a config, and compare the traced events with inherent noise + planned noise.

    Where this user has no kernel tracer the detour loop runs in place of the workload
    (`Tracer.stand_in`), and the time that it was without its CPU takes the place of the kernel's
    events.

    Parameters
    ----------
    folder
        Of the campaign, with its traces in ``traces`` and its logs in ``logs``; kept and gone on
        with like any campaign's.
    workload, config
        What is run and what is injected.
    average
        Noise that every run has (`average_noise` of undisturbed, traced runs).
    runs, seed, recorded_only
        Of the campaign.
    source
        Of `Tracer`: tracepoints, osnoise, detours or auto.
    options
        Of `Injector`.

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
    """`retrace` of what was recorded.

    Parameters
    ----------
    runs
        Finished runs with the column `injector_pids` (supervisor, then lanes).
    logs
        Theirs, with `run` and `lane`.
    events
        Their noise events.
    average
        See `retrace`.
    """
    by_loop = events.attrs.get("tracer") == "detours"
    found = [
        _of_run(row, logs[logs["run"] == row.run], events[events["run"] == row.run], by_loop)
        for row in runs.itertuples()
    ]
    matched = pd.concat([own for own, _ in found], ignore_index=True)
    others = pd.concat([own for _, own in found])
    seconds = float(region_seconds(runs).sum())
    return Retrace(
        runs,
        matched,
        _errors(matched),
        _totals(matched, others, average, seconds),
        _sources(others, average, seconds),
        int(events.attrs.get("mended", 0)),
        events.attrs.get("ambiguous_ns", 0) / 1e6,
        LOOP if by_loop else KERNEL,
    )


def _of_run(
    run: tuple, log: pd.DataFrame, events: pd.DataFrame, by_loop: bool
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Every injected event of a run beside what was seen of it, and the events that are not the
    injector's.
    """
    done = _reached(run, log)
    if by_loop:
        return _matched(run, _match_gaps(done, events)), events[~meets_an_event(done, events)]
    pids = [int(pid) for pid in str(getattr(run, _LANES)).split()]
    seen = _match(done, events, pids)
    return _matched(run, seen), events[~(events["pid"].isin(pids) & (events["pid"] > 0))]


def _noise_start_ns(run: tuple) -> int:
    """From when the injected noise counts: the common start, unless the region's begin could not be
    armed.
    """
    start_ns = getattr(run, NOISE_START, None)
    return int(run.t0_ns if start_ns is None or pd.isna(start_ns) else start_ns)


def _reached(run: tuple, log: pd.DataFrame) -> pd.DataFrame:
    """What was injected within the timed region; times from its start."""
    done = log[log["outcome"].isin(DONE) & occupies(log)].copy()
    for name in ("replay_start_ns", "start_ns", "taken_ns", "end_ns"):
        done[name] += int(_noise_start_ns(run) - run.start_ns)
    return done[(replay_start_ns(done) >= 0) & (done["end_ns"] <= int(run.end_ns - run.start_ns))]


def _matched(run: tuple, seen: pd.DataFrame) -> pd.DataFrame:
    """The columns of `Retrace.events`, of events with `begin_ns` and `traced_ns`."""
    planned = replayed_ns(seen)
    return pd.DataFrame(
        {
            "run": run.run,
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
    """By the loop: an event is seen in the gaps that overlap it; without any, nothing was seen of
    it.
    """
    begin, length = (pd.Series(np.nan, done.index) for _ in range(2))
    for cpu, own in done.groupby("ran_on"):
        begin[own.index], length[own.index] = gaps_of_events(own, gaps[gaps["cpu"] == cpu])
    return done.assign(begin_ns=begin, traced_ns=length.where(length > 0))


def _match(done: pd.DataFrame, events: pd.DataFrame, pids: list[int]) -> pd.DataFrame:
    """By the kernel: an event is seen in its injector's stretches on the CPU, and in the interrupt
    that woke it.
    """
    parts = [
        _match_lane(
            own.sort_values("start_ns", kind="stable"), events[events["pid"] == pids[1 + int(lane)]]
        )
        for lane, own in done.groupby("lane")
    ]
    seen = (
        pd.concat(parts)
        if parts
        else done.assign(
            traced_from_ns=np.nan, traced_to_ns=np.nan, traced_cpu_ns=np.nan, woken=False
        )
    )
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
        return log.assign(
            traced_from_ns=np.nan, traced_to_ns=np.nan, traced_cpu_ns=np.nan, woken=False
        )
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


def _used_by(start: np.ndarray, end: np.ndarray, net: np.ndarray):
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
    for cpu, own in seen.groupby("ran_on"):
        here = interrupts[interrupts["cpu"] == cpu].sort_values("start_ns")
        start, end = here["start_ns"].to_numpy(float), here["end_ns"].to_numpy(float)
        at = np.searchsorted(start, own["traced_from_ns"].to_numpy(float), side="right") - 1
        woke = (
            (at >= 0) & (own["traced_from_ns"].to_numpy(float) - end[at] < WAKES_NS)
            if len(here)
            else np.zeros(len(own), bool)
        )
        begin[own.index] = np.where(woke, start[at] if len(here) else 0.0, own["traced_from_ns"])
    return begin


def _errors(matched: pd.DataFrame) -> pd.DataFrame:
    """Of the events that the kernel saw: `events`, `seen`, and bias, spread and p99 of start and
    duration, us.
    """
    rows = {}
    for name, own in (
        ("real-time", matched[matched["realtime"]]),
        ("ordinary", matched[~matched["realtime"]]),
    ):
        rows[name] = {"events": len(own), "seen": int(own["traced_ns"].notna().sum())}
        for what in ("start", "duration"):
            errors = own[f"{what}_error_us"]
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
            "expected_ms": own["replayed_ns"].sum() / 1e6,
            "logged_ms": own["logged_ns"].sum() / 1e6,
            "traced_ms": own["traced_ns"].sum() / 1e6,
        }
        for realtime, own in matched.groupby("realtime", sort=True)
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
