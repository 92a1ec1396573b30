"""The best mitigation of those that were tried, and the table of what the autopilot tried."""

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from ..empty import because
from ..mitigation.report import RATIO_COLUMNS, Report
from ..mitigation.trials import Trial
from ..statistics import Comparison

_AUTOPILOT_COLUMNS = ["factor", "runs", *RATIO_COLUMNS, "p_corrected", "needed", "verdict"]


@dataclass(frozen=True)
class BestTrial:
    """The first mitigation of a table of trials.

    Attributes
    ----------
    name
        Its id; "no mitigation", where none was tried.
    comparison
        Of treated with untreated runs; None, where none was tried.
    shift
        How far each quantile moves; without rows, where none was tried.
    """

    name: str
    comparison: Comparison | None
    shift: pd.DataFrame


def best_trial(judged: Mapping[str, Trial], tried: pd.DataFrame) -> BestTrial:
    """Return the best of the mitigations that were tried.

    Parameters
    ----------
    judged
        Of `judge_runs`.
    tried
        Of `trial_table`, the best first.
    """
    name = next(iter(tried["mitigation"]), "no mitigation")
    if name not in judged:
        return BestTrial(name, None, because(tried, "no mitigation was tried"))
    comparison = judged[name].comparison
    return BestTrial(name, comparison, comparison.shift.reset_index())


def autopilot_table(report: Report) -> pd.DataFrame:
    """What the autopilot tried: ratios of treated to untreated runs with their 95 % intervals."""
    return report.tried[_AUTOPILOT_COLUMNS]
