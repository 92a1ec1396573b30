"""How far an injection was from its plan: event by event, class by class, and by the run times
that it led to.

Owns the three levels and their numbers. Vocabulary of metrology: bias, spread, and the 99th
percentile of the error. Pure: tables in, tables out.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from .. import statistics
from ..errors import InputError
from ..statistics import as_values, mean_ratio
from ._limits import REALTIME
from .log import DONE, OUTCOMES, noise_ns, occupies, replay_start_ns, replayed_ns, shared_noise_ns

BIN_MS = 10.0
_PERMUTATIONS = 400


@dataclass(frozen=True)
class Accuracy:
    """How far the injection was from its plan.

    `events`: one row a class ("real-time", "ordinary"): `events` (injected or late), then for the
    errors of start and duration in us the `bias` (median) with its 95 % interval (`…_bias_low_us`,
    `…_bias_high_us`), `spread` (90th less 10th percentile) and `p99` (of the absolute error) with
    its interval. The start is the wake-up, the duration what the event took (`noise_ns`) against
    what it was to take. `classes`: one row a kind that occupies CPUs: events by outcome;
    `planned_ms`, `injected_ms` and `cpu_ms` without the events that the run's end cut or left out,
    and without what is below the floor; `injected_over_planned`; `floor_ms`: what the rule of the
    floor left out, and its `floor_share` of all that was planned; `correlation` of planned and
    injected over the bins. `bins`: one row a kind and bin of 10 ms: `bin_ms` (its beginning),
    `planned_ms`, `injected_ms`, of all CPUs together, means over the runs. `kinds`: one row a kind
    that does not occupy CPUs: events, and the achieved over the planned intensity (`median`, `p10`,
    `p90`). `workload`: `workload_accuracy`; None where the anomaly's run time is not known.
    """

    events: pd.DataFrame
    classes: pd.DataFrame
    bins: pd.DataFrame
    kinds: pd.DataFrame
    workload: pd.DataFrame | None = None

    def __repr__(self) -> str:
        total = self.classes[["planned_ms", "injected_ms"]].sum()
        ratio = (
            ""
            if self.workload is None
            else f", {self.workload['ratio'].iloc[0]:.3f} of the anomaly's run time"
        )
        return (
            f"Accuracy({self.events['events'].sum()} events, {total['injected_ms']:.3f} of"
            f" {total['planned_ms']:.3f} ms injected{ratio})"
        )

    def sentences(self) -> list[str]:
        """What was injected of what was planned, in a sentence."""
        over = self.classes["injected_over_planned"].dropna()
        if not len(over):
            return ["No event was planned, so none was injected."]
        planned_ms = self.classes[["planned_ms", "floor_ms"]].sum().sum()
        below = self.classes["floor_ms"].sum() / max(planned_ms, 1e-9)
        ratios = ", ".join(f"{kind} {ratio:.3f}" for kind, ratio in over.items())
        return [
            f"Injected over planned: {ratios}. {below:.1%} of the planned time was below what this"
            " machine can inject, and excluded."
        ]

    def _repr_html_(self) -> str:
        tables = [
            self.events.to_html(float_format="%.2f"),
            self.classes.to_html(float_format="%.3f"),
        ]
        tables += [self.kinds.to_html(float_format="%.3f")] if len(self.kinds) else []
        return "".join(
            tables + ([] if self.workload is None else [self.workload.to_html(float_format="%.4f")])
        )


def accuracy_of(
    log: pd.DataFrame,
    anomaly_seconds: object = None,
    replayed_seconds: object = None,
    undisturbed_seconds: object = None,
    seed: int = 0,
) -> Accuracy:
    """Accuracy of one injection, or of several put together (column `run`).

    Parameters
    ----------
    log
        Of `make_log` or `read_logs`.
    anomaly_seconds, replayed_seconds, undisturbed_seconds, seed
        For the level of the workload, see `workload_accuracy`.
    """
    occupying = log[occupies(log)]
    done = occupying[occupying["outcome"].isin(DONE)]
    realtime = done["policy"].isin(REALTIME)
    rows = {"real-time": _errors(done[realtime]), "ordinary": _errors(done[~realtime])}
    by_run = _binned(occupying)
    workload = (
        None
        if anomaly_seconds is None
        else workload_accuracy(anomaly_seconds, replayed_seconds, undisturbed_seconds, seed)
    )
    bins = by_run.groupby(["kind", "bin_ms"])[["planned_ms", "injected_ms"]].mean().reset_index()
    return Accuracy(
        pd.DataFrame(rows).T.astype({"events": int}).rename_axis("class"),
        _classes(occupying, by_run),
        bins,
        _intensities(log[~occupies(log)]),
        workload,
    )


def _errors(done: pd.DataFrame) -> dict[str, float]:
    start_us = (done["start_ns"] - replay_start_ns(done)) / 1e3
    duration_us = (noise_ns(done) - replayed_ns(done)) / 1e3
    return {"events": len(done)} | _spread("start", start_us) | _spread("duration", duration_us)


def _spread(name: str, errors_us: pd.Series) -> dict[str, float]:
    low, middle, high = errors_us.quantile([0.1, 0.5, 0.9])
    bias, tail = quantile_interval(errors_us, 0.5), quantile_interval(errors_us.abs(), 0.99)
    return {
        f"{name}_bias_us": middle,
        f"{name}_bias_low_us": bias[0],
        f"{name}_bias_high_us": bias[1],
        f"{name}_spread_us": high - low,
        f"{name}_p99_us": errors_us.abs().quantile(0.99),
        f"{name}_p99_low_us": tail[0],
        f"{name}_p99_high_us": tail[1],
    }


def quantile_interval(values: pd.Series, share: float, level: float = 0.95) -> tuple[float, float]:
    """Distribution-free interval of a quantile: the order statistics between which it lies with the
    probability `level` (binomial).

    Exact for independent events and any distribution; what a resampling of millions of events would
    tend to.
    """
    if values.empty:
        return np.nan, np.nan
    low, high = statistics.quantile_interval(values, share, level)
    return max(low, float(values.min())), min(high, float(values.max()))


def _classes(log: pd.DataFrame, by_run: pd.DataFrame) -> pd.DataFrame:
    kinds, outcome = log["kind"].astype(str), log["outcome"].astype(str)
    counts = pd.crosstab(kinds, outcome).reindex(columns=OUTCOMES, fill_value=0)
    below = outcome == "below floor"
    whole = outcome.isin((*DONE, "dropped")) | below | _carried_whole(log, outcome)
    took = (
        pd.DataFrame(
            {
                "planned_ms": log["planned_duration_ns"].where(~below, 0),
                "injected_ms": shared_noise_ns(log),
                "cpu_ms": log["cpu_time_ns"],
                "floor_ms": log["planned_duration_ns"].where(below, 0),
            }
        )
        / 1e6
    )
    table = counts.join(
        took[whole].groupby(kinds[whole]).sum().reindex(counts.index, fill_value=0.0)
    )
    planned = table["planned_ms"] + table["floor_ms"]
    table["injected_over_planned"] = table["injected_ms"] / table["planned_ms"].where(
        table["planned_ms"] > 0
    )
    table["floor_share"] = table["floor_ms"] / planned.where(planned > 0)
    table["correlation"] = [_correlation(by_run[by_run["kind"] == kind]) for kind in table.index]
    return table.rename_axis(index="kind", columns=None)


def _carried_whole(log: pd.DataFrame, outcome: pd.Series) -> pd.Series:
    """Coalesced events whose carrier was replayed to its end."""
    if "carrier" not in log or not (outcome == "coalesced").any():
        return pd.Series(False, log.index)
    fate = outcome.reindex(log["carrier"]).to_numpy()
    return pd.Series(
        (outcome.to_numpy() == "coalesced") & np.isin(fate, (*DONE, "dropped")), log.index
    )


def _correlation(bins: pd.DataFrame) -> float:
    """Pearson's, over the bins of all runs; NaN where all bins are alike."""
    planned, injected = bins["planned_ms"].to_numpy(), bins["injected_ms"].to_numpy()
    return (
        float(np.corrcoef(planned, injected)[0, 1])
        if len(bins) > 1 and planned.std() > 0 and injected.std() > 0
        else np.nan
    )


