"""The findings of Persson et al. 2025, sections 5 and 6, as comparisons of our runs."""

import numpy as np
import pandas as pd

from ..findings import PERSSON, SUPPORTED, Finding, judged
from .campaigns import MODE, UNDISTURBED


def persson_findings(runs: pd.DataFrame, absent: dict[str, str]) -> list[Finding]:
    """The findings of Persson et al. 2025, sections 5 and 6.

    Parameters
    ----------
    runs
        Of `injected_campaign`, labelled.
    absent
        Model -> why it was not measured.

    Notes
    -----
    What heavy noise does is judged by the planted traces where there are any, by their design and
    not by what they did; else by all.
    """
    calm, noisy = (
        _values(own, trace) for own, trace in ((runs, UNDISTURBED), (_heaviest(runs), None))
    )
    cost = _minus(
        noisy,
        calm,
        # log of the slowdown, of each program, model, configuration, trace and round; and what
        # steal it
        # cost
    )
    heavy = _heavy(cost["log"])
    no_sycl = absent.get("sycl", "" if "sycl" in set(runs["model"]) else "no SYCL runs")
    return [
        _finding(
            "housekeeping helps under heavy noise (slowdown RmHK / Rm)",
            "6 (1)",
            "below",
            _against(cost, "config", "RmHK", "Rm"),
            _lacking(cost, "RmHK", "Rm") or heavy,
        ),
        _finding(
            "pinning alone does not help (slowdown TP / Rm)",
            "5.2",
            "no gain",
            _against(cost, "config", "TP", "Rm"),
            _lacking(cost, "TP", "Rm") or heavy,
        ),
        _finding(
            "SYCL is slower (undisturbed, SYCL / OpenMP)",
            "5.1",
            "above",
            _against(calm, "model", "sycl", "omp"),
            no_sycl,
        ),
        _finding(
            "SYCL is more resilient (slowdown SYCL / OpenMP)",
            "5.2",
            "below",
            _against(cost, "model", "sycl", "omp"),
            no_sycl or heavy,
        ),
        _finding(
            "a memory-bound program gains by housekeeping even in average noise (Babelstream, RmHK"
            " / Rm)",
            "6 (2)",
            "below",
            _against(_of(calm, "stream"), "config", "RmHK", "Rm"),
            _lacking(calm, "RmHK", "Rm"),
        ),
        _finding(
            "a compute-bound program is slower with housekeeping in average noise (N-body, RmHK"
            " / Rm)",
            "6 (3)",
            "above",
            _against(_of(calm, "nbody"), "config", "RmHK", "Rm"),
            _lacking(calm, "RmHK", "Rm"),
        ),
        _finding(
            "a compute-bound program gains by pinning in average noise (N-body, TP / Rm)",
            "6 (3)",
            "below",
            _against(_of(calm, "nbody"), "config", "TP", "Rm"),
            _lacking(calm, "TP", "Rm"),
        ),
        _finding(
            "cores that are left free make runs steadier (coefficient of variation, RmHK / Rm)",
            "6 (4)",
            "below",
            _against(_spreads(runs), "config", "RmHK", "Rm"),
            _lacking(calm, "RmHK", "Rm"),
        ),
    ]


def _finding(claim: str, section: str, direction: str, pairs: pd.DataFrame, unseen: str) -> Finding:
    return Finding(
        claim,
        PERSSON + section,
        direction,
        pairs["log"].to_numpy(),
        unseen,
        pairs["steal"].to_numpy() if pairs["steal"].notna().all() else None,
    )


def _heaviest(runs: pd.DataFrame) -> pd.DataFrame:
    planted = runs["trace"].str.startswith("planted")
    return runs[planted] if planted.any() else runs


def _spreads(runs: pd.DataFrame) -> pd.DataFrame:
    """Logs of the coefficients of variation by program, model, config, trace and epoch, of at least
    three runs each; and their mean steal.
    """
    chosen = runs[runs["mode"].isin(["", MODE])]
    chosen = chosen if "epoch" in chosen else chosen.assign(epoch=0)
    own = chosen.groupby(["program", "model", "config", "trace", "epoch"])
    kept = own["seconds"].std(ddof=1)[own.size() > 2] / own["seconds"].mean()
    steal = own["steal_s"].mean() if "steal_s" in runs else np.nan
    return pd.DataFrame({"log": np.log(kept[kept > 0]), "steal": steal}).dropna(subset="log")


def _values(runs: pd.DataFrame, trace: str | None) -> pd.DataFrame:
    """`log` (of the run time) and `steal` by program, model, config, trace and round: undisturbed
    runs, or all that were disturbed under the improved merge.
    """
    own = runs[runs["trace"] == trace] if trace else runs[runs["mode"] == MODE]
    return own.assign(
        log=np.log(own["seconds"]), steal=own["steal_s"] if "steal_s" in own else np.nan
    ).set_index(["program", "model", "config", "trace", "round"])[["log", "steal"]]


def _minus(noisy: pd.DataFrame, calm: pd.DataFrame) -> pd.DataFrame:
    paired = noisy.index.droplevel("trace")
    return (noisy - calm.droplevel("trace").reindex(paired).to_numpy()).dropna(subset="log")


def _of(values: pd.DataFrame, program: str) -> pd.DataFrame:
    return values[values.index.get_level_values("program") == program]


def _against(values: pd.DataFrame, level: str, first: str, second: str) -> pd.DataFrame:
    """First less second of all pairs that agree in everything else."""
    if not {first, second} <= set(values.index.get_level_values(level)):
        return values.iloc[:0]
    pair = [values.xs(name, level=level) for name in (first, second)]
    return (pair[0] - pair[1]).dropna(subset="log")


def _lacking(logs: pd.DataFrame, *configs: str) -> str:
    missing = [
        config for config in configs if config not in set(logs.index.get_level_values("config"))
    ]
    return f"{' and '.join(missing)} was not measured" if missing else ""


def _heavy(cost: pd.Series) -> str:
    """Why the noise replayed here is not shown to be heavy, if it is not: the roaming programs must
    be slowed down, by their interval.
    """
    own = cost[cost.index.get_level_values("config") == "Rm"].to_numpy()
    checked = judged(Finding("", "", "above", own))
    if checked["verdict"] == SUPPORTED:
        return ""
    slowed = (
        f"it changed the time of Rm by {100 * np.expm1(own.mean()):+.1f} % on average, and "
        if len(own)
        else ""
    )
    return (
        "that the noise replayed here is heavy is not shown:"
        f" {slowed}{checked['why'] or 'the interval lies below 0'}"
    )
