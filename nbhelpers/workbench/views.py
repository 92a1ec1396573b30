"""What each step of the workbench shows, as HTML: a session and its explanation in, text out; and
its figures: a metric against the outcome, and distributions over each other.
"""

import html
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..errors import NoisebookError
from ..facts import plain_number
from ..mitigation.knowledge import Mitigation, factor_of, mitigations, references
from ..outcomes import outcome_of
from ..palette import CLASSES, COLUMN_IN, MARKERS, SIDES, STYLE
from ..report import figure_attribution
from ..report.images import embedded
from ..statistics import cell_statistics, compare
from ..statistics.intervals import shortest_interval, values_held
from .by_hand import when
from .session import Session

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..attribution import Explanation

FEWEST = 5  # runs with a value of a metric and of the outcome
MOST_FACTORS = 5
_FACTORS = ["factor", "direction", "slow_median", "fast_median", "separation"]
RISKS = {
    "none": "none: it touches the program only",
    "low": "low: it changes the machine for the length of a run",
    "high": "high: it may make the machine unresponsive",
}
BY_HAND = "by hand: measure without it, do what stands below, then measure with it."
_TRIED = ["name", "runs", "mean_ratio", "mean_low", "mean_high", "p_corrected", "verdict"]


def failed(error: object) -> str:
    """An error, as a person reads it."""
    return f'<pre style="white-space:pre-wrap;line-height:1.4">{html.escape(str(error))}</pre>'


def paragraph(text: str) -> str:
    """A sentence or more."""
    return f'<p style="line-height:1.4;max-width:60em">{html.escape(text)}</p>'


def table_html(table: pd.DataFrame) -> str:
    """A table with four digits a number."""
    return table.to_html(float_format=plain_number, border=0)


def runs_html(session: Session, explanation: "Explanation") -> str:
    """How many runs there are and how they vary; their cutoff and tree; and beside these, where
    there is room, the metric that is looked at.
    """
    session = replace(session, mitigation="")  # changes nothing of it
    every = replace(session, node="")
    words, left = _runs_in_words(every, session.state), cutoff_html(every, explanation)
    right = factor_html(session, explanation)
    return f'{words}<div class="beside"><div>{left}</div><div>{right}</div></div>'


@lru_cache(maxsize=4)
def _runs_in_words(session: Session, state: tuple) -> str:
    """How many runs count, what the stopping rule says, and where most of them lie."""
    runs = session.table
    words = f"{len(runs)} runs"
    if session.limits:
        limits = session.limits.items()
        ranges = (f"{low:.4g} ≤ {name} ≤ {high:.4g}" for name, (low, high) in limits)
        words += f" of {len(session.measured())} within the limits ({'; '.join(ranges)})"
    cells = runs["cell"].nunique() if "cell" in runs.columns else 1
    words += f" of {cells} cells together." if cells > 1 else "."
    if not session.is_recorded:
        rule = session.rule_says()
        words += f" Rule “{session.rule}”: {'enough' if rule.stop else 'go on'}, {rule.reason}."
    if len(runs) < 2:
        return paragraph(words)
    judged = outcome_of(runs, session.judged)
    statistics = cell_statistics(runs.assign(cell=judged.label), outcome=session.judged).T
    words += f" {sentence_of_most('runs', session.values, judged.unit)}"
    table = f"<details><summary>all statistics</summary>{table_html(statistics)}</details>"
    return paragraph(words) + table


def sentence_of_most(runs: str, numbers: np.ndarray, unit: str) -> str:
    """Where 95 % of the runs lie: the ends of their highest-density interval, and n.

    Parameters
    ----------
    runs
        How they are called.
    numbers, unit
        One number a run, and its unit.
    """
    low, high = shortest_interval(numbers)
    ends = f"{low:.4g} and {high:.4g} {unit}".rstrip()
    peaks = f"{', '.join(f'{at:.4g}' for at, _ in modes(numbers))} {unit}".rstrip()
    return (
        f"95 % of the {runs} lie between {ends}: the shortest interval that holds"
        f" {values_held(numbers.size)} of them (highest-density interval; n = {numbers.size})."
        f" Modes of their density: {peaks}."
    )


def modes(numbers: np.ndarray) -> list[tuple[float, float]]:
    """Place and height of the peaks of a density that rise by a tenth of the highest or more.

    Examples
    --------
    >>> [round(at) for at, _ in modes(np.array([1, 1.1, 1.2, 9, 9.1, 9.2]))]
    [1, 9]
    """
    from scipy.signal import find_peaks
    from scipy.stats import gaussian_kde

    if np.ptp(numbers) == 0:
        return [(float(numbers[0]), 0.0)]
    margin = np.ptp(numbers) / 2
    places = np.linspace(numbers.min() - margin, numbers.max() + margin, 500)
    density = gaussian_kde(numbers)(places)
    peaks, _ = find_peaks(density, prominence=density.max() / 10)
    return list(zip(places[peaks].tolist(), density[peaks].tolist(), strict=True))


