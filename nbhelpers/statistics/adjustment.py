"""The effect of a factor on the run time with covariates held fixed, such as stolen time.

Owns the linear model; statsmodels fits it.
"""

import pandas as pd

from ..errors import InputError
from ..outcomes import outcome_of
from .epochs import same_epochs


def adjusted_effect(
    runs: pd.DataFrame,
    factor: str,
    level: str,
    against: str,
    covariates: tuple[str, ...] = ("steal_s",),
    outcome: str | None = None,
) -> pd.DataFrame:
    """Effect of one level of a factor against another, without and with covariates.

    Ordinary least squares with heteroscedasticity-robust (HC3) intervals.

    Parameters
    ----------
    runs
        Finished runs; of a campaign that grew, those of the epochs that hold both levels count.
    factor
        Column with the levels, such as ``"cell"``.
    level, against
        The levels compared.
    covariates
        Columns held fixed; those that are missing or do not vary are excluded.
    outcome
        Column explained; None: what the program is judged by.

    Returns
    -------
    DataFrame, a row a model; columns model, runs, effect_percent (of the mean of `against`) with
    its 95 % interval low_percent and high_percent, p_value, r_squared.

    Raises
    ------
    InputError
        A level has fewer than three runs.
    """
    tables = [runs[runs[factor] == name] for name in (level, against)]
    chosen = pd.concat(same_epochs(*tables)).sort_index()
    outcome = outcome_of(runs, outcome).name
    counts = chosen[factor].value_counts().reindex([level, against], fill_value=0)
    if counts.min() < 3:
        raise InputError(
            f"'{counts.idxmin()}' has {counts.min()} finished runs; at least three are needed for"
            " an interval",
            where=factor,
        )
    usable = [
        name
        for name in covariates
        if name in chosen and chosen[name].notna().all() and chosen[name].nunique() > 1
    ]
    models = [_fit(chosen, factor, level, against, [], outcome)]
    if usable:
        models.append(_fit(chosen, factor, level, against, usable, outcome))
    return pd.DataFrame(models)


def _fit(
    runs: pd.DataFrame, factor: str, level: str, against: str, covariates: list[str], outcome: str
) -> dict:
    import statsmodels.api as sm

    base = runs.loc[runs[factor] == against, outcome].mean()
    design = runs[covariates].astype(float).assign(effect=(runs[factor] == level).astype(float))
    fit = sm.OLS(runs[outcome], sm.add_constant(design, has_constant="add")).fit(cov_type="HC3")
    low, high = fit.conf_int().loc["effect"]
    name = f"{level} against {against}" + (
        f", {' and '.join(covariates)} held fixed" if covariates else ""
    )
    return {
        "model": name,
        "runs": len(runs),
        "effect_percent": 100 * fit.params["effect"] / base,
        "low_percent": 100 * low / base,
        "high_percent": 100 * high / base,
        "p_value": fit.pvalues["effect"],
        "r_squared": fit.rsquared,
    }
