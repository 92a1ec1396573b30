"""How sure this machine's slow-down at scale is: tables and sentences.

Owns what is one unit of a recording, and how the spreads, the deciding detours and the tails are
said; they are computed in `nbhelpers.simulation.extremes`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import partial

import numpy as np
import pandas as pd

from ...empty import because
from ...errors import InputError
from ...simulation.detours import Detours
from ...simulation.extremes import (
    ALL,
    Spreads,
    deciding_detours,
    held_out,
    pieces,
    recorded_levels,
    return_curve,
    return_periods,
    source_tails,
    spreads,
    tails_of,
)
from ...simulation.implicit import Evaluation, evaluate
from ...simulation.machines import Recording, traces_of
from ...simulation.noise import Noise
from .this_machine import LOOP, TRACED

PATTERN, BYTES = "recursive_doubling_allreduce", 8
PIECES = 40  # of each CPU's loop
_UNIT = {LOOP: "pieces of time", TRACED: "runs"}
NODES = 100_000  # CPUs of the return periods, in a second
FARTHEST = 1000  # times what was recorded: beyond, a tail is mere assumption
_CURVE_POINTS = 25
_MOST_TAKEN = 10  # detours that `deciding_detours` takes away
_DECIDING = [
    "recording",
    "ranks",
    "without",
    "kind",
    "detours",
    "longest_ms",
    "median",
    "low",
    "high",
    "removed_share",
    "seeds",
]
TOO_SHORT = "too few units of the recording have long detours: a longer recording is needed"


def recorded_traces(recordings: Mapping[str, Recording]) -> dict[str, list[Detours]]:
    """The traces of this machine's recordings, one a CPU and unit: a unit is a traced run, or a
    piece of a loop's time on a CPU.

    Parameters
    ----------
    recordings
        Of `this_machine_recordings`.
    """
    found = {}
    for name, recording in recordings.items():
        traces = traces_of(recording)
        traced = all(trace.name.startswith("run ") for trace in traces)
        found[name] = traces if traced else pieces(traces, PIECES)
    return found


def _call(ranks: int, noise: Noise | None) -> Evaluation:
    return evaluate(PATTERN, ranks, noise=noise, bytes=BYTES)


def spreads_table(
    recordings: Mapping[str, Sequence[Detours]],
    ranks: int,
    *,
    seeds: int,
    resamples: int,
    phases: int,
) -> pd.DataFrame:
    """The slow-down of an all-reduce with both its intervals, a row a recording.

    Parameters
    ----------
    recordings
        Traces by name; what their names begin with are the units.
    ranks, seeds, resamples, phases
        As in `nbhelpers.simulation.extremes.spreads`.

    Returns
    -------
    `recording`, `ranks`, and the fields of `Spreads`.
    """
    rows = [
        {"recording": name, "ranks": ranks}
        | asdict(
            spreads(
                traces,
                _units(traces),
                partial(_call, ranks),
                ranks,
                seeds=max(seeds, 2),
                resamples=max(resamples, 2),
                phases=phases,
            )
        )
        for name, traces in recordings.items()
        if len(set(_units(traces))) > 1
    ]
    columns = ["recording", "ranks", *(field.name for field in fields(Spreads))]
    return pd.DataFrame(rows, columns=columns)


def _units(traces: Sequence[Detours]) -> list[str]:
    """A traced run's traces are one unit, each piece of a loop is one."""
    names = [trace.name for trace in traces]
    return [name.partition(",")[0] if name.startswith("run ") else name for name in names]


def deciding_table(
    recordings: Mapping[str, Sequence[Detours]], ranks: int, *, seeds: int
) -> pd.DataFrame:
    """What is left of the slow-down without a source, or without the longest detours: the columns
    of `deciding_detours`, with `recording` and `ranks`.
    """
    parts = [
        deciding_detours(traces, partial(_call, ranks), ranks, seeds=max(seeds, 2)).assign(
            recording=name, ranks=ranks
        )
        for name, traces in recordings.items()
        if sum(map(len, traces)) > _MOST_TAKEN
    ]
    together = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=_DECIDING)
    return together[_DECIDING]