def _binned(log: pd.DataFrame) -> pd.DataFrame:
    """Planned and injected noise of each run and kind in bins of 10 ms: `run`, `kind`, `bin_ms`,
    `planned_ms`, `injected_ms`.

    Only what was reached and not cut: a run that ended early is compared up to its end.
    """
    reached = log[log["outcome"].isin((*DONE, "dropped"))]
    runs = reached["run"] if "run" in reached else pd.Series(0, reached.index)
    parts = [
        _bins_of(group).assign(run=run, kind=str(kind))
        for (run, kind), group in reached.groupby([runs, reached["kind"].astype(str)])
    ]
    columns = ["run", "kind", "bin_ms", "planned_ms", "injected_ms"]
    return pd.concat(parts, ignore_index=True)[columns] if parts else pd.DataFrame(columns=columns)


def _bins_of(log: pd.DataFrame) -> pd.DataFrame:
    planned_ns = replayed_ns(log).to_numpy(float)
    begin_ns = replay_start_ns(log).to_numpy(float)
    planned = _spread_out(begin_ns, begin_ns + planned_ns, planned_ns)
    took = _spread_out(
        log["taken_ns"].to_numpy(float),
        log["end_ns"].to_numpy(float),
        noise_ns(log).to_numpy(float),
    )
    last_ns = float(max((begin_ns + planned_ns).max(), log["end_ns"].max()))
    edges = np.arange(np.floor(last_ns / (BIN_MS * 1e6)) + 2) * BIN_MS * 1e6
    return pd.DataFrame(
        {
            "bin_ms": edges[:-1] / 1e6,
            "planned_ms": np.diff(planned(edges)) / 1e6,
            "injected_ms": np.diff(took(edges)) / 1e6,
        }
    )


