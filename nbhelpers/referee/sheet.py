"""A ruling as a page that opens without a network, and as a comment for a pull request.

Owns the figure, the page and the comment.
"""

import html
import io
from datetime import datetime
from pathlib import Path

import numpy as np
import pandas as pd

from ..machine import describe
from ..page import write_page
from ..report.appearance import PAGE_IN, ROLES, style
from ..statistics.sequential import BETTER, OPEN, WORSE
from .curve import curve_text
from .ruling import Ruling, percent

_MARKS = {BETTER: "🟢", WORSE: "🔴", OPEN: "⚪"}
_WITHIN_MARK = "🟡"
_SHOWN = 0.9  # share of the pairs by which the axis reaches; the others are drawn at its ends


def comment(ruling: Ruling) -> str:
    """Markdown for a pull request.

    Parameters
    ----------
    ruling
        What is shown; `read_ruling` reads it from JSON.

    Examples
    --------
    >>> from nbhelpers.referee.ruling import Ruling
    >>> text = comment(
    ...     Ruling(
    ...         "a",
    ...         "b",
    ...         "run time",
    ...         "worse",
    ...         0.02,
    ...         0.01,
    ...         0.03,
    ...         0.01,
    ...         0.01,
    ...         40,
    ...         0,
    ...         (1.0, 1.02),
    ...         0.021,
    ...     )
    ... )
    >>> text.splitlines()[0]
    '**🔴 worse** (run time +2.0 %, +1.0 % to +3.0 % at 99 %, 40 pairs): b against a'
    """
    mark = _MARKS.get(ruling.verdict, _WITHIN_MARK)
    head, bracket, rest = ruling.sentence.partition(" (")
    unit = f", {ruling.unit}" if ruling.unit else ""
    lines = [
        f"**{mark} {head}**{bracket}{rest}",
        "",
        "| | old | new | change |",
        "| --- | --- | --- | --- |",
        f"| median{unit} | {ruling.medians[0]:.4g} | {ruling.medians[1]:.4g} |"
        f" {percent(_of_medians(ruling))} |",
        f"| mean, far runs included | | | {percent(ruling.mean_change)} |",
        "",
        *(f"* {note}" for note in ruling.notes),
        "",
        f"Runs in turn (ABBA or BAAB by a coin). The interval holds at all looks together;"
        f" a change within ± {100 * ruling.margin:g} % counts as none.",
    ]
    return "\n".join(lines).replace("\n\n\n", "\n\n") + "\n"


def write_sheet(path: str | Path, ruling: Ruling, curve: pd.DataFrame | None = None) -> Path:
    """Write the page.

    Parameters
    ----------
    path
        The page.
    ruling
        What is shown.
    curve
        Of `operating_curve`; None: it is left out.
    """
    answer = ruling.answer[0].upper() + ruling.answer[1:]
    parts = [
        f"<h1>{html.escape(ruling.new)} against {html.escape(ruling.old)}</h1>",
        f"<p><strong>{html.escape(answer)}.</strong></p>",
        _sides(ruling),
        *(f"<p>{html.escape(note)}</p>" for note in ruling.notes),
        _figure(ruling),
        _far(ruling),
        _curve(curve),
        _method(ruling),
    ]
    return write_page(path, f"{ruling.verdict}: {ruling.new}", "\n".join(filter(None, parts)))


def _of_medians(ruling: Ruling) -> float:
    return ruling.medians[1] / ruling.medians[0] - 1


def _sides(ruling: Ruling) -> str:
    """What was run, and how long it usually took."""
    unit = f" ({html.escape(ruling.unit)})" if ruling.unit else ""
    rows = "".join(
        f'<tr><th>{name}</th><td>{html.escape(text)}</td><td class="number">{median:.4g}</td></tr>'
        for name, text, median in zip(("old", "new"), (ruling.old, ruling.new), ruling.medians)
    )
    head = f'<tr><th></th><th>what was run</th><th class="number">median{unit}</th></tr>'
    changes = f"median {percent(_of_medians(ruling))}, mean {percent(ruling.mean_change)}"
    when = f"{datetime.now():%Y-%m-%d %H:%M}"
    return (
        f"<table><thead>{head}</thead><tbody>{rows}</tbody></table>"
        f"<p>From old to new: {changes}. Measured on {html.escape(str(describe()))}; {when}.</p>"
    )


