"""What the autopilot found: what varied, why, what was tried, what helped and by how much; as
objects and tables.

Owns the report, its tables and its words; the loop that fills it is in `loop`. A headline names
what is confirmed and nothing else.
"""

import fnmatch
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

import pandas as pd

from ..attribution import Explanation
from ..measurement import describe_columns
from ..outcomes import outcome_of
from .knowledge import explain_factor, factor_of, factors, mitigations
from .trials import HELPS, NOT_AGAIN, SEEMS, TOO_FEW, Trial, open_verdict

_RATIOS = [
    (key, column) for key in ("mean", "sd", "cv") for column in ("ratio", "low", "high")
]  # of the comparison's table
_SETTLED = ["p_value", "p_corrected", "needed", "verdict"]
TRIED_COLUMNS = ["name", "factor", "runs", *map("_".join, _RATIOS), *_SETTLED]
LEVEL = 0.05
PATHS = "program-paths"  # the factor of what a program counts itself


@dataclass(frozen=True, eq=False)
class Report:
    """What the autopilot measured and found.

    Attributes
    ----------
    command, baseline
        What was run; runs table of the first measurement, without mitigations.
    explanation
        What separates its slow runs.
    stopped
        Why the first measurement ended where it did.
    factors
        DataFrame, index factor; columns name, columns (of the runs table, that show it), rank.
        Empty if nothing was found.
    tried
        DataFrame, index mitigation. Columns: name; factor; runs (rounds that its verdict rests on);
        mean_ratio, sd_ratio, cv_ratio (treated over untreated) with 95 % intervals (…_low, …_high);
        p_value (of the test that is nearest to a verdict); p_corrected (for all that was tried);
        needed (rounds that would settle an open verdict); verdict, a word of `trials`. What helps
        was shown twice, the second time in runs that had no part in choosing it.
    not_tried
        DataFrame, index mitigation; columns name, reason, fix.
    judged
        Each mitigation's `Trial`.
    trials
        Runs table of all trials.
    again
        The trials of those that were measured again.
    seconds
        Time spent measuring.
    layers
        Whether the counters change the run time, in words; empty if there were none.
    """

    command: str
    baseline: pd.DataFrame = field(repr=False)
    explanation: Explanation
    stopped: str
    factors: pd.DataFrame
    tried: pd.DataFrame
    not_tried: pd.DataFrame
    judged: dict[str, Trial] = field(repr=False)
    trials: pd.DataFrame = field(repr=False)
    again: dict[str, Trial] = field(default_factory=dict, repr=False)
    seconds: float = 0.0
    layers: str = ""

    @property
    def helped(self) -> list[str]:
        """Mitigations that are confirmed to help, the best first."""
        return best_first(self.tried, HELPS)

    @property
    def summary(self) -> str:
        """What varied, why and what helped, in a few sentences."""
        return " ".join([_variation(self.baseline), self.explanation.summary, _helped(self)])

    @property
    def answers(self) -> pd.DataFrame:
        """The report as a table: question, answer, runs (that the answer rests on)."""
        first = len(self.baseline)
        more = sum(2 * trial.faster.units for trial in self.again.values())
        again = f", and {more} measured again" if more else ""
        rows = [
            ("what varied?", _variation(self.baseline), str(first)),
            ("why not more runs?", self.stopped, str(first)),
            ("do the counters change the run time?", self.layers or "There were none.", ""),
            ("why are some runs slow?", self.explanation.summary, str(first)),
            ("what helps?", _helped(self), f"{len(self.trials)}{again}"),
        ]
        return pd.DataFrame(rows, columns=["question", "answer", "runs"])

    def __repr__(self) -> str:
        found = ", ".join(self.factors.index[:2]) or "no factor found"
        return (
            f"Report({self.command}: {found}; {len(self.tried)} mitigations tried;"
            f" {', '.join(self.helped) or 'none'} confirmed)"
        )


def best_first(tried: pd.DataFrame, verdict: str) -> list[str]:
    """The mitigations with a verdict, the best first; `tried` is of `tried_table`."""
    gains = tried.loc[tried["verdict"] == verdict, ["mean_ratio", "sd_ratio"]].min(axis=1)
    return list(gains.sort_values().index)


def _variation(runs: pd.DataFrame) -> str:
    """How much the runs differ."""
    judged = outcome_of(runs)
    values = runs[judged.name]
    if judged.name != "seconds":
        return (
            f"{len(values)} runs had {values.median():.4g} {judged.unit} of {judged.name} in the"
            f" median, {values.min():.4g} to {values.max():.4g} ({judged.direction} is better;"
            f" mitigations are judged by {'its reciprocal' if judged.higher_is_better else 'it'}),"
            f" with a coefficient of variation of {values.std() / values.mean():.1%}."
        )
    return (
        f"{len(values)} runs took {values.median():.4g} s in the median, {values.min():.4g} to"
        f" {values.max():.4g} s, with a coefficient of variation of"
        f" {values.std() / values.mean():.1%}."
    )


