"""Sentences that the pages of single stages read off their tables: numbers with unit and count.

Owns words only; what the larger studies found is said beside their tables.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ..noise import NoiseConfig
from ..statistics.claims import (
    NONE,
    REPRODUCED,
    REVERSED,
)

if TYPE_CHECKING:
    from ..attribution import Explanation
    from ..statistics import Comparison

MERGES = ("improved", "pessimistic", "compat")
# parts of the full method, by how the sentences on what replaces them begin
_PARTS = {
    "The osnoise tracer": "tracing",
    "All noise": "injection",
    "Real-time throttling": "injection",
    "The kernel's fair server": "injection",
    "Hardware counters": "hardware counters",
}


def parts_sentence(replaced: Sequence[str]) -> str:
    """How many parts of the full method are replaced or limited here.

    Parameters
    ----------
    replaced
        Of `Doctor.replaced`.
    """
    parts = dict.fromkeys(
        part
        for sentence in replaced
        for begin, part in _PARTS.items()
        if sentence.startswith(begin)
    )
    named = f" ({', '.join(parts)})" if parts else ""
    return (
        f"**{len(parts)} of {len(set(_PARTS.values()))}** parts of the full method are replaced or"
        f" limited here{named}."
    )


def detour_sentence(detours: pd.DataFrame) -> str:
    """How much time a loop lost on the CPUs of this machine.

    Parameters
    ----------
    detours
        Of `record_detours`.
    """
    lost = detours.attrs
    return (
        f"A loop lost **{lost['overhead']:.2%}** of its time to {len(detours)} detours in"
        f" {lost['seconds']:.1f} s on each of {lost['cpus']} CPUs; the longest took"
        f" **{detours['duration_ns'].max() / 1e3:.0f} µs**."
    )


def tracing_sentence(
    events: pd.DataFrame, noise: pd.DataFrame, overhead: "Comparison", traced: pd.DataFrame
) -> str:
    """How much of a run the system takes, and whether tracing disturbs it.

    By the verdict on the mean: that it does not is shown where the change is within the margin.
    Where the trimmed mean says otherwise, the answer says so.

    Parameters
    ----------
    events
        Of all traced runs (`read_traces`).
    noise
        Their `noise_summary`.
    overhead
        Of untraced (before) with traced runs (after).
    traced
        Finished traced runs.
    """
    share = (
        f"**{noise['cpu_share'].sum():.2%}** of the CPU time of a run (n = {len(traced)} traced)"
    )
    if events.attrs.get("tracer") == "detours":
        return (
            f"Detours take {share}, and what caused them is not known; whether a tracer disturbs"
            " cannot be told here, as there is none."
        )
    mean, trimmed = (overhead.judged[name].verdict for name in ("mean", "trimmed"))
    by_trimmed = f". By the trimmed mean {_disturbance(overhead, 'trimmed')}"
    otherwise = by_trimmed if trimmed != mean else ""
    return f"Recorded noise takes {share}; {_disturbance(overhead, 'mean')}{otherwise}."


def _disturbance(overhead: "Comparison", name: str) -> str:
    """Whether tracing changes the mean run time, with its interval."""
    mean, judged = overhead.table.loc[name], overhead.judged[name]
    label = "trimmed mean" if name == "trimmed" else "mean"
    numbers = (
        f"the {label} changes by **{mean['ratio'] - 1:+.1%}** (95 % interval {mean['low'] - 1:+.1%}"
        f" to {mean['high'] - 1:+.1%})"
    )
    words = {
        REPRODUCED: "tracing disturbs it",
        REVERSED: "tracing disturbs it",
        NONE: f"tracing does not disturb it, to within {100 * judged.claim.margin:.3g} %",
    }
    return (
        f"{words.get(judged.verdict, 'whether tracing disturbs it cannot be told here')}: {numbers}"
    )


def delta_sentences(delta: pd.DataFrame, events: pd.DataFrame, traced: pd.DataFrame) -> list[str]:
    """How slow the chosen run was, and what the subtraction leaves of its noise.

    Parameters
    ----------
    delta
        Of `delta_noise`.
    events, traced
        Noise events and runs table that it was made of.
    """
    run, seconds = delta.attrs["run"], delta.attrs["seconds"]
    noise_ms = events.loc[events["run"] == run, "duration_ns"].sum() / 1e6
    merged_ms = {
        merge: NoiseConfig.from_events(delta, merge=merge).summary()["total_ms"].sum()
        for merge in MERGES
    }
    totals = ", ".join(f"{total:.2f} ms ({merge} merge)" for merge, total in merged_ms.items())
    place = "the slowest" if seconds >= traced["seconds"].max() else "chosen"
    return [
        f"Run **{run}** was {place}: {seconds:.4f} s,"
        f" {seconds / traced['seconds'].mean() - 1:+.1%} against the mean of {len(traced)}"
        " traced runs.",
        f"Its events sum to {noise_ms:.2f} ms; the delta keeps"
        f" {delta['duration_ns'].sum() / 1e6:.2f} ms in {len(delta)} events{_most(delta)}.",
        f"To be injected: {totals}.",
    ]


def _most(delta: pd.DataFrame) -> str:
    """The source that most of a delta is of."""
    if delta.empty:
        return ""
    by_source = delta.groupby(["kind", "source"], observed=True)["duration_ns"].sum() / 1e6
    kind, source = by_source.idxmax()
    return f", most of **{source or 'an unnamed source'}** ({kind}, {by_source.max():.1f} ms)"


def anomaly_sentence(anomaly_seconds: float, injected: pd.DataFrame, baseline: pd.DataFrame) -> str:
    """The run time of the anomaly, of its replays and of undisturbed runs."""
    return (
        f"The anomaly took {anomaly_seconds:.4f} s; its replay took"
        f" {injected['seconds'].mean():.4f} s on average (n = {len(injected)}), the undisturbed"
        f" program {baseline['seconds'].mean():.4f} s (n = {len(baseline)})."
    )


def mode_sentences(replays: pd.DataFrame) -> list[str]:
    """How far the replays of each mode were from their anomalies, beside the published 8.57 %.

    Parameters
    ----------
    replays
        Of `replay_table`.
    """
    return [
        f"Replays in mode {mode} were off by {rows['error_percent'].mean():.1f} % on average"
        f" ({len(rows)} traces, {rows['undisturbed_percent'].mean():.1f} % without any noise;"
        " 8.57 % in the paper)."
        for mode, rows in replays.groupby("mode")
    ]


def counters_sentence(searches: "Mapping[str, Explanation]") -> str:
    """Which counters are associated with the slow runs.

    Parameters
    ----------
    searches
        The explanation by what the runs are, such as ``"undisturbed runs"``.
    """
    found = "; ".join(f"in {runs} {_first_group(search)}" for runs, search in searches.items())
    return f"{found[0].upper()}{found[1:]}."


def _first_group(search: "Explanation") -> str:
    """The group of counters that an explanation names first, with its p-value and runs."""
    count = f"n = {len(search.labels)}"
    if np.isnan(search.p_value):
        return f"cannot tell here ({count})"
    certainty = f"(p = {search.p_value:.3f}, {count})"
    if not search.found:
        return f"none {certainty}"
    first = search.factors.iloc[0]
    together = first["kind"] == "interaction"
    others = 0 if together else len(first["members"]) - 1
    named = f"**{first['factor']}**" + (f" and {others} that move with it" if others else "")
    return f"{named}, {first['direction']} in slow runs {certainty}"


def absent_sentences(absent: Mapping[str, str], what: str) -> list[str]:
    """What could not be measured here, and why.

    Parameters
    ----------
    absent
        Reason by name.
    what
        What is missing, with ``{}`` for the name, such as ``"nothing was built with {}"``.
    """
    return [f"{what.format(name)}: {reason}." for name, reason in absent.items()]


def as_sentences(clause: str) -> list[str]:
    """A clause as a sentence of its own; nothing, where it is empty.

    Examples
    --------
    >>> as_sentences("jemalloc was left out: it is not installed")
    ['Jemalloc was left out: it is not installed.']
    """
    return [f"{clause[0].upper()}{clause[1:]}."] if clause else []
