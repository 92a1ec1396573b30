"""Quantile regression of the outcome on a factor: does it move the typical run, or only the slow
ones?

Owns the fit; statsmodels does it.
"""

import warnings
from collections.abc import Iterable

import numpy as np
import pandas as pd

from ..errors import InputError
from ..outcomes import outcome_of
from .intervals import percentile_interval

QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
FEWEST_RUNS = 20
REPEATS = 200


def quantile_effect(
    runs: pd.DataFrame,
    factor: str,
    outcome: str | None = None,
    quantiles: Iterable[float] = QUANTILES,
    seed: int = 0,
) -> pd.DataFrame:
    """Quantile regression: the quantiles of the outcome as lines over a factor.

    Parameters
    ----------
    runs
        Runs table; rows whose `status` is not "ok", or in which a value is missing, are excluded.
    factor, outcome
        Columns of numbers; no outcome: what the program is judged by.
    quantiles
        Of the outcome.
    seed
        Of the resamples.

    Returns
    -------
    DataFrame, index quantile. Columns: intercept; slope (outcome per unit of the factor) with its
    95 % bootstrap interval low and high; effect_percent with low_percent and high_percent: the
    change from the 10th to the 90th percentile of the factor, in percent of the median outcome.
    Where these percentiles are equal, the change over the whole range of the factor.

    Raises
    ------
    InputError
        No such column, text, fewer than 20 runs, a factor that does not vary.

    Notes
    -----
    Koenker and Bassett, Regression quantiles (1978). The interval is a bootstrap: counters are
    often zero in most runs, where formulas for the standard error divide by a density of zero.
    """
    x, y = _columns(runs, factor, outcome_of(runs, outcome).name)
    low, high = np.percentile(x, [10, 90])
    reach = high - low or np.ptp(x)
    scale = 100 * reach / np.median(y)
    drawn = np.random.default_rng(seed).integers(0, x.size, (REPEATS, x.size))
    rows = {quantile: _fit(x, y, quantile, drawn) for quantile in quantiles}
    table = pd.DataFrame.from_dict(
        rows, orient="index", columns=["intercept", "slope", "low", "high"]
    ).rename_axis("quantile")
    return table.assign(
        effect_percent=table["slope"] * scale,
        low_percent=table["low"] * scale,
        high_percent=table["high"] * scale,
    )


def _columns(runs: pd.DataFrame, factor: str, outcome: str) -> tuple[np.ndarray, np.ndarray]:
    for name in (factor, outcome):
        if name not in runs.columns:
            raise InputError(
                f"no column {name!r}", fix=f"the table has: {', '.join(map(str, runs.columns))}"
            )
        if not pd.api.types.is_numeric_dtype(runs[name]):
            raise InputError(
                "the column is text", where=name, why="a quantile regression is of numbers"
            )
    runs = runs[runs["status"] == "ok"] if "status" in runs.columns else runs
    pair = runs[[factor, outcome]].astype(float).dropna()
    if len(pair) < FEWEST_RUNS:
        raise InputError(
            f"{len(pair)} runs are too few for a quantile regression",
            fix=f"measure at least {FEWEST_RUNS}",
        )
    if pair[factor].nunique() < 2:
        raise InputError("the factor does not vary", where=factor)
    return pair[factor].to_numpy(), pair[outcome].to_numpy()


def _fit(x: np.ndarray, y: np.ndarray, quantile: float, drawn: np.ndarray) -> list[float]:
    """Intercept and slope, and the interval of the slope; both columns are standardised for the
    iterations to converge.
    """
    centre, spread = x.mean(), x.std()
    middle, size = np.median(y), y.std() or 1.0
    u, v = (x - centre) / spread, (y - middle) / size
    intercept, slope = _line(u, v, quantile)
    slopes = np.array(
        [_line(u[rows], v[rows], quantile)[1] for rows in drawn if np.ptp(u[rows]) > 0]
    )
    low, high = np.array(percentile_interval(slopes)) * size / spread
    slope *= size / spread
    return [
        float(middle + intercept * size - slope * centre),
        float(slope),
        float(low),
        float(high),
    ]


def _line(x: np.ndarray, y: np.ndarray, quantile: float) -> tuple[float, float]:
    from statsmodels.regression.quantile_regression import QuantReg

    with warnings.catch_warnings():
        # "iteration limit": the result of the last step is far within the interval
        warnings.simplefilter("ignore")
        model = QuantReg(y, np.column_stack([np.ones(x.size), x]))
        intercept, slope = model.fit(quantile, max_iter=200, p_tol=1e-4).params
    return float(intercept), float(slope)
