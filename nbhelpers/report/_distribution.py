"""Figures of run times: each run as a point beneath whatever summarises it.

Owns the figures of distributions, comparisons and planted cases.
"""

import numpy as np
import pandas as pd

from ..attribution import Cutoff
from ..errors import InputError
from ..outcomes import outcome_of
from ..statistics import bootstrap_interval
from ._blank import NothingToDraw, or_blank
from .appearance import COLUMN_IN, PAGE_IN, ROLES, Role, roles_of, style

PLANTED_COLUMNS = [
    "case",
    *(
        f"{kind}{part}"
        for kind in ("baseline", "disturbed", "replayed")
        for part in ("", "_low", "_high")
    ),
]


@or_blank
def figure_distribution(
    runs: pd.DataFrame,
    cutoff: Cutoff | float | None = None,
    by: str | None = None,
    outcome: str | None = None,
    width_in: float | None = None,
):
    """Every run beneath the empirical distribution, with the cutoff.

    Parameters
    ----------
    runs
        Runs table; only rows of status "ok" are drawn.
    cutoff
        a Cutoff or a value; runs above it are drawn as slow if `by` is None.
    by
        Column that names the groups; None = all runs together.
    outcome
        Column to draw; None: what the program is judged by.

    Returns
    -------
    matplotlib Figure, a column wide (a page wide for more than four groups).
    """
    import matplotlib.pyplot as plt

    judged = outcome_of(runs, outcome)
    outcome = judged.name
    runs, value = finished_rows(runs, (outcome, by)), _value(cutoff)
    groups = _groups(runs, by, outcome)
    width_in = width_in or (COLUMN_IN if len(groups) <= 4 else PAGE_IN)
    height_in = 1.7 + 0.32 * len(groups)
    with style():
        figure, (upper, lower) = plt.subplots(
            2,
            1,
            figsize=(width_in, height_in + 0.5),
            sharex=True,
            height_ratios=[1.4, 0.3 + 0.32 * len(groups)],
        )
        _draw_ecdf(upper, groups, value)
        draw_strips(lower, groups, value, coloured_by_cutoff=by is None)
        for axes in (upper, lower):
            _draw_cutoff(axes, value)
        upper.tick_params(labelbottom=False)
        lower.set_xlabel(judged.label)
        _cutoff_legend(upper, value, groups, by)
    return figure


def finished_rows(runs: pd.DataFrame, columns: tuple) -> pd.DataFrame:
    """The rows to draw; names the column that is missing."""
    for column in columns:
        if column is not None and column not in runs.columns:
            raise InputError(
                f"no column {column!r} to draw",
                fix=f"the table has: {', '.join(map(str, runs.columns))}",
            )
    kept = runs[runs["status"] == "ok"] if "status" in runs.columns else runs
    if kept.empty:
        raise NothingToDraw(
            "no run to draw", fix="look at the column status: only runs that are 'ok' are drawn"
        )
    return kept


def _value(cutoff: Cutoff | float | None) -> float | None:
    return cutoff.value if isinstance(cutoff, Cutoff) else cutoff


def _groups(runs: pd.DataFrame, by: str | None, outcome: str) -> dict[str, np.ndarray]:
    if by is None:
        return {"": runs[outcome].to_numpy(float)}
    return {
        str(name): group[outcome].to_numpy(float)
        for name, group in runs.groupby(by, sort=False, observed=True)
    }


def _draw_ecdf(axes, groups: dict[str, np.ndarray], cutoff: float | None) -> None:
    import seaborn

    roles = roles_of(groups) if len(groups) > 1 else dict.fromkeys(groups, ROLES["baseline"])
    for name, values in groups.items():
        label = f"{name} (n = {values.size})" if name else f"n = {values.size}"
        seaborn.ecdfplot(
            x=values, ax=axes, color=roles[name].colour, linestyle=roles[name].dash, label=label
        )
    axes.set_ylabel("share of runs\nthat took at most")
    axes.set_ylim(0, 1.03)


