"""All runs as dots: click one, and see who had its time, when, and which counters are unusual.

Owns the linked view of runs. It is Vega-Altair's: one specification for JupyterLab and for exported
pages, 0.9 MB in a page. Plotly has 4.8 MB and links no views without a kernel; Bokeh's links need
`eval`, which a page's policy forbids.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from .attribution.who import counters_of
from .measurement import consequences, rates
from .outcomes import ordinary_runs
from .palette import CLASSES, GREY, PARTS, THREADS
from .tracing.states import IDLE

MOST_RUNS = 400  # dots
MOST_OWNERS, MOST_COUNTERS, MOST_NAMES = 10, 8, 6
MOST_PIECES = 300  # of a run's time line, the longest first
# px, until the width of the frame is known: of the view, and of the names beside bars
ROOM, NAMES = 900, 170
PROGRAM, OTHERS = "the program", "others"
_SD_OF_MAD, _LEAST_MS = 1.4826, 0.05
_WHOLE = "datum.value % 1 ? '' : datum.label"  # a label of an axis of counts
_WORDS = {
    "taken": "interrupted by {}",
    "runnable": "CPU had by {}",
    "waiting": "waited for {}",
    "asleep": "slept: {}",
    "slower": "{}, longer",
}


def explore_runs(
    runs: pd.DataFrame,
    owned_ms: pd.DataFrame,
    had: pd.DataFrame,
    cutoff: float | None = None,
) -> "LinkedView":
    """Look at one run after the other: who had its time, when, and what its counters say.

    Parameters
    ----------
    runs
        Finished runs of one configuration, with their counters.
    owned_ms
        Who had the time of each run's critical path (`nbhelpers.account.owned_ms`).
    had
        Who had each CPU in some of the runs, the time lines: `run`, `cpu`, `start_ns`, `end_ns`,
        `name`, `is_program` (`nbhelpers.tracing.campaign.read_owners`); may have no rows.
    cutoff
        Seconds from which on a run is slow; None: the upper quartile.

    Returns
    -------
    LinkedView: shows itself in JupyterLab and on an exported page. Click a dot, or choose a run in
    the list; drag along the distribution to mark a part of it; move the cutoff.
    """
    seconds = runs.set_index("run")["seconds"].astype(float)
    ordinary = pd.Index(ordinary_runs(runs)["run"])
    start = float(seconds.quantile(0.75)) if cutoff is None or cutoff != cutoff else cutoff
    shown = _shown(seconds)
    lines = pd.concat([_pieces(own) for _, own in had.groupby("run")] or [had.head(0)])
    dots = pd.DataFrame({"run": shown.index, "seconds": shown.to_numpy()})
    dots["line"] = np.where(dots["run"].isin(had["run"]), "yes", "no")
    tables = {
        "dots": dots,
        "lines": lines,
        "account": _beyond(owned_ms, ordinary, shown.index),
        "counters": _unusual(runs.set_index("run"), ordinary, shown.index),
    }
    return LinkedView(_chart(tables, float(f"{start:.4g}"), len(ordinary)))


def _shown(seconds: pd.Series) -> pd.Series:
    """All runs, or of very many the slowest half of MOST_RUNS and others at even steps."""
    if len(seconds) <= MOST_RUNS:
        return seconds
    slowest = seconds.nlargest(MOST_RUNS // 2)
    rest = seconds.drop(slowest.index)
    steps = np.linspace(0, len(rest) - 1, MOST_RUNS // 2).round().astype(int)
    return pd.concat([slowest, rest.iloc[steps]]).sort_index()


def _beyond(owned_ms: pd.DataFrame, ordinary: pd.Index, shown: pd.Index) -> pd.DataFrame:
    """What each run had more of each owner than the ordinary runs' mean, the largest first."""
    if owned_ms.empty:
        return pd.DataFrame(columns=["run", "owner", "ms"])
    usual = owned_ms.reindex(ordinary).mean()
    beyond = (owned_ms.reindex(shown) - usual).dropna(how="all")
    names = [_WORDS.get(part, "{}").format(owner) for part, owner in beyond.columns]
    names = [name if name != "the program" else part for name, (part, _) in zip(names, beyond)]
    rows = beyond.set_axis(names, axis=1).rename_axis(index="run", columns="owner")
    rows = rows.T.groupby(level=0).sum().T.stack().rename("ms").reset_index()
    return _largest(rows[rows["ms"].abs() >= _LEAST_MS].round({"ms": 3}), "ms", MOST_OWNERS)


def _unusual(runs: pd.DataFrame, ordinary: pd.Index, shown: pd.Index) -> pd.DataFrame:
    """The counters of each run that are farthest from those of the ordinary runs."""
    slow = pd.Series(~runs.index.isin(ordinary), runs.index)
    counters = counters_of(rates(runs), slow, consequences()).dropna(axis=1)
    usual = counters.reindex(ordinary)
    middle = usual.median()
    spread = _SD_OF_MAD * (usual - middle).abs().median()
    spread = spread.where(spread > 0, usual.std())
    far = ((counters - middle) / spread.where(spread > 0)).reindex(shown)
    rows = far.rename_axis(index="run", columns="counter").stack().rename("far").reset_index()
    rows = _largest(rows.dropna().round({"far": 1}), "far", MOST_COUNTERS)
    at = counters.index.get_indexer(rows["run"]), counters.columns.get_indexer(rows["counter"])
    value, ordinary = counters.to_numpy(float)[at], middle.to_numpy(float)[at[1]]
    return rows.assign(value=_rounded(value), ordinary=_rounded(ordinary))


