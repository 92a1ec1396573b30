"""How a study's time is divided among its steps."""

import math
from dataclasses import dataclass

import pandas as pd

from ...errors import InputError
from ...progress import readable

SECONDS = 300.0  # what a study takes by default
LEAST_RUNS = 90  # lengths of a run that it needs
TRACED, REPLAYED, TREATED, PROVED = 0.2, 0.15, 0.5, 0.15  # shares of the time
ROUNDS = (5, 40)  # of a campaign: at least, at most


@dataclass(frozen=True)
class TimePlan:
    """How the time of a study is spent.

    Parameters
    ----------
    run_seconds
        One run, with its start and end.
    seconds
        All that is measured.
    traced
        Rounds of a run with tracing and one without.
    replayed
        Rounds of a run with the worst run's noise and one without.
    treated_seconds
        For finding what separates slow runs and trying what may help.
    proved_seconds
        For injecting what is suspected.
    """

    run_seconds: float
    seconds: float
    traced: int
    replayed: int
    treated_seconds: float
    proved_seconds: float

    def table(self) -> pd.DataFrame:
        """One row a step: step, runs, seconds (at most)."""
        rows = [
            ("measure and trace", 2 * self.traced, 2 * self.traced * self.run_seconds),
            (
                "replay the worst run's noise",
                2 * self.replayed,
                2 * self.replayed * self.run_seconds,
            ),
            ("look for the cause, try what may help", None, self.treated_seconds),
            ("inject what is suspected", None, self.proved_seconds),
        ]
        return pd.DataFrame(rows, columns=["step", "runs", "seconds"]).astype({"runs": "Int64"})


def plan_study(run_seconds: float, seconds: float = 0, runs: int = 0) -> TimePlan:
    """Divide a time among the steps.

    Parameters
    ----------
    run_seconds
        Length of one run in seconds.
    seconds
        In all; 0: five minutes, or more where runs are long.
    runs
        Rounds of the first two steps; 0: what the time allows.

    Raises
    ------
    InputError
        The time is too short for anything to be seen.

    Examples
    --------
    >>> plan_study(1.0).traced, plan_study(1.0).replayed, plan_study(60.0).seconds
    (30, 22, 5400.0)
    """
    least = LEAST_RUNS * run_seconds
    if seconds and seconds < least:
        raise InputError(
            f"{seconds:g} s are too short: a run takes {readable(run_seconds)}",
            why="fewer runs show nothing of how they vary",
            fix=f"give at least {math.ceil(least)} s, or a smaller problem",
        )
    seconds = seconds or max(SECONDS, least)
    traced, replayed = (
        runs or int(min(max(share * seconds / (2 * run_seconds), ROUNDS[0]), ROUNDS[1]))
        for share in (TRACED, REPLAYED)
    )
    return TimePlan(run_seconds, seconds, traced, replayed, TREATED * seconds, PROVED * seconds)
