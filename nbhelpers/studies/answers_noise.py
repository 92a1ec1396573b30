"""Answers of the pages on the machine's noise: whether it is noisy, and who takes the time.

Owns their claims and their units: pieces of a loop's time, and traced runs.
"""

from typing import Any

import numpy as np
import pandas as pd

from ..answers import Answer
from ..statistics import bootstrap_interval
from ..statistics.claims import MARGIN, REPRODUCED, Claim, Evidence, Judgement, judge
from .answers_words import changes_of, open_answer, some_groups, word_of

PIECES = 20  # of the loop's time; all CPUs of a piece are one unit
RIVALS = 4  # sources that are compared with the first
LEAST_SHARE = 1e-4  # of the CPU time: sources that differ by less take the same
UNNAMED = "an unnamed source"


def noisy_answer(detours: pd.DataFrame, published: pd.DataFrame) -> Answer:
    """Whether a loop loses more than 1 % of its time on this machine.

    Parameters
    ----------
    detours
        Of `record_detours`.
    published
        The published table `hoefler2010-noise1`.
    """
    shares = lost_shares(detours)
    mean = 1 + shares["lost_share"].mean()
    effects = np.log(mean) + (1 + shares["lost_share"]) / mean - 1
    evidence = Evidence(effects, shares["piece"], shares["cpu"], unit="pieces of time")
    quiet = Claim("a loop loses less than 1 % of its time", "not above", MARGIN)
    [judged] = judge([(quiet, evidence)])
    noisy = {"yes": "no", "no": "yes"}.get(word_of(judged), word_of(judged))
    limit = 100 * MARGIN
    longest_us = detours["duration_ns"].max() / 1e3 if len(detours) else 0.0
    sentence = (
        f"A loop lost {100 * judged.effect:.2f} % of its time; above {limit:g} % counts as noisy."
        f" Its longest detour took {longest_us:,.0f} µs."
        if np.isfinite(judged.effect)
        else "No time of a loop was recorded."
    )
    return Answer(
        noisy,
        sentence,
        **changes_of(judged, "time lost by a loop"),
        published=_published_overheads(published),
        figure="detours",
        groups=some_groups(
            {f"CPU {cpu}": 100 * part["lost_share"] for cpu, part in shares.groupby("cpu")}
        ),
        axis="time lost (%)",
        line=(f"noisy above {limit:g} %", limit),
    )


def lost_shares(detours: pd.DataFrame) -> pd.DataFrame:
    """Share of its time that a loop lost, by piece of time and CPU.

    Parameters
    ----------
    detours
        Of `record_detours`.

    Returns
    -------
    DataFrame
        `piece`, `cpu`, `lost_share`; a row each of `PIECES` pieces on each CPU that has detours.

    Examples
    --------
    >>> detours = pd.DataFrame({"cpu": [0], "start_ns": [0], "end_ns": [100]})
    >>> detours.attrs["seconds"] = 4e-6
    >>> float(lost_shares(detours)["lost_share"].mean())
    0.025
    """
    ends_ns = np.linspace(0, 1e9 * detours.attrs["seconds"], PIECES + 1)
    parts = [
        pd.DataFrame(
            {
                "piece": range(PIECES),
                "cpu": cpu,
                "lost_share": np.diff(_lost_until(part, ends_ns)) / np.diff(ends_ns),
            }
        )
        for cpu, part in detours.groupby("cpu")
    ]
    columns = ["piece", "cpu", "lost_share"]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)


def _lost_until(detours: pd.DataFrame, times_ns: np.ndarray) -> np.ndarray:
    """How much was lost until some times; detours of a CPU do not overlap."""
    detours = detours.sort_values("start_ns")
    lengths = (detours["end_ns"] - detours["start_ns"]).to_numpy(float)
    known = detours[["start_ns", "end_ns"]].to_numpy(float).ravel()
    lost = np.column_stack([np.cumsum(lengths) - lengths, np.cumsum(lengths)]).ravel()
    return np.interp(times_ns, known, lost, left=0.0)


def _published_overheads(published: pd.DataFrame) -> str:
    shares = published["overhead_percent"]
    return (
        f"{shares.min():g} to {shares.max():g} % on {len(shares)} systems"
        " (Hoefler et al. 2010, talk)"
    )


def who_answer(events: pd.DataFrame, noise: pd.DataFrame, traced: pd.DataFrame) -> Answer:
    """Which source takes most of a program's CPU time.

    The first source, or the first two where these runs cannot tell them apart.

    Parameters
    ----------
    events
        Of all traced runs (`read_traces`).
    noise
        Their `noise_summary`.
    traced
        Finished traced runs.
    """
    total = 100 * float(noise["cpu_share"].sum())
    known: dict[str, Any] = {"figure": "noise-by-source", "axis": "CPU time taken in a run (%)"}
    if noise.empty:
        return open_answer(f"No noise was recorded in {len(traced)} runs.", **known)
    shares = shares_by_run(events, noise, traced)
    value, ends = 100 * shares.iloc[:, 0].mean(), _interval(shares.iloc[:, 0])
    known |= {
        "quantity": f"CPU time taken by {shares.columns[0]}",
        "value": float(value),
        "low": 100 * ends[0],
        "high": 100 * ends[1],
        "unit": "%",
        "n": len(traced),
        "n_of": "runs",
        "groups": some_groups({name: 100 * shares[name] for name in shares}),
    }
    if events.attrs.get("tracer") == "detours":
        why = f"Detours take {total:.2f} % of the CPU time; what caused them is not known."
        return open_answer(why, **known)
    level = [shares.columns[0], *_not_below(shares)]
    taken = f"Noise takes {total:.2f} % of the CPU time of a run, {_listed(shares)}"
    if len(level) > 2 or len(" or ".join(level)) > 40:
        return open_answer(f"{taken}; these are not told apart.", **known)
    return Answer(" or ".join(level), f"{taken}.", **known)


def shares_by_run(events: pd.DataFrame, noise: pd.DataFrame, traced: pd.DataFrame) -> pd.DataFrame:
    """Share of the CPU time that each of the first sources took, a row a run.

    Their means are the shares of `noise`.
    """
    first = noise.head(RIVALS)
    taken = events.groupby(["kind", "source", "run"], observed=True)["duration_ns"].sum()
    columns = {}
    for (kind, source), share in first["cpu_share"].items():
        by_run = taken.loc[(kind, source)].reindex(traced["run"], fill_value=0)
        name = source or UNNAMED
        name = f"{name} ({kind})" if name in columns else name
        columns[name] = (by_run / by_run.mean() * share).to_numpy()
    return pd.DataFrame(columns, index=traced["run"])


def _not_below(shares: pd.DataFrame) -> list[str]:
    """The sources that are not shown to take less than the first."""
    first, others = shares.columns[0], list(shares.columns[1:])
    verdicts = judge(
        [
            (
                Claim(f"{first} takes more than {other}", "above", LEAST_SHARE),
                Evidence(np.log1p((shares[first] - shares[other]).to_numpy()), unit="runs"),
            )
            for other in others
        ]
    )
    return [name for name, one in zip(others, verdicts, strict=True) if _is_open(one)]


def _is_open(judged: Judgement) -> bool:
    return judged.verdict != REPRODUCED


def _listed(shares: pd.DataFrame) -> str:
    return ", ".join(f"{name} {100 * shares[name].mean():.2f} %" for name in shares.columns[:2])


def _interval(values: pd.Series) -> tuple[float, float]:
    return bootstrap_interval(values, "mean") if len(values) > 1 else (np.nan, np.nan)