def _rounded(values: np.ndarray) -> list[float]:
    return [float(f"{value:.4g}") for value in values]


def _largest(rows: pd.DataFrame, column: str, most: int) -> pd.DataFrame:
    order = rows[column].abs().sort_values(ascending=False, kind="stable").index
    return rows.loc[order].groupby("run", sort=False).head(most)


def _pieces(had: pd.DataFrame) -> pd.DataFrame:
    """Who had each CPU of a run, for its time line; pieces of one name that touch are one."""
    names = had["name"].astype(str).where(~had["is_program"] | (had["name"] == IDLE), PROGRAM)
    table = had.assign(who=names)[names != IDLE]
    new = (table["who"] != table["who"].shift()) | (table["cpu"] != table["cpu"].shift())
    new |= table["start_ns"] > table["end_ns"].shift()
    ends = {"start_ns": "min", "end_ns": "max"}
    table = table.groupby([new.cumsum(), "run", "cpu", "who"]).agg(ends).reset_index()
    table = table.assign(from_ms=table["start_ns"] / 1e6, to_ms=table["end_ns"] / 1e6)
    length = table["to_ms"] - table["from_ms"]
    table = table.loc[length.nlargest(MOST_PIECES).index].round({"from_ms": 3, "to_ms": 3})
    return table[["run", "cpu", "who", "from_ms", "to_ms"]].sort_values(["cpu", "from_ms"])


def _named(lines: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, str]]:
    """A colour for the names that had a CPU longest; the others share one."""
    others = lines[lines["who"] != PROGRAM]
    longest = (others["to_ms"] - others["from_ms"]).groupby(others["who"]).sum()
    first = longest.nlargest(MOST_NAMES).index.tolist()
    shown = lines.assign(name=lines["who"].where(lines["who"].isin([PROGRAM, *first]), OTHERS))
    return shown, {PROGRAM: PARTS["work"], **dict(zip(first, THREADS)), OTHERS: GREY}


# --- the picture ----------------------------------------------------------------------------------


def _chart(tables: Mapping[str, pd.DataFrame], cutoff: float, count: int) -> alt.VConcatChart:
    dots, lines = tables["dots"], tables["lines"]
    by_time = dots.sort_values("seconds", ascending=False)["run"].tolist()
    choice = alt.binding_select(options=by_time, name="run, slowest first ")
    look: dict[str, Any] = {"on": "click", "clear": False, "nearest": True, "bind": choice}
    chosen = alt.selection_point("chosen", fields=["run"], value=[{"run": by_time[0]}], **look)
    low, high = (float(f"{end:.4g}") for end in dots["seconds"].agg(["min", "max"]))
    step = float(f"{(high - low) / 200:.1g}") or 1.0
    slider = alt.binding_range(min=low, max=high, step=step, name="cutoff (s) ")
    on_bar = "click[event.item && event.item.datum && event.item.datum.from_s]"
    bar: dict[str, Any] = {"fields": ["from_s"], "on": on_bar, "clear": False, "bind": slider}
    cut = alt.selection_point("cut", value=[{"from_s": cutoff}], **bar)
    part = alt.selection_interval("part", encodings=["y"])
    above = alt.hconcat(_dots(dots, chosen, part), _distribution(dots, part, cut), spacing=8)
    longer, unusual = f"ms more than {count} ordinary runs", "robust s.d. from ordinary runs"
    owners = _bars(tables["account"], "owner", "ms", chosen, longer)
    counters = _bars(tables["counters"], "counter", "far", chosen, unusual)
    below = alt.concat(owners, counters, columns=2, spacing=12).properties(name="below")
    rows: list[Any] = [above, _time_line(lines, chosen), below] if len(lines) else [above, below]
    chart = alt.vconcat(*rows, spacing=14).resolve_scale(color="independent", shape="independent")
    sizes = alt.param("room", value=ROOM), alt.param("names", value=NAMES)
    chart = chart.add_params(alt.param("cutoff", expr="cut_from_s"), *sizes)
    return chart.configure(axisX={"labelFlush": False}, font="system-ui, DejaVu Sans, sans-serif")


