"""Answers to the questions of fairness: contrasts of slowdowns over pairs of runs of the same
round, each with its interval and its value at equal stolen time.

Pure: runs of `label_runs` in, tables and sentences out. "Cannot be seen here" is an answer.
"""

from collections.abc import Collection, Mapping

import numpy as np
import pandas as pd

from ...empty import because
from ...measurement import region_seconds
from ..design import BENCHMARKS, PRINTED_MODELS
from ..findings import EFFECT_COLUMNS, FEWEST, MARGIN, mean_effect
from .campaigns import MODE, UNDISTURBED, WorstTrace
from .fairness import FIXED, SCALED

Weights = dict[tuple[str, ...], float]  # (…, noise_kind) -> weight of its slowdown
Costs = tuple[pd.DataFrame, pd.DataFrame]  # logs, and differences in stolen time
DIFFERENT, SAME, UNSEEN = "differs", "same to within 5 %", "cannot be seen here"
_COLUMNS = [
    "question",
    "comparison",
    "answer",
    "effect_percent",
    "low_percent",
    "high_percent",
    "adjusted_percent",
    "pairs",
]
BIAS = "own trace against the other model's, OpenMP and SYCL together"
LONGER_FIXED = "twice as long, noise of fixed length"
LONGER_SCALED = "twice as long, noise as long as the run"
NO_LENGTHS = (
    "no disturbance was planted and traced, or the profile asks for no runs of two lengths"
    " (length_runs)"
)
GAP_FIXED = "SYCL / OpenMP, noise of fixed length"
GAP_SCALED = "SYCL / OpenMP, noise as long as the run"
ADDED = "what the fixed length makes of twice as long"
GAP_ADDED = "what the fixed length makes of SYCL / OpenMP"


def crossing_table(runs: pd.DataFrame, worst: Collection[WorstTrace]) -> pd.DataFrame:
    """Do traces of one model treat it as they treat the other?

    Parameters
    ----------
    runs
        Of `injected_campaign`, through `label_runs`.
    worst
        The traces; the planted ones if there are any, for they differ in nothing but the traced
        program.

    Returns
    -------
    One row a comparison of slowdowns (log ratios, a pair of runs each, of the same program,
    configuration and round): `question`, `comparison`, `answer`, `effect_percent` with its 95 %
    interval (Student), `adjusted_percent` (the effect where steal is the same), `pairs`.
    """
    source = {(trace.program, trace.label): trace.model for trace in _crossed(worst)}
    noisy = runs[runs["mode"] == MODE]
    noisy = noisy.assign(
        noise_kind=[source.get(key) for key in zip(noisy["program"], noisy["trace"])]
    ).dropna(subset="noise_kind")
    calm = runs[runs["trace"] == UNDISTURBED].assign(noise_kind=UNDISTURBED)
    costs = _costs(pd.concat([noisy, calm]), ["program", "config", "round"], ["model"])
    omp: Weights = {("omp", "omp"): 1.0, ("omp", "sycl"): -1.0}
    sycl: Weights = {("sycl", "sycl"): 1.0, ("sycl", "omp"): -1.0}
    rows: dict[str, Weights] = {
        "OpenMP: own trace against SYCL's": omp,
        "SYCL: own trace against OpenMP's": sycl,
        BIAS: {key: weight / 2 for key, weight in {**omp, **sycl}.items()},
        "SYCL / OpenMP under traces of OpenMP": {("sycl", "omp"): 1.0, ("omp", "omp"): -1.0},
        "SYCL / OpenMP under traces of SYCL": {("sycl", "sycl"): 1.0, ("omp", "sycl"): -1.0},
    }
    return _table("whose trace disturbs whom", costs, rows)


def _crossed(worst: Collection[WorstTrace]) -> list[WorstTrace]:
    planted = [trace for trace in worst if trace.planted]
    return planted or [trace for trace in worst if trace.run >= 0]


def length_table(runs: pd.DataFrame | None) -> pd.DataFrame:
    """Does a longer run look more resilient only because the noise has a fixed length? Columns as
    of `crossing_table`.

    Parameters
    ----------
    runs
        Of `length_campaign`, through `label_length_runs`; None: there were none.
    """
    costs = None if runs is None else _costs(runs, ["program", "round"], ["model", "length"])
    models = (
        [] if runs is None else [model for model in PRINTED_MODELS if model in set(runs["model"])]
    )
    longer: dict[str, Weights] = {
        kind: {
            (model, length, kind): sign / len(models)
            for model in models
            for length, sign in (("x2", 1.0), ("x1", -1.0))
        }
        for kind in (FIXED, SCALED)
    }
    gaps: dict[str, Weights] = {
        kind: {("sycl", "x1", kind): 1.0, ("omp", "x1", kind): -1.0} for kind in (FIXED, SCALED)
    }
    rows = {
        LONGER_FIXED: longer[FIXED],
        LONGER_SCALED: longer[SCALED],
        ADDED: _less(longer),
        GAP_FIXED: gaps[FIXED],
        GAP_SCALED: gaps[SCALED],
        GAP_ADDED: _less(gaps),
    }
    return _table("fixed length of noise", costs, rows)


def _less(kinds: Mapping[str, Weights]) -> Weights:
    return {**kinds[FIXED], **{key: -weight for key, weight in kinds[SCALED].items()}}


