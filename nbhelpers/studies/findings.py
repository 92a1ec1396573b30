"""The papers' findings weighed against our runs: supported here, contradicted here, or can't be seen on this machine.

Owns the rule, which looks at nothing but an interval, and the comparison that each finding stands for.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from .design import PRINTED_MODELS
from .persson import MODE, UNDISTURBED

SUPPORTED, CONTRADICTED, UNSEEN = "supported here", "contradicted here", "can't be seen on this machine"
MARGIN = 0.05   # a change below this share counts as none, where a finding says that something does not help
FEWEST = 6      # pairs of runs; of fewer the interval says next to nothing
PERSSON = "Persson et al. 2025, sec. "
CUI = "Cui et al. 2023, sec. "


@dataclass(frozen=True)
class Finding:
    """What a paper found, as a comparison that can be made here.

    `claim` in a few words; `source`; `direction`: "below" (the first is less than the second), "above", or "no gain" (not less by 5 % or more);
    `effects`: logarithms of the ratio first / second, a pair of runs each; `unseen`: why it can't be compared here at all, empty if it can.
    """

    claim: str
    source: str
    direction: str
    effects: np.ndarray
    unseen: str = ""


def verdict(direction: str, low: float, high: float) -> str:
    """What an interval of log ratios says of a finding.

    Below: supported if the whole interval is below 0, contradicted if it is above. Above: the other way round. No gain: contradicted
    if the whole interval is below 0, supported if it excludes a gain of 5 % or more, in this order. In all other cases the
    interval holds both answers, and nothing can be seen.
    """
    if direction == "no gain":
        return CONTRADICTED if high < 0 else SUPPORTED if low > np.log(1 - MARGIN) else UNSEEN
    low, high = (low, high) if direction == "below" else (-high, -low)
    return SUPPORTED if high < 0 else CONTRADICTED if low > 0 else UNSEEN


def weigh(findings: Sequence[Finding]) -> pd.DataFrame:
    """One row a finding: `finding`, `source`, `verdict`, `effect_percent` with its 95 % interval, `p_value`, `p_holm`, `pairs`, `why`.

    Student's interval and test of the mean log ratio, over pairs of runs of the same round; p adjusted for the number of findings (Holm).
    Pairs of one round share what disturbed the machine in it, and pairs of several programs their programs: the interval
    speaks of these programs, not of all.
    """
    from statsmodels.stats.multitest import multipletests

    table = pd.DataFrame([_weighed(finding) for finding in findings])
    tested = table["p_value"].notna()
    table["p_holm"] = np.nan
    if tested.any():
        table.loc[tested, "p_holm"] = multipletests(table.loc[tested, "p_value"], method="holm")[1]
    return table[["finding", "source", "verdict", "effect_percent", "low_percent", "high_percent", "p_value", "p_holm", "pairs", "why"]]


def _weighed(finding: Finding) -> dict:
    row = {"finding": finding.claim, "source": finding.source, "verdict": UNSEEN, "effect_percent": np.nan, "low_percent": np.nan, "high_percent": np.nan,
           "p_value": np.nan, "pairs": len(finding.effects), "why": finding.unseen}
    if finding.unseen:
        return row
    if len(finding.effects) < FEWEST or not np.ptp(finding.effects) > 0:
        return row | {"why": f"{len(finding.effects)} pairs of runs; at least {FEWEST} that differ are needed"}
    from statsmodels.stats.weightstats import DescrStatsW

    sample = DescrStatsW(finding.effects)
    low, high = sample.tconfint_mean()
    said = verdict(finding.direction, low, high)
    percent = {name: 100 * np.expm1(value) for name, value in (("effect_percent", sample.mean), ("low_percent", low), ("high_percent", high))}
    return row | percent | {"verdict": said, "p_value": sample.ttest_mean()[1], "why": "the interval holds both answers" if said == UNSEEN else ""}


def persson_findings(runs: pd.DataFrame, absent: dict[str, str]) -> list[Finding]:
    """The findings of Persson et al. 2025, sections 5 and 6.

    Parameters
    ----------
    runs : of `injected_campaign`, labelled. absent : model -> why it was not measured.
    """
    calm, noisy = _logs(runs, UNDISTURBED), _logs(runs, None)
    cost = _minus(noisy, calm)  # log of the slowdown, of each program, model, configuration, trace and round
    heavy = _heavy(cost)
    no_sycl = absent.get("sycl", "" if "sycl" in set(runs["model"]) else "no SYCL runs")
    return [
        Finding("housekeeping helps under heavy noise (slowdown RmHK / Rm)", PERSSON + "6 (1)", "below", _against(cost, "config", "RmHK", "Rm"),
                _lacking(cost, "RmHK", "Rm") or heavy),
        Finding("pinning alone does not help (slowdown TP / Rm)", PERSSON + "5.2", "no gain", _against(cost, "config", "TP", "Rm"),
                _lacking(cost, "TP", "Rm") or heavy),
        Finding("SYCL is slower (undisturbed, SYCL / OpenMP)", PERSSON + "5.1", "above", _against(calm, "model", "sycl", "omp"), no_sycl),
        Finding("SYCL is more resilient (slowdown SYCL / OpenMP)", PERSSON + "5.2", "below", _against(cost, "model", "sycl", "omp"), no_sycl or heavy),
        Finding("a memory-bound program gains by housekeeping even in average noise (Babelstream, RmHK / Rm)", PERSSON + "6 (2)", "below",
                _against(_of(calm, "stream"), "config", "RmHK", "Rm"), _lacking(calm, "RmHK", "Rm")),
        Finding("a compute-bound program is slower with housekeeping in average noise (N-body, RmHK / Rm)", PERSSON + "6 (3)", "above",
                _against(_of(calm, "nbody"), "config", "RmHK", "Rm"), _lacking(calm, "RmHK", "Rm")),
    ]


def _logs(runs: pd.DataFrame, trace: str | None) -> pd.Series:
    """Log run times by program, model, config, trace and round: undisturbed ones, or all that were disturbed under the improved merge."""
    own = runs[runs["trace"] == trace] if trace else runs[runs["mode"] == MODE]
    return np.log(own.set_index(["program", "model", "config", "trace", "round"])["seconds"])


def _minus(noisy: pd.Series, calm: pd.Series) -> pd.Series:
    paired = noisy.index.droplevel("trace")
    return (noisy - calm.droplevel("trace").reindex(paired).to_numpy()).dropna()


def _of(logs: pd.Series, program: str) -> pd.Series:
    return logs[logs.index.get_level_values("program") == program]


def _against(logs: pd.Series, level: str, first: str, second: str) -> np.ndarray:
    """First less second of all pairs that agree in everything else."""
    table = logs.unstack(level)
    return (table[first] - table[second]).dropna().to_numpy() if {first, second} <= set(table.columns) else np.empty(0)


def _lacking(logs: pd.Series, *configs: str) -> str:
    missing = [config for config in configs if config not in set(logs.index.get_level_values("config"))]
    return f"{' and '.join(missing)} was not measured" if missing else ""


def _heavy(cost: pd.Series) -> str:
    """Why the noise replayed here is not heavy, if it is not: the roaming programs must be slowed down, by their interval."""
    own = cost[cost.index.get_level_values("config") == "Rm"].to_numpy()
    checked = _weighed(Finding("", "", "above", own))
    if checked["verdict"] == SUPPORTED:
        return ""
    slowed = f"it changed the time of Rm by {100 * np.expm1(own.mean()):+.1f} % on average, and " if len(own) else ""
    return f"the noise replayed here is not heavy: {slowed}{checked['why'] or 'the interval lies below 0'}"


def finding_sentences(table: pd.DataFrame, models: Sequence[str]) -> list[str]:
    """What was weighed, in sentences."""
    counts = table["verdict"].value_counts()
    told = ", ".join(f"**{counts[name]} {name}**" for name in (SUPPORTED, CONTRADICTED, UNSEEN) if name in counts)
    seen = [f"{row.verdict.capitalize()}: {row.finding}, {row.effect_percent:+.1f} % ({row.low_percent:+.1f} to {row.high_percent:+.1f})."
            for row in table.itertuples() if row.verdict != UNSEEN]
    named = " and ".join({"omp": "OpenMP", "sycl": "SYCL"}[model] for model in models if model in PRINTED_MODELS)
    return [f"Of {len(table)} findings weighed with {named} programs: {told}.", *seen]
