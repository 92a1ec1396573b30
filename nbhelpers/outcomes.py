"""What of a run is judged: its name, its unit and which direction is worse.

Owns the one place in which "more is better" becomes "less is better", and how a runs table says
what it reports. Pure: tables in, tables out.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from .errors import InputError, check_choice

DIRECTIONS = ("lower", "higher")
REPORTS, OUTCOME, COST = "reports", "outcome", "cost"


@dataclass(frozen=True)
class Outcome:
    """A number of each run that is judged.

    Parameters
    ----------
    name
        Column of the runs table.
    unit
        Unit of the number, such as ``"s"`` or ``"MB/s"``.
    direction
        "lower" or "higher", whichever is better.

    Examples
    --------
    >>> Outcome("triad", "MB/s", "higher").costs([50.0, 100.0]).tolist()
    [0.02, 0.01]
    """

    name: str = "seconds"
    unit: str = "s"
    direction: str = "lower"

    def __str__(self) -> str:
        unit = f"{self.unit}, " if self.unit else ""
        return f"{self.name} ({unit}{self.direction} is better)"

    @property
    def higher_is_better(self) -> bool:
        """Whether it is a throughput or the like."""
        return self.direction == "higher"

    @property
    def label(self) -> str:
        """For an axis or the head of a column."""
        if self.name == "seconds":
            return "run time (s)"
        return f"{self.name} ({self.unit})" if self.unit else self.name

    def costs(self, values: object) -> np.ndarray:
        """The values as something of which less is better, in proportion to the time of a unit of
        work.

        What is better when lower stays as it is; of a throughput it is the reciprocal (or, where a
        value is not positive, the negative).

        Parameters
        ----------
        values
            n numbers.

        Returns
        -------
        n floats; costs of costs are the values again where all are positive.
        """
        numbers = np.asarray(values, dtype=float)
        if not self.higher_is_better:
            return numbers
        return 1 / numbers if numbers.size and np.nanmin(numbers) > 0 else -numbers


def reported(runs: pd.DataFrame) -> dict[str, Outcome]:
    """All numbers that the programs of a runs table report, with unit and direction, by column."""
    if REPORTS not in runs.columns:
        return {}
    outcomes: dict[str, Outcome] = {}
    for text in runs[REPORTS].dropna().unique():
        outcomes |= {name: Outcome(name, *about) for name, about in json.loads(text).items()}
    return outcomes


def as_label(outcomes: Mapping[str, Outcome]) -> str:
    """What `reported` reads, for the column `reports`."""
    return json.dumps(
        {name: [one.unit, one.direction] for name, one in outcomes.items()}, ensure_ascii=False
    )


def outcome_of(runs: pd.DataFrame, name: str | None = None) -> Outcome:
    """What is judged in a runs table.

    Parameters
    ----------
    runs
        Runs table; its columns `outcome` and `reports` say what its program has for an outcome.
    name
        Judge this column; None: as the table says, else `seconds`.

    Raises
    ------
    InputError
        Its programs have different outcomes, and none is named.

    Examples
    --------
    >>> outcome_of(pd.DataFrame({"seconds": [1.0, 2.0]}))
    Outcome(name='seconds', unit='s', direction='lower')
    """
    if name is None:
        named = sorted(runs[OUTCOME].dropna().unique()) if OUTCOME in runs.columns else []
        if len(named) > 1:
            raise InputError(
                f"the runs have different outcomes: {', '.join(named)}",
                why="they cannot be judged by one number",
                fix="outcome='NAME'",
            )
        name = named[0] if named else "seconds"
    known = {"seconds": Outcome()} | reported(runs)
    unit = "s" if name.endswith("seconds") else ""
    return known.get(name, Outcome(name, unit))


def with_cost(runs: pd.DataFrame, outcome: str | None = None) -> pd.DataFrame:
    """The runs with a column `cost`, of which less is better; see `Outcome.costs`."""
    judged = outcome_of(runs, outcome)
    check_column(runs, judged.name)
    return runs.copy().assign(**{COST: judged.costs(runs[judged.name])})


def check_column(runs: pd.DataFrame, name: str) -> None:
    """Refuse a table of runs that lacks a column."""
    check_choice("column", name, runs.columns)


def worst_first(runs: pd.DataFrame, outcome: str | None = None) -> pd.DataFrame:
    """The runs from the worst to the best; of equals the lowest number first."""
    ordered = with_cost(runs, outcome).sort_values([COST, "run"], ascending=[False, True])
    return ordered.drop(columns=COST)


def ordinary_runs(runs: pd.DataFrame) -> pd.DataFrame:
    """All finished runs but the worst quarter; of a single run, that run.

    Examples
    --------
    >>> runs = pd.DataFrame({"run": [0, 1, 2], "seconds": [0.5, 0.9, 0.6], "status": "ok"})
    >>> ordinary_runs(runs)["run"].tolist()
    [0, 2]
    """
    finished = runs[runs["status"] == "ok"] if "status" in runs else runs
    ordered = worst_first(finished)
    return ordered.iloc[min(-(-len(ordered) // 4), len(ordered) - 1) :].sort_index()
