"""What the autopilot found: what varied, why, what was tried, what helped and by how much; as
objects, Markdown and CSV.

Owns the report and its words; the loop that fills it is in `loop`.
"""

import html
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from ..attribution import Explanation
from ..attribution.explanation import RIVAL
from ..files import write_atomically
from ..outcomes import outcome_of
from ..statistics import Comparison, holm
from .knowledge import Mitigation, explain_factor, factor_of, mitigations, references

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
    "verdict",
]
LEVEL = 0.05
HELPS = "helps"
HARMS = "makes it worse"
NOTHING = "no difference shown"
NOT_AGAIN = "not when measured again"


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
        DataFrame, index mitigation. Columns: name; factor; runs (of each side); mean_ratio,
        sd_ratio, cv_ratio (treated over untreated) with 95 % intervals (…_low, …_high); p_value
        (smallest of three tests, corrected for them by Holm); p_corrected (for all mitigations
        tried, by Holm again); verdict. The verdict "not when measured again" means that the second
        measurement did not show the effect of the first.
    not_tried
        DataFrame, index mitigation; columns name, reason, fix.
    comparisons
        Each mitigation's `Comparison`.
    trials
        Runs table of all trials.
    confirmed
        The one that looked best measured again in runs that had no part in choosing it; None:
        nothing seemed to help, or no time was left.
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
    comparisons: dict[str, Comparison] = field(repr=False)
    trials: pd.DataFrame = field(repr=False)
    confirmed: Comparison | None = None
    seconds: float = 0.0
    layers: str = ""

    @property
    def helped(self) -> list[str]:
        """Mitigations that help, the best first."""
        helping = self.tried[self.tried["verdict"] == HELPS]
        return list(
            helping.assign(best=helping[["mean_ratio", "sd_ratio"]].min(axis=1))
            .sort_values("best")
            .index
        )

    @property
    def summary(self) -> str:
        """What varied, why and what helped, in a few sentences."""
        return " ".join([_variation(self.baseline), self.explanation.summary, _helped(self)])

    @property
    def answers(self) -> pd.DataFrame:
        """The report as a table: question, answer, runs (that the answer rests on)."""
        first = len(self.baseline)
        again = f", and {2 * self.confirmed.rounds} measured again" if self.confirmed else ""
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
            f" {', '.join(self.helped) or 'none'} helped)"
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
            *_why(self),
            *_tried(self),
            *_not_tried(self),
            *_advice(self),
            *_fine_print(self),
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


def _variation(runs: pd.DataFrame) -> str:
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
    if report.tried.empty:
        return "No mitigation was tried."
    if not report.helped:
        summary = f"None of the {len(report.tried)} mitigations tried is shown to help."
        return summary + _failed_again(report)
    best = report.tried.loc[report.helped[0]]
    summary = (
        f"{len(report.helped)} of {len(report.tried)} mitigations tried help; the best is"
        f" “{best['name']}” ({report.helped[0]}): {_ratio(best, 'mean')}, {_ratio(best, 'sd')} (p ="
        f" {best['p_corrected']:.2g}, corrected for {len(report.tried)} tried)."
    )
    if (report.tried["verdict"] == NOT_AGAIN).any():
        return summary + (
            " It was not measured again: the time went to one that looked better and failed."
        )
    if report.confirmed:
        return f"{summary} Measured again: {report.confirmed.verdict}"
    return f"{summary} No time was left to measure it again."


def _failed_again(report: Report) -> str:
    failed = report.tried[report.tried["verdict"] == NOT_AGAIN]
    if failed.empty or report.confirmed is None:
        return ""
    return (
        f" “{failed['name'].iloc[0]}” seemed to, but not when it was measured again:"
        f" {report.confirmed.verdict}"
    )


def _ratio(row: pd.Series, name: str) -> str:
    return (
        f"{name} × {row[f'{name}_ratio']:.3f} ({row[f'{name}_low']:.3f} to"
        f" {row[f'{name}_high']:.3f})"
    )


def _why(report: Report) -> list[str]:
    if report.factors.empty:
        return [
            "## Why",
            (
                "No factor was found. That is an answer: no counter is associated with the slow"
                " runs."
            ),
        ]
    parts = ["## Why"]
    for name, row in report.factors.iterrows():
        factor = explain_factor(name)
        parts.append(
            f"**{factor.name}** (seen in {', '.join(row['columns'])}). {factor.what} {factor.how}"
            f" {factor.signs}"
        )
    return parts


def _tried(report: Report) -> list[str]:
    if report.tried.empty:
        return []
    rows = [
        f"| {row['name']} | {row['factor'] or '–'} | {row['runs']} | {_interval(row, 'mean')} |"
        f" {_interval(row, 'sd')} | {_interval(row, 'cv')} | {row['p_corrected']:.2g} |"
        f" {row['verdict']} |"
        for _, row in report.tried.iterrows()
    ]
    head = (
        "| mitigation | against | runs | mean | SD | CV | p | verdict |\n| --- | --- | --- | --- |"
        " --- | --- | --- | --- |\n"
    )
    method = (
        "Treated over untreated runs, measured in turn in random order, with 95 % intervals; p is"
        " corrected for the number tried. Each mitigation was proved to be in effect in each run"
        " counted, and undone after it."
    )
    return ["## What was tried", method, head + "\n".join(rows)]


