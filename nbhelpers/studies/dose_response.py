"""What the doses of an injected factor do: a slope over the doses, of the run time and of the
counters that show the factor.

Owns `Response` and its judgement, and how much of it was waiting for a CPU; pure, runs in.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..mitigation.trials import TIME_MARGIN, in_numbers
from ..outcomes import COST, with_cost
from ..statistics.claims import REPRODUCED, Claim, Evidence, Judgement, judge
from .graded_injection import SHAM

DOSE_COLUMNS = ["dose", "runs", "ratio", "low", "high"]
MOST_COUNTERS = 3  # of a factor that are judged
WAITING = "process_runqueue_wait_ns"


@dataclass(frozen=True, eq=False)
class Response:
    """What happens when a factor is injected.

    Attributes
    ----------
    doses
        A row a dose, the sham first. Columns: dose; runs; ratio (median cost over the sham's of the
        same rounds); low, high (95 % interval by rounds).
    slower
        Whether runs get slower with the dose.
    shown
        Whether the counters by which the factor was found rise with the dose, of the first three
        that were counted.
    """

    doses: pd.DataFrame
    slower: Judgement
    shown: tuple[Judgement, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether the dose shows in the run time, and in a counter as far as one was counted."""
        return self.slower.verdict == REPRODUCED and self._counted and self._never_falls

    @property
    def _counted(self) -> bool:
        return not self.shown or any(one.verdict == REPRODUCED for one in self.shown)

    @property
    def _never_falls(self) -> bool:
        """No dose is shown to be less than the one before it."""
        lower = self.doses["high"].to_numpy()[1:] < self.doses["low"].to_numpy()[:-1]
        return not lower.any()

    @property
    def sentence(self) -> str:
        """What the doses did."""
        if self.slower.verdict != REPRODUCED:
            missing = f"; {self.slower.why}" if self.slower.why else ""
            return f"injecting it is not shown to slow the runs: {in_numbers(self.slower)}{missing}"
        if not self._never_falls:
            return f"more of it is not always slower: {in_numbers(self.slower)}"
        if not self._counted:
            return "what was injected does not raise the counters by which it was found"
        return (
            f"injected at {len(self.doses) - 1} doses it slows the runs, the more the slower:"
            f" {in_numbers(self.slower)} from none to the most"
        )


def judge_doses(runs: pd.DataFrame, names: Sequence[str], columns: Sequence[str]) -> Response:
    """Whether runs get slower with the dose, and the counter rises that shows the factor.

    Parameters
    ----------
    runs
        Finished runs of the sham and of the doses.
    names
        Names of the cells, from the sham to the highest dose.
    columns
        Counters of the runs table that show the factor, or their rates; the first three that were
        counted are judged.
    """
    costs = with_cost(runs).pivot_table(COST, "round", "cell")[list(names)].dropna()
    pairs = [(Claim("runs are slower with the dose", "above", TIME_MARGIN), _slopes(costs))]
    counted = [
        one for one in dict.fromkeys(name.removesuffix("_per_s") for name in columns) if one in runs
    ]
    for column in counted[:MOST_COUNTERS]:
        counts = runs.pivot_table(column, "round", "cell")[list(names)].dropna() + 1
        pairs.append((Claim(f"{column} rises with the dose", "above"), _slopes(counts)))
    slower, *shown = judge(pairs)
    return Response(_by_dose(costs), slower, tuple(shown))


def _slopes(values: pd.DataFrame) -> Evidence:
    """The slope of each round over the ranks of the doses, from the first to the last of them."""
    ranks = np.arange(values.shape[1]) - (values.shape[1] - 1) / 2
    weights = ranks * (values.shape[1] - 1) / (ranks @ ranks)
    return Evidence(np.log(values.to_numpy(float)) @ weights, values.index)


def _by_dose(costs: pd.DataFrame) -> pd.DataFrame:
    """Each dose against the sham of the same round."""
    logs = np.log(costs)
    rows = []
    for name in costs:
        ratios = (logs[name] - logs.iloc[:, 0]).to_numpy()
        middle = Evidence(ratios, costs.index).estimate
        low, high = (0.0, 0.0) if name == costs.columns[0] else middle.interval()
        rows.append((name, len(costs), *np.exp([middle.mean, low, high])))
    return pd.DataFrame(rows, columns=DOSE_COLUMNS)


def waiting_share(runs: pd.DataFrame, dose: str) -> float:
    """Share of what a dose costs for which the program waited for a CPU, summed over its threads.

    Parameters
    ----------
    runs
        Finished runs of the sham and of the doses, with the column `WAITING`.
    dose
        Its cell.
    """
    table = with_cost(runs).assign(waits=runs[WAITING] * 1e-9 / runs["wall_seconds"])
    rounds = table.pivot_table([COST, "waits"], "round", "cell")
    costs, waits = rounds[COST], rounds["waits"]
    lost = 1 - costs[SHAM] / costs[dose]
    return float((waits[dose] - waits[SHAM]).median() / lost.median())