def claim_html(explanation: "Explanation") -> str:
    """What the null says: a claim, or that nothing is claimed."""
    text = html.escape(explanation.summary)
    if not explanation.found:
        is_open = explanation.searched and not np.isfinite(explanation.p_value)
        waits = "the null distribution is being computed … " if is_open else ""
        text = f"<b>No claim:</b> {waits}{text}"
    return f'<p style="line-height:1.4;max-width:60em">{text}</p>'


@lru_cache(maxsize=4)
def cutoff_html(session: Session, explanation: "Explanation") -> str:
    """The claim, the distribution with its cutoff and tree, and the factors: pale while no null
    claims them, without a tree where the null finds nothing.
    """
    is_open = not np.isfinite(explanation.p_value)
    tree = explanation.tree if is_open or explanation.found else None
    figure = figure_attribution(replace(explanation, tree=tree), session.table)
    shown = embedded(figure, f"Runs by {session.judged}, and tree")
    columns = _FACTORS if is_open else [*_FACTORS, "p_value"]
    first = explanation.factors[columns].head(MOST_FACTORS)
    factors = "" if first.empty else table_html(first)
    pale = ' style="opacity:.45"' if is_open else ""
    return f"{claim_html(explanation)}<div{pale}>{shown}{factors}</div>"


def metrics_of(explanation: "Explanation") -> list[str]:
    """The metrics that a tree asks for, each once, from the top; none where the null finds
    nothing.
    """
    tree: Any = explanation.tree
    is_refused = np.isfinite(explanation.p_value) and not explanation.found
    if tree is None or is_refused:
        return []
    asked = (place for place in tree.tree_.feature if place >= 0)
    return list(dict.fromkeys(explanation.features[place] for place in asked))


@lru_cache(maxsize=4)
def factor_html(session: Session, explanation: "Explanation") -> str:
    """The scatter plot of the metric that is looked at, and what is known of it."""
    metric = session.chosen(explanation)
    if not metric:
        no = "Nothing separates the slow runs, so there is no factor to explain."
        return paragraph(f"{no} Choose another cutoff, or a metric.")
    known = factor_of(metric)
    unknown = f"Nothing is known of {metric}: data/knowledge/factors has no entry of it."
    text = known._repr_html_() if known else paragraph(unknown)
    shown = ""
    if metric in session.table.columns:  # a factor may be known of a table without its column
        figure = figure_relation(session.table, metric, session.judged, explanation.labels)
        shown = embedded(figure, f"{metric} against {session.judged}")
        shown += paragraph(relation_sentence(session.table, metric, session.judged))
    return f'<h4>{html.escape(metric)}</h4>{shown}<div style="line-height:1.4">{text}</div>'


def mitigations_html(session: Session, explanation: "Explanation") -> str:
    """The chosen mitigation, what it changed where it was tried, and all that were tried."""
    metric = session.chosen(explanation)
    name, tried = session.suggested(metric), session.tried()
    none = "The null finds no factor, so no mitigation is suggested."
    text = paragraph(f"No mitigation is known for {metric}." if metric else none)
    if name:
        text = mitigation_html(session, mitigations()[name])
        text += before_after_html(session, name, session.state)
    if tried.empty:
        return text
    return f"{text}<h4>All that were tried</h4>{table_html(tried[_TRIED])}" + paragraph(
        "Ratios are treated over untreated, with 95 % intervals; all are judged together."
        " “Helps” is said only of what was measured again, in runs that had no part in the choice."
    )


def mitigation_html(session: Session, mitigation: Mitigation) -> str:
    """What a mitigation does, what it risks, what it takes, and where that comes from."""
    try:
        answer = mitigation.possible(None if session.is_recorded else session.workload)
        no = "" if answer else f"not possible: {answer.reason}. {answer.fix}"
    except NoisebookError as error:
        no = error.what
    here = html.escape(no) or "possible; it is undone after each run."
    if not mitigation.automated and not session.is_recorded:
        here = BY_HAND
    lists = {
        "By hand": [f"<code>{html.escape(line)}</code>" for line in mitigation.by_hand],
        "References": [references()[name]._repr_html_() for name in mitigation.references],
    }
    return (
        f"<h4>{html.escape(mitigation.name)}</h4>{paragraph(mitigation.what)}"
        f"<p><b>Risk</b> {RISKS[mitigation.risk]}. <b>Here</b> {here}</p>"
    ) + "".join(
        f"<p><b>{title}</b></p><ul>{''.join(f'<li>{line}</li>' for line in lines)}</ul>"
        for title, lines in lists.items()
    )


