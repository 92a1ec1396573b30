"""From one machine's noise to many machines: "what would this do to an all-reduce on 100,000 of
them".

Owns the way from recordings (detours, noise events, files of other tools) to traces, and the one
call that answers the question.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from ..errors import InputError
from ..tracing import cached_detours, record_detours
from ..tracing.netgauge import read_netgauge
from .implicit import Evaluation, evaluate
from .loggops import LogGOPS, known_network
from .noise import Detours, Noise
from .replicates import Replicates, replicate

SCALES = (16, 128, 1024, 8192, 65536)
Recording: TypeAlias = pd.DataFrame | Detours | Sequence[Detours] | str | Path | None


def traces_of(recording: Recording = None, seconds: float = 10.0) -> list[Detours]:
    """Noise traces of a machine, one a CPU (and run).

    Parameters
    ----------
    recording
        Detours (`record_detours`), or noise events of runs of one length, with that length as
        attrs["seconds"]; a file: JSON of `cached_detours`, or Netgauge's format; traces, which stay
        as they are; None: detours are recorded now.
    seconds
        How long to record now.

    Raises
    ------
    InputError
        Nothing was recorded, not a table of detours, or one that does not say how long was
        recorded.
    """
    if isinstance(recording, Detours):
        return [recording]
    if isinstance(recording, (str, Path)):
        return _of_table(_read(recording))
    if recording is None:
        return _of_table(record_detours(seconds, fixed="time"))
    if isinstance(recording, pd.DataFrame):
        return _of_table(recording)
    traces = list(recording)
    if not traces or not all(isinstance(trace, Detours) for trace in traces):
        raise InputError(
            "not a recording of noise", fix="a table of detours or noise events, a file, or traces"
        )
    return traces


def _read(path: str | Path) -> pd.DataFrame:
    if Path(path).suffix == ".json":
        return cached_detours(path, 0, recorded_only=True)
    return read_netgauge(path)


def _of_table(table: pd.DataFrame) -> list[Detours]:
    missing = {"cpu", "start_ns", "duration_ns"} - set(table.columns)
    if missing or table.empty:
        raise InputError(
            (
                "no noise was recorded"
                if not missing
                else f"a table without {', '.join(sorted(missing))}"
            ),
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
                " nbhelpers.studies.scale.traces_of_runs"
            ),
        )
    period_ns = float(table.attrs["seconds"]) * 1e9
    by = ["run", "cpu"] if "run" in table else ["cpu"]
    return [
        _trace(events, period_ns, " ".join(f"{name} {value}" for name, value in zip(by, key)))
        for key, events in table.groupby(by)
    ]


def _trace(events: pd.DataFrame, period_ns: float, name: str) -> Detours:
    last_ns = float((events["start_ns"] + events["duration_ns"]).max())
    return Detours.from_table(events.sort_values("start_ns"), max(period_ns, last_ns), name)


def spread_over(
    traces: Sequence[Detours], ranks: int, seed: int = 0, cosched: bool = False
) -> Noise:
    """Put traces on ranks: each rank draws which of them it has, and its phase.

    Parameters
    ----------
    traces
        Of one machine, see `traces_of`.
    ranks
        P.
    seed
        Of both draws.
    cosched
        All ranks begin at the same place of their traces: noise strikes everywhere at once.

    Returns
    -------
    Noise
        On P ranks.
    """
    which = np.random.default_rng(seed).integers(0, len(traces), ranks)
    return Noise.on_ranks(list(traces), ranks, seed=seed, which=which, cosched=cosched)


def at_scale(
    recording: Recording = None,
    ranks: int | Sequence[int] = SCALES,
    network: LogGOPS | str = LogGOPS(),
    pattern: str = "recursive_doubling_allreduce",
    n: int = 30,
    seed: int = 0,
    *,
    seconds: float = 10.0,
    cosched: bool = False,
    workers: int | None = None,
    client: Any = None,
    **options: Any,
) -> pd.DataFrame:
    """What a machine's noise would do to a collective on many such machines, one rank a CPU.

    Parameters
    ----------
    recording, seconds
        As in `traces_of`; None records this machine now.
    ranks
        How many, one number or several.
    network
        LogGOPS parameters, or the name of a known network (`known_networks()`).
    pattern, options
        Of `evaluate`: "dissemination", "barrier", …, bytes=8, repetitions=100,
        compute_ns=1_000_000.
    n, seed, workers, client
        Of `replicate`.
    cosched
        Noise strikes everywhere at once.

    Returns
    -------
    DataFrame
        Index `ranks`; columns `ideal_us`, `median_us` with its 95 % bootstrap interval `low_us`,
        `high_us`, `p95_us`, `max_us`, `slowdown` (of the median), `slowdown_low`, `slowdown_high`,
        `noise_us` (mean of the ranks), `n`; attrs `overhead` (share of the time that the traces
        take), `pattern`, `traces`.

    Raises
    ------
    InputError
        No noise was recorded, n below 2, or what `evaluate` refuses.

    Examples
    --------
    >>> quiet = Detours(np.arange(10) * 4e6, np.full(10, 3000.0), 4e7)
    >>> at_scale(quiet, [2, 1024], n=5).slowdown.round(2).tolist()
    [1.0, 1.05]
    """
    traces = traces_of(recording, seconds)
    net = known_network(network) if isinstance(network, str) else network
    rows = {}
    for count in map(int, np.atleast_1d(np.asarray(ranks))):
        call = partial(_call, pattern, count, net, options)
        found = replicate(
            call,
            spread_over(traces, count, seed, cosched),
            n,
            seed,
            workers=workers,
            client=client,
        )
        rows[count] = _row(found)
    table = pd.DataFrame.from_dict(rows, orient="index").rename_axis("ranks").astype({"n": int})
    table.attrs = {
        "overhead": float(np.mean([trace.overhead for trace in traces])),
        "pattern": pattern,
        "traces": len(traces),
    }
    return table


def _call(
    pattern: str, ranks: int, network: LogGOPS, options: dict[str, Any], noise: Noise | None
) -> Evaluation:
    return evaluate(pattern, ranks, network, noise, **options)


def _row(found: Replicates) -> dict[str, float]:
    took_us, ideal_us = found.table["makespan_ns"].to_numpy() / 1e3, found.ideal_ns / 1e3
    middle = found.intervals(["makespan_ns"]).loc["makespan_ns"] / 1e3
    return {
        "ideal_us": ideal_us,
        "median_us": middle["median"],
        "low_us": middle["low"],
        "high_us": middle["high"],
        "p95_us": float(np.quantile(took_us, 0.95)),
        "max_us": float(took_us.max()),
        "slowdown": middle["median"] / ideal_us,
        "slowdown_low": middle["low"] / ideal_us,
        "slowdown_high": middle["high"] / ideal_us,
        "noise_us": float(found.table["noise_ns"].mean()) / 1e3,
        "n": len(took_us),
    }
