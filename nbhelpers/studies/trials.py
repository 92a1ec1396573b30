"""Mitigations tried by hand on a page: which can be tried against a factor, their runs interleaved
with untreated ones, and the table of the verdicts.

Owns what must go right in between: a mitigation that came later stands beside the untreated runs of
its own epoch. The verdict is `judge_trials`.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pandas as pd

from ..measurement import Campaign, finished, metrics, recorded_runs
from ..mitigation.knowledge import explain_factor, mitigations
from ..mitigation.report import tried_table
from ..mitigation.treatment import BASELINE, treatment_cells, why_unproven
from ..mitigation.trials import SEEMS, Trial, judge_trials, new_order
from ..workloads import Workload

_NOT_SHOWN = ["name", "factor", "sd_ratio", "sd_low", "sd_high", "p_value"]


def candidates(factor: str, workload: Workload) -> pd.DataFrame:
    """The mitigations that are known for a factor, cheap and safe ones first.

    Parameters
    ----------
    factor
        Its id, or a column of the runs table that shows it.
    workload
        What is to be mitigated; a run shows whether a mitigation acts on it.

    Returns
    -------
    DataFrame, a row a mitigation; columns factor, mitigation, name, tried (whether it acts by
    itself, can be done here, and is seen to act), reason (why not).

    Raises
    ------
    InputError
        There is no such factor.
    """
    found, rows = explain_factor(factor), []
    known = [mitigations()[name] for name in found.mitigations]
    for one in sorted(known, key=lambda one: one.cost):
        threads = "for programs with several threads" if one.parallel else ""
        reason = one.possible(workload).reason or one.too_risky("low") or threads
        reason = reason or why_unproven(one.id, workload).removeprefix(f"{one.id}: ")
        rows.append((found.id, one.id, one.name, not reason, reason))
    return pd.DataFrame(rows, columns=["factor", "mitigation", "name", "tried", "reason"])


def trial_runs(
    folder: str | os.PathLike,
    workload: Workload,
    names: Iterable[str],
    rounds: int,
    seed: int = 1,
    recorded_only: bool = False,
    layers: Sequence[str] = (),
) -> pd.DataFrame:
    """Runs without and with each mitigation, one of each in a round, in random order.

    Parameters
    ----------
    folder
        The campaign's.
    workload
        What is run.
    names
        Mitigations; those that cannot be done here are left out. One that was not measured yet is
        measured in further rounds, in turn with the untreated program.
    rounds, seed
        Passed to the campaign.
    recorded_only
        True: use recorded data, measure nothing.
    layers
        Metric layers that accompany every run.

    Returns
    -------
    The finished runs, also those of mitigations that cannot be done here any more; column
    `mitigation` ("none" or its id).
    """
    if not recorded_only:
        known = [name for name in names if name in mitigations()]
        possible = [name for name in known if mitigations()[name].possible(workload)]
        cells = treatment_cells(workload, possible)
        Campaign(folder, cells, rounds, seed, attachments=metrics(*layers)).run()
    return finished(recorded_runs(Path(folder)))


def judge_runs(runs: pd.DataFrame, seed: int = 0) -> dict[str, Trial]:
    """Each mitigation's runs against the untreated ones of the same rounds, all judged together.

    Parameters
    ----------
    runs
        The table of `trial_runs`.
    seed
        Decides the intervals.

    Returns
    -------
    Mitigation id -> trial.
    """
    untreated = runs[runs["cell"] == BASELINE]
    treated = runs[runs["cell"] != BASELINE].groupby("cell", sort=True)
    return judge_trials({str(name): (untreated, table) for name, table in treated}, seed)


def measured_again(
    folder: str | os.PathLike,
    workload: Workload,
    judged: Mapping[str, Trial],
    rounds: int,
    seed: int = 1,
    recorded_only: bool = False,
) -> dict[str, Trial]:
    """What seems to help, in runs that had no part in choosing it.

    Parameters
    ----------
    folder
        The second campaign's.
    workload, rounds, seed, recorded_only
        Program, number of rounds, seed, and whether only to read; see `trial_runs`.
    judged
        The trials of the first campaign.

    Returns
    -------
    Mitigation id -> trial; nothing where nothing seems to help, or nothing was recorded.
    """
    names = [name for name, trial in judged.items() if trial.verdict == SEEMS]
    if not names or (recorded_only and not Path(folder).exists()):
        return {}
    order = new_order(seed)
    again = judge_runs(trial_runs(folder, workload, names, rounds, order, recorded_only), seed)
    return {name: again[name] for name in names if name in again}


def trial_table(
    judged: Mapping[str, Trial], again: Mapping[str, Trial] | None = None
) -> pd.DataFrame:
    """The effect of each mitigation, the best first.

    Parameters
    ----------
    judged
        The trials of the first campaign.
    again
        Those of the second; without it nothing is said to help.

    Returns
    -------
    DataFrame, a row a mitigation. Columns: mitigation; runs (rounds); rounds (their numbers in the
    campaign); mean_ratio and cv_ratio (treated over untreated) with 95 % intervals; p_corrected
    (for all mitigations judged together); needed (rounds that would settle an open verdict);
    verdict, a word of `nbhelpers.mitigation.trials`.
    """
    table = tried_table(judged, {}, again).reset_index().drop(columns=_NOT_SHOWN)
    table.insert(2, "rounds", [trial.comparison.measured_in for trial in judged.values()])
    return table.sort_values("mean_ratio", ignore_index=True)
