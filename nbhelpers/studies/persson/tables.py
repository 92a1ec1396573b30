"""The tables of Persson et al. 2025 with our runs: pure functions of the runs of `label_runs`, each
row with its interval and count.

Column names and row labels are those of data/published, so that `save_table(…, published=…)` sets
the printed value next to ours.
"""

from collections.abc import Collection
from typing import Any

import numpy as np
import pandas as pd

from ...empty import because
from ...statistics import (
    adjusted_effect,
    bootstrap_ratio,
    percentile_interval,
    same_epochs,
)
from ...statistics.intervals import resampled_means, too_few
from ...statistics.robust import error_columns, increase_columns, robust_ratio
from ..design import BENCHMARKS, PRINTED_MODELS
from .campaigns import KEYS, MODE, MODES, TRACED, UNDISTURBED, UNTRACED, WorstTrace

_REPEATS = 2000
_ROBUST = [
    f"{name}{end}_percent" for name in ("median", "trimmed") for end in ("", "_low", "_high")
]
_ROBUST_RATIOS = [
    f"{name}_ratio{end}" for name in ("median", "trimmed") for end in ("", "_low", "_high")
]
NO_TRACER = (
    "programs cannot be traced by this user or on this machine; run as root: sudo -E make paper"
)
NO_ANOMALY = (
    "no run of these programs was traced, so no replay has an anomaly of its own program to be"
    " compared with; run as root: sudo -E make paper"
)
FEWEST_TO_ADJUST = 5  # runs a cell; with fewer a straight line through the steal fits anything


def tracing_table(runs: pd.DataFrame) -> pd.DataFrame:
    """Table 1: mean run time without and with tracing, of each program and model; 95 % bootstrap
    intervals. Empty where nothing was traced.

    `steal_off_ms`, `steal_on_ms`: mean CPU time a run that the hypervisor gave to others.

    Parameters
    ----------
    runs
        Of `baseline_campaign`, through `label_runs`.

    Returns
    -------
    `benchmark`, `model`, `tracing_off_seconds`, `tracing_on_seconds`, `increase_percent` with its
    interval (`low_percent`, `high_percent`), the same of the median (`median_percent`,
    `median_low_percent`, `median_high_percent`) and of the trimmed mean (`trimmed_…`),
    `steal_off_ms`, `steal_on_ms`, `runs`.
    """
    off = runs[runs["trace"] == UNTRACED]
    rows = []
    for (program, model, config), cell_runs in off.groupby(KEYS):
        on, cell_runs = same_epochs(_cell(runs, program, model, config, TRACED), cell_runs)
        if "trace_events" in on and on["trace_events"].notna().all():
            rows.append(
                {
                    "benchmark": BENCHMARKS[program],
                    "model": PRINTED_MODELS[model],
                    "tracing_off_seconds": cell_runs["seconds"].mean(),
                    "tracing_on_seconds": on["seconds"].mean(),
                    **_increase(on, cell_runs),
                    **increase_columns(robust_ratio([(on, cell_runs)])),
                    "steal_off_ms": _steal_ms(cell_runs),
                    "steal_on_ms": _steal_ms(on),
                    "runs": len(cell_runs),
                }
            )
    table = _typed(
        rows,
        ["benchmark", "model"],
        [
            "tracing_off_seconds",
            "tracing_on_seconds",
            "increase_percent",
            "low_percent",
            "high_percent",
            *_ROBUST,
            "steal_off_ms",
            "steal_on_ms",
            "runs",
        ],
    )
    return because(table, NO_TRACER)


def _typed(rows: list[dict], texts: list[str], numbers: list[str]) -> pd.DataFrame:
    """A table whose columns have their type even without a row."""
    return pd.DataFrame(rows, columns=texts + numbers).astype(
        dict.fromkeys(texts, "str") | dict.fromkeys(numbers, "float64")
    )


def _cell(
    runs: pd.DataFrame, program: str, model: str, config: str, trace: str, mode: str | None = None
) -> pd.DataFrame:
    chosen = (
        (runs["program"] == program)
        & (runs["model"] == model)
        & (runs["config"] == config)
        & (runs["trace"] == trace)
    )
    return runs[chosen if mode is None else chosen & (runs["mode"] == mode)]