def _helped(report: Report) -> str:
    """What is confirmed to help; else what is known instead, and the rounds that are missing."""
    if report.tried.empty:
        return _nothing_tried(report)
    if report.helped:
        return _confirmed(report)
    return open_verdict(report.tried)


def _nothing_tried(report: Report) -> str:
    """Whether there is a remedy at all for what was found."""
    if report.factors.empty or len(report.not_tried):
        return "No mitigation was tried."
    found = explain_factor(report.factors.index[0])
    told = f"No mitigation was tried: against “{found.name}” none acts by itself here"
    by_hand = [mitigations()[name].name for name in found.mitigations]
    return f"{told}; by hand: {', '.join(by_hand)}." if by_hand else f"{told}."


def _confirmed(report: Report) -> str:
    name = report.helped[0]
    again, count = report.again[name], len(report.helped)
    others = f" {count} of {len(report.tried)} tried are confirmed." if count > 1 else ""
    return (
        f"“{report.tried.loc[name, 'name']}” ({name}) helps, shown twice:"
        f" {report.judged[name].sentence}; measured again, {again.sentence}.{others}"
    )


def found_factors(explanation: Explanation) -> pd.DataFrame:
    """The factors behind the columns that an explanation names, in its order.

    Only groups of counters count that separate the slow runs on their own; if none does, the first
    group. What the program counts itself comes first in its group,
    since the program decides what the system has to do; it leads to other paths through the
    program. Other columns without a factor are excluded.

    Parameters
    ----------
    explanation
        Result of `explain`.

    Returns
    -------
    DataFrame, index factor; columns name, columns (of the runs table), rank.
    """
    columns: dict[str, list[str]] = {}
    for column in _decisive_columns(explanation):
        factor = factors()[PATHS] if is_of_program(column) else factor_of(column)
        if factor:
            columns.setdefault(factor.id, []).append(column)
    rows = [
        {"factor": name, "name": explain_factor(name).name, "columns": tuple(seen), "rank": rank}
        for rank, (name, seen) in enumerate(columns.items(), 1)
    ]
    return pd.DataFrame(rows, columns=["factor", "name", "columns", "rank"]).set_index("factor")


def _decisive_columns(explanation: Explanation) -> list[str]:
    if not explanation.found:
        return []
    table = explanation.factors
    chosen = table[table["p_value"] <= LEVEL]
    groups = chosen if len(chosen) else table.head(1)
    return [
        column
        for members in groups["members"]
        for column in sorted(members, key=lambda name: not is_of_program(name))
    ]


def is_of_program(column: str) -> bool:
    """Whether the program itself reports a column: neither we nor a metric layer made it.

    Parameters
    ----------
    column
        Name of a column of the runs table, or of its rate.

    Examples
    --------
    >>> is_of_program("probes_per_s"), is_of_program("minor_faults"), is_of_program("softirq_RCU")
    (True, False, False)
    """
    name = column.removesuffix("_per_s")
    known = any(fnmatch.fnmatchcase(name, pattern) for pattern in _known_columns())
    return not known and factor_of(name) is None


@cache
def _known_columns() -> tuple[str, ...]:
    return tuple(describe_columns().index)


def as_table(rows: list[dict], columns: list[str]) -> pd.DataFrame:
    """Rows with a key `mitigation` as a table."""
    return pd.DataFrame(rows, columns=["mitigation", *columns]).set_index("mitigation")


def tried_table(
    judged: Mapping[str, Trial], wanted: Mapping[str, str], again: Mapping[str, Trial] | None = None
) -> pd.DataFrame:
    """What the trials show.

    Parameters
    ----------
    judged
        Mitigation id -> trial, all of them judged together.
    wanted
        Mitigation id -> factor that it is against.
    again
        Trials of those that were measured again, in runs that had no part in choosing them.

    Returns
    -------
    DataFrame; see `Report.tried`.
    """
    rows = [
        {
            "mitigation": name,
            "name": mitigations()[name].name if name in mitigations() else name,
            "factor": wanted.get(name, ""),
            **_trial_row(trial),
            **_settled(trial, (again or {}).get(name)),
        }
        for name, trial in judged.items()
    ]
    return as_table(rows, TRIED_COLUMNS)


def _trial_row(trial: Trial) -> dict:
    """Rounds, ratios with their intervals, p-values of a trial."""
    table = trial.comparison.table
    return {
        "runs": trial.faster.units,
        **{f"{key}_{column}": table.loc[key, column] for key, column in _RATIOS},
        "p_value": trial.leading.p_value,
        "p_corrected": trial.leading.p_adjusted,
        "needed": trial.faster.needed,
        "verdict": trial.verdict,
    }


def _settled(trial: Trial, again: Trial | None) -> dict:
    """Verdict and missing rounds of what was measured again; nothing where it was not."""
    if again is None or trial.verdict != SEEMS:
        return {}
    if again.verdict == SEEMS:
        return {"verdict": HELPS}
    if again.verdict == TOO_FEW:
        return {"needed": again.leading.needed}
    return {"verdict": NOT_AGAIN}
