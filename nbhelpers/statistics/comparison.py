"""Before against after: ratios of the statistics that matter, each with an interval, and one
sentence.

Owns the comparison of two sets of runs; the resampling is in `intervals`.
"""

from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from ..outcomes import COST, check_column, outcome_of, with_cost
from ._comparison_words import shown, trimmed_sentence, verdict_text
from .claims import MARGIN, Claim, Judgement, judge
from .contrast import interval_evidence, mean_contrast, variation_contrast
from .epochs import same_epochs
from .intervals import (
    STATISTICS,
    Interval,
    as_values,
    bootstrap_interval,
    bootstrap_ratio,
    finite,
    percentile_interval,
    resample_rounds,
)
from .robust import (
    FEWEST_ROUNDS,
    trimmed_interval,
    trimmed_mean,
    trimmed_ratio,
)

CV_MARGIN = 0.05  # a change of the variation by less counts as none
NO_DIFFERENCE = "no difference shown"


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two sets of runs compared.

    Attributes
    ----------
    table
        DataFrame, index statistic (mean, median, trimmed, sd, cv, p95, p99, max), columns before,
        after, ratio (after / before), low, high (95 % interval of the ratio: by the bootstrap, of
        the trimmed mean by the winsorised variance).
    verdict
        The result in words.
    outcome
        What was compared.
    rounds
        Rounds that both sets were measured in, and that intervals respect; 0 if there are none.
    measured_in
        The rounds that hold both, such as "0-11, 24-35"; empty if there are none.
    by_trimmed
        What the trimmed mean shows, where that is something else than the mean does, or where the
        mean lies outside its interval; empty elsewhere. It is part of the verdict.
    better
        "better", "worse" or "no difference shown", by the verdict on the mean.
    judged
        Judgements by name: of `mean` and `cv`, judged together (reproduced means higher after,
        reversed lower), and of `trimmed`, the mean's verdict with the trimmed mean in its place.
    """

    table: pd.DataFrame
    verdict: str
    outcome: str = "seconds"
    rounds: int = 0
    better: str = NO_DIFFERENCE
    measured_in: str = ""
    by_trimmed: str = ""
    judged: dict[str, Judgement] = field(default_factory=dict)

    def __repr__(self) -> str:
        mean = self.table.loc["mean"]
        return (
            f"Comparison({self.outcome}: mean ratio {mean.ratio:.4f}, 95 % interval {mean.low:.4f}"
            f" to {mean.high:.4f})"
        )


def compare(
    before: object,
    after: object,
    outcome: str | None = None,
    seed: int = 0,
    *,
    higher_is_better: bool | None = None,
    margin: float = MARGIN,
) -> Comparison:
    """Compare the runs before and after a change.

    Parameters
    ----------
    before, after
        Runs tables, or arrays of at least two values each. Rows whose `status` is not "ok" are
        excluded. Of a campaign that grew, only epochs that hold both count. Where at least eight
        rounds (`round`) hold runs of both, measured in turn, only these are compared. Intervals
        then resample whole rounds.
    outcome
        Column to compare; None: the column that the program is judged by (`outcomes.outcome_of`).
    seed
        Seed of the resamples.
    higher_is_better
        The outcome is a throughput or the like; None: as the table says.
    margin
        The share of change of the mean within which a difference counts as none.

    Returns
    -------
    Comparison; ratios are after / before.

    Raises
    ------
    InputError
        No such column, fewer than two values, a value that is not finite.

    Notes
    -----
    Percentile bootstrap, both sides resampled. The interval of the maximum is too narrow, as no
    resample exceeds the largest value seen; so is that of the 99th percentile of fewer than a few
    hundred runs. What is said of mean and variation is judged together (`statistics.claims`), by
    rounds where there are rounds: at most one comparison in twenty says something false of them, if
    what the units add is symmetric and they are independent. If all runs of one side came before
    all of the other, drift of the machine is part of the difference, and the verdict says so.

    Examples
    --------
    >>> before = [1.00, 1.02, 0.99, 1.01, 1.03]
    >>> after = [0.90, 0.91, 0.89, 0.92, 0.90]
    >>> compare(before, after).better
    'better'
    """
    old = _as_table(before, outcome or "seconds")
    judged = outcome_of(old, outcome)
    higher = judged.higher_is_better if higher_is_better is None else higher_is_better
    old, new = same_epochs(old, _as_table(after, judged.name))
    pair = Pair.of(old, new, judged.name)
    table = pair.table(seed)
    found = pair.judged(table, margin)
    trimmed = trimmed_sentence(table, pair, found["mean"], found["trimmed"])
    return Comparison(
        table=table,
        verdict=verdict_text(pair, table, found, trimmed, _measured_in_turn(old, new)),
        outcome=judged.name,
        rounds=len(pair.rounds),
        better=_better(shown(found["mean"], table.loc["mean"]), higher),
        measured_in=_shared_rounds(old, new),
        by_trimmed=trimmed,
        judged=found,
    )


def compare_costs(before: pd.DataFrame, after: pd.DataFrame, seed: int = 0) -> Comparison:
    """Compare by a cost, of which less is better.

    A throughput is compared by its reciprocal, the time of a unit of work; all else as in
    `compare`.

    Parameters
    ----------
    before, after
        Runs tables.
    seed
        Seed of the resamples.

    Returns
    -------
    Comparison of the outcome, or of its reciprocal.
    """
    judged = outcome_of(before)
    if not judged.higher_is_better:
        return compare(before, after, judged.name, seed)
    found = compare(with_cost(before, judged.name), with_cost(after, judged.name), COST, seed)
    return replace(
        found,
        outcome=f"1/{judged.name}",
        verdict=f"Judged by 1/{judged.name}, the time of a unit of work: {found.verdict}",
    )


def _as_table(runs: object, outcome: str) -> pd.DataFrame:
    """A runs table as it is; bare values as the column of the outcome."""
    return runs if isinstance(runs, pd.DataFrame) else pd.DataFrame({outcome: finite(runs)})


def _shared_rounds(before: pd.DataFrame, after: pd.DataFrame) -> str:
    """Numbers of the rounds that hold both, neighbours as a range."""
    numbers = _rounds_of_both(before, after).astype(int)
    parts = np.split(numbers, np.flatnonzero(np.diff(numbers) > 1) + 1) if numbers.size else []
    return ", ".join(f"{part[0]}-{part[-1]}" if part.size > 1 else str(part[0]) for part in parts)


def _rounds_of_both(before: pd.DataFrame, after: pd.DataFrame) -> np.ndarray:
    """Numbers of the rounds that hold runs of both, none where a table has no rounds."""
    rounds = (side["round"].dropna() if "round" in side else [] for side in (before, after))
    return np.intersect1d(*rounds)


@dataclass(frozen=True, eq=False)
class Pair:
    """Two samples, and the round of each value if they share rounds."""

    old: np.ndarray
    new: np.ndarray
    old_rounds: np.ndarray | None = None
    new_rounds: np.ndarray | None = None
    rounds: tuple = ()

    @classmethod
    def of(cls, before: pd.DataFrame, after: pd.DataFrame, outcome: str) -> "Pair":
        old, new = _finished(before, outcome), _finished(after, outcome)
        shared = _rounds_of_both(old, new)
        if shared.size < FEWEST_ROUNDS or not _measured_in_turn(old, new):
            return cls(as_values(old[outcome]), as_values(new[outcome]))
        old, new = (side[side["round"].isin(shared)] for side in (old, new))
        rounds = old["round"].to_numpy(), new["round"].to_numpy(), tuple(shared)
        return cls(as_values(old[outcome]), as_values(new[outcome]), *rounds)

    def table(self, seed: int) -> pd.DataFrame:
        """Each statistic of both samples, and their ratio with its interval."""
        intervals = self._intervals(seed)
        rows = {}
        for name, statistic in STATISTICS.items():
            before, after = float(statistic(self.old)), float(statistic(self.new))
            ratio = after / before if before else float("nan")
            rows[name] = [before, after, ratio, *intervals[name]]
            if name == "median":
                rows["trimmed"] = self._trimmed()
        columns = ["before", "after", "ratio", "low", "high"]
        table = pd.DataFrame.from_dict(rows, orient="index", columns=columns)
        return table.rename_axis("statistic")

    def _trimmed(self) -> list[float]:
        before, after = float(trimmed_mean(self.old)), float(trimmed_mean(self.new))
        if not before:
            return [before, after, *[float("nan")] * 3]
        samples = (self.new, self.new_rounds), (self.old, self.old_rounds)
        above, below = (
            pd.DataFrame({"seconds": values} | ({"round": rounds} if self.rounds else {}))
            for values, rounds in samples
        )
        return [before, after, *trimmed_ratio([(above, below)])[:3]]

    def _intervals(self, seed: int) -> dict[str, tuple[float, float]]:
        """That of each ratio, by whole rounds where there are rounds."""
        if not self.rounds:
            return {name: bootstrap_ratio(self.new, self.old, name, seed) for name in STATISTICS}
        sides = ((self.new, self.new_rounds), (self.old, self.old_rounds))
        new, old = ([side[rounds == one] for one in self.rounds] for side, rounds in sides)
        above, below = resample_rounds(new, old, list(STATISTICS.values()), seed)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = above / below
        return dict(zip(STATISTICS, map(percentile_interval, ratios.T), strict=True))

    def judged(self, table: pd.DataFrame, margin: float) -> dict[str, Judgement]:
        """Mean and variation judged together; and the mean's verdict with the trimmed mean in its
        place.
        """
        sides = self.old, self.new, self.old_rounds, self.new_rounds
        mean, cv = Claim("mean", "above", margin), Claim("cv", "above", CV_MARGIN)
        of_cv = cv, variation_contrast(*sides)
        found = judge([(mean, mean_contrast(*sides)), of_cv])
        value, low, high = table.loc["trimmed", ["ratio", "low", "high"]]
        ratio = Interval(value, low, high, self.old.size)
        units = len(self.rounds) or self.old.size + self.new.size
        unit = "rounds" if self.rounds else "runs"
        trimmed = judge([(mean, interval_evidence(ratio, units, unit)), of_cv])[0]
        return dict(zip(("mean", "cv", "trimmed"), (*found, trimmed), strict=True))


def cell_statistics(
    runs: pd.DataFrame, by: str = "cell", outcome: str | None = None, seed: int = 0
) -> pd.DataFrame:
    """The statistics of each cell of a campaign.

    Mean, median and coefficient of variation have 95 % bootstrap intervals, the trimmed mean one by
    the winsorised variance.

    Parameters
    ----------
    runs
        Runs table; rows whose `status` is not "ok" are excluded.
    by
        Column that names the cells.
    outcome
        Column of the outcome; None: what the program is judged by.
    seed
        Seed of the resamples.

    Returns
    -------
    DataFrame, index the cells in the order in which they first occur; columns runs, mean, mean_low,
    mean_high, median, median_low, median_high, trimmed, trimmed_low, trimmed_high, sd, cv, cv_low,
    cv_high, p95, p99, max, in the unit of the outcome.

    Raises
    ------
    InputError
        No such column, a cell with fewer than two runs.
    """
    check_column(runs, by)
    outcome = outcome_of(runs, outcome).name
    rows = {
        name: _row(as_values(_finished(cell, outcome)[outcome]), seed)
        for name, cell in runs.groupby(by, sort=False, observed=True)
    }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis(by)


def _row(values: np.ndarray, seed: int) -> dict[str, float]:
    row: dict[str, float] = {"runs": values.size}
    for name, statistic in STATISTICS.items():
        row[name] = float(statistic(values))
        if name in ("mean", "median", "cv"):
            row[f"{name}_low"], row[f"{name}_high"] = bootstrap_interval(values, name, seed)
        if name == "median":
            row |= dict(zip(("trimmed", "trimmed_low", "trimmed_high"), trimmed_interval(values)))
    return row


def _finished(runs: pd.DataFrame, outcome: str) -> pd.DataFrame:
    check_column(runs, outcome)
    return runs[runs["status"] == "ok"] if "status" in runs.columns else runs


def _better(sign: int, higher_is_better: bool) -> str:
    if not sign:
        return NO_DIFFERENCE
    return "better" if (sign > 0) == higher_is_better else "worse"


def _measured_in_turn(before: pd.DataFrame, after: pd.DataFrame) -> bool:
    """False if all runs of one table began before all of the other."""
    if not ("start_ns" in before and "start_ns" in after):
        return True
    old, new = before["start_ns"], after["start_ns"]
    return not (old.max() < new.min() or new.max() < old.min())