def _increase(after: pd.DataFrame, before: pd.DataFrame) -> dict[str, float]:
    low, high = bootstrap_ratio(after["seconds"], before["seconds"])
    ratio = after["seconds"].mean() / before["seconds"].mean()
    return {
        "increase_percent": 100 * (ratio - 1),
        "low_percent": 100 * (low - 1),
        "high_percent": 100 * (high - 1),
    }


def spread_table(runs: pd.DataFrame) -> pd.DataFrame:
    """Table 2: standard deviation and coefficient of variation of the baseline, the mean over the
    programs; 95 % bootstrap intervals of the former.

    `model`, `config`, `sd_ms`, `low_ms`, `high_ms`; `mad_ms` with `mad_low_ms`, `mad_high_ms` (the
    median absolute deviation × 1.483, which is the standard deviation of normal values and which
    no single run decides); `cv_percent`, `steal_ms` (mean CPU time a run that the hypervisor gave
    to others), `programs`, `runs` (of each), `why` (there is no interval: of fewer than six runs
    it would begin at 0).

    Parameters
    ----------
    runs
        Of `baseline_campaign`, through `label_runs`.
    """
    baseline = runs[runs["trace"] == TRACED]
    baseline = pd.concat(
        same_epochs(*(cell_runs for _, cell_runs in baseline.groupby(KEYS, sort=False)))
        or [baseline]
    ).sort_index()
    return pd.DataFrame(
        [
            _spread(model, config, cell_runs)
            for (model, config), cell_runs in baseline.groupby(["model", "config"])
        ]
    )


def _spread(model: str, config: str, cell_runs: pd.DataFrame) -> dict:
    samples = [group["seconds"].to_numpy() for _, group in cell_runs.groupby("program", sort=False)]
    fewest = min(map(len, samples))
    is_few = too_few("sd", fewest)
    low, high = (np.nan, np.nan) if is_few else _deviation_interval(samples)
    deviations = [values.std(ddof=1) for values in samples]
    return {
        "model": PRINTED_MODELS[model],
        "config": config,
        "sd_ms": 1e3 * np.mean(deviations),
        "low_ms": 1e3 * low,
        "high_ms": 1e3 * high,
        **_median_deviation(samples, is_few),
        "cv_percent": (
            100
            * np.mean([deviation / values.mean() for deviation, values in zip(deviations, samples)])
        ),
        "steal_ms": _steal_ms(cell_runs),
        "programs": len(samples),
        "runs": fewest,
        "why": f"{fewest} runs are too few for an interval" if is_few else "",
    }


def _deviation_interval(samples: list[np.ndarray]) -> tuple[float, float]:
    """Of the mean standard deviation over the programs, by the bootstrap."""
    random = np.random.default_rng(0)
    draws = np.mean(
        [random.choice(values, (_REPEATS, values.size)).std(axis=1, ddof=1) for values in samples],
        axis=0,
    )
    return percentile_interval(draws)


def _median_deviation(samples: list[np.ndarray], is_few: bool) -> dict[str, float]:
    """The mean over the programs, with its 95 % bootstrap interval; of few runs without."""
    from scipy.stats import median_abs_deviation

    random = np.random.default_rng(0)
    drawn = [random.choice(values, (_REPEATS, values.size)) for values in samples]
    draws = [median_abs_deviation(values, axis=1, scale="normal") for values in drawn]
    ends = percentile_interval(np.mean(draws, axis=0))
    low, high = (np.nan, np.nan) if is_few else ends
    value = np.mean([median_abs_deviation(values, scale="normal") for values in samples])
    return {"mad_ms": 1e3 * value, "mad_low_ms": 1e3 * low, "mad_high_ms": 1e3 * high}


def _steal_ms(cell_runs: pd.DataFrame) -> float:
    return 1e3 * cell_runs["steal_s"].mean() if "steal_s" in cell_runs else np.nan


