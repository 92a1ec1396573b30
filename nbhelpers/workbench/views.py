"""What each step of the workbench shows, as HTML: a session and its explanation in, text out."""

import html
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ..errors import InputError, NoisebookError
from ..mitigation.knowledge import Mitigation, mitigations, references
from ..outcomes import outcome_of
from ..statistics import cell_statistics, compare
from .association import relation
from .nodes import Node, nodes_of
from .pictures import DRAWING, figure_densities, figure_relation, picture
from .session import AGAIN, Session

if TYPE_CHECKING:
    from ..attribution import Explanation
    from ..mitigation.trials import Trial

MOST_FACTORS = 6
_COLUMNS = ["factor", "direction", "slow_median", "fast_median", "separation", "p_value"]
RISKS = {
    "none": "none: it touches the program only",
    "low": "low: it changes the machine for the length of a run",
    "high": "high: it may make the machine unresponsive",
}
NO_CLAIM = (
    '<p style="border-left:4px solid #D55E00;padding:2px 8px"><b>No claim:</b> {}</p>'  # vermilion
)
CLAIM = '<p style="border-left:4px solid #009E73;padding:2px 8px">{}</p>'  # green


def failed(error: NoisebookError) -> str:
    """An error, as a person reads it."""
    return f'<pre style="white-space:pre-wrap">{html.escape(str(error))}</pre>'


def paragraph(text: str) -> str:
    """A sentence or more."""
    return f"<p>{html.escape(text)}</p>"


def table_html(table: pd.DataFrame, index: bool = True) -> str:
    """A table with four digits a number."""
    return table.to_html(float_format=lambda value: f"{value:.4g}", border=0, index=index)


def runs_html(session: Session) -> str:
    """How many runs there are, how they vary, and what the stopping rule says."""
    runs = session.table
    everything = len(session.measured())
    words = f"{len(runs)} runs"
    if session.limits:
        limits = "; ".join(map(str, session.limits))
        words += f" of {everything} within the limits ({limits})"
    rule = session.rule_says()
    says = f"{words}. Rule “{session.rule}”: {'enough' if rule.stop else 'go on'}, {rule.reason}."
    if len(runs) < 2:
        return paragraph(says)
    statistics = cell_statistics(runs.assign(cell="runs"), outcome=session.judged).T
    values = {"runs": session.values}
    figure = figure_densities(values, outcome_of(runs, session.judged).label)
    shown = picture(figure, f"Distribution of {session.judged}")
    return paragraph(says) + _side_by_side(shown, table_html(statistics))


def _side_by_side(*parts: str) -> str:
    cells = "".join(f'<div style="margin-right:24px">{part}</div>' for part in parts)
    return f'<div style="display:flex;flex-wrap:wrap;align-items:flex-start">{cells}</div>'


def claim_html(explanation: "Explanation") -> str:
    """What the null says: a claim, or that nothing is claimed."""
    text = html.escape(explanation.summary)
    if explanation.found:
        return CLAIM.format(text)
    if not np.isfinite(explanation.p_value):
        why = "the null distribution was not computed." if explanation.searched else ""
        return NO_CLAIM.format(f"{why} {text}")
    return NO_CLAIM.format(text)


def factors_html(explanation: "Explanation", preview: bool = False) -> str:
    """The first factors; of a preview without p-values."""
    if explanation.factors.empty:
        return ""
    columns = [name for name in _COLUMNS if not (preview and name == "p_value")]
    return table_html(explanation.factors[columns].head(MOST_FACTORS))


def attribution_html(session: Session, explanation: "Explanation") -> str:
    """The distribution with its cutoff, beside it the tree; beneath, factors and claim."""
    from ..report import figure_attribution

    with DRAWING:
        shown = picture(figure_attribution(explanation, session.table), "Distribution and tree")
    preview = not np.isfinite(explanation.p_value)
    return claim_html(explanation) + shown + factors_html(explanation, preview)


def node_html(session: Session, explanation: "Explanation", metric: str) -> str:
    """What is known of a metric, with references, and its scatter plot."""
    if not metric:
        return paragraph("Nothing separates the slow runs here, so there is no factor to explain.")
    known = session.factor(metric)
    text = (
        known._repr_html_()
        if known
        else paragraph(f"Nothing is known of {metric}: data/knowledge/factors has no entry of it.")
    )
    return f"<h4>{html.escape(metric)}</h4>" + _side_by_side(
        scatter_html(session, explanation, metric), f'<div style="max-width:44em">{text}</div>'
    )


def scatter_html(session: Session, explanation: "Explanation", metric: str) -> str:
    """A metric against the outcome, with R², its interval and n."""
    try:
        found = relation(session.table, metric, session.judged, session.seed)
    except InputError as error:
        return failed(error)
    unit = outcome_of(session.table, session.judged).unit
    figure = figure_relation(session.table, found, explanation.labels, unit)
    shown = picture(figure, f"{metric} against {session.judged}")
    return f'<div style="max-width:30em">{shown}{paragraph(found.sentence)}</div>'


