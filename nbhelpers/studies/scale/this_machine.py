"""This machine's noise at scale: several recordings of it side by side, and the kernel events of
traced runs as traces of detours.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from ...errors import InputError
from ...simulation.machines import Recording, at_scale
from ...simulation.noise import Detours

LOOP, TRACED = "detours of a loop", "kernel events"


def this_machine_at_scale(
    recordings: Mapping[str, Recording], ranks: Sequence[int], *, seeds: int = 30, **options: Any
) -> pd.DataFrame:
    """`at_scale` of several recordings.

    Parameters
    ----------
    recordings
        By name; detours, a file of them, or traces (`traces_of_runs`).
    ranks
        How many; several are cases.
    seeds
        Replicates of each simulation, at least 2.
    options
        Of `at_scale`.

    Returns
    -------
    `recording`, `ranks`, `ideal_us`, `noisy_us`, the slow-down's `median`, `low`,
    `high` (95 %), `seeds`, `overhead_share`.
    """
    parts = [
        _slowdowns(name, at_scale(recording, list(ranks), n=seeds, **options))
        for name, recording in recordings.items()
    ]
    return pd.concat(parts, ignore_index=True)


def _slowdowns(name: str, table: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "recording": name,
            "ranks": table.index,
            "ideal_us": table["ideal_us"].to_numpy(),
            "noisy_us": table["median_us"].to_numpy(),
            "median": table["slowdown"].to_numpy(),
            "low": table["slowdown_low"].to_numpy(),
            "high": table["slowdown_high"].to_numpy(),
            "seeds": table["n"].to_numpy(),
            "overhead_share": table.attrs["overhead"],
        }
    )


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
        Detours.from_table(
            part, max(seconds[run] * 1e9, float(part["end_ns"].max())), f"run {run}, CPU {cpu}"
        )
        for (run, cpu), part in lost.groupby(["run", "cpu"], sort=True)
    ]
    return [trace for trace in traces if _has_time(trace)]


def _has_time(trace: Detours) -> bool:
    try:
        return trace.overhead < 1
    except InputError:  # no time is left at all
        return False


def this_machine_recordings(
    loop: str | Path, events: pd.DataFrame, runs: pd.DataFrame
) -> dict[str, Recording]:
    """What is brought to scale: the detours of a loop, and the kernel events of traced runs where
    there are any.

    Parameters
    ----------
    loop
        File of the loop's detours.
    events, runs
        See `traces_of_runs`.
    """
    traces = traces_of_runs(events, runs) if len(events) else []
    return {LOOP: loop} | ({TRACED: traces} if traces else {})


def this_machine_sentence(table: pd.DataFrame) -> str:
    """The slow-down on the largest number of CPUs, in a sentence.

    Parameters
    ----------
    table
        Of `this_machine_at_scale` of `this_machine_recordings`.
    """
    last = table.sort_values("ranks").groupby("recording").last()
    loop, ranks = last.loc[LOOP], int(last["ranks"].max())
    sentence = (
        f"An all-reduce on **{ranks:,}** CPUs as noisy as this machine's when idle would take"
        f" **{loop['median']:.1f}** times as long as without noise ({loop['low']:.1f} to"
        f" {loop['high']:.1f})"
    )
    if TRACED not in last.index:
        return f"{sentence}; no event was recorded in traced runs."
    return f"{sentence}; with the events of the traced runs {last.loc[TRACED, 'median']:.1f} times."
