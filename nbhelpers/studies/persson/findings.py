"""The findings of Persson et al. 2025, sections 5 and 6, as comparisons of our runs."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..findings import PERSSON, SUPPORTED, Finding, judge
from .campaigns import MODE, UNDISTURBED

_CELL = ["program", "model", "config", "trace"]


def persson_findings(runs: pd.DataFrame, absent: dict[str, str]) -> list[Finding]:
    """The findings of Persson et al. 2025, sections 5 and 6.

    What heavy noise does is judged by the planted traces where there are any, by their design and
    not by what they did; else by all.

    Parameters
    ----------
    runs
        Of `injected_campaign`, through `label_runs`.
    absent
        Model -> why it was not measured.
    """
    logs = _Logs.of(runs, absent)
    return [
        *_under_heavy_noise(logs),
        *_of_models(logs),
        *_in_average_noise(logs),
        _finding(
            "cores that are left free make runs steadier (coefficient of variation, RmHK / Rm)",
            "6 (4)",
            "below",
            _differences(_spreads(runs), "config", "RmHK", "Rm"),
            _unmeasured(logs.undisturbed, "RmHK", "Rm"),
        ),
    ]


@dataclass(frozen=True)
class _Logs:
    """Logs of run times, and why some comparisons cannot be made.

    `undisturbed`: of undisturbed runs; `slowdown`: of disturbed runs, less those of the undisturbed
    run of the same program, model, configuration and round; `steal` is subtracted likewise.
    """

    undisturbed: pd.DataFrame
    slowdown: pd.DataFrame
    not_heavy: str
    no_sycl: str

    @classmethod
    def of(cls, runs: pd.DataFrame, absent: dict[str, str]) -> "_Logs":
        undisturbed = _values(runs[runs["trace"] == UNDISTURBED])
        heaviest = _heaviest(runs)
        slowdown = _minus(_values(heaviest[heaviest["mode"] == MODE]), undisturbed)
        no_runs = "" if "sycl" in set(runs["model"]) else "no SYCL runs"
        no_sycl = absent.get("sycl", no_runs)
        return cls(undisturbed, slowdown, _not_heavy(slowdown["log"]), no_sycl)


def _under_heavy_noise(logs: _Logs) -> list[Finding]:
    return [
        _finding(
            "housekeeping helps under heavy noise (slowdown RmHK / Rm)",
            "6 (1)",
            "below",
            _differences(logs.slowdown, "config", "RmHK", "Rm"),
            _unmeasured(logs.slowdown, "RmHK", "Rm") or logs.not_heavy,
        ),
        _finding(
            "pinning alone does not help (slowdown TP / Rm)",
            "5.2",
            "no gain",
            _differences(logs.slowdown, "config", "TP", "Rm"),
            _unmeasured(logs.slowdown, "TP", "Rm") or logs.not_heavy,
        ),
    ]


def _of_models(logs: _Logs) -> list[Finding]:
    return [
        _finding(
            "SYCL is slower (undisturbed, SYCL / OpenMP)",
            "5.1",
            "above",
            _differences(logs.undisturbed, "model", "sycl", "omp"),
            logs.no_sycl,
        ),
        _finding(
            "SYCL is more resilient (slowdown SYCL / OpenMP)",
            "5.2",
            "below",
            _differences(logs.slowdown, "model", "sycl", "omp"),
            logs.no_sycl or logs.not_heavy,
        ),
    ]


def _in_average_noise(logs: _Logs) -> list[Finding]:
    comparisons = [
        (
            "a memory-bound program gains by housekeeping even in average noise (Babelstream, RmHK"
            " / Rm)",
            "6 (2)",
            "below",
            "stream",
            "RmHK",
        ),
        (
            "a compute-bound program is slower with housekeeping in average noise (N-body, RmHK"
            " / Rm)",
            "6 (3)",
            "above",
            "nbody",
            "RmHK",
        ),
        (
            "a compute-bound program gains by pinning in average noise (N-body, TP / Rm)",
            "6 (3)",
            "below",
            "nbody",
            "TP",
        ),
    ]
    return [
        _finding(
            claim,
            section,
            direction,
            _differences(_of_program(logs.undisturbed, program), "config", config, "Rm"),
            _unmeasured(logs.undisturbed, config, "Rm"),
        )
        for claim, section, direction, program, config in comparisons
    ]


def _finding(claim: str, section: str, direction: str, pairs: pd.DataFrame, unseen: str) -> Finding:
    known = pairs["steal"].notna().all()
    return Finding(
        claim,
        PERSSON + section,
        direction,
        pairs["log"].to_numpy(),
        unseen,
        pairs["steal"].to_numpy() if known else None,
    )


def _heaviest(runs: pd.DataFrame) -> pd.DataFrame:
    planted = runs["trace"].str.startswith("planted")
    return runs[planted] if planted.any() else runs


def _spreads(runs: pd.DataFrame) -> pd.DataFrame:
    """Logs of the coefficients of variation by program, model, config, trace and epoch, of at least
    three runs each; and their mean stolen time.
    """
    chosen = runs[runs["mode"].isin(["", MODE])]
    chosen = chosen if "epoch" in chosen else chosen.assign(epoch=0)
    groups = chosen.groupby([*_CELL, "epoch"])
    variation = groups["seconds"].std(ddof=1)[groups.size() > 2] / groups["seconds"].mean()
    steal = groups["steal_s"].mean() if "steal_s" in runs else np.nan
    table = pd.DataFrame({"log": np.log(variation[variation > 0]), "steal": steal})
    return table.dropna(subset="log")


def _values(runs: pd.DataFrame) -> pd.DataFrame:
    """`log` (of the run time) and `steal` by program, model, config, trace and round."""
    steal = runs.get("steal_s", np.nan)
    table = runs.assign(log=np.log(runs["seconds"]), steal=steal)
    return table.set_index([*_CELL, "round"])[["log", "steal"]]


def _minus(disturbed: pd.DataFrame, undisturbed: pd.DataFrame) -> pd.DataFrame:
    """Of each disturbed run, less those of the undisturbed run of the same round."""
    same_round = undisturbed.droplevel("trace").reindex(disturbed.index.droplevel("trace"))
    return (disturbed - same_round.to_numpy()).dropna(subset="log")


def _of_program(values: pd.DataFrame, program: str) -> pd.DataFrame:
    return values[values.index.get_level_values("program") == program]


def _differences(values: pd.DataFrame, level: str, first: str, second: str) -> pd.DataFrame:
    """First less second of all pairs that agree in everything else."""
    if not {first, second} <= set(values.index.get_level_values(level)):
        return values.iloc[:0]
    return (values.xs(first, level=level) - values.xs(second, level=level)).dropna(subset="log")


def _unmeasured(values: pd.DataFrame, *configs: str) -> str:
    measured = set(values.index.get_level_values("config"))
    missing = [config for config in configs if config not in measured]
    return f"{' and '.join(missing)} was not measured" if missing else ""


def _not_heavy(slowdown: pd.Series) -> str:
    """Why the noise replayed here is not shown to be heavy, if it is not: the roaming programs must
    be slowed down, by their interval.
    """
    roaming = slowdown[slowdown.index.get_level_values("config") == "Rm"].to_numpy()
    judged = judge(Finding("", "", "above", roaming))
    if judged["verdict"] == SUPPORTED:
        return ""
    changed = ""
    if len(roaming):
        percent = 100 * np.expm1(roaming.mean())
        changed = f"it changed the time of Rm by {percent:+.1f} % on average, and "
    return (
        "that the noise replayed here is heavy is not shown:"
        f" {changed}{judged['why'] or 'the interval lies below 0'}"
    )