def _spread_out(start: np.ndarray, end: np.ndarray, amount: np.ndarray):
    """The amount up to a time, if each event's is spread evenly over its extent; events may
    overlap.
    """
    end = np.maximum(end, start + 1)
    rate = amount / (end - start)
    edges, steps = np.concatenate([start, end]), np.concatenate([rate, -rate])
    order = np.argsort(edges, kind="stable")
    edges, slopes = edges[order], np.cumsum(steps[order])
    heights = np.concatenate([[0], np.cumsum(slopes[:-1] * np.diff(edges))])
    return lambda times: np.interp(times, edges, heights)


def _intensities(log: pd.DataFrame) -> pd.DataFrame:
    """Achieved over planned intensity, of events that do not occupy a CPU."""
    columns = ["events", "median", "p10", "p90"]
    if log.empty or "achieved" not in log:
        return pd.DataFrame(columns=columns)
    done = log[log["outcome"].isin(DONE)]
    ratios = (done["achieved"] / done["intensity"]).groupby(done["kind"].astype(str))
    return pd.DataFrame(
        {
            "events": ratios.size(),
            "median": ratios.median(),
            "p10": ratios.quantile(0.1),
            "p90": ratios.quantile(0.9),
        }
    ).rename_axis("kind")


def workload_accuracy(
    anomaly_seconds: object,
    replayed_seconds: object,
    undisturbed_seconds: object = None,
    seed: int = 0,
) -> pd.DataFrame:
    """Whether replayed runs take as long as what they replay.

    Parameters
    ----------
    anomaly_seconds
        Of the run that is replayed, or of several runs under the same disturbance.
    replayed_seconds
        Of the runs with the replay.
    undisturbed_seconds
        Of runs without any noise, the control.

    Returns
    -------
    Rows "replayed" and, if passed, "undisturbed": `runs`, `seconds` (mean), `ratio` to the
    anomaly's mean with its 95 % bootstrap interval (`ratio_low`, `ratio_high`), `error` (distance
    of the ratio from 1, the number of Table 7 of Persson et al. 2025). Between the two
    distributions of run times: `wasserstein_share` (mean distance between equal ranks, over the
    anomaly's mean), `wasserstein_chance` (what two samples of one distribution exceed in one of
    twenty cases, by permutation) and `ks` (largest distance between the distribution functions). A
    single anomaly is a constant: only the runs' spread is in the interval, and these are NaN.

    Raises
    ------
    InputError
        Fewer than two replayed runs.
    """
    anomaly = np.atleast_1d(np.asarray(anomaly_seconds, dtype=float))
    if not anomaly.size or not np.isfinite(anomaly).all() or (anomaly <= 0).any():
        raise InputError(
            f"the anomaly's run time is {anomaly_seconds!r}",
            fix="pass seconds, one number or one a run",
        )
    samples = {"replayed": replayed_seconds} | (
        {} if undisturbed_seconds is None else {"undisturbed": undisturbed_seconds}
    )
    return pd.DataFrame(
        {name: _workload_row(anomaly, as_values(values), seed) for name, values in samples.items()}
    ).T.astype({"runs": int})


def _workload_row(anomaly: np.ndarray, seconds: np.ndarray, seed: int) -> dict:
    from scipy import stats

    ratio = mean_ratio(seconds, anomaly if anomaly.size > 1 else float(anomaly[0]), seed=seed)
    row = {
        "runs": seconds.size,
        "seconds": seconds.mean(),
        "ratio": ratio.value,
        "ratio_low": ratio.low,
        "ratio_high": ratio.high,
        "error": abs(ratio.value - 1),
    }
    distance = stats.wasserstein_distance(anomaly, seconds) / anomaly.mean()
    if anomaly.size == 1:
        return row | {"wasserstein_share": distance, "wasserstein_chance": np.nan, "ks": np.nan}
    return row | {
        "wasserstein_share": distance,
        "wasserstein_chance": _chance(anomaly, seconds, seed) / anomaly.mean(),
        "ks": stats.ks_2samp(anomaly, seconds).statistic,
    }


def _chance(first: np.ndarray, second: np.ndarray, seed: int) -> float:
    """95th percentile of the distance between random halves of the two samples thrown together."""
    from scipy import stats

    random, pooled = np.random.default_rng(seed), np.concatenate([first, second])
    draws = (random.permutation(pooled) for _ in range(_PERMUTATIONS))
    return float(
        np.quantile(
            [
                stats.wasserstein_distance(drawn[: first.size], drawn[first.size :])
                for drawn in draws
            ],
            0.95,
        )
    )
