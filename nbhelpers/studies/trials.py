"""Mitigations tried by hand on a page: which can be tried against a factor, their runs interleaved
with untreated ones, and the table of the verdicts.

Owns what must go right in between: a mitigation that came later stands beside the untreated runs of
its own epoch. The verdict is `judge_trials`.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

import pandas as pd

from ..errors import InputError
from ..files import write_atomically
from ..measurement import Campaign, finished, metrics, recorded_runs
from ..mitigation.knowledge import explain_factor, mitigations
from ..mitigation.report import tried_table
from ..mitigation.treatment import BASELINE, treatment_cells, why_unproven
from ..mitigation.trials import SEEMS, Trial, judge_trials
from ..reading import read_csv
from ..workloads import Workload

TRIAL_COLUMNS = [
    "mitigation",
    "runs",
    "rounds",
    "mean_ratio",
    "mean_low",
    "mean_high",
    "cv_ratio",
    "cv_low",
    "cv_high",
    "p_corrected",
    "needed",
    "verdict",
]
_CANDIDATES = ["factor", "mitigation", "name", "tried", "reason"]


def candidates(
    path: str | os.PathLike,
    factor: str,
    workload: Workload,
    recorded_only: bool = False,
) -> pd.DataFrame:
    """The mitigations that are known for a factor, cheap and safe ones first.

    Parameters
    ----------
    path
        A CSV file, written by each call that may measure, so that a recorded study has the choice.
    factor
        Its id, or a column of the runs table that shows it.
    workload
        What is to be mitigated; a run shows whether a mitigation acts on it.
    recorded_only
        True: read the stored choice.

    Returns
    -------
    DataFrame, a row a mitigation; columns factor, mitigation, name, tried (whether it acts by
    itself, can be done here, and is seen to act), reason (why not).

    Raises
    ------
    InputError
        Nothing is stored, or there is no such factor.
    """
    rows = partial(_candidate_rows, factor, workload)
    return stored_choice(path, _CANDIDATES, rows, recorded_only, "mitigations were chosen")


def _candidate_rows(factor: str, workload: Workload) -> list[tuple]:
    found, rows = explain_factor(factor), []
    known = [mitigations()[name] for name in found.mitigations]
    for one in sorted(known, key=lambda one: one.cost):
        threads = "for programs with several threads" if one.parallel else ""
        reason = one.possible(workload).reason or one.too_risky("low") or threads
        reason = reason or why_unproven(one.id, workload).removeprefix(f"{one.id}: ")
        rows.append((found.id, one.id, one.name, not reason, reason))
    return rows


def stored_choice(
    path: str | os.PathLike,
    columns: Sequence[str],
    rows: Callable[[], Sequence[tuple]],
    recorded_only: bool,
    done: str,
) -> pd.DataFrame:
    """A choice of a study, as a CSV file has it; each call that may measure makes it anew.

    Parameters
    ----------
    path, columns
        The file and its columns.
    rows
        Makes the rows.
    recorded_only
        True: read the stored ones.
    done
        What makes them, as in "doses were drawn".

    Raises
    ------
    InputError
        `recorded_only` is True, and nothing is stored.
    """
    path = Path(path)
    if not recorded_only:
        write_atomically(path, pd.DataFrame(rows(), columns=list(columns)).to_csv(index=False))
    elif not path.exists():
        fix = "run the stage that measures: make paper"
        raise InputError(f"no {done} yet", where=path, fix=fix)
    return read_csv(path, keep_default_na=False)


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
    again = judge_runs(trial_runs(folder, workload, names, rounds, seed + 1, recorded_only), seed)
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
    table = tried_table(judged, {}, again).reset_index()
    places = [trial.comparison.measured_in for trial in judged.values()]
    return table.assign(rounds=places)[TRIAL_COLUMNS].sort_values("mean_ratio", ignore_index=True)
