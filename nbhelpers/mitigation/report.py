"""What the autopilot found: what varied, why, what was tried, what helped and by how much; as
objects, Markdown and CSV.

Owns the report and its tables; its words are in `_report_words`, the loop that fills it is in
`loop`.
"""

import html
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from ..attribution import Explanation
from ..attribution.factors import RIVAL
from ..files import write_atomically
from . import _report_words as words
from .knowledge import explain_factor, mitigations
from .program_counters import factor_behind, is_of_program
from .trials import HARMS, HELPS, MIXED, NO_EFFECT, NOT_AGAIN, SEEMS, TOO_FEW, Trial

RATIO_COLUMNS = ["mean_ratio", "mean_low", "mean_high", "sd_ratio", "sd_low", "sd_high"]
TRIED_COLUMNS = [
    "name",
    "factor",
    "runs",
    *RATIO_COLUMNS,
    "cv_ratio",
    "cv_low",
    "cv_high",
    "p_value",
    "p_corrected",
    "needed",
    "verdict",
]
VERDICTS = (HELPS, SEEMS, NOT_AGAIN, MIXED, NO_EFFECT, TOO_FEW, HARMS)
LEVEL = 0.05


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
        needed (rounds that would settle an open verdict); verdict, one of `VERDICTS`. What helps
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
    parameters
        Of the command: what may decide which path the program takes.
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
    parameters: tuple[str, ...] = ()

    @property
    def helped(self) -> list[str]:
        """Mitigations that are confirmed to help, the best first."""
        return _best_first(self.tried, HELPS)

    @property
    def promising(self) -> list[str]:
        """Mitigations that seem to help and are not confirmed, the best first."""
        return _best_first(self.tried, SEEMS)

    @property
    def summary(self) -> str:
        """What varied, why and what helped, in a few sentences."""
        parts = [words.variation(self.baseline), self.explanation.summary, words.helped(self)]
        return " ".join(parts)

    @property
    def answers(self) -> pd.DataFrame:
        """The report as a table: question, answer, runs (that the answer rests on)."""
        first = len(self.baseline)
        more = sum(2 * trial.faster.units for trial in self.again.values())
        again = f", and {more} measured again" if more else ""
        rows = [
            ("what varied?", words.variation(self.baseline), str(first)),
            ("why not more runs?", self.stopped, str(first)),
            ("do the counters change the run time?", self.layers or "There were none.", ""),
            ("why are some runs slow?", self.explanation.summary, str(first)),
            ("what helps?", words.helped(self), f"{len(self.trials)}{again}"),
        ]
        return pd.DataFrame(rows, columns=["question", "answer", "runs"])

    def __repr__(self) -> str:
        found = ", ".join(self.factors.index[:2]) or "no factor found"
        return (
            f"Report({self.command}: {found}; {len(self.tried)} mitigations tried;"
            f" {', '.join(self.helped) or 'none'} confirmed)"
        )

    def _repr_html_(self) -> str:
        tables = "".join(
            f"<h4>{title}</h4>{table.to_html(float_format=lambda value: f'{value:.3g}', border=0)}"
            for title, table in (
                ("Factors", self.factors),
                ("Tried", self.tried),
                ("Not tried", self.not_tried),
            )
            if len(table)
        )
        return f"<p>{html.escape(self.summary)}</p>{tables}"

    def markdown(self) -> str:
        """The report as a page."""
        parts = [
            f"# Why do the runs of `{self.command}` differ?",
            self.summary,
            *words.why(self),
            *words.tried(self),
            *words.not_tried(self),
            *words.advice(self),
            *words.fine_print(self),
        ]
        return "\n\n".join(parts) + "\n"

    def write(self, folder: str | Path) -> Path:
        """Write report.md, report.html, baseline.csv, trials.csv, factors.csv, tried.csv and
        not_tried.csv; returns the page's path.
        """
        folder = Path(folder)
        for name in ("baseline", "trials", "factors", "tried", "not_tried"):
            table = getattr(self, name)
            write_atomically(folder / f"{name}.csv", table.to_csv(index=bool(table.index.name)))
        write_atomically(folder / "report.html", _page(self))
        return write_atomically(folder / "report.md", self.markdown())


def _page(report: Report) -> str:
    body = "".join(
        (
            f"<p>{html.escape(part)}</p>"
            if not part.startswith("#")
            else f"<h2>{html.escape(part.lstrip('# '))}</h2>"
        )
        for part in _parts(report)
    )
    tables = "".join(
        table.to_html(float_format=lambda value: f"{value:.3g}", border=0)
        for table in (report.tried, report.not_tried)
        if len(table)
    )
    title = html.escape(f"Why do the runs of {report.command} differ?")
    return (
        "<!doctype html><html lang=en><meta"
        f" charset=utf-8><title>{title}</title><h1>{title}</h1>{body}{tables}</html>\n"
    )


def _parts(report: Report) -> list[str]:
    return [report.summary, *words.why(report), *words.advice(report), *words.fine_print(report)]


def _best_first(tried: pd.DataFrame, verdict: str) -> list[str]:
    chosen = tried[tried["verdict"] == verdict]
    return list(
        chosen.assign(best=chosen[["mean_ratio", "sd_ratio"]].min(axis=1)).sort_values("best").index
    )


def found_factors(explanation: Explanation) -> pd.DataFrame:
    """The factors behind the columns that an explanation names, in its order.

    Only groups of counters count that separate the slow runs on their own or rival for the first
    split; if none does, the first group. What the program counts itself comes first in its group,
    since the program decides what the system has to do; it leads to other paths through the
    program. Other columns without a factor are excluded.

    Parameters
    ----------
    explanation
        Of `explain`.

    Returns
    -------
    DataFrame, index factor; columns name, columns (of the runs table), rank.
    """
    columns: dict[str, list[str]] = {}
    for column in _decisive_columns(explanation):
        if factor := factor_behind(column):
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
    chosen = table[(table["p_value"] <= LEVEL) | (table["root_share"] >= RIVAL)]
    groups = chosen if len(chosen) else table.head(1)
    return [
        column
        for members in groups["members"]
        for column in sorted(members, key=lambda name: not is_of_program(name))
    ]


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
            **trial_row(trial),
            **_settled(trial, (again or {}).get(name)),
        }
        for name, trial in judged.items()
    ]
    return as_table(rows, TRIED_COLUMNS)


def trial_row(trial: Trial, statistics: tuple[str, ...] = ("mean", "sd", "cv")) -> dict:
    """Rounds, ratios with their intervals, p-values of a trial.

    Parameters
    ----------
    trial
        Of `judge_trials`.
    statistics
        Rows of the comparison's table.
    """
    ratios = {
        f"{key}_{column}": trial.comparison.table.loc[key, column]
        for key in statistics
        for column in ("ratio", "low", "high")
    }
    leading = trial.leading
    return {
        "runs": trial.faster.units,
        **ratios,
        "p_value": leading.p_value,
        "p_corrected": leading.p_adjusted,
        "needed": trial.needed,
        "verdict": trial.verdict,
    }


def _settled(trial: Trial, again: Trial | None) -> dict:
    """Verdict and missing rounds of what was measured again; nothing where it was not."""
    if again is None or trial.verdict != SEEMS:
        return {}
    if again.is_confirmed:
        return {"verdict": HELPS}
    if again.verdict == TOO_FEW:
        return {"needed": again.leading.needed}
    return {"verdict": NOT_AGAIN}
