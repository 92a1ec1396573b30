"""What the referee says of two sides, and when it stops measuring.

Owns the decision, its one sentence, and its record as JSON.
"""

import secrets
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from ..errors import InputError
from ..files import write_json
from ..machine import measuring
from ..measurement import finished, run_notes
from ..outcomes import COST, outcome_of, with_cost
from ..progress import task
from ..reading import read_json
from ..statistics.claims import MARGIN
from ..statistics.sequential import LEVEL, OPEN, WITHIN, Looks
from .duel import Duel, log_ratios
from .sides import NEW, OLD, Side

FORMAT = "noisebook ab 2"
BUDGET_ENDS = "budget_ends.json"  # a file of the folder: each end takes its part of the level
FIRST_PAIRS = 8
MOST_PAIRS = 500
SECONDS = 300.0
MANY_PAIRS = 10_000  # a forecast beyond is only called more
FAR = 5.0  # robust standard deviations
_NAMED = 10  # far runs in a note


@dataclass(frozen=True)
class Ruling:
    """What is known of a change from one side to another.

    Attributes
    ----------
    old, new
        The two sides, in words.
    outcome
        What is judged; the change is that of its cost (a time as it is, a rate by its reciprocal).
    verdict
        BETTER, WORSE, WITHIN (the margin), or OPEN (can't tell yet).
    change, low, high
        Change of the usual run as a share (0.02: 2 % more), with the ends of an interval that holds
        at all looks together with a probability of 1 − level. An end that is not known yet is None.
    margin, level
        What counts as none, and the probability of ever excluding the true change.
    pairs, more_pairs
        Measured; and needed beyond these by forecast (0: none, None: it cannot be said).
    medians, mean_change
        Medians of the two sides, in the unit of the outcome; change of the mean as a share, far
        runs included.
    notes
        What a reader should know, a sentence each.
    folder
        Where the runs are; empty: nowhere.
    unit
        Unit of the medians.
    """

    old: str
    new: str
    outcome: str
    verdict: str
    change: float
    low: float | None
    high: float | None
    margin: float
    level: float
    pairs: int
    more_pairs: int | None
    medians: tuple[float, float]
    mean_change: float
    notes: list[str] = field(default_factory=list, repr=False)
    folder: str = ""
    unit: str = "s"

    @property
    def sentence(self) -> str:
        """The answer in one line."""
        verdict = {WITHIN: f"within ± {100 * self.margin:g} %"}.get(self.verdict, self.verdict)
        if self.verdict == OPEN:
            verdict += f": {self._forecast}"
        numbers = f"{self.outcome} {percent(self.change)}, {self._interval}, {self.pairs} pairs"
        return f"{verdict} ({numbers}): {self.new} against {self.old}"

    @property
    def _forecast(self) -> str:
        if self.more_pairs is None:
            return "how many more pairs it takes cannot be said"
        if self.more_pairs > MANY_PAIRS:
            return f"more than {MANY_PAIRS:,} more pairs"
        digits = max(len(str(self.more_pairs)) - 2, 0)  # two are known at best
        return f"about {round(self.more_pairs, -digits):,} more pairs"

    @property
    def _interval(self) -> str:
        if self.low is None and self.high is None:
            return "no interval yet"
        if self.high is None:
            ends = f"at least {percent(self.low or 0.0)}"
        elif self.low is None:
            ends = f"at most {percent(self.high)}"
        else:
            ends = f"{percent(self.low)} to {percent(self.high)}"
        return f"{ends} at {100 * (1 - self.level):g} %"

    def as_dict(self) -> dict:
        """The record, of plain JSON types."""
        return {"format": FORMAT, "sentence": self.sentence, **asdict(self)}


def percent(share: float) -> str:
    """A share of change with its sign, such as +2.1 %."""
    return f"{100 * share:+.2g} %" if abs(share) < 0.01 else f"{100 * share:+.1f} %"


def _recorded(folder: str | Path | None, name: str) -> dict:
    """What a file of a duel's folder holds; empty, where there is none."""
    path = None if folder is None else Path(folder) / name
    return read_json(path) if path is not None and path.exists() else {}


def decide(
    old: Side,
    new: Side,
    folder: str | Path | None = None,
    margin: float = MARGIN,
    level: float = LEVEL,
    pairs: int = MOST_PAIRS,
    seconds: float = SECONDS,
    seed: int | None = None,
) -> Ruling:
    """Measure two sides in turn until it is known which is better, or the budget is spent.

    Parameters
    ----------
    old, new
        The two sides.
    folder
        Where the runs are stored; the same call goes on there. None: in memory.
    margin
        Share of change that counts as none.
    level
        Probability of a false verdict, over all looks.
    pairs, seconds
        The budget; seconds are those of measuring in this call, without waiting for the machine.
    seed
        Seed of the random order; None: that of the folder, or a fresh one, which is recorded.

    Raises
    ------
    InputError
        A budget that cannot be used.
    RunError
        A program failed repeatedly.

    Examples
    --------
    >>> from nbhelpers.workloads import program
    >>> old, new = Side(program("sleep 0.01")), Side(program("sleep 0.02"))
    >>> decide(old, new).verdict
    'worse'
    """
    if pairs < FIRST_PAIRS:
        raise InputError(f"{pairs} pairs are too few for any answer", fix=f"at least {FIRST_PAIRS}")
    if seed is None:  # who goes first is not the same in all duels
        seed = int(_recorded(folder, "campaign.json").get("seed", secrets.randbits(31)))
    duel = Duel(folder, old, new, FIRST_PAIRS, seed)
    what = f"comparing until it is known, at most {pairs} pairs"
    with measuring(), task(what, unit="pairs", urgent=True) as shown:
        until = time.monotonic() + seconds  # not of waiting until the machine is free
        ends = _recorded(folder, BUDGET_ENDS).get("pairs", [])

        def enough(runs: pd.DataFrame) -> bool:
            looks = Looks(margin, level).over(log_ratios(runs), ends)
            shown.update(looks.units - shown.n)
            return looks.verdict != OPEN or time.monotonic() > until

        runs = finished(duel.run())
        duel.wanted_runs = max(duel.wanted_runs, len(log_ratios(runs)))  # of earlier calls
        if not enough(runs):
            duel.run(enough=enough, most_runs=pairs)
    runs = duel.runs()
    looks = Looks(margin, level).over(log_ratios(finished(runs)), ends)
    if looks.verdict == OPEN and looks.units not in ends and looks.end(len(ends)):
        ends.append(looks.units)
        if folder is not None:
            write_json(Path(folder) / BUDGET_ENDS, {"pairs": ends})
    return ruling_of(runs, old.text, new.text, margin, level, folder, ends)