def _dots(dots: pd.DataFrame, chosen: alt.Parameter, part: alt.Parameter) -> Any:
    classes: dict[str, Any] = {"domain": list(CLASSES), "range": list(CLASSES.values())}
    shapes: dict[str, Any] = {"domain": list(CLASSES), "range": ["triangle-up", "circle"]}
    legend, whole = alt.Legend(orient="top", title=None), alt.Axis(format="d", tickMinStep=1)
    points = alt.Chart(dots).transform_calculate(is_="datum.seconds > cutoff ? 'slow' : 'fast'")
    points = points.transform_calculate(from_s="datum.seconds")  # as the bars of the distribution
    points = points.mark_point(filled=True, cursor="pointer").encode(
        x=alt.X("run:Q", title="run, in order", axis=whole, scale=alt.Scale(nice=False, padding=8)),
        y=alt.Y("seconds:Q", title="run time (s)", scale=alt.Scale(zero=False)),
        color=alt.Color("is_:N", scale=alt.Scale(**classes), legend=legend),
        shape=alt.Shape("is_:N", scale=alt.Scale(**shapes), legend=legend),
        size=alt.condition(chosen, alt.value(220), alt.value(45)),
        opacity=alt.condition(part, alt.value(1), alt.value(0.2)),
        stroke=alt.condition(chosen, alt.value("black"), alt.value(None)),
        tooltip=["run:Q", alt.Tooltip("seconds:Q"), alt.Tooltip("line:N", title="time line")],
    )
    rule = alt.Chart(dots.head(1)).transform_calculate(at="cutoff")
    rule = rule.mark_rule(strokeDash=[4, 3]).encode(y=alt.Y("at:Q", title=""))
    return alt.layer(points.add_params(chosen), rule).properties(name="dots", height=170)


def _distribution(dots: pd.DataFrame, part: alt.Parameter, cut: alt.Parameter) -> alt.Chart:
    look: dict[str, Any] = {"title": None, "axis": None, "scale": alt.Scale(zero=False)}
    bins = alt.Chart(dots).transform_bin(["from_s", "to_s"], "seconds", bin=alt.Bin(maxbins=30))
    bins = bins.transform_calculate(from_s="toNumber(format(datum.from_s, '.4g'))")
    bars = bins.mark_bar(color=GREY, cursor="pointer").encode(
        x=alt.X("count():Q", title="runs", axis=alt.Axis(labelExpr=_WHOLE)),
        y=alt.Y("from_s:Q", bin="binned", **look),
        y2="to_s:Q",
        tooltip=["count():Q", "from_s:Q", "to_s:Q"],
    )
    return bars.properties(name="distribution", width=110, height=170).add_params(part, cut)


def _time_line(lines: pd.DataFrame, chosen: alt.Parameter) -> alt.Chart:
    shown, colour = _named(lines)
    scale = alt.Scale(domain=list(colour), range=list(colour.values()))
    columns = alt.ExprRef("floor((room - names) / 115)")
    legend = alt.Legend(title=None, orient="top", columns=columns)
    whole = alt.Scale(domain=[0, float(lines["to_ms"].max())])
    words = f"who had each CPU (kept of {lines['run'].nunique()} runs)"
    title = alt.Title(words, anchor="start", fontSize=11)
    bars = alt.Chart(shown, title=title).transform_filter(chosen).mark_bar()
    return bars.encode(
        x=alt.X("from_ms:Q", title="ms from the start of the run", scale=whole),
        x2="to_ms:Q",
        y=alt.Y("cpu:N", title="CPU", scale=alt.Scale(domain=sorted(set(lines["cpu"])))),
        color=alt.Color("name:N", scale=scale, legend=legend),
        tooltip=["who:N", "cpu:N", "from_ms:Q", "to_ms:Q"],
    ).properties(name="line", height=alt.Step(26))


def _bars(
    table: pd.DataFrame, name: str, value: str, chosen: alt.Parameter, title: str
) -> alt.Chart:
    signs = [alt.value(CLASSES[one]) for one in ("slow", "fast")]
    names = alt.ExprRef("names")
    axis = alt.Axis(labelLimit=names, minExtent=names)
    bars = alt.Chart(table).transform_filter(chosen).mark_bar()
    return bars.encode(
        x=alt.X(f"{value}:Q", title=title),
        y=alt.Y(f"{name}:N", title=None, sort="-x", axis=axis),
        color=alt.condition(f"datum.{value} > 0", *signs),
        tooltip=[column for column in table.columns if column != "run"],
    ).properties(width=240, height=alt.Step(17))


# --- the page -------------------------------------------------------------------------------------


class LinkedView:
    """A chart that shows itself as HTML which needs nothing from elsewhere.

    Parameters
    ----------
    chart
        Altair chart whose parts and widths are those of `explore_runs`.
    """

    def __init__(self, chart: Any):
        self.chart = chart

    def _repr_html_(self) -> str:
        from vl_convert import javascript_bundle

        spec = json.dumps(self.chart.to_dict()).replace("</", "<\\/")
        beside = (Path(__file__).with_suffix(end) for end in (".css", ".js"))
        look, draw = (path.read_text("utf-8") for path in beside)
        vega: str = javascript_bundle()  # type: ignore[call-arg]  # its stub asks for a snippet
        vega = vega.replace("</script", "<\\/script")
        return (
            f'<div class="linked-view noisebook-wide"><style>{look}</style>'
            f"<script>{vega}</script><div></div><script>{draw}"
            f"(document.currentScript.previousSibling, {spec})</script></div>"
        )