@lru_cache(maxsize=32)
def before_after_html(session: Session, name: str, state: tuple) -> str:
    """Both distributions over each other, the statistics of both, and the verdicts.

    Parameters
    ----------
    session
        Where it was tried.
    name
        Id of the mitigation.
    state
        Of the session, since the runs lie on disk.
    """
    if name not in session.trials():
        return paragraph("It was not tried in this session.")
    trial, row = session.trials()[name], session.tried().loc[name]
    found = compare(*trial.pair, session.judged, session.seed)
    judged = outcome_of(session.table, session.judged)
    numbers_of = (runs[judged.name].to_numpy(float) for runs in trial.pair)
    values = dict(zip(("untreated runs", "treated runs"), numbers_of, strict=True))
    most = (sentence_of_most(side, numbers, judged.unit) for side, numbers in values.items())
    figure = figure_densities(values, judged.label)
    sentence = f"{trial.sentence[0].upper()}{trial.sentence[1:]}. {found.verdict}"
    return (
        f"<h4>{html.escape(row['name'])}: {html.escape(row['verdict'])}</h4>"
        + paragraph(f"{sentence} {when(*trial.pair)}".strip())
        + embedded(figure, f"Before and after: {row['name']}")
        + "".join(map(paragraph, most))
        + table_html(found.table)
    )


def relation_sentence(runs: pd.DataFrame, metric: str, outcome: str) -> str:
    """R² of a metric and the outcome in words, with the 95 % interval of the correlation and n.

    Examples
    --------
    >>> runs = pd.DataFrame({"faults": range(20), "seconds": [1 + n / 10 for n in range(20)]})
    >>> relation_sentence(runs, "faults", "seconds")[:32]
    'R² 1.00 (1.00 to 1.00, n = 20 ru'
    """
    from scipy.stats import pearsonr

    both = _both(runs, metric, outcome)
    if len(both) < FEWEST or both.nunique().min() < 2:
        return f"No R²: too few values of {metric} or {outcome} differ (n = {len(both)} runs)."
    found = pearsonr(both[metric], both[outcome])
    ends = np.array(found.confidence_interval())
    low = 0.0 if ends[0] < 0 < ends[1] else (ends**2).min()
    return (
        f"R² {found.statistic**2:.2f} ({low:.2f} to {(ends**2).max():.2f}, n = {len(both)} runs) of"
        f" {outcome} with {metric}; an association, which need not be a cause."
    )


def _both(runs: pd.DataFrame, metric: str, outcome: str) -> pd.DataFrame:
    """The runs with a number of both."""
    columns = runs[list(dict.fromkeys([metric, outcome]))]
    numbers = columns.apply(pd.to_numeric, errors="coerce").astype(float)
    return numbers.replace([np.inf, -np.inf], np.nan).dropna()


def figure_relation(runs: pd.DataFrame, metric: str, outcome: str, slow: pd.Series) -> "Figure":
    """Every run: a metric against the outcome, with the line of least squares.

    Parameters
    ----------
    runs
        Runs table.
    metric, outcome
        Columns.
    slow
        Which runs are slow, with the index of the runs.
    """
    import matplotlib.pyplot as plt

    drawn = _both(runs, metric, outcome)
    x, y, is_slow = drawn[metric], drawn[outcome], slow.reindex(drawn.index).eq(True)
    with plt.style.context(STYLE):
        figure, axes = plt.subplots(figsize=(COLUMN_IN, 2.4), layout="none")
        figure.subplots_adjust(0.2, 0.18, 0.95, 0.97)
        if x.nunique() > 1:
            axes.axline((x.mean(), y.mean()), slope=np.polyfit(x, y, 1)[0], color="black")
        for name, chosen in {"fast": ~is_slow, "slow": is_slow}.items():
            look = {"s": 20, "color": CLASSES[name], "marker": MARKERS[name], "alpha": 0.75}
            axes.scatter(x[chosen], y[chosen], label=name, edgecolor="white", **look)
        axes.set(xlabel=metric, ylabel=outcome_of(runs, outcome).label)
        axes.legend()
    return figure


def figure_densities(values: dict[str, np.ndarray], label: str) -> "Figure":
    """Distributions over each other: density, each run, and where 95 % of the runs lie.

    Parameters
    ----------
    values
        Outcomes by name, such as untreated and treated.
    label
        Of the outcome, with its unit.
    """
    import matplotlib.pyplot as plt
    import seaborn

    with plt.style.context(STYLE):
        figure, axes = plt.subplots(figsize=(1.4 * COLUMN_IN, 2.2))
        for place, (name, one) in enumerate(values.items()):
            colour, label_n = SIDES[("baseline", "injected")[place]], f"{name} (n = {len(one)})"
            look = {"x": one, "ax": axes, "color": colour}
            seaborn.kdeplot(**look, fill=True, warn_singular=False, label=label_n)
            seaborn.rugplot(**look, height=0.08)
            axes.plot(*zip(*modes(one), strict=True), "v", color=colour, label="modes")
            place_y, where = -0.03 - 0.04 * place, axes.get_xaxis_transform()
            bar = axes.hlines(place_y, *shortest_interval(one), colour, clip_on=False)
            bar.set(linewidth=2.5, transform=where, label="95 % of the runs")
        axes.set(xlabel=label, ylabel="density", yticks=[], ylim=(0, None))
        axes.tick_params(axis="x", pad=10)
        figure.legend(loc="outside upper left", ncols=len(values))
    return figure