def ruling_of(
    runs: pd.DataFrame,
    old: str,
    new: str,
    margin: float = MARGIN,
    level: float = LEVEL,
    folder: str | Path | None = None,
    ends: Sequence[int] | None = None,
) -> Ruling:
    """The ruling on runs that were measured.

    Parameters
    ----------
    runs
        Runs of a `Duel`; failed ones are left out.
    old, new
        The two sides, in words.
    margin, level
        Share of change that counts as none, and probability of a false verdict; see `decide`.
    folder
        Where they are.
    ends
        Pairs at which a budget ended, in the order of time; None: all that there are.

    Raises
    ------
    InputError
        Not one pair is complete.
    """
    done = finished(runs)
    ratios = log_ratios(done)
    if not ratios.size:
        raise InputError("not one pair of runs is complete", fix="measure more")
    looks = Looks(margin, level).over(ratios, [ratios.size] if ends is None else ends)
    low, high = looks.interval
    costs = with_cost(done)
    far = far_runs(done)
    medians = done.groupby("cell")[outcome_of(done).name].median()
    means = costs.groupby("cell")[COST].mean()
    return Ruling(
        old=old,
        new=new,
        outcome=_judged(done),
        verdict=looks.verdict,
        change=looks.estimate,
        low=low if low > -1 else None,
        high=high if np.isfinite(high) else None,
        margin=margin,
        level=level,
        pairs=looks.units,
        more_pairs=_whole(looks.more_units),
        medians=(float(medians[OLD]), float(medians[NEW])),
        mean_change=float(means[NEW] / means[OLD] - 1),
        notes=_notes(runs, done, far),
        folder=str(folder or ""),
        unit=outcome_of(done).unit,
    )


def _judged(runs: pd.DataFrame) -> str:
    judged = outcome_of(runs)
    name = "run time" if judged.name == "seconds" else judged.name
    return f"1 / {name}" if judged.higher_is_better else name


def _whole(count: float) -> int | None:
    return int(count) if np.isfinite(count) else None


def _notes(runs: pd.DataFrame, done: pd.DataFrame, far: pd.DataFrame) -> list[str]:
    notes = run_notes(runs)  # a side that fails is no faster side
    if len(far):
        named = ", ".join(
            f"{run} (× {factor:.3g})" for run, factor in zip(far["run"].head(_NAMED), far["factor"])
        )
        notes.append(
            f"{len(far)} of {len(done)} runs are far from the others of their side, and count:"
            f" {named}."
        )
    notes += filter(None, [more_on_one_side(done, far)])
    return list(dict.fromkeys([*notes, *runs.attrs.get("notes", [])]))


def far_runs(runs: pd.DataFrame) -> pd.DataFrame:
    """Runs whose cost lies more than five robust standard deviations above their side's median.

    Parameters
    ----------
    runs
        Finished runs of a `Duel`.

    Returns
    -------
    DataFrame, the farthest first; columns run, cell, round, factor (over the median of its side).

    Examples
    --------
    >>> runs = pd.DataFrame({"run": range(9), "cell": "old", "round": range(9)})
    >>> far_runs(runs.assign(seconds=[1, 1.1, 1, 1.1, 1, 1.1, 1, 1.1, 3]))["run"].tolist()
    [8]
    """
    logs = with_cost(runs).assign(log=lambda table: np.log(table[COST]))
    rest = logs["log"] - logs.groupby("cell")["log"].transform("median")
    spread = rest.abs().median() / 0.6745
    far = logs.assign(factor=np.exp(rest))[rest > FAR * max(spread, 1e-9)]
    return far.sort_values("factor", ascending=False)[["run", "cell", "round", "factor"]]


def more_on_one_side(runs: pd.DataFrame, far: pd.DataFrame) -> str:
    """A sentence if one side has more far runs than chance gives (Fisher's exact test at 1 %); else
    empty.

    Parameters
    ----------
    runs, far
        Finished runs, and those of them that are far.
    """
    from scipy.stats import fisher_exact

    counts = {name: int((far["cell"] == name).sum()) for name in (OLD, NEW)}
    sizes = {name: int((runs["cell"] == name).sum()) for name in (OLD, NEW)}
    table = [[counts[name], sizes[name] - counts[name]] for name in (OLD, NEW)]
    p_value = float(fisher_exact(table)[1])
    if p_value >= 0.01:
        return ""
    return (
        f"Far runs are not equally frequent: old {counts[OLD]} of {sizes[OLD]}, new {counts[NEW]}"
        f" of {sizes[NEW]} (p = {p_value:.2g}); the change of the usual run does not say that."
    )
