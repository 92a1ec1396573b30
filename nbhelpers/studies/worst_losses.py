"""The part of the study of worst runs that is about losses: which runs are chosen, what can be
replayed of each, and what their replays say.

Owns the gate in front of a replay: a run of which too little can be replayed is shown, but another
stands beside it.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..noise.losses import (
    CAUSES,
    SHORTEST_NS,
    cause_name,
    loss_config,
    replayable_shares,
    shares_sentences,
)
from ..outcomes import worst_first

if TYPE_CHECKING:
    from .worst_runs import WorstCase

LOSSES = "losses"
BY_TIME, REPLAYABLE = "by time", "replayable"
_CHOSEN = {BY_TIME: "slow by time", REPLAYABLE: "slow and replayable"}
ENOUGH = 0.8  # of the excess: a replay of less cannot come near the anomaly
SLOW_SHARE = 0.05  # a run that took less longer than the typical one is no anomaly
CLOSE = 0.05  # a replay that is off by less brought the anomaly back


def chosen_runs(
    runs: pd.DataFrame, losses: pd.DataFrame, count: int, **gate
) -> list[tuple[dict, dict]]:
    """The slowest runs, and the slowest of those whose excess can be replayed (80 to 125 %).

    Parameters
    ----------
    runs
        Finished runs.
    losses
        What they lost beyond the typical run.
    count
        How many of each; a run may be both.
    gate
        Of `losses_of`.

    Returns
    -------
    Slowest first, each with its row of `runs` and what `WorstCase` has of its losses.
    """
    typical_ns = float(_region_ns(runs).median())
    chosen: list[tuple[dict, dict]] = []
    replayable = 0
    for place, row in enumerate(worst_first(runs).to_dict("records")):
        if place >= count and (replayable >= count or _region_ns(row) <= typical_ns):
            break
        more = losses_of(row, losses, typical_ns, **gate)
        excess_ns = _region_ns(row) - typical_ns
        # one that lost more than it took longer made up for it elsewhere
        enough = excess_ns > SLOW_SHARE * typical_ns and bool(
            ENOUGH <= more["shares"]["share"].sum() <= 1 / ENOUGH
        )
        replayable += enough
        if place < count or enough:
            chosen.append((row, more | {"chosen": BY_TIME if place < count else REPLAYABLE}))
    return chosen


def _region_ns(runs: Any) -> Any:
    """Length of the timed region: of a row, or of each row of a table."""
    return (runs["region_seconds"] if "region_seconds" in runs else runs["seconds"]) * 1e9


def losses_of(
    run: dict,
    losses: pd.DataFrame,
    typical_ns: float,
    *,
    shortest_ns: int = SHORTEST_NS,
    realtime: bool = True,
) -> dict[str, Any]:
    """What is to be replayed of the losses of a run, and what that is of its excess.

    Parameters
    ----------
    run
        Row of the runs table.
    losses
        Of this run and others.
    typical_ns
        Length of the typical run's region.
    shortest_ns, realtime
        Of `replayable_shares`.
    """
    of_run, window_ns = losses[losses["run"] == run["run"]], round(_region_ns(run))
    shares = replayable_shares(
        of_run, window_ns - typical_ns, window_ns, shortest_ns=shortest_ns, realtime=realtime
    )
    if not shares["replayable_ms"].sum() > 0:
        return {"losses": None, "shares": shares}
    facts = {"run": int(run["run"])}
    config = loss_config(of_run, window_ns, shortest_ns=shortest_ns, provenance=facts)
    return {"losses": config, "shares": shares}


def describe_losses(case: "WorstCase") -> dict:
    """What was lost in a case, as columns of `describe_worst`; none where nothing is known."""
    if case.shares is None:
        return {}
    events = None if case.losses is None else case.losses.events()
    causes = [*CAUSES, "unexplained"]
    lost_ms = case.shares.set_index("cause")["lost_ms"].reindex(causes, fill_value=0.0)
    return {
        "chosen": case.chosen,
        "lost_events": 0 if events is None else len(events),
        "lost_ms": 0.0 if events is None else float(events["duration_ns"].sum() / 1e6),
        "replayable_share": case.replayable_share,
    } | {f"{cause}_lost_ms": float(value) for cause, value in lost_ms.items()}


def gate_sentences(cases: "Sequence[WorstCase]") -> list[str]:
    """What can be replayed of each case, to be shown before anything is injected.

    Parameters
    ----------
    cases
        Of `worst_cases`; those of whose losses nothing is known are left out.
    """
    return [
        f"Case {case.case} (run {case.run}, {case.seconds:.3f} s, {_CHOSEN[case.chosen]}):"
        f" {' '.join(shares_sentences(case.shares))}"
        for case in cases
        if case.shares is not None
    ]


def loss_parts(case: "WorstCase", replayed: np.ndarray, calm: np.ndarray) -> dict[str, np.ndarray]:
    """What the replays of losses bring back of a case, for `worst_table`; means of resamples."""
    if case.shares is None:
        return {}
    return {
        "ratio_losses": replayed / case.seconds,
        "losses_ms": (replayed - calm) * 1e3,
        "missing_ms": (case.seconds - replayed) * 1e3,
    }


def loss_sentences(table: pd.DataFrame) -> list[str]:
    """What the replays of losses say, in sentences; none where nothing is known of losses.

    Parameters
    ----------
    table
        Of `worst_table`.
    """
    if "ratio_losses" not in table.columns:
        return []
    enough = table[table["replayable_share"].between(ENOUGH, 1 / ENOUGH)]
    judged = [_ratio_sentence(enough)] if len(enough) else []
    return [_parts_sentence(table), _gate_sentence(table, enough), *judged]


def _parts_sentence(table: pd.DataFrame) -> str:
    """What most of the excess of all cases was lost to, and what its replay brings back."""
    excess_ms, replayed_ms = table["excess_ms"].sum(), table["losses_ms"].sum()
    runs = f"the {len(table)} slow runs" if len(table) > 1 else "the slow run"
    if excess_ms <= 0:
        return f"Cannot tell here: {runs} took {-excess_ms:.1f} ms less than the undisturbed mean."
    lost_ms = {name: table[f"{name}_lost_ms"].sum() for name in (*CAUSES, "unexplained")}
    most = max(lost_ms, key=lost_ms.__getitem__)
    return (
        f"Mostly **{cause_name(most)}**: {runs} took **{excess_ms:.1f} ms** longer than the"
        f" undisturbed mean. Their account has {lost_ms[most]:.1f} ms of that cause. The replay of"
        f" all that was lost brings back **{replayed_ms:.1f} ms ({replayed_ms / excess_ms:.0%})**."
    )


def _gate_sentence(table: pd.DataFrame, enough: pd.DataFrame) -> str:
    shares = table["replayable_share"]
    range_ = (
        f"{shares.min():.0%} to {shares.max():.0%}" if len(table) > 1 else f"{shares.max():.0%}"
    )
    return (
        f"Of the excess of the {_cases(table)}, {range_} can be replayed here; at least"
        f" {ENOUGH:.0%} in {len(enough)} of {len(table)}."
    )


def _ratio_sentence(enough: pd.DataFrame) -> str:
    errors = (enough["ratio_losses"] - 1).abs()
    control = (enough["ratio_undisturbed"] - 1).abs()
    return (
        f"In **{int((errors <= CLOSE).sum())} of {len(enough)}** such cases the replay of what was"
        f" lost came within {CLOSE:.0%} of the anomaly. It was off by {errors.mean():.1%} on"
        f" average, no replay at all by {control.mean():.1%} (n = {enough['runs'].min()} replays of"
        " each)."
    )


def _cases(table: pd.DataFrame) -> str:
    return f"{len(table)} case{'s' if len(table) > 1 else ''}"