def draw_strips(
    axes, groups: dict[str, np.ndarray], cutoff: float | None, coloured_by_cutoff: bool
) -> None:
    """A row a group: box of the quartiles, whiskers from the 5th to the 95th percentile, each run
    as a point below.
    """
    roles = roles_of(groups) if len(groups) > 1 else dict.fromkeys(groups, ROLES["baseline"])
    for row, (name, values) in enumerate(groups.items()):
        _draw_box(axes, row - 0.24, values)
        for role, chosen in _coloured(roles[name], values, cutoff if coloured_by_cutoff else None):
            axes.scatter(
                values[chosen],
                row + 0.16 + _jitter(values.size, 0.17)[chosen],
                s=_size(values.size),
                marker=role.marker,
                facecolor=role.colour,
                edgecolor="none",
                alpha=0.75,
                rasterized=values.size > 2000,
            )
    axes.set_yticks(range(len(groups)), list(groups))
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(groups) - 0.5, -0.5)
    axes.grid(axis="y", visible=False)


def _coloured(
    role: Role, values: np.ndarray, cutoff: float | None
) -> list[tuple[Role, np.ndarray]]:
    if cutoff is None:
        return [(role, np.ones(values.size, bool))]
    return [(ROLES["fast"], values <= cutoff), (ROLES["slow"], values > cutoff)]


def _draw_box(axes, row: float, values: np.ndarray) -> None:
    box = axes.boxplot(
        values,
        positions=[row],
        widths=0.2,
        orientation="horizontal",
        whis=(5, 95),
        showfliers=False,
        manage_ticks=False,
        medianprops={"color": "black", "linewidth": 1.2},
    )
    for part in (*box["boxes"], *box["whiskers"], *box["caps"]):
        part.set(color="#555555", linewidth=0.7)


def _jitter(count: int, reach: float) -> np.ndarray:
    """Offsets that spread points evenly and are the same every time (golden-ratio sequence)."""
    return (2 * ((np.arange(count) * 0.6180339887498949) % 1) - 1) * reach


def _size(count: int) -> float:
    return float(np.clip(1500 / count, 3, 12))


def _draw_cutoff(axes, cutoff: float | None) -> None:
    if cutoff is not None:
        axes.axvline(cutoff, color="black", linestyle=(0, (3, 2)), linewidth=0.9)


def _cutoff_legend(
    axes, cutoff: float | None, groups: dict[str, np.ndarray], by: str | None
) -> None:
    handles, labels = axes.get_legend_handles_labels()
    if cutoff is not None and by is None:
        values = np.concatenate(list(groups.values()))
        for name, count in (
            ("fast", int((values <= cutoff).sum())),
            ("slow", int((values > cutoff).sum())),
        ):
            handles.append(
                axes.scatter([], [], marker=ROLES[name].marker, color=ROLES[name].colour, s=12)
            )
            labels.append(f"{name} (n = {count})")
    if cutoff is not None:
        handles.append(axes.plot([], [], color="black", linestyle=(0, (3, 2)), linewidth=0.9)[0])
        labels.append(f"cutoff {cutoff:.4g}")
    axes.figure.legend(
        handles, labels, loc="outside upper left", ncols=2 if axes.figure.get_figwidth() < 5 else 4
    )


@or_blank
def figure_compare(
    runs: pd.DataFrame,
    by: str = "cell",
    outcome: str | None = None,
    anomaly_seconds: float | None = None,
    width_in: float | None = None,
):
    """Run times of several cells: each run as a point, the mean with its 95 % interval beside, the
    anomaly as a line.

    Parameters
    ----------
    runs
        Runs table; only rows of status "ok" are drawn.
    by
        Column that names the cells (baseline, traced, injected, …).
    outcome
        Column to draw; None: what the program is judged by.
    anomaly_seconds
        Run time of the worst run that is replayed.

    Returns
    -------
    matplotlib Figure. Intervals are percentile bootstraps of the mean.
    """
    import matplotlib.pyplot as plt

    judged = outcome_of(runs, outcome)
    groups = _groups(finished_rows(runs, (judged.name, by)), by, judged.name)
    width_in = width_in or (COLUMN_IN if len(groups) <= 4 else PAGE_IN)
    roles = roles_of(groups)
    with style():
        figure, axes = plt.subplots(figsize=(width_in, 2.5))
        for place, (name, values) in enumerate(groups.items()):
            _draw_cell(axes, place, values, roles[name])
        if anomaly_seconds is not None:
            axes.axhline(
                anomaly_seconds,
                color="black",
                linestyle=(0, (3, 2)),
                linewidth=0.9,
                label=f"anomaly {anomaly_seconds:.4g} s",
            )
        axes.plot([], [], color="black", marker="_", label="mean, 95 % interval")
        axes.set_xticks(
            range(len(groups)), [f"{name}\nn = {values.size}" for name, values in groups.items()]
        )
        axes.set_xlim(-0.5, len(groups) - 0.4)
        axes.set_ylabel(judged.label)
        axes.grid(axis="x", visible=False)
        figure.legend(loc="outside upper left", ncols=2)
    return figure


