"""What each step of the workbench shows, as HTML: a session and its explanation in, text out."""

import html
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..attribution.explanation import SIGNIFICANCE
from ..errors import NoisebookError
from ..mitigation.knowledge import Mitigation, factor_of, mitigations, references
from ..outcomes import outcome_of
from ..report.images import DRAWING, embedded
from ..statistics import cell_statistics, compare
from ..statistics.intervals import shortest_interval, values_held
from .pictures import figure_densities, figure_relation, relation_sentence
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
_MARKED = '<p style="border-left:4px solid {colour};padding:2px 8px;line-height:1.4">{{}}</p>'
NO_CLAIM = _MARKED.format(colour="#D55E00").format("<b>No claim:</b> {}")  # vermilion
CLAIM = _MARKED.format(colour="#009E73")  # green


def failed(error: object) -> str:
    """An error, as a person reads it."""
    return f'<pre style="white-space:pre-wrap;line-height:1.4">{html.escape(str(error))}</pre>'


def paragraph(text: str) -> str:
    """A sentence or more."""
    return f'<p style="line-height:1.4">{html.escape(text)}</p>'


def table_html(table: pd.DataFrame, index: bool = True) -> str:
    """A table with four digits a number."""
    return table.to_html(float_format=lambda value: f"{value:.4g}", border=0, index=index)


def runs_html(session: Session) -> str:
    """How many runs there are, how they vary, and what the stopping rule says."""
    runs, says = session.table, f"{_which_runs(session)}.{_rule(session)}"
    if len(runs) < 2:
        return paragraph(says)
    judged = outcome_of(runs, session.judged)
    statistics = cell_statistics(runs.assign(cell=judged.label), outcome=session.judged).T
    statistics.columns.name = None
    figure = figure_densities({"runs": session.values}, judged.label)
    shown = embedded(figure, f"Distribution of {session.judged}")
    most = paragraph(sentence_of_most_runs(session.values, judged.unit))
    shown += f'<div style="max-width:30em">{most}</div>'
    return paragraph(says) + _side_by_side(shown, table_html(statistics))


def _which_runs(session: Session) -> str:
    words = f"{len(session.table)} runs"
    if session.limits:
        limits = "; ".join(map(str, session.limits))
        words += f" of {len(session.measured())} within the limits ({limits})"
    cells = session.table["cell"].nunique() if "cell" in session.table.columns else 1
    return f"{words} of {cells} cells together" if cells > 1 else words


def _rule(session: Session) -> str:
    if session.is_recorded:
        return ""
    rule = session.rule_says()
    return f" Rule “{session.rule}”: {'enough' if rule.stop else 'go on'}, {rule.reason}."


def sentence_of_most_runs(values: Iterable[float], unit: str = "") -> str:
    """Where 95 % of the runs lie: the ends of their highest-density interval, and n.

    Parameters
    ----------
    values
        One number a run.
    unit
        Of the numbers.
    """
    numbers = np.asarray(values, float)
    low, high = shortest_interval(numbers)
    ends = f"{low:.4g} and {high:.4g} {unit}".rstrip()
    return (
        f"95 % of the runs lie between {ends}: the shortest interval that holds"
        f" {values_held(numbers.size)} of them (highest-density interval; n = {numbers.size})."
    )


def _side_by_side(figure: str, other: str, flex: str = "0 1 auto") -> str:
    """A figure that shrinks until the other fits beside it, or else stands above it."""
    cells = (
        f'<div style="flex:1 1 26em;max-width:46em;margin-right:24px">{figure}</div>'
        f'<div style="flex:{flex}">{other}</div>'
    )
    return f'<div style="display:flex;flex-wrap:wrap;align-items:flex-start">{cells}</div>'


def claim_html(explanation: "Explanation") -> str:
    """What the null says: a claim, or that nothing is claimed."""
    text = html.escape(explanation.summary)
    if explanation.found:
        return CLAIM.format(text)
    if explanation.searched and not np.isfinite(explanation.p_value):
        text = f"the null distribution is being computed … {text}"
    return NO_CLAIM.format(text)


def nothing_found(explanation: "Explanation") -> str:
    """Why no tree is shown: the p-value, and the accuracy of a tree.

    Parameters
    ----------
    explanation
        With its null, which found nothing.
    """
    if not np.isfinite(explanation.p_value) or not np.isfinite(explanation.accuracy):
        return f"No tree: {explanation.summary}"
    low, high = explanation.accuracy_interval
    return (
        f"No tree: the null finds nothing that separates the slow runs"
        f" (p = {explanation.p_value:.3f} of the whole search; a find needs at most"
        f" {SIGNIFICANCE:g}). A tree recognises unseen runs with a balanced accuracy of"
        f" {explanation.accuracy:.2f} (95 % interval {low:.2f} to {high:.2f},"
        f" n = {len(explanation.labels)} runs; guessing: 0.50)."
    )