def length_cells(runs: pd.DataFrame | None) -> pd.DataFrame:
    """What each cell of `length_campaign` took.

    Parameters
    ----------
    runs
        Of `length_campaign`, through `label_length_runs`; None: there were none.

    Returns
    -------
    `benchmark`, `model`, `length`, `noise`, `seconds`, `sd_ms`, `noise_percent` (injected CPU time
    of the run's length), `steal_ms`, `runs`.
    """
    names = [
        "benchmark",
        "model",
        "length",
        "noise",
        "seconds",
        "sd_ms",
        "noise_percent",
        "steal_ms",
        "runs",
    ]
    if runs is None:
        return because(pd.DataFrame(columns=names), NO_LENGTHS)
    injected_s = runs.get("injected_ns", pd.Series(0.0, runs.index)).fillna(0) / 1e9
    shares = 100 * injected_s / region_seconds(runs)
    steal = runs.get("steal_s", pd.Series(np.nan, runs.index))
    grouped = runs.assign(share=shares, steal=steal).groupby(
        ["program", "model", "length", "noise_kind"], sort=True
    )
    table = grouped.agg(
        seconds=("seconds", "mean"),
        sd=("seconds", "std"),
        noise_percent=("share", "mean"),
        steal=("steal", "mean"),
        runs=("run", "size"),
    ).reset_index()
    table = table.assign(
        benchmark=table["program"].map(BENCHMARKS),
        model=table["model"].map(PRINTED_MODELS),
        noise=table["noise_kind"],
        sd_ms=1e3 * table["sd"],
        steal_ms=1e3 * table["steal"],
    )
    return table[names]


def _costs(runs: pd.DataFrame, pair: list[str], within: list[str]) -> Costs:
    """Log slowdown over the undisturbed run of the same round, and the difference in stolen time: a
    row a pair, a column a (…, noise_kind).
    """
    data = runs.assign(log=np.log(runs["seconds"]), steal=runs.get("steal_s", 0.0))
    table = data.pivot_table(
        index=pair,
        columns=[*within, "noise_kind"],
        values=["log", "steal"],
        aggfunc="mean",
        observed=True,
    )
    return _less_undisturbed(table["log"]), _less_undisturbed(table["steal"])


def _less_undisturbed(table: pd.DataFrame) -> pd.DataFrame:
    undisturbed = {name[:-1]: table[name] for name in table if name[-1] == UNDISTURBED}
    return pd.DataFrame(
        {
            name: table[name] - undisturbed[name[:-1]]
            for name in table
            if name[-1] != UNDISTURBED and name[:-1] in undisturbed
        }
    )


def _table(question: str, costs: Costs | None, rows: Mapping[str, Weights]) -> pd.DataFrame:
    listed = [
        {"question": question, "comparison": name, **_contrast(costs, weights)}
        for name, weights in rows.items()
    ]
    return pd.DataFrame(listed, columns=_COLUMNS)


def _contrast(costs: Costs | None, weights: Weights) -> dict[str, object]:
    """The weighted sum of some slowdowns' logs, of each pair, and its mean."""
    row: dict[str, object] = {
        "answer": UNSEEN,
        **dict.fromkeys(EFFECT_COLUMNS, np.nan),
        "pairs": 0,
    }
    if costs is None or not weights or not set(weights) <= set(costs[0].columns):
        return row
    logs, steal = costs
    effects = sum(weight * logs[name] for name, weight in weights.items())
    differences = sum(weight * steal[name] for name, weight in weights.items()).fillna(0)
    paired = effects.notna()
    effects, differences = effects[paired].to_numpy(), differences[paired].to_numpy()
    row["pairs"] = len(effects)
    if len(effects) < FEWEST or not np.ptp(effects) > 0:
        return row
    effect, _ = mean_effect(effects, differences)
    return row | {"answer": answer(effect.low, effect.high)} | effect.percent()


def answer(low: float, high: float) -> str:
    """What an interval of log ratios says: the same if all of it lies within ± 5 %, different if 0
    lies outside of it, in this order.
    """
    if np.log(1 - MARGIN) < low and high < np.log(1 + MARGIN):
        return SAME
    return DIFFERENT if low > 0 or high < 0 else UNSEEN


def fairness_sentences(crossing: pd.DataFrame, lengths: pd.DataFrame) -> list[str]:
    """An answer to each of the two questions, in a sentence.

    Parameters
    ----------
    crossing
        Of `crossing_table`.
    lengths
        Of `length_table`.
    """
    bias, added = _row(crossing, BIAS), _row(lengths, ADDED)
    fixed, scaled, gap = (_row(lengths, name) for name in (LONGER_FIXED, LONGER_SCALED, GAP_ADDED))
    alike = {
        SAME: "**yes**, to within 5 %",
        DIFFERENT: "**no**",
        UNSEEN: "**cannot be seen here**",
    }[bias["answer"]]
    return [
        (
            f"Do traces of SYCL treat SYCL as those of OpenMP treat OpenMP? {alike}: under its own"
            " model's trace a program's slowdown factor differs from that under the other's by"
            f" {_effect(bias)}."
        ),
        (
            "Does a longer run look more resilient because the noise has a fixed length?"
            f" **{_more_resilient(added)}**: twice as long, its slowdown factor changes by"
            f" {_effect(fixed)}; under noise as long as the run by {_effect(scaled)}. Of SYCL's"
            f" slowdown against OpenMP's the fixed length makes {_effect(gap)}."
        ),
    ]


def _more_resilient(added: pd.Series) -> str:
    if added["answer"] == UNSEEN:
        return UNSEEN
    return "yes" if added["answer"] == DIFFERENT and added["effect_percent"] < 0 else "no"


def _row(table: pd.DataFrame, comparison: str) -> pd.Series:
    return table.set_index("comparison").loc[comparison]


def _effect(row: pd.Series) -> str:
    if np.isnan(row["effect_percent"]):
        return f"an unknown part ({row['pairs']} pairs of runs; at least {FEWEST} are needed)"
    return (
        f"{row['effect_percent']:+.1f} % ({row['low_percent']:+.1f} to {row['high_percent']:+.1f};"
        f" {row['pairs']} pairs)"
    )
