"""Campaigns in which a random run of each block is disturbed on purpose, with the truth recorded.

Owns the cells of such a campaign; what is planted is in `catalogue`, how well it is found in
`scores`.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from nbhelpers.errors import InputError, NoisebookError
from nbhelpers.measurement import Attachment, Campaign, Cell, metrics, recorded_runs
from nbhelpers.workloads import Workload

from .catalogue import AND, BLOCK, UNDISTURBED, Cause, Dose, known_cause
from .kinds import KINDS, Disturbance, Place
from .planting import Truth
from .victims import victim_files, victim_path, victim_workload


def cause_campaign(
    folder: str | os.PathLike | None,
    cause: str | Cause,
    runs: int,
    seed: int = 1,
    layers: Sequence[str] = ("all",),
    dose: str | None = None,
) -> Campaign:
    """A campaign in which one random run of each block of four has a cause.

    The other three have its sham: all that disturbs, without a dose. Where two causes come
    together, a block has six runs: one with each of them, one with both, three with the shams.

    Parameters
    ----------
    folder
        The campaign's folder; None: in memory only. The victim's file lies in a private folder for
        temporary files, and is removed at the end.
    cause
        Its id.
    runs
        All runs, a multiple of four; of two causes, what is left by blocks of six is not run.
    seed
        Seed of the random order of the runs.
    layers
        Metric layers that accompany every run.
    dose
        Its name; None: the strongest.

    Returns
    -------
    Campaign; its runs have the columns `truth` (the cause's id, or "none") and `dose`.

    Raises
    ------
    InputError
        No such cause or dose, or a number of runs that is no multiple of four.
    Unavailable
        It can't be planted here.
    """
    cause = cause if isinstance(cause, Cause) else known_cause(cause)
    if runs < BLOCK or runs % BLOCK:
        raise InputError(
            f"{runs} runs of '{cause.id}'",
            fix=f"a multiple of {BLOCK}: one run in {BLOCK} is disturbed",
        )
    chosen = _dose(cause, dose)
    at = _place(chosen)
    planted = _plant(cause, at)
    sham = tuple(one for part in planted for one in part.sham)
    cells = [
        Cell(f"undisturbed {number}", at.workload, attachments=(Truth(UNDISTURBED, sham),))
        for number in range(1, BLOCK)
    ]
    cells += [_disturbed(name, at.workload, chosen, cause, planted) for name in cause.truths]
    attached = (*victim_files(chosen.victim), *metrics(*layers))
    return Campaign(folder, cells, max(1, runs // cause.block), seed, attachments=attached)


def _disturbed(
    truth: str, workload: Workload, dose: Dose, cause: Cause, planted: Sequence[Disturbance]
) -> Cell:
    """The cell in which some parts of a cause are planted, and of the others the sham."""
    attachments: tuple[Attachment, ...] = ()
    for name, part in zip(cause.parts, planted):
        on = name in truth.split(AND)
        attachments += part.attachments if on else part.sham
        workload = part.treat(workload) if on else workload
    cell = "disturbed" if len(cause.parts) == 1 else f"disturbed {truth}"
    return Cell(cell, workload, attachments=(Truth(truth, attachments, dose.name),))


def _dose(cause: Cause, name: str | None) -> Dose:
    if name is not None and name not in cause.doses:
        raise InputError(
            f"'{cause.id}' has no dose '{name}'", fix=f"one of {', '.join(cause.doses)}"
        )
    return cause.doses[name or cause.strongest]


def _plant(cause: Cause, at: Place) -> list[Disturbance]:
    planted = []
    for plant, amount in zip(cause.plants, at.dose.amounts):
        parameters = {name: value for name, value in plant.items() if name != "kind"}
        planted.append(KINDS[plant["kind"]](at, amount, **parameters))
    return planted


def _place(dose: Dose) -> Place:
    cpus = sorted(os.sched_getaffinity(0))
    two = tuple(dict.fromkeys((cpus[0], cpus[-1])))
    file = victim_path(dose.victim)
    return Place(victim_workload(dose, two, file), cpus[-1], cpus[0], file, dose)


def cause_runs(
    folder: str | os.PathLike,
    names: Sequence[str],
    runs: int,
    seed: int = 1,
    recorded_only: bool = False,
    layers: Sequence[str] = ("all",),
) -> dict[str, pd.DataFrame]:
    """The runs of several causes: measured, as far as they are missing, or as they were recorded.

    Parameters
    ----------
    folder
        Holds a campaign a cause.
    names
        Ids; causes that cannot be planted here are not measured.
    runs, seed, layers
        Number of runs, seed and metric layers of each campaign; see `cause_campaign`.
    recorded_only
        True: use recorded data, plant nothing.

    Returns
    -------
    Cause id -> runs table with the column `truth`.

    Raises
    ------
    InputError
        There is no such cause, or nothing was recorded.
    """
    if recorded_only:
        return {name: recorded_runs(Path(folder) / name) for name in names}
    return {
        name: cause_campaign(Path(folder) / name, name, runs, seed, layers).run()
        for name in names
        if planting_error(name) is None
    }


def planting_error(name: str) -> NoisebookError | None:
    """The error that planting a cause here would end in; None: it can be planted.

    Parameters
    ----------
    name
        Id of the cause.
    """
    cause = known_cause(name)
    try:
        _plant(cause, replace(_place(_dose(cause, None)), trial=True))
    except NoisebookError as error:
        return error
    return None


def not_planted_sentences(names: Sequence[str], planted: Mapping[str, pd.DataFrame]) -> list[str]:
    """A sentence on each cause without runs: why, and the fix.

    Parameters
    ----------
    names
        Ids of the causes, as passed to `cause_runs`.
    planted
        What it returned.
    """
    missing = {name: planting_error(name) for name in names if name not in planted}
    return [f"Not planted: {name}, {_reason(error)}." for name, error in missing.items()]


def _reason(error: NoisebookError | None) -> str:
    if error is None:
        return "which was not possible when the others were measured"
    return error.what + (f" ({error.fix})" if error.fix else "")
