"""Tables and sentences of stage 70: the net share that was asked for, simulated and injected.

Owns the rule of the verdict: within 0.1 percentage points.
"""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from ...answers import CANNOT_TELL, Answer
from ...noise.signature import Signature
from ...statistics import bootstrap_interval
from ..answers_words import open_answer, some_groups
from .design import QUIET
from .loops import Loops
from .programs import ALONE
from .simulated import simulated_share

ALLOWED_SHARE = 0.001
_WORDS = {
    "amplified": "it is amplified",
    "absorbed": "part of it is absorbed",
    "cannot tell": "nothing is shown",
}
YES, NO, OPEN = "within 0.1", "not within 0.1", "cannot tell"


def share_table(loops: Loops, ranks: int = 8, seed: int = 0) -> pd.DataFrame:
    """Net share of each signature: asked for, simulated, injected, and lost by a loop.

    Parameters
    ----------
    loops
        The loops of the stage.
    ranks
        Simulated.
    seed
        Of the ranks' phases.

    Returns
    -------
    One row a signature: `signature`; `asked_share`; `simulated_share` (mean of the ranks);
    `config_share` (in the config of the window, which a random signature does not have exactly);
    `log_share` (taken by the injector's log); `loop_share`, `loop_low_share`, `loop_high_share`
    (what the loop lost more than in the undisturbed run of its round, 95 % interval over rounds);
    `met_share` and its ends (the loop's detours that overlap an injected event);
    `own_events_share` (of the config's events, those that no other carried); `rounds`;
    `by_difference` and `by_events`, the verdicts on the two.
    """
    quiet = loops.runs[loops.runs["cell"] == QUIET].set_index("round")["lost_share"]
    rows = []
    for name, signature in loops.signatures.items():
        runs = loops.runs[loops.runs["cell"] == name].set_index("round")
        more = (runs["lost_share"] - quiet).dropna()
        row: dict[str, Any] = {"signature": name, "asked_share": signature.share}
        row["simulated_share"] = float(simulated_share(signature, ranks, seed=seed).mean())
        row["config_share"] = float(loops.configs[name].summary()["share"].mean())
        taken_ns = runs["injected_ns"] / (len(loops.cpus) * loops.seconds * 1e9)
        row["log_share"] = float(taken_ns.mean())
        row |= _with_interval("loop", more) | _with_interval("met", runs["met_share"])
        own = runs["injected_events"] / len(loops.configs[name].events())
        row["own_events_share"] = float(own.mean())
        row |= {"rounds": len(more), "by_difference": _verdict(row, "loop")}
        rows.append(row | {"by_events": _verdict(row, "met")})
    return pd.DataFrame(rows)


def _with_interval(name: str, shares: pd.Series) -> dict[str, float]:
    low, high = bootstrap_interval(shares)
    return {
        f"{name}_share": float(shares.mean()),
        f"{name}_low_share": low,
        f"{name}_high_share": high,
    }


def _verdict(row: Mapping[str, Any], name: str) -> str:
    """Whether the whole interval lies within 0.1 points of what the config has, or outside."""
    low, high = (row[f"{name}_{end}_share"] - row["config_share"] for end in ("low", "high"))
    if low >= -ALLOWED_SHARE and high <= ALLOWED_SHARE:
        return YES
    return NO if high < -ALLOWED_SHARE or low > ALLOWED_SHARE else OPEN


def share_answer(table: pd.DataFrame) -> Answer:
    """Whether the injector made the noise that was asked for: the detours that meet injected events
    are within 0.1 percentage points of it, of each signature.

    Parameters
    ----------
    table
        Of `share_table`.
    """
    if table.empty:
        return open_answer("No signature was measured.", figure="errors")
    verdicts = table["by_events"]
    word = "yes" if (verdicts == YES).all() else "no" if (verdicts == NO).any() else CANNOT_TELL
    off = table[[f"met{end}_share" for end in ("", "_low", "_high")]].sub(
        table["config_share"], axis=0
    )
    worst = off["met_share"].abs().idxmax()
    value, low, high = (100 * float(end) for end in off.loc[worst])
    return Answer(
        word,
        f"The noise is within 0.1 percentage points of what was asked for in"
        f" {(verdicts == YES).sum()} of {len(table)} signatures, outside in"
        f" {(verdicts == NO).sum()}; the others are open.",
        f"farthest: injected less asked for, {table['signature'][worst]}",
        value,
        low,
        high,
        unit="percentage points",
        n=int(table["rounds"].min()),
        n_of="rounds",
        figure="errors",
        groups=some_groups({"injected": 100 * table["met_share"]}),
        axis="share of the time (%), a value a signature",
        line=("asked for", 100 * float(table["asked_share"].median())),
    )


