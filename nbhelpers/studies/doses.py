"""Small doses of several factors at once, in one campaign.

Owns how a row of a two-level design becomes a cell. All runs start the same helpers: a factor that
a row leaves out begins only after any run, so that a start never counts as a dose. The design, and
what the doses cost, stand on the page.
"""

from collections.abc import Mapping
from dataclasses import replace

import pandas as pd

from ..errors import InputError, NoisebookError
from ..measurement import Attachment
from ..mitigation.knowledge import factors
from ..workloads import Workload
from . import graded_injection as graded


def possible_doses(workload: Workload, amounts: Mapping[str, float]) -> pd.DataFrame:
    """The doses, and which of them can be injected here.

    Parameters
    ----------
    workload
        The program.
    amounts
        Factor of the knowledge base -> its dose, in the unit of its `inject`.

    Returns
    -------
    DataFrame, a row a factor; columns factor, name, dose, unit, tried, reason (why not).

    Raises
    ------
    InputError
        A factor cannot be injected anywhere.
    """
    rows = []
    for name, dose in amounts.items():
        factor, reason = factors()[name], ""
        if not factor.inject:
            raise InputError(f"{name} cannot be injected", why=factor.not_injected)
        try:
            disturbed(workload, {name: 1}, {name: dose})
        except NoisebookError as error:
            reason = error.what
        rows.append((name, factor.name, dose, factor.inject["unit"], not reason, reason))
    return pd.DataFrame(rows, columns=["factor", "name", "dose", "unit", "tried", "reason"])


def disturbed(
    workload: Workload, levels: Mapping[str, int], amounts: Mapping[str, float]
) -> graded.Disturbed:
    """The program and what accompanies it: all factors, those of level 0 without a dose.

    Parameters
    ----------
    workload
        The program.
    levels
        Factor -> 1 with its dose, 0 without; "sham" injects nothing.
    amounts
        The doses; see `possible_doses`.
    """
    at = graded.Place(workload, workload.timeout_s + 1.0, busy=1.0, most=1.0)  # no run is longer
    events: list[pd.DataFrame] = []
    attachments: list[Attachment] = []
    for name in levels:
        if name == graded.SHAM:
            continue
        kind, options = graded.kind_of(factors()[name])
        dose = amounts[name] if levels[name] else None
        if kind == "stressor":
            events.append(graded.stressor_events(at, dose, **options))
            continue
        program, more = graded.KINDS[kind](replace(at, most=amounts[name]), dose, **options)
        at = replace(at, workload=program)
        attachments += more
    if events:
        attachments += graded.stressed(at, pd.concat(events, ignore_index=True))[1]
    return at.workload, tuple(attachments)
