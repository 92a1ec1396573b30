"""The papers' findings weighed against our runs: supported here, contradicted here, or can't be
seen on this machine.

Owns the rule, which looks at nothing but an interval, and the comparison that each finding stands
for.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..statistics import holm
from .design import PRINTED_MODELS
from .persson import MODE, UNDISTURBED

SUPPORTED = "supported here"
CONTRADICTED = "contradicted here"
UNSEEN = "can't be seen on this machine"
# a change below this share counts as none, where a finding says that something does not help
MARGIN = 0.05
FEWEST = 6  # pairs of runs; of fewer the interval says next to nothing
PERSSON = "Persson et al. 2025, sec. "
CUI = "Cui et al. 2023, sec. "


@dataclass(frozen=True)
class Finding:
    """What a paper found, as a comparison that can be made here.

    `claim` in a few words; `source`; `direction`: "below" (the first is less than the second),
    "above", or "no gain" (not less by 5 % or more); `effects`: logarithms of the ratio first /
    second, a pair of runs each; `unseen`: why it can't be compared here at all, empty if it can;
    `steal`: by how much more the hypervisor took of the first than of the second, for each effect
    (s), where that is known.
    """

    claim: str
    source: str
    direction: str
    effects: np.ndarray
    unseen: str = ""
    steal: np.ndarray | None = None


def interval_verdict(direction: str, low: float, high: float) -> str:
    """What an interval of log ratios says of a finding.

    Below: supported if the whole interval is below 0, contradicted if it is above. Above: the other
    way round. No gain: contradicted if the whole interval is below 0, supported if it excludes a
    gain of 5 % or more, in this order. In all other cases the interval holds both answers, and
    nothing can be seen.
    """
    if direction == "no gain":
        return CONTRADICTED if high < 0 else SUPPORTED if low > np.log(1 - MARGIN) else UNSEEN
    low, high = (low, high) if direction == "below" else (-high, -low)
    return SUPPORTED if high < 0 else CONTRADICTED if low > 0 else UNSEEN


def findings_table(findings: Sequence[Finding]) -> pd.DataFrame:
    """One row a finding: `finding`, `source`, `verdict`, `effect_percent` with its 95 % interval,
    `adjusted_percent`, `p_value`, `p_holm`, `pairs`, `why`.

    `adjusted_percent` is the effect where the hypervisor took as much of both (a straight line
    through the effects by the difference in steal).

    Student's interval and test of the mean log ratio, over pairs of runs of the same round; p
    adjusted for the number of findings (Holm). Pairs of one round share what disturbed the machine
    in it, and pairs of several programs their programs: the interval speaks of these programs, not
    of all.
    """
    table = pd.DataFrame([_weighed(finding) for finding in findings])
    tested = table["p_value"].notna()
    table["p_holm"] = np.nan
    if tested.any():
        table.loc[tested, "p_holm"] = holm(table.loc[tested, "p_value"])
    return table[
        [
            "finding",
            "source",
            "verdict",
            "effect_percent",
            "low_percent",
            "high_percent",
            "adjusted_percent",
            "p_value",
            "p_holm",
            "pairs",
            "why",
        ]
    ]


def _weighed(finding: Finding) -> dict:
    row = {
        "finding": finding.claim,
        "source": finding.source,
        "verdict": UNSEEN,
        "effect_percent": np.nan,
        "low_percent": np.nan,
        "high_percent": np.nan,
        "adjusted_percent": np.nan,
        "p_value": np.nan,
        "pairs": len(finding.effects),
        "why": finding.unseen,
    }
    if finding.unseen:
        return row
    if len(finding.effects) < FEWEST or not np.ptp(finding.effects) > 0:
        return row | {
            "why": f"{len(finding.effects)} pairs of runs; at least {FEWEST} that differ are needed"
        }
    from statsmodels.stats.weightstats import DescrStatsW

    sample = DescrStatsW(finding.effects)
    low, high = sample.tconfint_mean()
    said = interval_verdict(finding.direction, low, high)
    adjusted = np.nan if finding.steal is None else at_equal_steal(finding.effects, finding.steal)
    percent = {
        name: 100 * np.expm1(value)
        for name, value in (
            ("effect_percent", sample.mean),
            ("low_percent", low),
            ("high_percent", high),
            ("adjusted_percent", adjusted),
        )
    }
    return (
        row
        | percent
        | {
            "verdict": said,
            "p_value": sample.ttest_mean()[1],
            "why": "the interval holds both answers" if said == UNSEEN else "",
        }
    )


def at_equal_steal(effects: np.ndarray, steal: np.ndarray) -> float:
    """The intercept of a straight line through the effects by the difference in steal; their mean
    where that does not vary.
    """
    if not np.ptp(steal) > 0:
        return float(effects.mean())
    return float(np.polyfit(steal, effects, 1)[1])


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
    checked = _weighed(Finding("", "", "above", own))
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


def finding_sentences(table: pd.DataFrame, models: Sequence[str]) -> list[str]:
    """What was weighed, in sentences."""
    counts = table["verdict"].value_counts()
    told = ", ".join(
        f"**{counts[name]} {name}**" for name in (SUPPORTED, CONTRADICTED, UNSEEN) if name in counts
    )
    seen = [
        f"{row.verdict.capitalize()}: {row.finding}, {row.effect_percent:+.1f} %"
        f" ({row.low_percent:+.1f} to {row.high_percent:+.1f})."
        for row in table.itertuples()
        if row.verdict != UNSEEN
    ]
    named = " and ".join(
        {"omp": "OpenMP", "sycl": "SYCL"}[model] for model in models if model in PRINTED_MODELS
    )
    return [f"Of {len(table)} findings weighed with {named} programs: {told}.", *seen]
