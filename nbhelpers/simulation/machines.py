"""From one machine's noise to many machines: what was recorded there, as traces for
simulated ranks.

Owns the way from recordings (detours, noise events, files of other tools) to traces, what is drawn
anew of them or left out, and how they are spread over ranks.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from ..errors import InputError
from ..tracing import cached_detours, record_detours
from ..tracing.netgauge import read_netgauge
from .detours import Detours
from .noise import Noise


def traces_of(recording: pd.DataFrame | str | Path | None = None) -> list[Detours]:
    """Noise traces of a machine, one a CPU (and run).

    Parameters
    ----------
    recording
        Detours (`record_detours`), or noise events of runs of one length, with that length as
        attrs["seconds"]; a file: JSON of `cached_detours`, or Netgauge's format; None: detours are
        recorded now, for 10 s.

    Raises
    ------
    InputError
        Nothing was recorded, not a table of detours, or one that does not say how long was
        recorded.
    """
    if recording is None:
        table = record_detours(10, fixed="time")
    elif isinstance(recording, pd.DataFrame):
        table = recording
    elif Path(recording).suffix == ".json":
        table = cached_detours(recording, 0, recorded_only=True)
    else:
        table = read_netgauge(recording)
    missing = {"cpu", "start_ns", "duration_ns"} - set(table.columns)
    if missing or table.empty:
        without = f"a table without {', '.join(sorted(missing))}"
        raise InputError(
            without if missing else "no noise was recorded",
            where="recording",
            fix="record for longer, or pass what record_detours or read_traces gave",
        )
    if "seconds" not in table.attrs:
        raise InputError(
            "a table that does not say how long was recorded",
            where="recording",
            why="its length is the period of the noise",
            fix=(
                "set table.attrs['seconds'], or of traced runs take"
                " nbhelpers.simulation.machines.traces_of_runs"
            ),
        )
    by = ["run", "cpu"] if "run" in table else ["cpu"]
    return [
        _trace(part, table.attrs["seconds"], " ".join(f"{a} {b}" for a, b in zip(by, key)))
        for key, part in table.groupby(by)
    ]


def _trace(table: pd.DataFrame, seconds: float, name: str) -> Detours:
    """What a CPU lost in so many seconds, or until the end of its last detour if that is later."""
    last_ns = float((table["start_ns"] + table["duration_ns"]).max())
    return Detours.from_table(table, max(float(seconds) * 1e9, last_ns), name)


def traces_of_runs(events: pd.DataFrame, runs: pd.DataFrame) -> list[Detours]:
    """What each CPU lost in each traced run, with the sources' names.

    Parameters
    ----------
    events
        A noise events table. From start to end, nested events included: that they overlap doesn't
        matter to a trace.
    runs
        `run`, `seconds`, a row a run: the period of its traces.

    Returns
    -------
    A trace for every CPU and run that lost any time. A CPU that others had for the whole of a run
    is left out: the program was not there, and no operation would ever end on it.

    Raises
    ------
    InputError
        No event, or events of a run that is not in `runs`.
    """
    if events.empty:
        raise InputError(
            "no noise was recorded",
            why="then there is nothing to bring to scale",
            fix="record for longer, or take a source that sees more",
        )
    seconds = runs.set_index("run")["seconds"]
    unknown = set(events["run"]) - set(seconds.index)
    if unknown:
        raise InputError(
            f"run {min(unknown)} is not in the runs table",
            why="its length is the period of its noise",
            fix="give the runs that the events are from",
        )
    lost = events.assign(duration_ns=events["end_ns"] - events["start_ns"])
    traces = [
        _trace(part, seconds[run], f"run {run}, CPU {cpu}")
        for (run, cpu), part in lost.groupby(["run", "cpu"], sort=True)
    ]
    return [trace for trace in traces if trace.overhead < 1]


def spread_over(
    traces: Sequence[Detours], ranks: int, seed: int = 0, cosched: bool = False
) -> Noise:
    """Put traces on ranks: each rank draws which of them it has, and its phase.

    Parameters
    ----------
    traces
        Traces of one machine, as `traces_of` returns them.
    ranks
        P.
    seed
        Seed of both draws.
    cosched
        All ranks begin at the same place of their traces: noise strikes everywhere at once.

    Returns
    -------
    Noise
        On P ranks.
    """
    which = np.random.default_rng(seed).integers(0, len(traces), ranks)
    return Noise.on_ranks(list(traces), ranks, seed=seed, which=which, cosched=cosched)


def pieces(traces: Sequence[Detours], count: int) -> list[Detours]:
    """Traces cut into pieces of equal time, so that a single recording has units to draw from.

    Parameters
    ----------
    traces
        One a CPU.
    count
        Pieces of each. A detour belongs to the piece in which it begins, and no piece ends within a
        detour but behind it: a CPU that was taken for longer than a piece has a longer piece. A
        piece without any detour is left out. Of a CPU that had no time at all in one of them there
        are fewer, until each has some.

    Examples
    --------
    >>> trace = Detours(np.array([1e6, 6e6]), np.array([10.0, 20.0]), 1e7, name="CPU 0")
    >>> [piece.period_ns for piece in pieces([trace], 2)]
    [5000000.0, 5000000.0]
    """
    cut = []
    for trace in traces:
        for fewer in range(count, 0, -1):
            found = _pieces(trace, fewer)
            if all(piece.overhead < 1 for piece in found):
                break
        cut += found
    return cut


def _pieces(trace: Detours, count: int) -> list[Detours]:
    found = []
    ends = _between_detours(trace, trace.period_ns / count * np.arange(count + 1))
    index = np.searchsorted(ends[1:-1], trace.start_ns, side="right")
    for number in np.unique(index):
        length = float(ends[number + 1] - ends[number])
        name = f"{trace.name}, piece {number}"
        inside = index == number
        source = np.asarray(trace.source)[inside] if len(trace.source) else trace.source
        start, duration_ns = trace.start_ns[inside] - ends[number], trace.duration_ns[inside]
        found.append(Detours(start, duration_ns, length, source, trace.sources, name))
    return found


def _between_detours(trace: Detours, times: np.ndarray) -> np.ndarray:
    """Times within a detour are moved to its end."""
    order = np.argsort(trace.start_ns, kind="stable")
    start, end = trace.start_ns[order], (trace.start_ns + trace.duration_ns)[order]
    latest = np.maximum.accumulate(end)
    before = np.searchsorted(start, times, side="left") - 1  # begun before
    return np.where(before >= 0, np.maximum(times, latest[before]), times)


def without(traces: Sequence[Detours], source: str = "", longest: int = 0) -> list[Detours]:
    """Traces without the detours of a source, or without the longest of all.

    Parameters
    ----------
    traces
        Traces of one machine, as they were recorded.
    source
        The name of a source of noise; "" leaves all of them in.
    longest
        How many detours are left out, the longest of all traces.

    Returns
    -------
    The same traces: what is left out lasts 0 ns there, so that each rank's phase stays as it was.

    Examples
    --------
    >>> trace = Detours(np.array([0.0, 1000.0]), np.array([10.0, 20.0]), 1e6)
    >>> without([trace], longest=1)[0].duration_ns.tolist()
    [10.0, 0.0]
    """
    owner = np.repeat(np.arange(len(traces)), [len(trace) for trace in traces])
    lengths = np.concatenate([trace.duration_ns for trace in traces])
    taken = np.zeros(len(lengths), bool)
    taken[np.argsort(-lengths, kind="stable")[:longest]] = True
    left = []
    for number, trace in enumerate(traces):
        out = taken[owner == number]
        if source in trace.sources and len(trace.source):
            out = out | (np.asarray(trace.source) == trace.sources.index(source))
        left.append(replace(trace, duration_ns=np.where(out, 0.0, trace.duration_ns)))
    return left
