"""Which node is slow: every node against the others in the same rounds, all judged together."""

import numpy as np
import pandas as pd

from nbhelpers.errors import InputError
from nbhelpers.measurement import finished
from nbhelpers.outcomes import outcome_of
from nbhelpers.statistics import bootstrap_interval
from nbhelpers.statistics.claims import Claim, Judgement, judge
from nbhelpers.statistics.evidence import Evidence

MARGIN = 0.02  # a node that is slower by less counts as equal


def compare_nodes(
    runs: pd.DataFrame, outcome: str | None = None, margin: float = MARGIN
) -> pd.DataFrame:
    """Say of each node whether it is worse than the others.

    The unit is a round, in which every node measured: the mean of a node over the mean of the
    others. All nodes are judged together.

    Parameters
    ----------
    runs
        Runs of `measure_on_nodes` or `recorded_on_nodes`.
    outcome
        Column that is judged; None: what the program is judged by.
    margin
        Share of change that counts as none.

    Returns
    -------
    DataFrame
        One row a node, the worst first: `node`, `runs`, `median` with its 95 % interval (`low`,
        `high`), `change_percent` against the others with `change_low_percent` and
        `change_high_percent`, `rounds`, `verdict` ("worse", "better", "no difference", "cannot
        tell"), `p_adjusted`, `rounds_needed`. `attrs["margin"]` is the margin;
        `figure.figure_nodes` draws all of it.

    Raises
    ------
    InputError
        Fewer than two nodes.
    """
    judged = outcome_of(runs, outcome)
    done = finished(runs)
    if done["node"].nunique() < 2:
        raise InputError(
            f"runs of {done['node'].nunique()} node(s)",
            why="a node can only be slow in comparison with others",
            fix="measure on at least two nodes",
        )
    ratios = _ratios(done, judged.name)
    if judged.higher_is_better:
        ratios = -ratios
    claims = [
        (Claim(f"{node} is worse than the others", "above", margin), Evidence(effects.to_numpy()))
        for node, effects in ratios.items()
    ]
    rows = [
        _row(str(node), done.loc[done["node"] == node, judged.name].astype(float), found)
        for node, found in zip(ratios.columns, judge(claims))
    ]
    table = pd.DataFrame(rows).sort_values("change_percent", ascending=False)
    table.attrs["margin"] = margin
    return table.reset_index(drop=True)


def _ratios(done: pd.DataFrame, outcome: str) -> pd.DataFrame:
    """Log of a node's mean over the mean of the others' means: a row a round, a column a node."""
    means = done.groupby(["node_round", "node"])[outcome].mean().unstack()
    means = means.dropna()
    logs = np.log(means)
    others = (logs.sum(axis=1).to_numpy()[:, None] - logs) / (logs.shape[1] - 1)
    return logs - others


_WORDS = {
    "reproduced": "worse",
    "reversed": "better",
    "equivalent to none": "no difference",
}


def _row(node: str, values: pd.Series, found: Judgement) -> dict:
    low, high = bootstrap_interval(values.to_numpy(), "median")
    return {
        "node": node,
        "runs": len(values),
        "median": values.median(),
        "low": low,
        "high": high,
        "change_percent": 100 * found.effect,
        "change_low_percent": 100 * found.low,
        "change_high_percent": 100 * found.high,
        "rounds": found.units,
        "verdict": _WORDS.get(found.verdict, "cannot tell"),
        "p_adjusted": found.p_adjusted,
        "rounds_needed": found.needed,
    }