def slowdown_table(runs: pd.DataFrame, program: str | None = None) -> pd.DataFrame:
    """Tables 3 to 5: mean run time under each worst trace, and its increase over the undisturbed
    runs of the same configuration.

    Parameters
    ----------
    runs
        Of `injected_campaign`, through `label_runs`.
    program
        Nbody (table 3), stream (4) or minife (5); None: all.

    Returns
    -------
    One row a program, model, trace and configuration: `benchmark`, `model`, `trace`, `config`,
    `seconds`, `increase_percent` with its 95 % bootstrap interval, the increases of median and
    trimmed mean (`median_percent`, `trimmed_percent`) with theirs, `adjusted_percent` (the increase
    with steal held fixed; missing for fewer than five runs a cell, or where steal does not vary),
    `sd_ms` and `cv_percent` of the injected runs, `undisturbed_seconds`, `undisturbed_cv_percent`,
    `steal_ms`, `runs`.
    """
    chosen = runs[(runs["mode"] == MODE) & ((runs["program"] == program) if program else True)]
    rows = [
        _slowdown(
            program,
            model,
            config,
            trace,
            cell_runs,
            _cell(runs, program, model, config, UNDISTURBED),
        )
        for (program, model, trace, config), cell_runs in chosen.groupby(
            ["program", "model", "trace", "config"], sort=False
        )
    ]
    order = {config: place for place, config in enumerate(runs["config"].unique())}
    return (
        pd.DataFrame(rows)
        .sort_values("config", key=lambda names: names.map(order), kind="stable")
        .sort_values(["benchmark", "model", "trace"], kind="stable", ignore_index=True)
    )


def _slowdown(
    program: str, model: str, config: str, trace: str, cell_runs: pd.DataFrame, calm: pd.DataFrame
) -> dict:
    cell_runs, calm = same_epochs(cell_runs, calm)
    deviation, mean = cell_runs["seconds"].std(ddof=1), cell_runs["seconds"].mean()
    return {
        "benchmark": BENCHMARKS[program],
        "model": PRINTED_MODELS[model],
        "trace": trace,
        "config": config,
        "seconds": mean,
        **_increase(cell_runs, calm),
        **increase_columns(robust_ratio([(cell_runs, calm)])),
        "adjusted_percent": _adjusted(cell_runs, calm),
        "sd_ms": 1e3 * deviation,
        "cv_percent": 100 * deviation / mean,
        "undisturbed_seconds": calm["seconds"].mean(),
        "undisturbed_cv_percent": 100 * calm["seconds"].std(ddof=1) / calm["seconds"].mean(),
        "steal_ms": _steal_ms(cell_runs),
        "runs": len(cell_runs),
    }


def _adjusted(cell_runs: pd.DataFrame, calm: pd.DataFrame) -> float:
    both = pd.concat([cell_runs, calm])
    if (
        min(len(cell_runs), len(calm)) < FEWEST_TO_ADJUST
        or "steal_s" not in both
        or both["steal_s"].nunique() < 2
    ):
        return np.nan
    effects = adjusted_effect(both, "trace", cell_runs["trace"].iloc[0], UNDISTURBED)
    return float(effects["effect_percent"].iloc[-1])


def run_ratios(runs: pd.DataFrame) -> pd.DataFrame:
    """Each injected run over the mean of the undisturbed runs of its configuration and epoch:
    `benchmark`, `model`, `config`, `trace`, `run`, `ratio`.

    Parameters
    ----------
    runs
        Of `injected_campaign`, through `label_runs`.
    """
    keys = [*KEYS, "epoch"]
    runs = runs if "epoch" in runs else runs.assign(epoch=0)
    means = runs[runs["trace"] == UNDISTURBED].groupby(keys)["seconds"].mean()
    noisy = runs[runs["mode"] == MODE]
    noisy = noisy[pd.MultiIndex.from_frame(noisy[keys]).isin(means.index)]
    ratio = (
        noisy["seconds"].to_numpy()
        / means.reindex(pd.MultiIndex.from_frame(noisy[keys])).to_numpy()
    )
    return pd.DataFrame(
        {
            "benchmark": noisy["program"].map(BENCHMARKS),
            "model": noisy["model"].map(PRINTED_MODELS),
            "config": noisy["config"],
            "trace": noisy["trace"],
            "run": noisy["run"],
            "ratio": ratio,
        }
    ).reset_index(drop=True)