def _draw_cell(axes, place: int, values: np.ndarray, role: Role) -> None:
    axes.scatter(
        place - 0.08 + _jitter(values.size, 0.2),
        values,
        s=_size(values.size),
        marker=role.marker,
        facecolor=role.colour,
        edgecolor="none",
        alpha=0.6,
        rasterized=values.size > 2000,
    )
    mean = values.mean()
    low, high = bootstrap_interval(values, "mean") if values.size > 1 else (mean, mean)
    axes.errorbar(
        place + 0.26,
        mean,
        [[max(mean - low, 0)], [max(high - mean, 0)]],
        color="black",
        marker="_",
        markersize=7,
        capsize=2.5,
        linewidth=1,
    )


@or_blank
def figure_planted(cases: pd.DataFrame, width_in: float = PAGE_IN):
    """Planted anomalies: the disturbed mean beside the replayed one, and the band of the
    undisturbed baseline.

    Parameters
    ----------
    cases
        One row a case: case, and for each of baseline, disturbed and replayed the mean and the ends
        of its interval, s (``baseline``, ``baseline_low``, ``baseline_high``, …); where there,
        ``ratio_low`` and ``ratio_high`` of replayed / disturbed.

    Returns
    -------
    matplotlib Figure: means above, replayed / disturbed − 1 below.

    Raises
    ------
    InputError
        a column is missing.
    """
    import matplotlib.pyplot as plt

    finished_rows(cases, tuple(PLANTED_COLUMNS))
    places = np.arange(len(cases))
    with style():
        figure, (upper, lower) = plt.subplots(
            2, 1, figsize=(width_in, 3.6), sharex=True, height_ratios=[2.2, 1]
        )
        _draw_baseline_band(upper, places, cases)
        for name, label, shift in (
            ("disturbed", "disturbed (planted)", -0.13),
            ("replayed", "replayed", 0.13),
        ):
            _draw_means(upper, places + shift, cases, name, label)
        upper.set_ylabel("mean run time (s)")
        upper.set_ylim(bottom=0)
        error = 100 * (cases["replayed"] / cases["disturbed"] - 1)
        lower.bar(
            places,
            error,
            width=0.5,
            color=ROLES["injected"].colour,
            hatch=ROLES["injected"].hatch,
            edgecolor="white",
        )
        lower.axhline(0, color="black", linewidth=0.6)
        reach = max(1.0, 1.25 * float(error.abs().max()))
        if {"ratio_low", "ratio_high"} <= set(cases.columns):
            low, high = 100 * (cases["ratio_low"] - 1), 100 * (cases["ratio_high"] - 1)
            lower.errorbar(
                places,
                error,
                [error - low, high - error],
                fmt="none",
                ecolor="black",
                capsize=2.5,
                linewidth=0.8,
            )
            reach = 1.15 * float(max(low.abs().max(), high.abs().max(), 1.0))
        lower.set_ylim(-reach, reach)
        lower.set_ylabel("replayed ÷\ndisturbed − 1 (%)")
        lower.set_xticks(places, [str(case) for case in cases["case"]])
        lower.set_xlabel("case")
        for axes in (upper, lower):
            axes.grid(axis="x", visible=False)
        figure.legend(loc="outside upper left", ncols=3)
        figure.align_ylabels()
    return figure


def _draw_means(axes, places: np.ndarray, cases: pd.DataFrame, name: str, label: str) -> None:
    role = ROLES["injected" if name == "replayed" else name]
    reach = [
        np.maximum(cases[name] - cases[f"{name}_low"], 0),
        np.maximum(cases[f"{name}_high"] - cases[name], 0),
    ]
    axes.errorbar(
        places,
        cases[name],
        reach,
        color=role.colour,
        marker=role.marker,
        linestyle="none",
        capsize=2.5,
        linewidth=1,
        label=f"{label}, mean and 95 % interval",
    )


def _draw_baseline_band(axes, places: np.ndarray, cases: pd.DataFrame) -> None:
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
