"""The questions of fairness: contrasts of slowdowns over pairs of runs of the same round, each with
its interval and its value at equal stolen time; and the findings that they stand for.

Pure: runs of `label_runs` in, tables, findings and sentences out.
"""

from collections.abc import Collection, Mapping

import numpy as np
import pandas as pd

from ...empty import because
from ...measurement import region_seconds
from ...statistics.claims import NONE, REPRODUCED, REVERSED, Claim, Evidence, judge
from ..design import BENCHMARKS, PRINTED_MODELS
from ..findings import MARGIN, PERSSON, Finding, at_equal_steal
from .campaigns import MODE, UNDISTURBED, WorstTrace
from .fairness import FIXED, SCALED

Weights = dict[tuple[str, ...], float]  # (…, noise_kind) -> weight of its slowdown
Costs = tuple[pd.DataFrame, pd.DataFrame]  # logs, and differences in stolen time
_COLUMNS = [
    "question",
    "comparison",
    "effect_percent",
    "low_percent",
    "high_percent",
    "adjusted_percent",
    "rounds",
    "pairs",
    "why",
]
BIAS = "own trace against the other model's, OpenMP and SYCL together"
LONGER_FIXED = "twice as long, noise of fixed length"
LONGER_SCALED = "twice as long, noise as long as the run"
NO_LENGTHS = (
    "no disturbance was planted and traced, or the profile asks for no runs of two lengths"
    " (length_runs)"
)
NO_CONTRAST = "the runs that it compares were not measured"
GAP_FIXED = "SYCL / OpenMP, noise of fixed length"
GAP_SCALED = "SYCL / OpenMP, noise as long as the run"
ADDED = "what the fixed length makes of twice as long"
GAP_ADDED = "what the fixed length makes of SYCL / OpenMP"
# what section 5.2 says, by the contrast that it stands for
CLAIMS = {
    BIAS: Claim(
        "traces of SYCL treat SYCL as those of OpenMP treat OpenMP (slowdown, own / other trace)",
        "none",
        MARGIN,
        PERSSON + "5.2",
    ),
    ADDED: Claim(
        "a longer run looks more resilient under noise of a fixed length (slowdown x2 / x1)",
        "below",
        MARGIN,
        PERSSON + "5.2",
    ),
    GAP_ADDED: Claim(
        "the fixed length makes a part of SYCL's resilience (slowdown SYCL / OpenMP)",
        "below",
        MARGIN,
        PERSSON + "5.2",
    ),
}


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
    configuration and round): `question`, `comparison`, `effect_percent` with its 95 % interval
    (Student's, over rounds), `adjusted_percent` (the effect where steal is the same), `rounds`,
    `pairs`, `why` (where there is no effect).
    """
    return _table("whose trace disturbs whom", _crossing_costs(runs, worst), _crossing_rows())


def _crossing_costs(runs: pd.DataFrame, worst: Collection[WorstTrace]) -> Costs:
    source = {(trace.program, trace.label): trace.model for trace in _crossed(worst)}
    noisy = runs[runs["mode"] == MODE]
    noisy = noisy.assign(
        noise_kind=[source.get(key) for key in zip(noisy["program"], noisy["trace"])]
    ).dropna(subset="noise_kind")
    calm = runs[runs["trace"] == UNDISTURBED].assign(noise_kind=UNDISTURBED)
    return _costs(pd.concat([noisy, calm]), ["program", "config", "round"], ["model"])


def _crossing_rows() -> dict[str, Weights]:
    omp: Weights = {("omp", "omp"): 1.0, ("omp", "sycl"): -1.0}
    sycl: Weights = {("sycl", "sycl"): 1.0, ("sycl", "omp"): -1.0}
    return {
        "OpenMP: own trace against SYCL's": omp,
        "SYCL: own trace against OpenMP's": sycl,
        BIAS: {key: weight / 2 for key, weight in {**omp, **sycl}.items()},
        "SYCL / OpenMP under traces of OpenMP": {("sycl", "omp"): 1.0, ("omp", "omp"): -1.0},
        "SYCL / OpenMP under traces of SYCL": {("sycl", "sycl"): 1.0, ("omp", "sycl"): -1.0},
    }


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
    return _table("fixed length of noise", _length_costs(runs), _length_rows(runs))


def _length_costs(runs: pd.DataFrame | None) -> Costs | None:
    return None if runs is None else _costs(runs, ["program", "round"], ["model", "length"])


def _length_rows(runs: pd.DataFrame | None) -> dict[str, Weights]:
    measured = set() if runs is None else set(runs["model"])
    models = [model for model in PRINTED_MODELS if model in measured]
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
    return {
        LONGER_FIXED: longer[FIXED],
        LONGER_SCALED: longer[SCALED],
        ADDED: _less(longer),
        GAP_FIXED: gaps[FIXED],
        GAP_SCALED: gaps[SCALED],
        GAP_ADDED: _less(gaps),
    }


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
        {"question": question, "comparison": name, **_contrast(*_evidence(costs, weights))}
        for name, weights in rows.items()
    ]
    return pd.DataFrame(listed, columns=_COLUMNS)


def _evidence(costs: Costs | None, weights: Weights) -> tuple[Evidence, np.ndarray]:
    """The weighted sum of some slowdowns' logs, of each pair, and of their stolen time."""
    if costs is None or not weights or not set(weights) <= set(costs[0].columns):
        return Evidence(unmeasurable=NO_CONTRAST), np.empty(0)
    effects, steal = (
        sum(weight * table[name] for name, weight in weights.items()) for table in costs
    )
    effects = effects.dropna()
    strata = effects.index.droplevel("round").to_numpy()
    rounds = effects.index.get_level_values("round").to_numpy()
    differences = steal.reindex(effects.index).fillna(0).to_numpy()
    return Evidence(effects.to_numpy(), rounds, strata), differences


def _contrast(evidence: Evidence, steal: np.ndarray) -> dict[str, object]:
    """The mean of a contrast with its interval; nothing is claimed of it."""
    found = judge([(Claim("", "none"), evidence)])[0]
    return {
        "effect_percent": 100 * found.effect,
        "low_percent": 100 * found.low,
        "high_percent": 100 * found.high,
        "adjusted_percent": _adjusted(evidence, steal),
        "rounds": found.units,
        "pairs": len(evidence.effects),
        "why": "" if np.isfinite(found.low) else found.why,
    }


def _adjusted(evidence: Evidence, steal: np.ndarray) -> float:
    if len(steal) < 2:
        return np.nan
    return 100 * float(np.expm1(at_equal_steal(evidence.effects, steal)))


def fairness_findings(
    runs: pd.DataFrame, worst: Collection[WorstTrace], lengths: pd.DataFrame | None
) -> list[Finding]:
    """What section 5.2 says of fairness, to be judged together with the other findings.

    Parameters
    ----------
    runs, worst
        As of `crossing_table`.
    lengths
        As of `length_table`.
    """
    crossing = _crossing_costs(runs, worst), _crossing_rows()
    longer = _length_costs(lengths), _length_rows(lengths)
    sources = {BIAS: crossing, ADDED: longer, GAP_ADDED: longer}
    why = NO_LENGTHS if lengths is None else NO_CONTRAST
    findings = []
    for name, claim in CLAIMS.items():
        costs, rows = sources[name]
        here, steal = _evidence(costs, rows[name])
        if here.unmeasurable and name != BIAS:
            here = Evidence(unmeasurable=why)
        findings.append(Finding(claim, here, steal=steal))
    return findings


def fairness_sentences(
    judged: pd.DataFrame, crossing: pd.DataFrame, lengths: pd.DataFrame
) -> list[str]:
    """An answer to each of the two questions, in a sentence.

    Parameters
    ----------
    judged
        Of `findings_table`, with the findings of `fairness_findings`.
    crossing
        Of `crossing_table`.
    lengths
        Of `length_table`.
    """
    verdicts = judged.set_index("finding")["verdict"]
    alike, longer = (verdicts[CLAIMS[name].text] for name in (BIAS, ADDED))
    bias = _row(crossing, BIAS)
    fixed, scaled, gap = (_row(lengths, name) for name in (LONGER_FIXED, LONGER_SCALED, GAP_ADDED))
    return [
        (
            "Do traces of SYCL treat SYCL as those of OpenMP treat OpenMP?"
            f" **{_alike(alike)}**: under its own model's trace a program's slowdown factor differs"
            f" from that under the other's by {_effect(bias)}."
        ),
        (
            "Does a longer run look more resilient because the noise has a fixed length?"
            f" **{_more_resilient(longer)}**: twice as long, its slowdown factor changes by"
            f" {_effect(fixed)}; under noise as long as the run by {_effect(scaled)}. Of SYCL's"
            f" slowdown against OpenMP's the fixed length makes {_effect(gap)}."
        ),
    ]


def _alike(verdict: str) -> str:
    words = {REPRODUCED: f"yes, to within {100 * MARGIN:.0f} %", REVERSED: "no"}
    return words.get(verdict, verdict)


def _more_resilient(verdict: str) -> str:
    words = {REPRODUCED: "yes", REVERSED: "no, less", NONE: f"no, to within {100 * MARGIN:.0f} %"}
    return words.get(verdict, verdict)


def _row(table: pd.DataFrame, comparison: str) -> pd.Series:
    return table.set_index("comparison").loc[comparison]


def _effect(row: pd.Series) -> str:
    if np.isnan(row["low_percent"]):
        return f"an unknown part ({row['why']})"
    return (
        f"{row['effect_percent']:+.1f} % ({row['low_percent']:+.1f} to {row['high_percent']:+.1f};"
        f" {row['rounds']} rounds)"
    )