def resilience_table(slowdowns: pd.DataFrame, runs: pd.DataFrame | None = None) -> pd.DataFrame:
    """Table 6: the mean increase over all rows of tables 3 to 5, by `model` and `config`.

    Parameters
    ----------
    slowdowns
        Of `slowdown_table`, or the published tables.
    runs
        Those behind them, for the intervals.

    Returns
    -------
    `noise` (natural or planted, where the rows name a trace), `model`, `config`, `increase_percent`
    with its 95 % bootstrap interval, the same by medians and trimmed means (`median_percent`,
    `trimmed_percent`), `lowest_percent` and `highest_percent` of the rows,
    `adjusted_percent` (with steal held fixed), `rows`.
    """
    keys = ["model", "config"]
    if "trace" in slowdowns:
        slowdowns, keys = slowdowns.assign(noise=_noise_of(slowdowns["trace"])), ["noise", *keys]
    return pd.DataFrame(
        [
            dict(zip(keys, key)) | _resilience(cell_runs, runs)
            for key, cell_runs in slowdowns.groupby(keys)
        ]
    )


def _noise_of(traces: pd.Series) -> pd.Series:
    return traces.str.startswith("planted").map({True: "planted", False: "natural"})


def _resilience(cell_runs: pd.DataFrame, runs: pd.DataFrame | None) -> dict:
    increase = cell_runs["increase_percent"]
    adjusted = (
        {"adjusted_percent": cell_runs["adjusted_percent"].mean()}
        if "adjusted_percent" in cell_runs
        else {}
    )
    return {
        "increase_percent": increase.mean(),
        **({} if runs is None else _mean_increase(cell_runs, runs)),
        "lowest_percent": increase.min(),
        "highest_percent": increase.max(),
        **adjusted,
        "rows": len(cell_runs),
    }


def _mean_increase(cell_runs: pd.DataFrame, runs: pd.DataFrame) -> dict[str, float]:
    """Intervals of the mean over rows, and the means over rows of the other increases."""
    pairs = [_row_runs(row, runs) for row in cell_runs.itertuples()]
    low, high = percentile_interval(_mean_draws(pairs))
    return {"low_percent": low, "high_percent": high, **increase_columns(robust_ratio(pairs))}


