"""What the figures 3 and 4 of Persson et al. 2025 are drawn of: a worst trace, what of it is
average noise, and what is left.
"""

from pathlib import Path

import pandas as pd

from ...empty import because
from ...noise import average_noise, delta_noise
from ...tracing import read_traces
from .campaigns import TRACED, WorstTrace

NOTHING_TRACED = (
    "none of these programs was traced with anything left to replay: a kernel tracer is needed, for"
    " root (sudo -E make paper)"
)
_SHOWN = ["cpu", "kind", "source", "start_ns", "duration_ns"]
_KEY = ["cpu", "kind", "source", "start_ns"]


def traced_cell(runs: pd.DataFrame, worst: WorstTrace) -> pd.DataFrame:
    """The traced runs of the configuration that a worst trace is of."""
    return runs[
        (runs["trace"] == TRACED)
        & (runs["program"] == worst.program)
        & (runs["model"] == worst.model)
        & (runs["config"] == worst.config)
    ]


def trace_lanes(folder: str | Path, runs: pd.DataFrame, worst: WorstTrace | None) -> pd.DataFrame:
    """The four rows of figure 4, of real runs.

    Parameters
    ----------
    folder, runs
        Of the baseline campaign; its runs through `label_runs`.
    worst
        One of `worst_traces` that was traced there; None: nothing was, and the table has no row but
        the reason.

    Returns
    -------
    One row an event: `lane`, `cpu`, `kind`, `source`, `start_ns`, `duration_ns`, `worst` and `left`
    (bool: the lane is that). Lanes: the worst run; what of it is average noise; what is left and
    injected; and that beside the noise of the run nearest to the median, which is what a replay
    meets.
    """
    if worst is None:
        empty = pd.DataFrame(columns=[*_SHOWN, "lane", "worst", "left"]).astype(
            {"worst": bool, "left": bool}
        )
        return because(empty, NOTHING_TRACED)
    cell = traced_cell(runs, worst)
    events = read_traces(Path(folder) / "traces", cell)
    delta = delta_noise(events, average_noise(events, cell), cell, run=worst.run)
    usual = int(cell.loc[(cell["seconds"] - cell["seconds"].median()).abs().idxmin(), "run"])
    traced, other = (events[events["run"] == run] for run in (worst.run, usual))
    left = delta[delta["duration_ns"] > 0]
    parts = {
        f"worst run ({worst.run})": traced,
        "average noise in it": _taken(traced, left),
        "left: injected": left,
        f"run {usual}, with the replay": pd.concat([other[_SHOWN], left[_SHOWN]]),
    }
    return pd.concat(
        [
            part[_SHOWN].assign(
                lane=name, worst=name.startswith("worst"), left=name.startswith("left")
            )
            for name, part in parts.items()
        ],
        ignore_index=True,
    )


def _taken(traced: pd.DataFrame, left: pd.DataFrame) -> pd.DataFrame:
    """What the subtraction took of each event, at the event's end."""
    before, after = (
        table.assign(number=table.groupby(_KEY, observed=True).cumcount())
        for table in (traced, left)
    )
    joined = before[[*_SHOWN, "number"]].merge(
        after[[*_KEY, "number", "duration_ns"]],
        how="left",
        on=[*_KEY, "number"],
        suffixes=("", "_left"),
    )
    remaining_ns = joined["duration_ns_left"].fillna(0).astype("int64")
    taken = joined.assign(
        start_ns=joined["start_ns"] + remaining_ns, duration_ns=joined["duration_ns"] - remaining_ns
    )
    return taken[taken["duration_ns"] > 0]