@dataclass(frozen=True)
class TailTables:
    """The tail of each recording that has one.

    Parameters
    ----------
    returns
        Of `return_periods`, with `recording`: for a time as long as the recording, ten and a
        hundred times as long, and for a second on 100,000 CPUs.
    sources
        Of `source_tails`, with `recording`.
    curve, points
        Of `return_curve` and `recorded_levels`, with `recording`: for a figure.
    """

    returns: pd.DataFrame
    sources: pd.DataFrame
    curve: pd.DataFrame
    points: pd.DataFrame


def tail_tables(recordings: Mapping[str, Sequence[Detours]]) -> TailTables:
    """Fit the tails; a recording too short for one has no rows."""
    found: dict[str, list[pd.DataFrame]] = {"returns": [], "sources": [], "curve": [], "points": []}
    for name, traces in recordings.items():
        try:
            tails = tails_of(traces, _units(traces))
        except InputError:
            continue
        farthest = tails.seconds * FARTHEST
        times = sorted(tails.seconds * factor for factor in (1, 10, 100))
        times += [float(NODES)] if farthest >= NODES else []
        reach = np.geomspace(tails.seconds / 30, farthest, _CURVE_POINTS)
        tables = {
            "returns": return_periods(tails, times),
            "sources": source_tails(tails),
            "curve": return_curve(tails, reach.tolist()),
            "points": recorded_levels(tails),
        }
        for key, table in tables.items():
            table.insert(0, "recording", name)
            found[key].append(table)
    return TailTables(
        **{
            key: pd.concat(parts, ignore_index=True)
            if parts
            else because(pd.DataFrame(), TOO_SHORT)
            for key, parts in found.items()
        }
    )


def foretold_table(recordings: Mapping[str, Sequence[Detours]], splits: int = 20) -> pd.DataFrame:
    """How often half of a recording foretold the longest detour of the other half.

    Parameters
    ----------
    recordings
        Traces by name.
    splits
        Random divisions into halves.

    Returns
    -------
    `recording`, `source`, `splits` (for which a tail could be fitted), `inside` the 90 % interval,
    `longer` than it, `shorter`, and `in_time`: whether the first half of the units foretold the
    second ("yes", "no", or "no tail").
    """
    parts = []
    for name, traces in recordings.items():
        outcomes = held_out(traces, _units(traces), splits=splits)
        for source, rows in outcomes.groupby("source", sort=False):
            first, random = rows[rows["split"] == 0], rows[rows["split"] > 0]
            parts.append(
                {
                    "recording": name,
                    "source": source,
                    "splits": len(random),
                    "inside": int(random["inside"].sum()),
                    "longer": int((random["longest_ms"] > random["high_ms"]).sum()),
                    "shorter": int((random["longest_ms"] < random["low_ms"]).sum()),
                    "in_time": _in_time(first),
                }
            )
    return because(pd.DataFrame(parts), TOO_SHORT)


def _in_time(first: pd.DataFrame) -> str:
    if first.empty:
        return "no tail"
    return "yes" if bool(first["inside"].iloc[0]) else "no"


# --- sentences ------------------------------------------------------------------------------------


def spreads_sentence(table: pd.DataFrame) -> str:
    """The slow-down with both its intervals, of every recording.

    Parameters
    ----------
    table
        Of `spreads_table`.
    """
    if table.empty:
        return "Cannot tell here: a single unit of noise was recorded."
    parts = [_spread_text(row) for row in table.to_dict("records")]
    ranks = int(table["ranks"].iloc[0])
    return (
        f"On {ranks:,} CPUs as noisy as this machine's, an all-reduce takes {'; '.join(parts)}."
        " Both intervals are of the median, 95 %."
    )