def _row_runs(row: Any, runs: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The runs behind a row of `slowdown_table`: disturbed and undisturbed."""
    programs = {name: key for key, name in BENCHMARKS.items()}
    models = {name: key for key, name in PRINTED_MODELS.items()}
    cell = programs[row.benchmark], models[row.model], row.config
    noisy, calm = same_epochs(_cell(runs, *cell, row.trace, MODE), _cell(runs, *cell, UNDISTURBED))
    return noisy, calm


def _mean_draws(pairs: list[tuple[pd.DataFrame, pd.DataFrame]]) -> np.ndarray:
    """Resampled means of the rows' increases; rows of one configuration share its resampled
    undisturbed runs.
    """
    random = np.random.default_rng(0)
    means: dict[tuple, np.ndarray] = {}
    ratios = []
    for noisy, calm in pairs:
        key = tuple(calm.index)
        if key not in means:
            means[key] = _resampled_means(calm, random)
        ratios.append(_resampled_means(noisy, random) / means[key])
    return 100 * (np.mean(ratios, axis=0) - 1)


def _resampled_means(cell_runs: pd.DataFrame, random: np.random.Generator) -> np.ndarray:
    return resampled_means(cell_runs["seconds"].to_numpy(), random, _REPEATS)


def replay_table(runs: pd.DataFrame, worst: Collection[WorstTrace]) -> pd.DataFrame:
    """Table 7: how far the replay of each worst trace is from the run that it was taken from, under
    each mode.

    Parameters
    ----------
    runs
        Of `injected_campaign`, through `label_runs`.
    worst
        The traces; those that come from no configuration of the study are left out.

    Returns
    -------
    `benchmark`, `model`, `config`, `trace`, `mode`, `error_percent` (abs(mean / anomaly − 1)),
    `ratio` with its 95 % bootstrap interval, `median_ratio` and `trimmed_ratio` (median and trimmed
    mean over the anomaly) with theirs, `undisturbed_percent` (the error of the undisturbed runs:
    the control), `anomaly_seconds`, `excess_ms` (over the undisturbed mean),
    `unexplained_share` (of the excess, what the replay of its kernel events does not bring back;
    beyond 1: the replay was faster than no noise at all, by chance; missing where there is no
    excess) with its 95 % bootstrap interval, `anomaly_steal_ms` and `steal_ms` (what the hypervisor
    took during the anomaly, and of a replay on average), `runs`.
    """
    rows = [_replay(trace, mode, runs) for trace in worst for mode in MODES if trace.run >= 0]
    table = _typed(
        rows,
        ["benchmark", "model", "config", "trace", "mode"],
        [
            "error_percent",
            "ratio",
            "low",
            "high",
            *_ROBUST_RATIOS,
            "undisturbed_percent",
            "anomaly_seconds",
            "excess_ms",
            "unexplained_share",
            "unexplained_low",
            "unexplained_high",
            "anomaly_steal_ms",
            "steal_ms",
            "runs",
        ],
    )
    return because(table, NO_ANOMALY)


def _replay(trace: WorstTrace, mode: str, runs: pd.DataFrame) -> dict:
    key = trace.program, trace.model, trace.config
    replayed, undisturbed = same_epochs(
        _cell(runs, *key, trace.label, mode), _cell(runs, *key, UNDISTURBED)
    )
    cell_runs, calm = replayed["seconds"], undisturbed["seconds"]
    return {
        "benchmark": BENCHMARKS[trace.program],
        "model": PRINTED_MODELS[trace.model],
        "config": trace.config,
        "trace": trace.label,
        "mode": mode,
        **error_columns(cell_runs, trace.seconds),
        "undisturbed_percent": 100 * abs(calm.mean() / trace.seconds - 1),
        "anomaly_seconds": trace.seconds,
        "excess_ms": 1e3 * (trace.seconds - calm.mean()),
        **_unexplained(trace.seconds, replayed, undisturbed),
        "anomaly_steal_ms": trace.steal_ms,
        "steal_ms": _steal_ms(replayed),
        "runs": len(cell_runs),
    }


def _unexplained(anomaly: float, replayed: pd.DataFrame, calm: pd.DataFrame) -> dict[str, float]:
    """The anomaly is one run, a constant; the interval is of the two means."""
    names = ("unexplained_share", "unexplained_low", "unexplained_high")
    excess = anomaly - calm["seconds"].mean()
    if excess <= 0:
        return dict.fromkeys(names, np.nan)
    random = np.random.default_rng(0)
    above, below = (anomaly - _resampled_means(cell_runs, random) for cell_runs in (replayed, calm))
    low, high = percentile_interval(above[below > 0] / below[below > 0])
    return dict(zip(names, ((anomaly - replayed["seconds"].mean()) / excess, low, high)))


def merge_table(replays: pd.DataFrame) -> pd.DataFrame:
    """The accuracies of `replay_table` with a column a mode: `benchmark`, `model`, `config`,
    `trace`, `pessimistic_percent`, `improved_percent`, `faithful_percent`.

    Parameters
    ----------
    replays
        Of `replay_table`.
    """
    columns = [f"{mode}_percent" for mode in ("pessimistic", "improved", "faithful")]
    named = replays.assign(mode=replays["mode"] + "_percent")
    table = (
        named.pivot(
            index=["benchmark", "model", "config", "trace"],
            columns="mode",
            values="error_percent",
        )
        .reindex(columns=columns)
        .astype(float)
    )
    return because(table.rename_axis(columns=None).reset_index(), NO_ANOMALY)


def comparable_rows(table: pd.DataFrame, benchmark: str | None = None) -> pd.DataFrame:
    """The rows of a published table that ours can stand beside: for tables 3 to 5 those of the
    platform without SMT and its first trace, for table 7 those without SMT.

    Parameters
    ----------
    table
        Of `published`.
    benchmark
        Only this one's.

    Returns
    -------
    The rows that ours can stand next to, without the columns that ours lack; what table 7 calls
    accuracy is an error, and is called so.
    """
    rows = pd.Series(True, index=table.index)
    if "platform" in table:
        rows &= (table["smt"] == "none") & (table["noise_config"].astype(str) == "1")
    elif "smt" in table:
        rows &= table["smt"] != "on"
    comparable = table[rows & ((table["benchmark"] == benchmark) if benchmark else True)]
    comparable = comparable.drop(
        columns=[
            name
            for name in ("platform", "smt", "noise_config", "printed_minus")
            if name in comparable
        ]
    ).rename(columns={"accuracy_percent": "error_percent"})
    comparable.attrs = dict(table.attrs)
    return comparable
