"""Figures of noise at scale: slow-downs over ranks, systems by overhead and slow-down, time lines
of ranks; and ours beside the published results.

Tables come from `nbhelpers.studies.scale`; nothing is simulated here.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from ..errors import InputError
from ._blank import NothingToDraw, or_blank
from .appearance import COLUMN_IN, KINDS, PAGE_IN, ROLES, Role, style
from .publications import published_table

_CYCLE = [*ROLES.values(), *KINDS.values()]
_WORK = {
    "calc": ROLES["baseline"],
    "send": ROLES["traced"],
    "reception": ROLES["fast"],
    "detour": ROLES["injected"],
}
_WORK_NAMES = {
    "calc": "computation",
    "send": "overhead of sending",
    "reception": "overhead of receiving",
    "detour": "detour",
}


@or_blank
def figure_curves(
    table: pd.DataFrame,
    x: str,
    y: str = "median",
    by: str | Sequence[str] = "noise",
    *,
    panels: str | None = None,
    labels: tuple[str, str] | None = None,
    log: str = "xy",
    mark: float | None = 1.0,
    width_in: float = PAGE_IN,
):
    """Lines over x, one for each value of `by`: slow-down over ranks, time over a parameter.

    Parameters
    ----------
    table
        `x`, `y`, `by`; with `low` and `high` (of `y`) an interval is drawn at each point, with
        `least` and `most` a faint band behind it.
    panels
        a column; a panel for each of its values.
    labels
        Of the two axes.
    log
        Which axes are logarithmic: "", "x", "y", "xy".
    mark
        a thin line at this height; 1 is "not slowed down".

    Returns
    -------
    matplotlib Figure.

    Raises
    ------
    InputError
        a column that the table lacks.
    """
    import matplotlib.pyplot as plt

    keys = [by] if isinstance(by, str) else list(by)
    _need(table, [x, y, *keys, *([panels] if panels else [])])
    groups = list(table[keys].drop_duplicates().itertuples(index=False, name=None))
    names = table[panels].drop_duplicates().tolist() if panels else [None]
    with style():
        figure, axes = plt.subplots(
            1, len(names), figsize=(width_in, 2.5), sharex=True, sharey=True, squeeze=False
        )
        for place, name in zip(axes[0], names):
            shown = table if name is None else table[table[panels] == name]
            for key, own in shown.groupby(keys, sort=False):
                _curve(
                    place,
                    own.sort_values(x),
                    x,
                    y,
                    _role(groups, key),
                    " · ".join(_said(part) for part in key),
                )
            place.set_title("" if name is None else f"{panels}: {_said(name)}", loc="left")
            _scales(place, table[x], log, mark)
            place.set_xlabel((labels or (x, y))[0])
        axes[0][0].set_ylabel((labels or (x, y))[1])
        if len(groups) > 1:
            handles = {
                label: handle
                for place in axes[0]
                for handle, label in zip(*place.get_legend_handles_labels())
            }
            figure.legend(
                handles.values(),
                handles.keys(),
                **(
                    {"loc": "outside right upper"}
                    if width_in > COLUMN_IN
                    else {"loc": "outside upper left", "ncols": 3}
                ),
            )
    return figure


def _curve(axes, own: pd.DataFrame, x: str, y: str, role: Role, label: str) -> None:
    if {"least", "most"} <= set(own) and y == "median":
        axes.fill_between(
            own[x], own["least"], own["most"], color=role.colour, alpha=0.12, linewidth=0
        )
    axes.plot(
        own[x], own[y], color=role.colour, marker=role.marker, linestyle=role.dash, label=label
    )
    if {"low", "high"} <= set(own) and y == "median":
        axes.errorbar(
            own[x],
            own[y],
            [own[y] - own["low"], own["high"] - own[y]],
            fmt="none",
            ecolor=role.colour,
            capsize=2,
            linewidth=0.8,
        )


def _scales(axes, values: pd.Series, log: str, mark: float | None) -> None:
    if "x" in log:
        axes.set_xscale("log", base=2 if _powers_of_two(values) else 10)
    if "y" in log:
        _logarithmic(axes, "y")
    if mark is not None:
        axes.axhline(mark, color="black", linewidth=0.6)


def _logarithmic(axes, which: str) -> None:
    """Logarithmic, unless what is drawn spans too little for it."""
    from matplotlib.ticker import FuncFormatter

    low, high = getattr(axes.dataLim, f"interval{which}")
    if low <= 0 or high / low < 5:
        return
    getattr(axes, f"set_{which}scale")("log")
    axis = getattr(axes, f"{which}axis")
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(
        FuncFormatter(lambda value, _: f"{value:g}" if f"{value:e}"[0] in "25" else "")
    )


def _powers_of_two(values: pd.Series) -> bool:
    logs = np.log2(values[values > 0].astype(float))
    return bool(len(logs)) and bool(np.allclose(logs, np.rint(logs)))


@or_blank
def figure_dots(
    table: pd.DataFrame,
    rows: str | Sequence[str],
    by: str,
    y: str = "median",
    label: str = "slow-down",
    log: bool = True,
    mark: float | None = 1.0,
    width_in: float = PAGE_IN,
):
    """A line of dots a case, with 95 % intervals: applications under several noises, ours beside
    what was published.

    Parameters
    ----------
    table
        The columns `rows` (names at the left), `by` (colour and marker), `y`, `low` and `high` (or
        `y` with _low and _high), each of which may be missing in a row.

    Returns
    -------
    matplotlib Figure.

    Raises
    ------
    InputError
        a column that the table lacks.
    """
    import matplotlib.pyplot as plt

    keys = [rows] if isinstance(rows, str) else list(rows)
    low, high = ("low", "high") if y == "median" else (f"{y}_low", f"{y}_high")
    _need(table, [*keys, by, y, low, high])
    names = table[keys].astype(str).agg(" · ".join, axis=1)
    order, groups = names.drop_duplicates().tolist(), table[by].drop_duplicates().tolist()
    with style():
        figure, axes = plt.subplots(
            figsize=(width_in, 0.7 + (0.08 + 0.12 * len(groups)) * len(order))
        )
        for number, group in enumerate(groups):
            own, role = table[table[by] == group], _CYCLE[number % len(_CYCLE)]
            places = [
                order.index(names[i]) + 0.7 / len(groups) * (number - (len(groups) - 1) / 2)
                for i in own.index
            ]
            axes.errorbar(
                own[y],
                places,
                xerr=[
                    (own[y] - own[low]).clip(lower=0).fillna(0),
                    (own[high] - own[y]).clip(lower=0).fillna(0),
                ],
                fmt=role.marker,
                color=role.colour,
                capsize=2,
                linewidth=0.8,
                label=_said(group),
            )
        axes.set_yticks(range(len(order)), order)
        axes.set_ylim(len(order) - 0.5, -0.5)
        axes.set_xlabel(label)
        if log:
            _logarithmic(axes, "x")
        if mark is not None:
            axes.axvline(mark, color="black", linewidth=0.6)
        if len(groups) > 1:
            figure.legend(loc="outside upper right", ncols=min(4, len(groups)))
    return figure


@or_blank
def figure_overheads(table: pd.DataFrame, width_in: float = PAGE_IN):
    """Systems by what their noise takes from a CPU, and by what it does to a collective.

    Parameters
    ----------
    table
        Of `overhead_and_slowdown`: `noise`, `overhead_share`, `median`, `low`, `high`.

    Returns
    -------
    matplotlib Figure.
    """
    import matplotlib.pyplot as plt

    _need(table, ["noise", "overhead_share", "median", "low", "high"])
    role = ROLES["baseline"]
    with style():
        figure, axes = plt.subplots(figsize=(width_in, 2.6))
        axes.errorbar(
            table["overhead_share"] * 100,
            table["median"],
            [table["median"] - table["low"], table["high"] - table["median"]],
            fmt=role.marker,
            color=role.colour,
            capsize=2,
            linewidth=0.8,
        )
        for name, overhead, median in table[["noise", "overhead_share", "median"]].itertuples(
            index=False
        ):
            side = -1 if _crowded(table, overhead, median) else 1
            axes.annotate(
                name,
                (overhead * 100, median),
                xytext=(5 * side, 0),
                textcoords="offset points",
                fontsize=7,
                ha="left" if side > 0 else "right",
                va="center",
            )
        _logarithmic(axes, "x")
        _scales(axes, table["median"], "y", 1.0)
        axes.margins(x=0.12)
        axes.set_xlabel("CPU time that the noise takes (%)")
        axes.set_ylabel("slow-down")
    return figure


def _crowded(table: pd.DataFrame, overhead: float, median: float) -> bool:
    """Whether another system stands where a name to the right of this one would."""
    right = np.log(table["overhead_share"] / overhead)
    return bool(
        ((right > 0) & (right < 0.5) & (np.abs(np.log(table["median"] / median)) < 0.2)).any()
    )


# --- time lines -----------------------------------------------------------------------------------


@or_blank
def figure_ranks(
    timeline: pd.DataFrame, path: pd.DataFrame | None = None, width_in: float = PAGE_IN
):
    """What every rank did when: computation, overheads, messages between ranks, detours; and the
    critical path through them.

    Parameters
    ----------
    timeline
        Of `Result.timeline`; small cases, up to some 32 ranks.
    path
        Of `Result.path`, outlined.

    Returns
    -------
    matplotlib Figure: a line a rank, time to the right; a message is a line from the sender to the
    receiver.
    """
    import matplotlib.pyplot as plt

    _need(timeline, ["rank", "what", "start_ns", "end_ns", "peer"])
    ranks = np.unique(timeline["rank"]).tolist()
    place = {rank: number for number, rank in enumerate(ranks)}
    with style():
        figure, axes = plt.subplots(figsize=(width_in, 0.9 + 0.22 * len(ranks)))
        for what, role in _WORK.items():
            own = timeline[timeline["what"] == what]
            offset, height = (0.36, 0.16) if what == "detour" else (0.0, 0.5)
            axes.barh(
                own["rank"].map(place) - offset,
                (own["end_ns"] - own["start_ns"]) / 1e3,
                left=own["start_ns"] / 1e3,
                height=height,
                color=role.colour,
                hatch=role.hatch * 2,
                edgecolor="white",
                linewidth=0.3,
                label=_WORK_NAMES[what] if len(own) else None,
            )
        _draw_messages(axes, timeline[timeline["what"] == "message"], place)
        if path is not None and len(path):
            _draw_path(axes, path, place, _latency_ns(timeline))
        axes.set_yticks(range(len(ranks)), [str(rank) for rank in ranks])
        axes.set_ylim(len(ranks) - 0.4, -0.7)
        axes.set_xlim(left=0)
        axes.set_ylabel("rank")
        axes.set_xlabel("simulated time (µs)")
        axes.grid(axis="y", visible=False)
        figure.legend(loc="outside upper left", ncols=6)
    return figure


def _draw_messages(axes, messages: pd.DataFrame, place: Mapping[int, int]) -> None:
    for number, row in enumerate(messages.itertuples()):
        axes.plot(
            [row.start_ns / 1e3, row.end_ns / 1e3],
            [place[row.rank], place[row.peer]],
            color="#999999",
            linewidth=0.5,
            zorder=1,
            label="message" if number == 0 else None,
        )


def _draw_path(axes, path: pd.DataFrame, place: Mapping[int, int], latency_ns: float) -> None:
    """On a rank while it is busy, and across to the next rank while a message travels."""
    points = []
    for row, later in zip(path.itertuples(), [*path["rank"].tolist()[1:], path["rank"].iloc[-1]]):
        crosses = row.via == "network" and later != row.rank
        points += [
            (row.begin_ns / 1e3, place[row.rank]),
            ((row.end_ns - latency_ns * crosses) / 1e3, place[row.rank]),
        ]
        points += [(row.end_ns / 1e3, place[later])] if crosses else []
    axes.plot(*zip(*points), color="black", linewidth=1.6, zorder=4, label="critical path")


def _latency_ns(timeline: pd.DataFrame) -> float:
    """L: how long the first byte of any message is on its way."""
    messages = timeline[timeline["what"] == "message"]
    return float((messages["end_ns"] - messages["start_ns"]).max()) if len(messages) else 0.0


# --- beside what was published --------------------------------------------------------------------


PUBLISHED_RESULTS = ("hoefler2010-slides1", "beckman2006-text1", "ferreira2008-text1")
_AUTHORS = {
    "hoefler2010": "Hoefler et al. 2010",
    "beckman2006": "Beckman et al. 2006",
    "ferreira2008": "Ferreira et al. 2008",
}


def published_results(
    ours: Mapping[str, Mapping[str, float]], tables: Sequence[str] = PUBLISHED_RESULTS
) -> pd.DataFrame:
    """All published results, what the reference simulator gives for each, and ours.

    Parameters
    ----------
    ours
        By the name of the result (the column `result` of the published tables): a row of a study
        with `median`, `low`, `high`, `seeds`, and perhaps `case`: what was simulated where it is
        not what the statement says (fewer ranks).

    Returns
    -------
    DataFrame : `source`, `result`, `statement`, `published`, `reference` (as text: a number, a
    range, a bound), `ours`, `low`, `high` (95 %), `seeds`, `case`; a
        result that was not simulated has empty cells.

    Raises
    ------
    InputError
        a name that no published table has.
    """
    rows = []
    for name in tables:
        for row in published_table(name).to_dict("records"):
            own = ours.get(row["result"], {})
            rows.append(
                {
                    "source": _AUTHORS.get(name.split("-")[0], name),
                    "result": row["result"],
                    "statement": row["statement"],
                    "published": _range(row["published_low"], row["published_high"]),
                    "reference": _range(row["reference_low"], row["reference_high"]),
                    "ours": own.get("median", np.nan),
                    "low": own.get("low", np.nan),
                    "high": own.get("high", np.nan),
                    "seeds": own.get("seeds", 0),
                    "case": own.get("case", ""),
                }
            )
    unknown = set(ours) - {row["result"] for row in rows}
    if unknown:
        raise InputError(
            f"nothing was published as '{min(unknown)}'",
            where=", ".join(tables),
            fix="the names stand in the column `result`",
        )
    return pd.DataFrame(rows).astype({"seeds": "Int64"})


def _range(low: float, high: float) -> str:
    if np.isnan(low) and np.isnan(high):
        return ""
    if np.isnan(low) or np.isnan(high):
        return f"> {low:g}" if np.isnan(high) else f"< {high:g}"
    return f"{low:g}" if low == high else f"{low:g}–{high:g}"


def _need(table: pd.DataFrame, columns: Sequence[str]) -> None:
    missing = [name for name in columns if name not in table]
    if missing:
        raise InputError(
            f"a table without {', '.join(map(repr, missing))}",
            where=f"columns: {', '.join(map(str, table.columns))}",
        )
    if table.empty:
        raise NothingToDraw("nothing to draw")


def _role(groups: list, key: tuple) -> Role:
    return _CYCLE[groups.index(key) % len(_CYCLE)]


def _said(value: object) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "co-scheduled" if value else "independent"
    return f"{value:,}" if isinstance(value, (int, np.integer)) else str(value).replace("_", " ")
