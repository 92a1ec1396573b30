"""The autopilot's report in words: what varied, why, what was tried, what helps, what to do.

Owns the sentences. A headline names what is confirmed and nothing else.
"""

from typing import TYPE_CHECKING

import pandas as pd

from ..outcomes import outcome_of
from .knowledge import Mitigation, explain_factor, mitigations, references
from .program_counters import PATHS, is_of_program
from .trials import SEEMS, TOO_FEW, open_verdict

if TYPE_CHECKING:
    from .report import Report


def variation(runs: pd.DataFrame) -> str:
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


def helped(report: "Report") -> str:
    """What is confirmed to help; else what is known instead, and the rounds that are missing."""
    if report.tried.empty:
        return _nothing_tried(report)
    if report.helped:
        return _confirmed(report)
    return open_verdict(report.tried)


def _nothing_tried(report: "Report") -> str:
    """Whether there is a remedy at all for what was found."""
    if report.factors.empty or len(report.not_tried):
        return "No mitigation was tried."
    found = explain_factor(report.factors.index[0]).name
    return (
        f"No mitigation was tried: against “{found}” none acts by itself here; what to do by hand"
        " is under “What you can do yourself”."
    )


def _confirmed(report: "Report") -> str:
    name = report.helped[0]
    again, count = report.again[name], len(report.helped)
    others = f" {count} of {len(report.tried)} tried are confirmed." if count > 1 else ""
    return (
        f"“{report.tried.loc[name, 'name']}” ({name}) helps, shown twice:"
        f" {report.judged[name].sentence}; measured again, {again.sentence}.{others}"
    )


def why(report: "Report") -> list[str]:
    """The factors that are associated with the slow runs."""
    if report.factors.empty:
        nothing = "No factor was found. That is an answer: no counter is associated with the slow"
        return ["## Why", f"{nothing} runs."]
    head = "Associated with the slow runs; what is associated need not be the cause."
    return ["## Why", head, *(_factor(report, name) for name in report.factors.index)]


def _factor(report: "Report", name: str) -> str:
    factor = explain_factor(name)
    seen = report.factors.loc[name, "columns"]
    reported = [column for column in seen if is_of_program(column)]
    told = f" {program_sentence(reported, report.parameters)}" if name == PATHS and reported else ""
    return (
        f"**{factor.name}** (seen in {', '.join(seen)}).{told} {factor.what} {factor.how}"
        f" {factor.signs}"
    )


def program_sentence(columns: list[str], parameters: tuple[str, ...]) -> str:
    """What to do about counters that the program reports itself.

    Examples
    --------
    >>> program_sentence(["probes"], ("--seed random",))
    'The program itself reports probes: look at what decides its path, first at `--seed random`.'
    """
    first = ", ".join(f"`{one}`" for one in parameters) or "its input, seed and order of work"
    return (
        f"The program itself reports {', '.join(columns)}: look at what decides its path, first at"
        f" {first}."
    )


def tried(report: "Report") -> list[str]:
    """The table of what was tried."""
    if report.tried.empty:
        return []
    rows = [_tried_row(row) for _, row in report.tried.iterrows()]
    head = (
        "| mitigation | against | rounds | mean | SD | CV | p | verdict |\n| --- | --- | --- | ---"
        " | --- | --- | --- | --- |\n"
    )
    method = (
        "Treated over untreated runs, measured in turn in random order, with 95 % intervals; p is"
        " corrected for all that was tried. Each mitigation was proved to be in effect in each run"
        " counted, and undone after it. What helps was shown again in runs that had no part in"
        " choosing it."
    )
    return ["## What was tried", method, head + "\n".join(rows)]


def _tried_row(row: pd.Series) -> str:
    missing = f": {row['needed']:,.0f} would do" if pd.notna(row["needed"]) else ""
    return (
        f"| {row['name']} | {row['factor'] or '–'} | {row['runs']} | {_interval(row, 'mean')} |"
        f" {_interval(row, 'sd')} | {_interval(row, 'cv')} | {row['p_corrected']:.2g} |"
        f" {row['verdict']}{missing if row['verdict'] in (TOO_FEW, SEEMS) else ''} |"
    )


def _interval(row: pd.Series, name: str) -> str:
    return f"× {row[f'{name}_ratio']:.3f} ({row[f'{name}_low']:.3f}–{row[f'{name}_high']:.3f})"


def not_tried(report: "Report") -> list[str]:
    """What was not tried, and why."""
    if report.not_tried.empty:
        return []
    rows = [
        f"- {row['name']}: {row['reason']}" + (f" (to fix: `{row['fix']}`)" if row["fix"] else "")
        for _, row in report.not_tried.iterrows()
    ]
    return ["## What was not tried, and why", "\n".join(rows)]


def advice(report: "Report") -> list[str]:
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


def fine_print(report: "Report") -> list[str]:
    """How it was measured, and where the knowledge comes from."""
    cited = dict.fromkeys(
        name for factor in report.factors.index for name in explain_factor(factor).references
    )
    lines = [
        f"First measurement: {len(report.baseline)} runs; {report.stopped}. All measurements took"
        f" {report.seconds:.0f} s."
    ]
    lines += [
        "What is associated with slow runs need not cause them: see the proof of the cause in"
        " `noisebook why`. The trial that chose the best of several overestimates its effect, hence"
        " the second measurement."
    ]
    lines += [report.layers] if report.layers else []
    if cited:
        lines.append("Sources: " + "; ".join(str(references()[name]) for name in cited) + ".")
    return ["## Fine print", *lines]
