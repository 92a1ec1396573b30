"""Figures of ratios and effects: a mark a case with its 95 % interval, next to a line of no
effect.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..statistics.claims import INCONCLUSIVE, NONE, NOT_MEASURABLE, REPRODUCED, REVERSED
from ._axes import CYCLE, interval_reach, log_axis, value_text
from ._blank import finished_rows, need_columns, need_rows, or_blank
from .appearance import KINDS, PAGE_IN, ROLES, Role, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PLANTED_COLUMNS = [
    "case",
    *(
        f"{kind}{part}"
        for kind in ("baseline", "disturbed", "replayed")
        for part in ("", "_low", "_high")
    ),
]
PARTS = {
    "kernel_ms": ("kernel events, replayed", KINDS["thread"]),
    "hypervisor_ms": ("hypervisor gaps, replayed", KINDS["irq"]),
    "unexplained_ms": ("neither of the two", ROLES["slow"]),
    "losses_ms": ("all losses, replayed", ROLES["traced"]),
}
_MARKS = {
    "the cause": ("baseline", "o", "the cause named first"),
    "its trail": ("traced", "D", "the culprit's trail named first"),
    "something else": ("injected", "X", "something else named first"),
    "nothing": ("slow", "^", "nothing found"),
}
_VERDICTS = {
    REPRODUCED: ("baseline", "o"),
    REVERSED: ("injected", "X"),
    NONE: ("traced", "D"),
    INCONCLUSIVE: ("fast", "s"),
    NOT_MEASURABLE: ("slow", "^"),
}
_MODELS = {"OMP": "baseline", "SYCL": "injected", "original": "fast"}
_Reach = tuple[pd.Series, pd.Series]  # of an interval below and above its value


@or_blank
def figure_planted(cases: pd.DataFrame, width_in: float = PAGE_IN) -> "Figure":
    """Planted anomalies: the disturbed mean next to the replayed one, and the band of the
    undisturbed baseline.

    Parameters
    ----------
    cases
        One row a case: case, and for each of baseline, disturbed and replayed the mean and the ends
        of its interval, s (``baseline``, ``baseline_low``, ``baseline_high``, …); where there,
        ``ratio_low`` and ``ratio_high`` of replayed / disturbed.
    width_in
        Of the figure at print size, in inches.

    Returns
    -------
    matplotlib Figure: means above, replayed / disturbed − 1 below.

    Raises
    ------
    InputError
        A column is missing.
    """
    import matplotlib.pyplot as plt

    finished_rows(cases, tuple(PLANTED_COLUMNS))
    places = np.arange(len(cases))
    with style():
        figure, (upper, lower) = plt.subplots(
            2, 1, figsize=(width_in, 3.6), sharex=True, height_ratios=[2.2, 1]
        )
        _draw_baseline_band(upper, places, cases)
        _draw_means(upper, places - 0.13, cases, "disturbed", "disturbed (planted)")
        _draw_means(upper, places + 0.13, cases, "replayed", "replayed")
        upper.set_ylabel("mean run time (s)")
        upper.set_ylim(bottom=0)
        _draw_errors(lower, places, cases)
        for axes in (upper, lower):
            axes.grid(axis="x", visible=False)
        figure.legend(loc="outside upper left", ncols=2)
        figure.align_ylabels()
    return figure


def _draw_errors(axes: Any, places: np.ndarray, cases: pd.DataFrame) -> None:
    """Replayed / disturbed − 1 of each case, with its interval where there is one."""
    error = 100 * (cases["replayed"] / cases["disturbed"] - 1)
    role = ROLES["injected"]
    axes.bar(places, error, width=0.5, color=role.colour, hatch=role.hatch, edgecolor="white")
    axes.axhline(0, color="black", linewidth=0.6)
    reach = max(1.0, 1.25 * float(error.abs().max()))
    if {"ratio_low", "ratio_high"} <= set(cases.columns):
        low, high = 100 * (cases["ratio_low"] - 1), 100 * (cases["ratio_high"] - 1)
        axes.errorbar(
            places,
            error,
            [error - low, high - error],
            fmt="none",
            ecolor="black",
            capsize=2.5,
            linewidth=0.8,
        )
        reach = 1.15 * float(max(low.abs().max(), high.abs().max(), 1.0))
    axes.set_ylim(-reach, reach)
    axes.set_ylabel("replayed ÷\ndisturbed − 1 (%)")
    axes.set_xticks(places, [str(case) for case in cases["case"]])
    axes.set_xlabel("case")


def _draw_means(axes: Any, places: np.ndarray, cases: pd.DataFrame, name: str, label: str) -> None:
    role = ROLES["injected" if name == "replayed" else name]
    axes.errorbar(
        places,
        cases[name],
        interval_reach(cases[name], cases[f"{name}_low"], cases[f"{name}_high"]),
        color=role.colour,
        marker=role.marker,
        linestyle="none",
        capsize=2.5,
        linewidth=1,
        label=f"{label}, mean and 95 % interval",
    )


def _draw_baseline_band(axes: Any, places: np.ndarray, cases: pd.DataFrame) -> None:
    role = ROLES["baseline"]
    for place, mean, low, high in zip(
        places, cases["baseline"], cases["baseline_low"], cases["baseline_high"]
    ):
        label = "baseline, mean and 95 % interval" if place == 0 else None
        axes.fill_between(
            [place - 0.38, place + 0.38],
            low,
            high,
            color=role.colour,
            alpha=0.3,
            linewidth=0,
            label=label,
        )
        axes.plot(
            [place - 0.38, place + 0.38],
            [mean, mean],
            color=role.colour,
            linestyle=role.dash,
            linewidth=0.9,
        )


@or_blank
def figure_excess(table: pd.DataFrame, width_in: float = PAGE_IN) -> "Figure":
    """How much longer than the undisturbed mean each slow run took, and what its replays bring back
    of that.

    Parameters
    ----------
    table
        Of `worst_runs.worst_table`: `case`, `excess_ms`, and `kernel_ms`, `hypervisor_ms`,
        `unexplained_ms` with `…_low` and `…_high`; `losses_ms` where losses were replayed.
    width_in
        Of the figure at print size, in inches.

    Returns
    -------
    matplotlib Figure: for each case the excess as a grey bar, and before it a bar a part with its
    95 % interval. A part below zero is chance, or a replay that costs more than what it replays.
    """
    import matplotlib.pyplot as plt

    need_rows(table, "no slow run to draw", fix="replay at least one: cases=1")
    places = np.arange(len(table))
    with style():
        figure, axes = plt.subplots(figsize=(width_in, 2.4))
        axes.bar(
            places,
            table["excess_ms"],
            width=0.84,
            color="#DDDDDD",
            label="beyond the undisturbed mean",
        )
        parts = {name: part for name, part in PARTS.items() if name in table}
        wide = 0.78 / len(parts)
        for number, (name, (label, role)) in enumerate(parts.items()):
            middle = places + wide * (number - (len(parts) - 1) / 2)
            _draw_part(axes, middle, 0.85 * wide, table, name, label, role)
        axes.axhline(0, color="black", linewidth=0.6)
        axes.set_xticks(
            places,
            [
                f"case {case}\n{seconds:.3f} s"
                for case, seconds in zip(table["case"], table["anomaly_seconds"])
            ],
        )
        axes.set_ylabel("time (ms)")
        axes.grid(axis="x", visible=False)
        figure.legend(loc="outside upper left", ncols=3)
    return figure


def _draw_part(
    axes: Any,
    places: np.ndarray,
    width: float,
    table: pd.DataFrame,
    name: str,
    label: str,
    role: Role,
) -> None:
    axes.bar(
        places,
        table[name],
        width=width,
        color=role.colour,
        hatch=role.hatch,
        edgecolor="white",
        linewidth=0,
        label=label,
    )
    axes.errorbar(
        places,
        table[name],
        interval_reach(table[name], table[f"{name}_low"], table[f"{name}_high"]),
        fmt="none",
        ecolor="black",
        capsize=2,
        linewidth=0.8,
    )


@or_blank
def figure_causes(scores: pd.DataFrame, width_in: float = PAGE_IN) -> "Figure":
    """Run time with each cause over run time without, 95 % intervals; the marker says what the
    attribution named.

    Parameters
    ----------
    scores
        Of `score_causes`.
    width_in
        Of the figure at print size, in inches.

    Returns
    -------
    matplotlib Figure.
    """
    import matplotlib.pyplot as plt

    need_rows(scores, "no cause was scored", fix="plant at least one: cause_runs(…)")
    scores = scores.sort_values("effect", ascending=False).reset_index(drop=True)
    with style():
        figure, axes = plt.subplots(figsize=(width_in, 1.0 + 0.24 * len(scores)))
        axes.axvline(1, color="black", linewidth=0.6)
        for named, (role, marker, label) in _MARKS.items():
            rows = scores[scores["named"] == named]
            if len(rows):
                reach = interval_reach(rows["effect"], rows["low"], rows["high"])
                _draw_effects(axes, rows["effect"], reach, role, marker, label)
        axes.set_yticks(scores.index, scores["cause"])
        axes.set_ylim(len(scores) - 0.5, -0.5)
        named_first = axes.secondary_yaxis("right")
        named_first.set_yticks(scores.index, scores["first"].replace("", "–"), color="#555555")
        named_first.tick_params(length=0)
        named_first.spines["right"].set_visible(False)
        axes.set_xlabel("median run time, disturbed over undisturbed")
        figure.legend(loc="outside upper left", ncols=2)
    return figure


def _draw_effects(
    axes: Any, effects: pd.Series, reach: _Reach, role: str, marker: str, label: str
) -> None:
    """Each effect in the row of its index, with its interval."""
    axes.errorbar(
        effects,
        effects.index,
        xerr=reach,
        linestyle="none",
        marker=marker,
        markersize=5,
        color=ROLES[role].colour,
        capsize=2,
        linewidth=0.9,
        label=f"{label} ({len(effects)})",
    )


@or_blank
def figure_mitigations(
    slowdowns: pd.DataFrame,
    runs: pd.DataFrame | None = None,
    published: pd.DataFrame | None = None,
    width_in: float = PAGE_IN,
) -> "Figure":
    """Run time under noise over the undisturbed run time of the same configuration: a panel a
    benchmark, a marker a model.

    Parameters
    ----------
    slowdowns
        Of `nbhelpers.studies.persson.slowdown_table`.
    runs
        The runs behind it: `benchmark`, `model`, `config`, `ratio`, drawn pale beneath.
    published
        `benchmark`, `model`, `config`, `increase_percent`, drawn as short grey lines.
    width_in
        Of the figure at print size, in inches.

    Returns
    -------
    matplotlib Figure.
    """
    import matplotlib.pyplot as plt

    need_rows(slowdowns, "no injected runs to draw", fix="inject at least twice: runs=2")
    benchmarks = list(dict.fromkeys(slowdowns["benchmark"]))
    configs = list(dict.fromkeys(slowdowns["config"]))
    with style():
        figure, panels = plt.subplots(
            1, len(benchmarks), figsize=(width_in, 2.5), sharey=True, squeeze=False
        )
        for axes, benchmark in zip(panels[0], benchmarks):
            _draw_benchmark(
                axes,
                _of_benchmark(slowdowns, benchmark),
                _of_benchmark(runs, benchmark),
                _of_benchmark(published, benchmark),
                configs,
            )
            axes.set_title(benchmark)
        panels[0][0].set_ylabel("run time under noise,\nover undisturbed")
        handles, labels = panels[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper left", ncols=4)
    return figure


def _of_benchmark(table: pd.DataFrame | None, benchmark: str) -> pd.DataFrame | None:
    return None if table is None else table[table["benchmark"] == benchmark]


def _draw_benchmark(
    axes: Any,
    slowdowns: pd.DataFrame,
    runs: pd.DataFrame | None,
    published: pd.DataFrame | None,
    configs: list[str],
) -> None:
    models = list(dict.fromkeys(slowdowns["model"]))
    for number, model in enumerate(models):
        shift = 0.3 * (number - (len(models) - 1) / 2)
        _draw_run_ratios(axes, runs, model, configs, shift, ROLES[_MODELS[model]].colour)
        _draw_model(axes, slowdowns[slowdowns["model"] == model], model, configs, shift)
        if published is not None:
            theirs = published[(published["model"] == model) & published["config"].isin(configs)]
            axes.scatter(
                theirs["config"].map(configs.index) + shift,
                1 + theirs["increase_percent"] / 100,
                marker="_",
                s=80,
                color="#777777",
                linewidth=1.4,
                label="as published" if not number else None,
            )
    axes.axhline(1, color="black", linewidth=0.6)
    axes.set_xticks(range(len(configs)), configs, rotation=30)
    axes.set_xlim(-0.6, len(configs) - 0.4)
    axes.grid(axis="x", visible=False)


def _draw_model(
    axes: Any, slowdowns: pd.DataFrame, model: str, configs: list[str], shift: float
) -> None:
    """The mean slow-down of each configuration with its interval."""
    role = ROLES[_MODELS[model]]
    ratio, low, high = (
        1 + slowdowns[f"{name}_percent"] / 100 for name in ("increase", "low", "high")
    )
    axes.errorbar(
        slowdowns["config"].map(configs.index).to_numpy() + shift,
        ratio,
        interval_reach(ratio, low, high),
        linestyle="none",
        marker=role.marker,
        color=role.colour,
        markersize=4,
        capsize=2,
        linewidth=0.9,
        label=f"{model}, mean with 95 % interval",
    )


def _draw_run_ratios(
    axes, runs: pd.DataFrame | None, model: str, configs: list[str], shift: float, colour: str
) -> None:
    if runs is None:
        return
    rows = runs[(runs["model"] == model) & runs["config"].isin(configs)]
    axes.scatter(
        rows["config"].map(configs.index) + shift + 0.08,
        rows["ratio"],
        s=6,
        color=colour,
        alpha=0.35,
        linewidth=0,
    )


@or_blank
def figure_findings(table: pd.DataFrame, width_in: float = PAGE_IN) -> "Figure":
    """The papers' findings: each one's effect here with its 95 % interval; colour and marker say
    what became of it.

    Parameters
    ----------
    table
        Of `nbhelpers.studies.findings.findings_table`: `finding`, `verdict`, `effect_percent`,
        `low_percent`, `high_percent`.
    width_in
        Of the figure at print size, in inches.

    Returns
    -------
    matplotlib Figure; what could not be compared has no mark.
    """
    import matplotlib.pyplot as plt

    need_rows(table, "no findings to draw")
    table = table.reset_index(drop=True)
    with style():
        figure, axes = plt.subplots(figsize=(width_in, 0.9 + 0.26 * len(table)))
        axes.axvline(0, color="black", linewidth=0.6)
        for verdict, (role, marker) in _VERDICTS.items():
            rows = table[table["verdict"] == verdict]
            reach = interval_reach(
                rows["effect_percent"], rows["low_percent"], rows["high_percent"]
            )
            _draw_effects(axes, rows["effect_percent"], reach, role, marker, verdict)
        axes.set_yticks(table.index, [_claim(text) for text in table["finding"]])
        axes.set_ylim(len(table) - 0.5, -0.5)
        axes.set_xlabel("effect (%)")
        figure.legend(loc="outside upper right", ncols=3)
    return figure


def _claim(text: str) -> str:
    return text.split(" (")[0]


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
) -> "Figure":
    """A line of dots a case, with 95 % intervals: applications under several noises, ours next to
    what was published.

    Parameters
    ----------
    table
        The columns `rows` (names at the left), `by` (colour and marker), `y`, `low` and `high` (or
        `y` with _low and _high), each of which may be missing in a row.
    rows, by, y
        Names of these columns.
    label
        Of the axis.
    log
        Whether the axis is logarithmic, where the values span enough.
    mark
        A thin line at this value; 1 is "not slowed down".
    width_in
        Of the figure at print size, in inches.

    Returns
    -------
    matplotlib Figure: a row for each value of `rows`, with a dot for each value of `by`.

    Raises
    ------
    InputError
        A column that the table lacks.
    """
    import matplotlib.pyplot as plt

    keys = [rows] if isinstance(rows, str) else list(rows)
    low, high = ("low", "high") if y == "median" else (f"{y}_low", f"{y}_high")
    need_columns(table, [*keys, by, y, low, high])
    names = table[keys].astype(str).agg(" · ".join, axis=1)
    order, groups = names.drop_duplicates().tolist(), table[by].drop_duplicates().tolist()
    places = names.map(order.index)
    with style():
        figure, axes = plt.subplots(
            figsize=(width_in, 0.7 + (0.08 + 0.12 * len(groups)) * len(order))
        )
        for number, group in enumerate(groups):
            chosen, role = table[table[by] == group], CYCLE[number % len(CYCLE)]
            shift = 0.7 / len(groups) * (number - (len(groups) - 1) / 2)
            reach = interval_reach(chosen[y], chosen[low], chosen[high])
            at = places[chosen.index] + shift
            _draw_dots(axes, chosen[y], at, reach, role, value_text(group))
        axes.set_yticks(range(len(order)), order)
        axes.set_ylim(len(order) - 0.5, -0.5)
        axes.set_xlabel(label)
        if log:
            log_axis(axes, "x")
        if mark is not None:
            axes.axvline(mark, color="black", linewidth=0.6)
        if len(groups) > 1:
            figure.legend(loc="outside upper right", ncols=min(4, len(groups)))
    return figure


def _draw_dots(
    axes: Any,
    values: pd.Series,
    at: pd.Series,
    reach: _Reach,
    role: Role,
    label: str,
) -> None:
    axes.errorbar(
        values,
        at,
        xerr=reach,
        fmt=role.marker,
        color=role.colour,
        capsize=2,
        linewidth=0.8,
        label=label,
    )
