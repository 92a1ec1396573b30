"""Which counter of a group stands for it, and which group is a symptom of another: by what is known
of each counter, then by its effect.

Owns the order of a group's members, and that of causes and symptoms. Counters that move together
cannot be told apart by the data alone; what each can do to a run often tells them apart.
"""

from collections.abc import Sequence, Set
from dataclasses import dataclass

import numpy as np
import pandas as pd

from .known_counters import RATE, Counter, known_counter

COVERS = 0.3  # share of the lost time that a counter of time must cover to explain it
LIKE = 0.5  # share of the strongest effect in the group that a leader has


@dataclass(frozen=True, eq=False)
class Differences:
    """How the slow runs differ from the others, for the order within groups.

    Attributes
    ----------
    amounts
        By column: median in slow runs less that in the others; of a rate, that of its total.
    lost_s
        Median outcome of slow runs less that of the others; NaN if it is no time.
    """

    amounts: dict[str, float]
    lost_s: float

    @classmethod
    def of(
        cls,
        runs: pd.DataFrame,
        columns: Sequence[str],
        slow: np.ndarray,
        seconds: np.ndarray | None,
    ) -> "Differences":
        """Of a runs table; `seconds` is the outcome, None if it is no time."""
        amounts = {}
        for name in columns:
            stem = str(name).removesuffix(RATE)
            values = runs[stem if stem in runs.columns else name].to_numpy(float, na_value=np.nan)
            amounts[name] = _difference(values, slow)
        return cls(amounts, float("nan") if seconds is None else _difference(seconds, slow))


def _difference(values: np.ndarray, slow: np.ndarray) -> float:
    parts = [part[np.isfinite(part)] for part in (values[slow], values[~slow])]
    if not all(part.size for part in parts):
        return float("nan")
    difference = np.median(parts[0]) - np.median(parts[1])
    # counters that are zero in most runs differ in their means only
    return float(difference or parts[0].mean() - parts[1].mean())


def counted_of_process(columns: Sequence[str]) -> set[str]:
    """Factors of which a table has the program's own counters."""
    known = map(known_counter, columns)
    return {counter.factor for counter in known if counter and counter.of_process}


def led(
    members: Sequence[str], effects: Sequence[float], seen: Differences, counted: Set[str]
) -> list[int]:
    """Order of a group's members, the leader first.

    Parameters
    ----------
    members
        Columns of the group, the most central one first.
    effects
        How clearly each is associated with the outcome, in standard errors.
    seen
        Differences between slow and other runs.
    counted
        Of `counted_of_process`: all columns of numbers in the table.

    Notes
    -----
    Last come counters that cannot have done it: of which less, not more, slows a run (or the other
    way round); of time that is too short, or of events that are too few, for what was lost; of the
    whole machine, where the program's own counter of the same is not in the group. Before them
    symptoms: of a factor that another member shows. Then: the program's own before the machine's,
    of these what happened before the state at the start, and the larger effect.
    """
    known = [known_counter(name) for name in members]
    within = {one.factor for one in known if one and one.of_process}
    able = [
        one is None or (_is_able(one, name, seen) and not _of_others(one, counted, within))
        for one, name in zip(known, members)
    ]
    weak = LIKE * max(effects, default=0.0)
    causes = {one.factor for one, can in zip(known, able) if one and can}

    def place(number: int) -> tuple:
        one = known[number]
        symptom = one is not None and bool(causes & set(one.symptom_of))
        scope = 0 if one is None or one.of_process else 1 + one.is_level
        faint = effects[number] < weak
        return not able[number], faint, symptom, scope, -round(effects[number], 6), number

    return sorted(range(len(members)), key=place)


def causes_first(leaders: Sequence[str], effects: Sequence[float], seen: Differences) -> list[int]:
    """Order of the groups that were found, by their leaders: a symptom comes after its causes.

    Parameters
    ----------
    leaders
        Of the groups, the first first.
    effects
        As of `led`.
    seen
        Differences between slow and other runs, of the leaders at least.

    Notes
    -----
    Within a group the same holds, see `led`. A cause is a factor that shows the other one as well
    (`symptom_of` in data/knowledge/factors); that can have cost what was lost; and whose effect is
    half of the symptom's or more. Nothing else moves.
    """
    known = [known_counter(name) for name in leaders]
    able = [bool(one and _is_able(one, name, seen)) for one, name in zip(known, leaders)]
    order: list[int] = []

    def is_cause(number: int, symptom: int) -> bool:
        cause, other = known[number], known[symptom]
        shown = cause is not None and other is not None and cause.factor in other.symptom_of
        return shown and able[number] and effects[number] >= LIKE * effects[symptom]

    for symptom in range(len(leaders)):
        causes = [
            number for number in range(symptom + 1, len(leaders)) if is_cause(number, symptom)
        ]
        order += [number for number in (*causes, symptom) if number not in order]
    return order


def _of_others(one: Counter, counted: Set[str], within: set[str]) -> bool:
    """Of the machine, and the program's own counter of the same factor does not move with it."""
    if one.of_process or one.of_others:
        return False
    return one.factor in counted and one.factor not in within


def _is_able(one: Counter, name: str, seen: Differences) -> bool:
    """Whether so much more (or less) of it can have cost what was lost."""
    more, lost = seen.amounts.get(name, np.nan), seen.lost_s
    if not one.harm or one.harm * more < 0:
        return False
    if not lost > 0 or not np.isfinite(more) or one.is_level:
        return True
    if one.seconds:
        return abs(more) * one.seconds >= COVERS * lost
    return not one.event_us or abs(more) * one.event_us * 1e-6 >= lost