def _interval(row: pd.Series, name: str) -> str:
    return f"× {row[f'{name}_ratio']:.3f} ({row[f'{name}_low']:.3f}–{row[f'{name}_high']:.3f})"


def _not_tried(report: Report) -> list[str]:
    if report.not_tried.empty:
        return []
    rows = [
        f"- {row['name']}: {row['reason']}" + (f" (to fix: `{row['fix']}`)" if row["fix"] else "")
        for _, row in report.not_tried.iterrows()
    ]
    return ["## What was not tried, and why", "\n".join(rows)]


def _advice(report: Report) -> list[str]:
    """What only a person can do about the factors found."""
    manual = dict.fromkeys(
        name
        for factor in report.factors.index
        for name in explain_factor(factor).mitigations
        if not mitigations()[name].automated
    )
    rows = [
        f"- {mitigations()[name].name}: {mitigations()[name].what} {_commands(mitigations()[name])}"
        for name in manual
    ]
    return ["## What you can do yourself", "\n".join(rows)] if rows else []


def _commands(mitigation: Mitigation) -> str:
    return "; ".join(f"`{command}`" for command in mitigation.by_hand)


def _fine_print(report: Report) -> list[str]:
    cited = dict.fromkeys(
        name for factor in report.factors.index for name in explain_factor(factor).references
    )
    lines = [
        f"First measurement: {len(report.baseline)} runs; {report.stopped}. All measurements took"
        f" {report.seconds:.0f} s."
    ]
    lines += [
        "What is associated with slow runs need not cause them; a mitigation that helps is better"
        " evidence. The trial that chose the best of several overestimates its effect, hence the"
        " second measurement."
    ]
    lines += [report.layers] if report.layers else []
    if cited:
        lines.append("Sources: " + "; ".join(str(references()[name]) for name in cited) + ".")
    return ["## Fine print", *lines]


def _page(report: Report) -> str:
    body = "".join(
        (
            f"<p>{html.escape(part)}</p>"
            if not part.startswith("#")
            else f"<h2>{html.escape(part.lstrip('# '))}</h2>"
        )
        for part in [report.summary, *_why(report), *_advice(report), *_fine_print(report)]
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


def found_factors(explanation: Explanation) -> pd.DataFrame:
    """The factors behind the columns that an explanation names, in its order.

    Only groups of counters count that separate the slow runs on their own or rival for the first
    split; if none does, the first group. Columns without a factor are excluded.

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
        if factor := factor_of(column):
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
    return [column for members in groups["members"] for column in members]


def as_table(rows: list[dict], columns: list[str]) -> pd.DataFrame:
    """Rows with a key `mitigation` as a table."""
    return pd.DataFrame(rows, columns=["mitigation", *columns]).set_index("mitigation")


def tried_table(compared: dict[str, Comparison], wanted: Mapping[str, str]) -> pd.DataFrame:
    """The comparisons with their p-values corrected for how many there are (Holm).

    Parameters
    ----------
    compared
        Mitigation id -> treated against untreated runs.
    wanted
        Mitigation id -> factor that it is against.
    """
    smallest = [float(comparison.tests["p_holm"].min()) for comparison in compared.values()]
    corrected = holm(smallest)
    rows = []
    for name, p_value, p_corrected in zip(compared, smallest, corrected, strict=True):
        comparison = compared[name]
        ratios = {
            f"{key}_{column}": comparison.table.loc[key, column]
            for key in ("mean", "sd", "cv")
            for column in ("ratio", "low", "high")
        }
        rows.append(
            {
                "mitigation": name,
                "name": mitigations()[name].name,
                "factor": wanted.get(name, ""),
                "runs": comparison.rounds,
                **ratios,
                "p_value": p_value,
                "p_corrected": float(p_corrected),
                "verdict": verdict_of(comparison, float(p_corrected), LEVEL),
            }
        )
    return as_table(rows, TRIED_COLUMNS)


def confirmed_table(tried: pd.DataFrame, name: str, again: Comparison) -> pd.DataFrame:
    """The table of what was tried, corrected by a second measurement.

    Parameters
    ----------
    tried
        Of `tried_table`.
    name
        The mitigation measured again; if it does not help then, its verdict is `NOT_AGAIN`.
    again
        The comparison of the second measurement.
    """
    if verdict_of(again, float(again.tests["p_holm"].min())) == HELPS:
        return tried
    return tried.assign(verdict=tried["verdict"].where(tried.index != name, NOT_AGAIN))


def verdict_of(comparison: Comparison, p_corrected: float, level: float = LEVEL) -> str:
    """Whether a mitigation helps.

    It helps if the difference is significant after correction, and the mean or the standard
    deviation is shown to be smaller with the other not shown to be larger.

    Parameters
    ----------
    comparison
        Treated against untreated runs.
    p_corrected
        For the number of mitigations tried.
    level
        The largest p-value that counts.

    Returns
    -------
    `HELPS`, `HARMS` or `NOTHING`.
    """
    if p_corrected > level:
        return NOTHING
    rows = [comparison.table.loc[name] for name in ("mean", "sd")]
    smaller = any(row.high < 1 for row in rows)
    larger = any(row.low > 1 for row in rows)
    if smaller == larger:
        return NOTHING
    return HELPS if smaller else HARMS
