"""Before against after: ratios of the statistics that matter, each with an interval, three tests,
and one sentence.

Owns the comparison of two sets of runs; the resampling is in `bootstrap`, the tests are in
`difference`.
"""

import html
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from ..errors import InputError
from ..outcomes import COST, Outcome, outcome_of, with_cost
from .bootstrap import (
    CHUNK_VALUES,
    STATISTICS,
    as_values,
    bootstrap_interval,
    bootstrap_ratio,
    interval_of,
    round_draws,
)
from .difference import difference_tests
from .epochs import same_epochs
from .metadata import differing

FEWEST_FOR_CV = (
    10  # of fewer runs some resamples do not vary at all, and the ratio of variations has no bound
)
FEWEST_ROUNDS = 8  # fewer say too little of how rounds differ; runs are then resampled one by one
SHIFTS = (0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two sets of runs compared.

    Attributes
    ----------
    table
        DataFrame, index statistic (mean, median, sd, cv, p95, p99, max), columns before, after,
        ratio (after / before), low, high (95 % bootstrap interval of the ratio).
    verdict
        The result in words.
    outcome
        What was compared.
    tests
        DataFrame, index location, dispersion, distribution, columns statistic, p_value, p_holm,
        differs.
    shift
        DataFrame, index quantile, columns before, after, shift (after − before, in the unit of the
        outcome), low, high (95 %).
    differs
        DataFrame, index what, columns before, after: the metadata in which the two sets differ.
    rounds
        Rounds that both sets were measured in, and that intervals and tests respect; 0 if there are
        none.
    measured_in
        The rounds that hold both, such as "0-11, 24-35"; empty where none does.
    better
        "better", "worse" or "no difference shown", by the mean and its interval.
    """

    table: pd.DataFrame
    verdict: str
    outcome: str = "seconds"
    tests: pd.DataFrame = field(default_factory=pd.DataFrame)
    shift: pd.DataFrame = field(default_factory=pd.DataFrame)
    differs: pd.DataFrame = field(default_factory=pd.DataFrame)
    rounds: int = 0
    better: str = "no difference shown"
    measured_in: str = ""

    def __repr__(self) -> str:
        mean = self.table.loc["mean"]
        return (
            f"Comparison({self.outcome}: mean ratio {mean.ratio:.4f}, 95 % interval {mean.low:.4f}"
            f" to {mean.high:.4f})"
        )

    def _repr_html_(self) -> str:
        parts = [
            f"<p>{html.escape(self.verdict)}</p>",
            self.table.to_html(float_format=lambda value: f"{value:.4g}", border=0),
        ]
        if len(self.tests):
            parts.append(self.tests.to_html(float_format=lambda value: f"{value:.3g}", border=0))
        if len(self.differs):
            parts.append(
                f"<details><summary>{len(self.differs)} metadata"
                f" differ</summary>{self.differs.to_html(border=0)}</details>"
            )
        return "".join(parts)


def compare(
    before: object,
    after: object,
    outcome: str | None = None,
    seed: int = 0,
    *,
    higher_is_better: bool | None = None,
    block: str = "round",
    provenance: tuple[Mapping, Mapping] | None = None,
) -> Comparison:
    """Compare the runs before and after a change.

    Parameters
    ----------
    before, after
        Runs tables (rows whose `status` is not "ok" are passed over) or arrays of at least two
        values each. Of tables of a campaign that grew only the epochs count in which both were
        measured.
    outcome
        Column to compare, where a table is given; None: what its program is judged by
        (`outcomes.outcome_of`).
    higher_is_better
        The outcome is a throughput or the like; None: as the table says.
    block
        Column that names the rounds in which both were measured, in random order. Where at least
        eight rounds hold runs of both (and one set was not measured after the other), only they are
        compared, and intervals and tests keep each round together.
    provenance
        What is known of either set of runs (nested dicts); what differs is listed beside the
        result.

    Returns
    -------
    Comparison : ratios are after / before.

    Raises
    ------
    InputError
        No such column, fewer than two values, a value that is not finite.

    Notes
    -----
    Percentile bootstrap, both sides resampled: runs, or whole rounds. The interval of the maximum
    is too narrow (no resample exceeds the largest value seen), and that of the 99th percentile is
    of fewer than a few hundred runs. If all runs of one side were measured before all of the other,
    drift of the machine counts as gain or loss, and the verdict says so.
    """
    judged = _judged(before, outcome)
    outcome = judged.name
    higher = judged.higher_is_better if higher_is_better is None else higher_is_better
    if isinstance(before, pd.DataFrame) and isinstance(after, pd.DataFrame):
        before, after = same_epochs(before, after)
    pair = _Pair.of(before, after, outcome, block)
    draws = pair.draws(seed) if pair.rounds else None
    table = pd.DataFrame.from_dict(
        {name: pair.row(name, draws, seed) for name in STATISTICS},
        orient="index",
        columns=["before", "after", "ratio", "low", "high"],
    ).rename_axis("statistic")
    tests = difference_tests(pair.old, pair.new, pair.old_rounds, pair.new_rounds, seed)
    about_cv = (
        [_sentence("cv", table, pair)] if min(pair.old.size, pair.new.size) >= FEWEST_FOR_CV else []
    )
    verdict = " ".join(
        [
            _sentence("mean", table, pair),
            *about_cv,
            _about_tests(tests, table),
            _caveat(before, after),
        ]
    ).strip()
    return Comparison(
        table,
        " ".join(verdict.split()),
        outcome,
        tests,
        pair.shift(seed),
        differing(*provenance) if provenance else pd.DataFrame(),
        len(pair.rounds),
        _better(table.loc["mean"], higher),
        _shared_rounds(before, after, block),
    )


def compare_costs(
    before: pd.DataFrame, after: pd.DataFrame, outcome: str | None = None, seed: int = 0
) -> Comparison:
    """As `compare`, of something of which less is better: a throughput is compared by its
    reciprocal, the time of a unit of work.

    Parameters
    ----------
    before, after
        Runs tables.
    outcome, seed
        As in `compare`.
    """
    judged = outcome_of(before, outcome)
    if not judged.higher_is_better:
        return compare(before, after, judged.name, seed)
    found = compare(with_cost(before, judged.name), with_cost(after, judged.name), COST, seed)
    return replace(
        found,
        outcome=f"1/{judged.name}",
        verdict=f"Judged by 1/{judged.name}, the time of a unit of work: {found.verdict}",
    )


def _judged(runs: object, outcome: str | None) -> Outcome:
    return (
        outcome_of(runs, outcome)
        if isinstance(runs, pd.DataFrame)
        else Outcome(outcome or "seconds")
    )


def _shared_rounds(before: object, after: object, block: str) -> str:
    """Numbers of the rounds that hold both, neighbours as a range."""
    if not (
        isinstance(before, pd.DataFrame)
        and isinstance(after, pd.DataFrame)
        and block in before
        and block in after
    ):
        return ""
    numbers = np.intersect1d(before[block].dropna(), after[block].dropna()).astype(int)
    parts = np.split(numbers, np.flatnonzero(np.diff(numbers) > 1) + 1) if numbers.size else []
    return ", ".join(f"{part[0]}-{part[-1]}" if part.size > 1 else str(part[0]) for part in parts)


@dataclass(frozen=True, eq=False)
class _Pair:
    """Two samples, and by round if they share rounds."""

    old: np.ndarray
    new: np.ndarray
    old_rounds: np.ndarray | None = None
    new_rounds: np.ndarray | None = None
    rounds: tuple = ()

    @classmethod
    def of(cls, before: object, after: object, outcome: str, block: str) -> "_Pair":
        old, new = _finished(before, outcome), _finished(after, outcome)
        if not (
            isinstance(old, pd.DataFrame)
            and isinstance(new, pd.DataFrame)
            and block in old
            and block in new
        ) or _one_after_the_other(old, new):
            return cls(_values(old, outcome), _values(new, outcome))
        shared = np.intersect1d(old[block].dropna(), new[block].dropna())
        if shared.size < FEWEST_ROUNDS:
            return cls(_values(old, outcome), _values(new, outcome))
        old, new = old[old[block].isin(shared)], new[new[block].isin(shared)]
        return cls(
            _values(old, outcome),
            _values(new, outcome),
            old[block].to_numpy(),
            new[block].to_numpy(),
            tuple(shared),
        )

    def by_round(self) -> tuple[list[np.ndarray], list[np.ndarray]]:
        return tuple(
            [values[rounds == number] for number in self.rounds]
            for values, rounds in ((self.old, self.old_rounds), (self.new, self.new_rounds))
        )

    def draws(self, seed: int) -> dict[str, np.ndarray]:
        """Resampled ratios by statistic, rounds kept together."""
        old, new = self.by_round()
        above, below = round_draws(new, old, list(STATISTICS.values()), seed)
        with np.errstate(divide="ignore", invalid="ignore"):
            return dict(zip(STATISTICS, (above / below).T))

    def row(self, name: str, draws: dict[str, np.ndarray] | None, seed: int) -> list[float]:
        before, after = float(STATISTICS[name](self.old)), float(STATISTICS[name](self.new))
        ratio = after / before if before else float("nan")
        return [
            before,
            after,
            ratio,
            *(
                interval_of(draws[name])
                if draws
                else bootstrap_ratio(self.new, self.old, name, seed)
            ),
        ]

    def shift(self, seed: int) -> pd.DataFrame:
        """How far each quantile moved, with its interval."""

        def quantiles(values: np.ndarray, axis: int) -> np.ndarray:
            return np.quantile(values, SHIFTS, axis=axis)

        if self.rounds:
            old, new = self.by_round()
            above, below = (_quantile_draws(part, seed) for part in (new, old))
        else:
            above = _quantile_draws(self.new[:, None], seed)
            below = _quantile_draws(self.old[:, None], seed + 1)
        low, high = np.percentile(above - below, [2.5, 97.5], axis=0)
        before, after = quantiles(self.old, 0), quantiles(self.new, 0)
        return pd.DataFrame(
            {"before": before, "after": after, "shift": after - before, "low": low, "high": high},
            index=pd.Index(SHIFTS, name="quantile"),
        )


def _quantile_draws(parts: object, seed: int, repeats: int = 1000) -> np.ndarray:
    """Quantiles of resampled parts (repeats × quantiles); the same seed draws the same rounds."""
    drawn = np.random.default_rng(seed).integers(0, len(parts), (repeats, len(parts)))
    if len({len(part) for part in parts}) > 1:
        return np.array(
            [np.quantile(np.concatenate([parts[place] for place in row]), SHIFTS) for row in drawn]
        )
    table = np.array(parts)
    rows = max(1, CHUNK_VALUES // table.size)
    return np.concatenate(
        [
            np.quantile(
                table[drawn[first : first + rows]].reshape(-1, table.size), SHIFTS, axis=1
            ).T
            for first in range(0, repeats, rows)
        ]
    )


def cell_statistics(
    runs: pd.DataFrame, by: str = "cell", outcome: str | None = None, seed: int = 0
) -> pd.DataFrame:
    """The statistics of each cell of a campaign, the mean and the coefficient of variation with 95
    % bootstrap intervals.

    Parameters
    ----------
    runs
        Runs table; rows whose `status` is not "ok" are passed over.
    by
        Column that names the cells.
    outcome
        Column of the outcome; None: what the program is judged by.

    Returns
    -------
    DataFrame, index the cells in the order they first occur, columns runs, mean, mean_low,
    mean_high, median, sd, cv, cv_low,
        cv_high, p95, p99, max, in the unit of the outcome.

    Raises
    ------
    InputError
        No such column, a cell with fewer than two runs.
    """
    if by not in runs.columns:
        raise InputError(
            f"no column {by!r} to group by",
            fix=f"the table has: {', '.join(map(str, runs.columns))}",
        )
    outcome = outcome_of(runs, outcome).name
    rows = {
        name: _summary(_values(_finished(cell, outcome), outcome), seed)
        for name, cell in runs.groupby(by, sort=False, observed=True)
    }
    table = pd.DataFrame.from_dict(rows, orient="index")
    table.index.name = by
    return table


def _summary(values: np.ndarray, seed: int) -> dict[str, float]:
    row = {"runs": values.size}
    for name, statistic in STATISTICS.items():
        row[name] = float(statistic(values))
        if name in ("mean", "cv"):
            row[f"{name}_low"], row[f"{name}_high"] = bootstrap_interval(values, name, seed)
    return row


def _finished(runs: object, outcome: str) -> object:
    if not isinstance(runs, pd.DataFrame):
        return runs
    if outcome not in runs.columns:
        raise InputError(
            f"no column {outcome!r} to compare",
            fix=f"the table has: {', '.join(map(str, runs.columns))}",
        )
    return runs[runs["status"] == "ok"] if "status" in runs.columns else runs


def _values(runs: object, outcome: str) -> np.ndarray:
    return as_values(runs[outcome] if isinstance(runs, pd.DataFrame) else runs)


def _sentence(name: str, table: pd.DataFrame, pair: _Pair) -> str:
    row = table.loc[name]
    label = {"mean": "mean", "cv": "coefficient of variation"}[name]
    rounds = f" in {len(pair.rounds)} rounds" if pair.rounds else ""
    counts = f" ({pair.old.size} against {pair.new.size} runs{rounds})" if name == "mean" else ""
    if not np.isfinite([row.ratio, row.low, row.high]).all():
        return f"No ratio of the {label} can be formed{counts}."
    interval = f"{_change(row.low)} to {_change(row.high)}"
    if row.low <= 1 <= row.high:
        return (
            f"No difference of the {label} is shown: {_change(row.ratio)}, 95 % interval"
            f" {interval}{counts}."
        )
    word = "lower" if row.ratio < 1 else "higher"
    return f"The {label} is {abs(row.ratio - 1):.1%} {word}, 95 % interval {interval}{counts}."


def _about_tests(tests: pd.DataFrame, table: pd.DataFrame) -> str:
    """A difference that the intervals of mean and variation do not show."""
    shown = any(not row.low <= 1 <= row.high for row in (table.loc["mean"], table.loc["cv"]))
    found = [
        f"{name} (p = {tests.loc[name, 'p_holm']:.3f}, Holm)"
        for name in tests.index
        if tests.loc[name, "differs"]
    ]
    return "" if shown or not found else f"Yet the distributions differ: {', '.join(found)}."


def _better(mean: pd.Series, higher_is_better: bool) -> str:
    if not np.isfinite([mean.low, mean.high]).all() or mean.low <= 1 <= mean.high:
        return "no difference shown"
    return "better" if (mean.ratio > 1) == higher_is_better else "worse"


def _change(ratio: float) -> str:
    return f"{ratio - 1:+.1%}"


def _caveat(before: object, after: object) -> str:
    tables = isinstance(before, pd.DataFrame) and isinstance(after, pd.DataFrame)
    if tables and _one_after_the_other(before, after):
        return (
            "The two were measured one after the other, so drift of the machine is part of the"
            " difference."
        )
    return ""


def _one_after_the_other(before: pd.DataFrame, after: pd.DataFrame) -> bool:
    if "start_ns" not in before or "start_ns" not in after:
        return False
    old, new = before["start_ns"], after["start_ns"]
    return bool(old.max() < new.min() or new.max() < old.min())
