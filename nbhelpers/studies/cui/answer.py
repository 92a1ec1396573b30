"""The answer to the title of the study's page: how much the operations vary, and with what.

Owns its words; the numbers are those of `variability_table` and `findings_table`.
"""

import pandas as pd

from ..findings import is_decided
from .panels import STREAM_KERNELS

_OF_TIME = "(time"  # in the findings that are about time, not about variation


def variability_answer(variability: pd.DataFrame, judged: pd.DataFrame) -> str:
    """How much OpenMP's operations vary within a run and between runs, and with what.

    Parameters
    ----------
    variability
        Of `variability_table`. BabelStream's kernels are left out: they are the program's own.
    judged
        Of `findings_table`, with the findings of `runtime_findings`.

    Examples
    --------
    >>> columns = ["benchmark", "within_cv_percent", "between_cv_percent"]
    >>> variability = pd.DataFrame([("barrier", 16.0, 8.0), ("copy", 1.0, 1.0)], columns=columns)
    >>> claim = ("more threads vary more (CV, TP / one thread)", "reproduced", 32.7)
    >>> judged = pd.DataFrame([claim], columns=["finding", "verdict", "effect_percent"])
    >>> print(variability_answer(variability, judged))  # doctest: +NORMALIZE_WHITESPACE
    By **16.0 %** within a run and **8.0 %** from run to run (median coefficients of variation,
    n = 1 cells); reproduced: more threads vary more (+32.7 %).
    """
    own = variability[~variability["benchmark"].isin(STREAM_KERNELS)]
    if own.empty:
        return "Cannot tell here: no operation of OpenMP was measured."
    within, between = own["within_cv_percent"].median(), own["between_cv_percent"].median()
    from_run_to_run = (
        "cannot tell here how much" if pd.isna(between) else f"**{between:.1f} %**"
    ) + " from run to run"
    return (
        f"By **{within:.1f} %** within a run and {from_run_to_run} (median coefficients of"
        f" variation, n = {len(own)} cells); {_with_what(judged)}."
    )


def _with_what(judged: pd.DataFrame) -> str:
    """The findings on variation that these runs decide."""
    of_variation = judged[~judged["finding"].str.contains(_OF_TIME, regex=False)]
    decided = of_variation[is_decided(of_variation["verdict"])]
    if decided.empty:
        return f"cannot tell here with what (none of {len(of_variation)} findings is decided)"
    return "; ".join(
        f"{verdict}: "
        + ", ".join(
            f"{finding.split(' (')[0]} ({effect:+.1f} %)"
            for finding, effect in zip(rows["finding"], rows["effect_percent"], strict=True)
        )
        for verdict, rows in decided.groupby("verdict", sort=False)
    )
