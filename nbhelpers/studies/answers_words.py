"""What the answers of all pages share: the word for a verdict, its numbers, and what is published.

Owns how a judgement of `statistics.claims` becomes the fields of an `Answer`.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from ..answers import CANNOT_TELL, NO, YES, Answer
from ..statistics.claims import NONE, REPRODUCED, REVERSED, Judgement

_WORDS = {REPRODUCED: YES, REVERSED: NO, NONE: NO}


def open_answer(why: str, **known: Any) -> Answer:
    """The answer of data that leave the question open.

    Parameters
    ----------
    why
        A sentence.
    known
        Further fields of `Answer`.
    """
    return Answer(CANNOT_TELL, why, **known)


def word_of(judged: Judgement) -> str:
    """Yes where the claim is shown, no where its reverse or no effect is, otherwise open.

    Examples
    --------
    >>> from nbhelpers.statistics.claims import Claim
    >>> word_of(Judgement(Claim("it is longer", "above"), "equivalent to none"))
    'no'
    """
    return _WORDS.get(judged.verdict, CANNOT_TELL)


def changes_of(judged: Judgement, quantity: str) -> dict[str, Any]:
    """The change that was judged, in percent, as fields of `Answer`."""
    ends = (judged.effect, judged.low, judged.high)
    value, low, high = (100 * float(end) for end in ends)
    known = {"value": value, "low": low, "high": high, "unit": "%"}
    return {"quantity": quantity, **known, "n": int(judged.units), "n_of": judged.unit}


def ratios_of(judged: Judgement, quantity: str) -> dict[str, Any]:
    """The ratio that was judged, as fields of `Answer`."""
    ends = (judged.effect, judged.low, judged.high)
    value, low, high = (1 + float(end) for end in ends)
    known = {"value": value, "low": low, "high": high}
    return {"quantity": quantity, **known, "n": int(judged.units), "n_of": judged.unit}


def place_of(published: pd.DataFrame, authors: str) -> str:
    """Where a published table stands, such as ``"Persson et al. 2025, Table 7"``."""
    return f"{authors}, Table {published.attrs['table']}"


def finite(values: object) -> list[float]:
    """The finite ones of some values."""
    numbers = np.asarray(values, dtype=float)
    return [float(number) for number in numbers[np.isfinite(numbers)]]


def some_groups(groups: Mapping[str, object]) -> dict[str, list[float]]:
    """Groups for the small figure: the first four that hold any finite value."""
    known = {name: finite(values) for name, values in groups.items()}
    return dict([(name, values) for name, values in known.items() if values][:4])