def mitigation_html(session: Session, mitigation: Mitigation) -> str:
    """What a mitigation does, what it risks, what it takes, and where that comes from."""
    sources = "".join(
        f"<li>{html.escape(str(references()[name]))}</li>" for name in mitigation.references
    )
    by_hand = "".join(f"<li><code>{html.escape(line)}</code></li>" for line in mitigation.by_hand)
    return (
        f"<h4>{html.escape(mitigation.name)}</h4>{paragraph(mitigation.what)}"
        f"<p><b>Risk</b> {RISKS[mitigation.risk]}. <b>Here</b> {_possible(session, mitigation)}</p>"
        f"<p><b>By hand</b></p><ul>{by_hand}</ul><p><b>References</b></p><ul>{sources}</ul>"
    )


def _possible(session: Session, mitigation: Mitigation) -> str:
    try:
        workload = None if session.is_recorded else session.workload
        answer = mitigation.possible(workload)
    except NoisebookError as error:
        return html.escape(error.what)
    if not answer:
        return html.escape(f"not possible: {answer.reason}. {answer.fix}")
    return "possible; it is undone after each run."


def trials_html(session: Session) -> str:
    """All mitigations that were tried, judged together."""
    table = session.tried()
    if table.empty:
        return paragraph("No mitigation was tried yet.")
    columns = ["name", "runs", "mean_ratio", "mean_low", "mean_high", "p_corrected", "verdict"]
    return table_html(table[columns]) + paragraph(
        "Ratios are treated over untreated, with 95 % intervals; all are judged together."
        " “Helps” is said only of what was measured again, in runs that had no part in the choice."
    )


def before_after_html(session: Session, name: str, again: bool = False) -> str:
    """Both distributions over each other, the statistics of both, and the verdicts."""
    start = Session(session.folder, outcome=session.outcome, seed=session.seed)
    return _before_after(start, name, again, session.state)


@lru_cache(maxsize=32)
def _before_after(session: Session, name: str, again: bool, state: tuple) -> str:
    trials = session.trials(AGAIN) if again else session.trials()
    if name not in trials:
        return paragraph("It was not tried in this session.")
    trial = trials[name]
    untreated, treated = trial.pair
    label = outcome_of(untreated, session.judged).label
    title = mitigations()[name].name if name in mitigations() else name
    values = {
        "untreated": untreated[session.judged].to_numpy(float),
        "treated": treated[session.judged].to_numpy(float),
    }
    shown = picture(figure_densities(values, label), f"Before and after: {title}")
    found = compare(untreated, treated, session.judged, session.seed)
    return (
        f"<h4>{html.escape(title)}: {html.escape(_verdict(session, name, trial))}</h4>"
        + paragraph(f"{trial.sentence[0].upper()}{trial.sentence[1:]}. {found.verdict}")
        + _side_by_side(shown, table_html(found.table))
    )


def _verdict(session: Session, name: str, trial: "Trial") -> str:
    """With what was measured again, where it was."""
    tried = session.tried()
    return str(tried.loc[name, "verdict"]) if name in tried.index else trial.verdict


def tree_text(node: Node | None, depth: int = 0) -> str:
    """A tree in lines, for those without pictures."""
    if node is None:
        return ""
    tally = f"{node.fast} fast, {node.slow} slow"
    if node.is_leaf:
        return f"{'    ' * depth}{tally}\n"
    line = f"{'    ' * depth}{node.metric} ≤ {node.threshold:.4g}? ({tally})\n"
    return line + tree_text(node.left, depth + 1) + tree_text(node.right, depth + 1)


def page_html(session: Session, permutations: int = 1000) -> str:
    """All steps beneath each other: what a page without a kernel shows."""
    explanation = session.explanation(permutations)
    metric = session.chosen(explanation)
    options = session.options(metric)
    tried = session.trials()
    names = [one.id for one in options]
    chosen = session.mitigation or next((name for name in names if name in tried), "")
    parts = {
        "1 and 2: the runs": runs_html(session),
        "3: cutoff, tree and factors": attribution_html(session, explanation),
        "4: the factor": node_html(session, explanation, metric),
        "5: what was tried": _tried_html(session, chosen) + trials_html(session),
    }
    tree = tree_text(nodes_of(explanation, session.table))
    parts["3: cutoff, tree and factors"] += f"<pre>{html.escape(tree)}</pre>"
    return "".join(f"<h3>{title}</h3>{part}" for title, part in parts.items())


def _tried_html(session: Session, name: str) -> str:
    if name not in mitigations():
        return ""
    known = mitigation_html(session, mitigations()[name])
    return f"{known}{before_after_html(session, name)}"
