"""The answer to the title of the study's page: whether operations vary more with more threads.

Owns its words; the numbers are those of `variability_table` and `findings_table`.
"""

from typing import Any

import pandas as pd

from ...answers import Answer
from ...statistics.claims import NONE, REPRODUCED, REVERSED
from ..answers_words import open_answer, some_groups
from .panels import STREAM_KERNELS

THREADS = "more threads vary more (CV"  # how the finding begins
PINNED = "TP"  # configurations that differ by their threads alone begin with this
_WORDS = {REPRODUCED: "yes", REVERSED: "no", NONE: "no"}


def variability_answer(variability: pd.DataFrame, judged: pd.DataFrame) -> Answer:
    """Whether OpenMP's operations vary more with more threads, by the verdict on the finding.

    Parameters
    ----------
    variability
        Of `variability_table`. BabelStream's kernels are left out: they are the program's own.
    judged
        Of `findings_table`, with the findings of `runtime_findings`.
    """
    known: dict[str, Any] = {"figure": "scaling-syncbench"}
    operations = _operations(variability)
    rows = judged[judged["finding"].str.startswith(THREADS)]
    if operations.empty or rows.empty:
        return open_answer("No operation of OpenMP was measured.", **known)
    row, within, count = rows.iloc[0], operations["within_cv_percent"].median(), len(operations)
    sentence = f"OpenMP's operations vary by {within:.1f} % within a run (median of {count} cells)"
    known |= {"groups": _by_threads(operations), "axis": "variation within a run (CV, %)"}
    if pd.isna(row["effect_percent"]):
        return open_answer(f"{sentence}; {row['why']}.", **known)
    for field, column in (("value", "effect"), ("low", "low"), ("high", "high")):
        known[field] = float(row[f"{column}_percent"])
    known |= {"quantity": "variation, all threads over one", "unit": "%"}
    known |= {"n": int(row["rounds"]), "n_of": "rounds"}
    if pd.notna(row["paper_percent"]):
        known["published"] = f"{row['paper_percent']:+.1f} % ({row['source']})"
    said = f"{sentence}; with more threads {row['effect_percent']:+.0f} %."
    word = _WORDS.get(row["verdict"])
    return Answer(word, said, **known) if word else open_answer(said, **known)


def variability_sentence(variability: pd.DataFrame) -> str:
    """How much OpenMP's operations vary within a run and between runs.

    Parameters
    ----------
    variability
        As of `variability_answer`.

    Examples
    --------
    >>> columns = ["benchmark", "within_cv_percent", "between_cv_percent"]
    >>> variability_sentence(pd.DataFrame([("barrier", 16.0, 8.0)], columns=columns))
    '**16.0 %** within a run and **8.0 %** from run to run: median variation (CV, n = 1 cells).'
    """
    operations = _operations(variability)
    if operations.empty:
        return "No operation of OpenMP was measured."
    within, between = (
        operations["within_cv_percent"].median(),
        operations["between_cv_percent"].median(),
    )
    runs = "cannot tell here how much" if pd.isna(between) else f"**{between:.1f} %**"
    return (
        f"**{within:.1f} %** within a run and {runs} from run to run: median variation (CV,"
        f" n = {len(operations)} cells)."
    )


def _operations(variability: pd.DataFrame) -> pd.DataFrame:
    return variability[~variability["benchmark"].isin(STREAM_KERNELS)]


def _by_threads(operations: pd.DataFrame) -> dict[str, list[float]]:
    """The variation of pinned operations by number of threads; none where nothing was pinned."""
    if "config" not in operations:
        return {}
    pinned = operations[operations["config"].str.startswith(PINNED)].groupby("threads")
    return some_groups(
        {
            f"{threads} thread{'s' if threads > 1 else ''}": part["within_cv_percent"]
            for threads, part in pinned
        }
    )