def _spread_text(row: dict) -> str:
    phases = f"{_times(row['phases_low'])} to {_times(row['phases_high'])}"
    recording = f"{_times(row['recording_low'])} to {_times(row['recording_high'])}"
    return (
        f"**{_times(row['median'])}** times as long by {row['recording']} ({phases} if only phases"
        f" are drawn anew, **{recording}** if the recording is too, n = {row['units']}"
        f" {_UNIT[row['recording']]})"
    )


def deciding_sentence(table: pd.DataFrame) -> str:
    """Which source and which detours the slow-down rests on.

    Parameters
    ----------
    table
        Of `deciding_table`.
    """
    if table.empty:
        return "Too few detours were recorded to say which of them decide."
    groups = table.groupby("recording", sort=False)
    return " ".join(_deciding_text(str(name), rows) for name, rows in groups)


def _deciding_text(recording: str, rows: pd.DataFrame) -> str:
    whole = rows.iloc[0]
    sources, longest = rows[rows["kind"] == "source"], rows[rows["kind"] == "detours"]
    said = [f"By {recording} {_times(whole['median'])} times"]
    if len(sources):
        first = sources.sort_values("removed_share").iloc[-1]
        said.append(
            f"without **{first['without']}** {_times(first['median'])} times: this source is"
            f" **{first['removed_share']:.0%}** of the delay"
        )
    for row in (longest.iloc[0], longest.iloc[-1]):
        said.append(f"without {row['without']} {_times(row['median'])} times")
    return "; ".join(said) + f" (medians, n = {whole['seeds']} seeds)."


def returns_sentence(tables: TailTables) -> str:
    """The longest detour in a second on 100,000 CPUs, and who has it.

    Parameters
    ----------
    tables
        Of `tail_tables`.
    """
    if tables.returns.empty:
        return f"No tail was fitted: {TOO_SHORT}."
    groups = tables.returns.groupby("recording", sort=False)
    return " ".join(_returns_text(str(name), rows) for name, rows in groups)


def _returns_text(name: str, rows: pd.DataFrame) -> str:
    row = rows.iloc[-1]
    if row["cpu_seconds"] != NODES:
        recorded_s = float(rows["cpu_seconds"].iloc[0])
        return (
            f"For a second on {NODES:,} CPUs {name} cannot tell: it is {NODES / recorded_s:,.0f}"
            f" times the {recorded_s:.1f} s that were recorded."
        )
    said = (
        f"In a second on {NODES:,} CPUs the longest detour is {_time(row['pooled_ms'])} by"
        f" {name} (90 % interval {_time(row['pooled_low_ms'])} to"
        f" {_time(row['pooled_high_ms'])}; {row['times_recorded']:,.0f} times the recording)"
    )
    if row["decides"] != "none":
        said += f"; **{row['decides']}** has it in {row['decides_share']:.0%} of draws"
    return said + "."


def _times(factor: float) -> str:
    return f"{factor:,.0f}" if factor >= 10 else f"{factor:.1f}"


def _time(ms: float) -> str:
    if ms >= 1000:
        return f"{ms / 1000:,.3g} s" if ms < 1e6 else f"{ms / 1000:,.0f} s"
    return f"{ms:.3g} ms"


def foretold_sentence(table: pd.DataFrame) -> str:
    """How often the halves of a recording foretold each other's longest detour.

    Parameters
    ----------
    table
        Of `foretold_table`.
    """
    if table.empty:
        return f"The tail was not tried on held-out halves: {TOO_SHORT}."
    sentences = []
    for name, rows in table.groupby("recording", sort=False):
        pooled, single = rows[rows["source"] == ALL], rows[rows["source"] != ALL]
        said = f"Of {name}, {_of(pooled)} halves foretold the longest detour of the other"
        if len(single):
            worst = single.assign(share=single["inside"] / single["splits"]).nsmallest(1, "share")
            said += (
                f"; source by source {_of(single)}, the fewest of {worst['source'].iloc[0]}:"
                f" {_of(worst)}"
            )
        sentences.append(said + " (90 % expected).")
    return " ".join(sentences)


def _of(rows: pd.DataFrame) -> str:
    return f"{int(rows['inside'].sum())} of {int(rows['splits'].sum())}"