def share_sentence(table: pd.DataFrame) -> str:
    """What is not shown, and the same by the difference to undisturbed runs."""
    by_difference = (table["by_difference"] == YES).sum()
    return (
        f"**{by_difference} of {len(table)}** signatures are within by the difference to"
        f" undisturbed runs (n = {int(table['rounds'].min())} rounds).{_others(table)}"
    )


def _others(table: pd.DataFrame) -> str:
    """The signatures that are not shown to be within, by name."""
    others = table.loc[table["by_events"] != YES, "signature"].tolist()
    return f" Not shown by events: {'; '.join(others)}." if others else ""


def difference_sentence(table: pd.DataFrame) -> str:
    """How far the loop is off by each measurement, in a sentence."""
    by_events, by_difference = (
        100 * (table[f"{name}_share"] - table["config_share"]).abs() for name in ("met", "loop")
    )
    return (
        f"By events the injector is off by {by_events.max():.3f} percentage points at most"
        f" ({table['signature'][by_events.idxmax()]}), by difference by {by_difference.max():.3f}"
        f" ({table['signature'][by_difference.idxmax()]}); n = {table['rounds'].min()} rounds."
    )


def share_errors(table: pd.DataFrame) -> pd.DataFrame:
    """What the loop lost less what the config has, by each measurement.

    Parameters
    ----------
    table
        Of `share_table`.

    Returns
    -------
    One row a signature and measurement: `signature`, `measured`, `error_percent` (percentage
    points) with `error_percent_low`, `error_percent_high`.
    """
    parts = []
    for name, measured in (("met", "by events"), ("loop", "by difference")):
        ends = {"error_percent": "", "error_percent_low": "_low", "error_percent_high": "_high"}
        parts.append(
            pd.DataFrame(
                {"signature": table["signature"], "measured": measured}
                | {
                    column: 100 * (table[f"{name}{end}_share"] - table["config_share"])
                    for column, end in ends.items()
                }
            )
        )
    return pd.concat(parts, ignore_index=True)


def simulated_sentence(table: pd.DataFrame) -> str:
    """How far the simulator is off, in a sentence."""
    off = 100 * (table["simulated_share"] - table["asked_share"]).abs()
    worst = table["signature"][off.idxmax()]
    return (
        f"The simulator is off by {off.max():.3f} percentage points at most ({worst}, n ="
        f" {len(table)} signatures)."
    )


def background_sentence(loops: Loops) -> str:
    """What the machine itself takes of the loop, in a sentence."""
    lost = 100 * loops.runs.loc[loops.runs["cell"] == QUIET, "lost_share"]
    return (
        f"Without noise the loop loses {lost.mean():.2f} % of its time to the machine itself (n ="
        f" {len(lost)} runs, standard deviation {lost.std():.2f})."
    )


def program_sentences(table: pd.DataFrame, signatures: Mapping[str, Signature]) -> list[str]:
    """What the signatures cost the lone program and the team, a sentence each row that matters."""
    expected = 100 * (next(iter(signatures.values())).local_slowdown - 1)
    said = []
    for row in table.to_dict("records"):
        interval = (
            f"{row['slowdown_percent']:.1f} % ({row['slowdown_low_percent']:.1f} to"
            f" {row['slowdown_high_percent']:.1f}; median {row['slowdown_median_percent']:.1f}; n ="
            f" {row['pairs']} pairs)"
        )
        alone = f"; {expected:.2f} % are expected" if row["program"] == ALONE else ""
        what = _WORDS[str(row["verdict"])]
        who = f"{row['program'].capitalize()}, {row['signature']}"
        said.append(f"{who}: slower by {interval}{alone}; beyond the net noise {what}.")
    return said