def _figure(ruling: Ruling) -> str:
    from matplotlib.figure import Figure

    with style():
        figure = Figure(figsize=(PAGE_IN, 2.6))
        left, right = figure.subplots(1, 2, sharey=True)
        _draw_interval(left, ruling, _reach(ruling))
        _draw_pairs(right, ruling, _reach(ruling))
        picture = io.StringIO()
        figure.savefig(picture, format="svg", metadata={"Date": None})
    svg = picture.getvalue()
    caption = (
        "Left: the estimated change and its interval, after every two pairs (old new new old, or"
        " new old old new); the grey band is the margin. Right: every pair; triangles lie further"
        " out."
    )
    return (
        f'<figure class="noisebook">{svg[svg.index("<svg") :]}<figcaption>{caption}</figcaption>'
        "</figure>"
    )


def _draw_interval(axes, ruling: Ruling, reach: float) -> None:
    history = pd.DataFrame(ruling.history).astype(float)
    low = 100 * history["low"].fillna(-reach)
    high = 100 * history["high"].fillna(reach)
    role = ROLES["baseline"]
    _draw_margin(axes, ruling)
    axes.fill_between(history["pairs"], low, high, step="post", alpha=0.25, color=role.colour)
    axes.plot(history["pairs"], 100 * history["change"], color=role.colour)
    axes.set(xlabel="pairs", ylabel="change (%)", ylim=(max(-reach, -100), reach))


def _draw_pairs(axes, ruling: Ruling, reach: float) -> None:
    role = ROLES["injected"]
    ratios = _changes(ruling)
    number = np.arange(ratios.size) + 1
    is_far = np.abs(ratios) > reach
    _draw_margin(axes, ruling)
    axes.plot(number[~is_far], ratios[~is_far], role.marker, color=role.colour)
    axes.plot(
        number[is_far],
        0.97 * reach * np.sign(ratios[is_far]),
        ROLES["slow"].marker,
        color=ROLES["slow"].colour,
    )
    axes.set(xlabel="pair")


def _draw_margin(axes, ruling: Ruling) -> None:
    margin = 100 * ruling.margin
    axes.axhspan(-margin, margin, color="#DDDDDD", zorder=0)
    axes.axhline(0, color="black", linewidth=0.6)


def _changes(ruling: Ruling) -> np.ndarray:
    return 100 * np.expm1(np.ravel(ruling.ratios))


def _reach(ruling: Ruling) -> float:
    usual = 1.5 * np.quantile(np.abs(_changes(ruling)), _SHOWN)
    return float(max(300 * ruling.margin, 150 * abs(ruling.change), usual))


def _far(ruling: Ruling) -> str:
    if not ruling.far:
        return "<p>No run is far from the others of its side.</p>"
    table = pd.DataFrame(ruling.far).round({"factor": 3}).dropna(axis=1, how="all")
    return f"<h2>Far runs</h2>{table.to_html(index=False, border=0)}"


def _curve(curve: pd.DataFrame | None) -> str:
    if curve is None:
        return ""
    text = html.escape(curve_text(curve))
    return (
        "<h2>How often this is wrong or late here</h2><p>Resampled from these pairs, their"
        " difference taken out, with a planted change: the share of campaigns with each"
        f" verdict.</p><pre>{text}</pre>"
    )


def _method(ruling: Ruling) -> str:
    return (
        "<h2>What this does not show</h2><p>The change is that of the usual run: the centre of the"
        " log ratios of neighbouring runs. A change that only makes rare runs slower shows in the"
        f" mean ({percent(ruling.mean_change)}) and in the counts of far runs. No run is"
        " dropped, and none is corrected unless the lines above say so. The interval rests on the"
        " coin that says which side begins, and on no assumption about the noise; a verdict takes"
        " 20 pairs or more, whatever the change. Pairs run one after the other: two at once on"
        " two CPUs gain nothing on a small virtual machine.</p>"
    )
