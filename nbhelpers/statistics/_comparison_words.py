"""The words of a comparison: what is said of mean, variation and trimmed mean."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from .claims import NONE, REPRODUCED, REVERSED, Judgement, forecast, p_text
from .robust import trimmed_count

if TYPE_CHECKING:
    from .comparison import Pair

# of fewer runs some resamples do not vary at all, and the ratio of variations has no bound
FEWEST_FOR_CV = 10


def verdict_text(
    pair: "Pair",
    table: pd.DataFrame,
    judged: Mapping[str, Judgement],
    trimmed: str,
    in_turn: bool,
) -> str:
    """What a comparison says of mean, variation and trimmed mean."""
    sentences = [_sentence("mean", table, pair, judged["mean"])]
    if min(pair.old.size, pair.new.size) >= FEWEST_FOR_CV:
        sentences.append(_sentence("cv", table, pair, judged["cv"]))
    sentences.append(trimmed)
    if not in_turn:
        sentences.append(
            "The two were measured one after the other, so drift of the machine is part of the"
            " difference."
        )
    return " ".join(sentence for sentence in sentences if sentence)


def _sentence(name: str, table: pd.DataFrame, pair: "Pair", judged: Judgement) -> str:
    row = table.loc[name]
    label = {"mean": "mean", "cv": "coefficient of variation"}[name]
    rounds = f" in {len(pair.rounds)} rounds" if pair.rounds else ""
    counts = f" ({pair.old.size} against {pair.new.size} runs{rounds})" if name == "mean" else ""
    if not np.isfinite([row.ratio, row.low, row.high]).all():
        return f"No ratio of the {label} can be formed{counts}."
    certainty = _p(judged) if shown(judged) == shown(judged, row) else ""
    interval = f"95 % interval {_change(row.low)} to {_change(row.high)}{certainty}"
    if judged.verdict == NONE:
        within = f"within {100 * judged.claim.margin:.3g} %"
        return f"The {label} is the same to {within}: {_change(row.ratio)}, {interval}{counts}."
    if name == "cv" and not shown(judged) and not row.low <= 1 <= row.high:
        return _far_runs_sentence(row, judged)
    if not shown(judged, row):
        return (
            f"No difference of the {label} is shown: {_change(row.ratio)}, {interval}{counts}"
            f"{forecast(judged.needed, judged.unit)}."
        )
    word = "lower" if row.ratio < 1 else "higher"
    return f"The {label} is {abs(row.ratio - 1):.1%} {word}, {interval}{counts}."


def _far_runs_sentence(row: pd.Series, judged: Judgement) -> str:
    """Where the interval of the ratio and the test on typical differences do not agree."""
    return (
        f"No difference is shown of how far two typical runs are apart{_p(judged)}: few far runs"
        f" can make that of the coefficient of variation, {_change(row.ratio)}, 95 % interval"
        f" {_change(row.low)} to {_change(row.high)}."
    )


def _p(judged: Judgement) -> str:
    return f", p {p_text(judged.p_adjusted)} corrected" if np.isfinite(judged.p_adjusted) else ""


def trimmed_sentence(
    table: pd.DataFrame, pair: "Pair", judged: Judgement, by_trimmed: Judgement
) -> str:
    """Where the trimmed mean shows something else than the mean, or the mean lies outside its
    interval.
    """
    rows = table.loc[["mean", "trimmed"], ["ratio", "low", "high"]]
    if not trimmed_count(max(pair.old.size, pair.new.size)) or not np.isfinite(rows).all(axis=None):
        return ""
    mean, trimmed = rows.loc["mean"], rows.loc["trimmed"]
    is_outside = not trimmed.low <= mean.ratio <= trimmed.high
    if shown(judged) == shown(by_trimmed) and not is_outside:
        return ""
    word = {0: "no difference is shown", 1: "it is higher", -1: "it is lower"}[shown(by_trimmed)]
    return (
        f"By the trimmed mean {word}: {_change(trimmed.ratio)}, 95 % interval"
        f" {_change(trimmed.low)} to {_change(trimmed.high)}."
    )


def shown(judged: Judgement, row: pd.Series | None = None) -> int:
    """1: higher, -1: lower, 0: neither; with a row of the table, only if its interval agrees.

    Where the shapes of two distributions differ, their typical differences do, and their
    coefficients of variation need not.
    """
    sign = {REPRODUCED: 1, REVERSED: -1}.get(judged.verdict, 0)
    agrees = row is None or (row.low > 1 if sign > 0 else row.high < 1)
    return sign if agrees else 0


def _change(ratio: float) -> str:
    return f"{ratio - 1:+.1%}"
