"""How a study's time is divided among its steps."""

import math
from dataclasses import dataclass

import pandas as pd

from ...errors import InputError
from ...progress import readable
from ...statistics.claims import FEWEST_UNITS

SECONDS = 180.0  # what a study takes by default, whatever the program, up to 20 s a run
LEAST_RUNS = 9  # lengths of a run that the evidence needs
TRACED, REPLAYED, TREATED, PROVED = 0.3, 0.15, 0.4, 0.15  # shares of the time
# rounds of a campaign; of fewer replays no verdict is given
FEWEST_TRACED, FEWEST_REPLAYED, MOST_ROUNDS = 4, FEWEST_UNITS, 40


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
        Rounds of a run with the worst run's noise and one without; 0: there is no time for them.
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

    def seconds_for_replays(self) -> int:
        """The time, all in all, that would leave enough for replays."""
        return math.floor(2 * FEWEST_REPLAYED * self.run_seconds / REPLAYED) + 1

    def sentence(self) -> str:
        """What is done first, and how long all takes."""
        first = readable(2 * self.traced * self.run_seconds)
        return (
            f"{2 * self.traced} runs in about {first} say who took the time; all takes"
            f" {readable(self.seconds)} at most."
        )

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
        In all; 0: three minutes, or nine runs where they are long.
    runs
        Rounds of the first two steps; 0: what the time allows.

    Raises
    ------
    InputError
        The time is too short for anything to be seen.

    Examples
    --------
    >>> plan_study(1.0).traced, plan_study(1.0).replayed, plan_study(60.0).seconds
    (27, 13, 540.0)
    """
    least = LEAST_RUNS * run_seconds
    if seconds and seconds < least:
        raise InputError(
            f"{seconds:g} s are too short: a run takes {readable(run_seconds)} with all that"
            " watches it",
            why="fewer runs show nothing of how they vary",
            fix=f"--budget {math.ceil(least)}, or a smaller problem",
        )
    seconds = seconds or max(SECONDS, least)
    traced, replayed = (
        runs or min(int(share * seconds / (2 * run_seconds)), MOST_ROUNDS)
        for share in (TRACED, REPLAYED)
    )
    traced = max(traced, FEWEST_TRACED)
    replayed = replayed if replayed >= FEWEST_REPLAYED else 0
    left = seconds - 2 * (traced + replayed) * run_seconds
    treated = max(left, 0) * TREATED / (TREATED + PROVED)
    return TimePlan(run_seconds, seconds, traced, replayed, treated, max(left, 0) - treated)
