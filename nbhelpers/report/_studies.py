"""Figures of the two single-node studies: configurations under noise, and what became of the
papers' findings.
"""

import numpy as np
import pandas as pd

from ._blank import NothingToDraw, or_blank
from .appearance import PAGE_IN, ROLES, style

_VERDICTS = {
    "supported here": ("baseline", "o"),
    "contradicted here": ("injected", "X"),
    "can't be seen on this machine": ("fast", "s"),
}
_MODELS = {"OMP": "baseline", "SYCL": "injected"}


@or_blank
def figure_mitigations(
    slowdowns: pd.DataFrame,
    runs: pd.DataFrame | None = None,
    published: pd.DataFrame | None = None,
    width_in: float = PAGE_IN,
):
    """Run time under noise over the undisturbed run time of the same configuration: a panel a
    benchmark, a marker a model.

    Parameters
    ----------
    slowdowns
        Of `nbhelpers.studies.slowdown_table`.
    runs
        The runs behind it: `benchmark`, `model`, `config`, `ratio`, drawn pale beneath.
    published
        `benchmark`, `model`, `config`, `increase_percent`, drawn as short grey lines.

    Returns
    -------
    matplotlib Figure.
    """
    import matplotlib.pyplot as plt

    if slowdowns.empty:
        raise NothingToDraw("no injected runs to draw", fix="inject at least twice: runs=2")
    benchmarks = list(dict.fromkeys(slowdowns["benchmark"]))
    configs = list(dict.fromkeys(slowdowns["config"]))
    with style():
        figure, panels = plt.subplots(
            1, len(benchmarks), figsize=(width_in, 2.5), sharey=True, squeeze=False
        )
        for axes, benchmark in zip(panels[0], benchmarks):
            _draw_panel(
                axes,
                _of(slowdowns, benchmark),
                _of(runs, benchmark),
                _of(published, benchmark),
                configs,
            )
            axes.set_title(benchmark)
        panels[0][0].set_ylabel("run time under noise,\nover undisturbed")
        handles, labels = panels[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper left", ncols=4)
    return figure


def _of(table: pd.DataFrame | None, benchmark: str) -> pd.DataFrame | None:
    return None if table is None else table[table["benchmark"] == benchmark]


def _draw_panel(
    axes,
    own: pd.DataFrame,
    runs: pd.DataFrame | None,
    published: pd.DataFrame | None,
    configs: list[str],
) -> None:
    models = list(dict.fromkeys(own["model"]))
    for number, model in enumerate(models):
        role, shift = ROLES[_MODELS[model]], 0.3 * (number - (len(models) - 1) / 2)
        rows = own[own["model"] == model]
        at = rows["config"].map(configs.index).to_numpy() + shift
        _draw_runs(axes, runs, model, configs, shift, role.colour)
        ratio, low, high = (
            1 + rows[f"{name}_percent"].to_numpy() / 100 for name in ("increase", "low", "high")
        )
        axes.errorbar(
            at,
            ratio,
            [np.maximum(ratio - low, 0), np.maximum(high - ratio, 0)],
            linestyle="none",
            marker=role.marker,
            color=role.colour,
            markersize=4,
            capsize=2,
            linewidth=0.9,
            label=f"{model}, mean with 95 % interval",
        )
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


def _draw_runs(
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
def figure_findings(table: pd.DataFrame, width_in: float = PAGE_IN):
    """The papers' findings: each one's effect here with its 95 % interval; colour and marker say
    what became of it.

    Parameters
    ----------
    table
        Of `nbhelpers.studies.findings_table`: `finding`, `verdict`, `effect_percent`, `low_percent`,
        `high_percent`.

    Returns
    -------
    matplotlib Figure; what could not be compared has no mark.
    """
    import matplotlib.pyplot as plt

    if table.empty:
        raise NothingToDraw("no findings to draw")
    table = table.reset_index(drop=True)
    with style():
        figure, axes = plt.subplots(figsize=(width_in, 0.9 + 0.26 * len(table)))
        axes.axvline(0, color="black", linewidth=0.6)
        for said, (role, marker) in _VERDICTS.items():
            rows = table[table["verdict"] == said]
            reach = [
                (rows["effect_percent"] - rows["low_percent"]).clip(lower=0),
                (rows["high_percent"] - rows["effect_percent"]).clip(lower=0),
            ]
            axes.errorbar(
                rows["effect_percent"],
                rows.index,
                xerr=reach,
                linestyle="none",
                marker=marker,
                markersize=5,
                capsize=2,
                linewidth=0.9,
                color=ROLES[role].colour,
                label=f"{said} ({len(rows)})",
            )
        axes.set_yticks(table.index, [_short(text) for text in table["finding"]])
        axes.set_ylim(len(table) - 0.5, -0.5)
        axes.set_xlabel("effect (%)")
        figure.legend(loc="outside upper right", ncols=3)
    return figure


def _short(text: str) -> str:
    return text.split(" (")[0]