def factors_html(explanation: "Explanation") -> str:
    """The first factors; of a preview without p-values."""
    if explanation.factors.empty:
        return ""
    columns = _COLUMNS if np.isfinite(explanation.p_value) else _COLUMNS[:-1]
    return table_html(explanation.factors[columns].head(MOST_FACTORS))


def tree_html(session: Session, explanation: "Explanation") -> str:
    """The claim, then the distribution with its cutoff, beside it the tree: pale while no null
    claims it, none where the null finds nothing.
    """
    from ..report import figure_attribution

    text = claim_html(explanation)
    if is_refused(explanation):
        text += paragraph(nothing_found(explanation))
        explanation = replace(explanation, tree=None)
    with DRAWING:
        shown = embedded(figure_attribution(explanation, session.table), "Distribution and tree")
    pale = "" if np.isfinite(explanation.p_value) else ' style="opacity:.45"'
    return f"{text}<div{pale}>{shown}</div>"


def is_refused(explanation: "Explanation") -> bool:
    """Whether the null is there and finds nothing: then no tree is shown."""
    return bool(np.isfinite(explanation.p_value)) and not explanation.found


def metrics_of(explanation: "Explanation") -> list[str]:
    """The metrics that a tree asks for, each once, from the top."""
    tree: Any = explanation.tree
    places = [] if tree is None else [place for place in tree.tree_.feature if place >= 0]
    return list(dict.fromkeys(explanation.features[place] for place in places))


def node_html(session: Session, explanation: "Explanation", metric: str) -> str:
    """What is known of a metric, with references, and its scatter plot."""
    if not metric:
        text = "Nothing separates the slow runs here, so there is no factor to explain."
        return paragraph(
            f"{text} At another cutoff there may be a tree; a click below it explains a metric."
        )
    known = factor_of(metric)
    text = (
        known._repr_html_()
        if known
        else paragraph(f"Nothing is known of {metric}: data/knowledge/factors has no entry of it.")
    )
    return f"<h4>{html.escape(metric)}</h4>" + _side_by_side(
        scatter_html(session, explanation, metric),
        f'<div style="max-width:44em;line-height:1.4">{text}</div>',
        flex="1 1 24em",
    )


def scatter_html(session: Session, explanation: "Explanation", metric: str) -> str:
    """A metric against the outcome, with R², its interval and n."""
    sentence = relation_sentence(session.table, metric, session.judged)
    figure = figure_relation(session.table, metric, session.judged, explanation.labels)
    shown = embedded(figure, f"{metric} against {session.judged}")
    return f'<div style="max-width:30em">{shown}{paragraph(sentence)}</div>'


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
    judged = outcome_of(untreated, session.judged)
    title = mitigations()[name].name if name in mitigations() else name
    values = {
        "untreated": untreated[session.judged].to_numpy(float),
        "treated": treated[session.judged].to_numpy(float),
    }
    shown = embedded(figure_densities(values, judged.label), f"Before and after: {title}")
    found = compare(untreated, treated, session.judged, session.seed)
    return (
        f"<h4>{html.escape(title)}: {html.escape(_verdict(session, name, trial))}</h4>"
        + paragraph(f"{trial.sentence[0].upper()}{trial.sentence[1:]}. {found.verdict}")
        + "".join(
            paragraph(f"{side.capitalize()}: {sentence_of_most_runs(numbers, judged.unit)}")
            for side, numbers in values.items()
        )
        + _side_by_side(shown, table_html(found.table))
    )


def _verdict(session: Session, name: str, trial: "Trial") -> str:
    """With what was measured again, where it was."""
    tried = session.tried()
    return str(tried.loc[name, "verdict"]) if name in tried.index else trial.verdict


def mitigations_html(session: Session, explanation: "Explanation") -> str:
    """The chosen mitigation, what it changed where it was tried, and all that were tried."""
    metric, name = session.chosen(explanation), session.mitigation
    if name in mitigations():
        text = mitigation_html(session, mitigations()[name]) + before_after_html(session, name)
    elif metric:
        text = paragraph(f"No mitigation is known for {metric}.")
    else:
        text = paragraph("The null finds no factor, so no mitigation is suggested.")
    return text + trials_html(session)


def page_html(session: Session, permutations: int = 1000) -> str:
    """All steps beneath each other: what a page without a kernel shows."""
    explanation = session.explanation(permutations)
    metric = session.chosen(explanation)
    names, tried = [one.id for one in session.options(metric)], session.trials()
    chosen = session.mitigation or next((name for name in names if name in tried), "")
    parts = {
        "1 and 2: the runs": runs_html(session),
        "3: cutoff, tree and factors": tree_html(session, explanation) + factors_html(explanation),
        "4: the factor": node_html(session, explanation, metric),
        "5: what was tried": mitigations_html(replace(session, mitigation=chosen), explanation),
    }
    return "".join(f"<h3>{title}</h3>{part}" for title, part in parts.items())
