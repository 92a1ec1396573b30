"""A recorded run as slices: who had each CPU, the critical path and its owners."""

from pathlib import Path

import pandas as pd

from ..errors import InputError
from ..tracing.campaign import EVENTS, OWNERS, STATES, STOLEN, each_recording
from ..tracing.states import IDLE, NOT_RECORDED
from .owners import owned_pieces
from .path import critical_path


def tracks_of_run(folder: str | Path, run: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """What happened in a recorded run, as slices for `nbhelpers.perfetto.write_tracks`.

    Parameters
    ----------
    folder
        Where `Tracer` put the traces.
    run
        One row of the runs table.

    Returns
    -------
    Tables by title. Times are from the begin of the timed region; each slice of a thread names who
    ended it (`by`). The critical path, by wake-ups alone, has its account: a slice is a piece of
    it, named after who had it, with the part of the account that it counts for and the ns that
    count.

    Raises
    ------
    InputError
        The run was not recorded by tracepoints.
    LostEvents
        Its recording has losses.
    """
    recorded = next(each_recording(folder, run.head(1)), None)
    if recorded is None:
        raise InputError("no recording to show", where=folder, why=NOT_RECORDED, fix="make doctor")
    owners, events, states = (recorded[name] for name in (OWNERS, EVENTS, STATES))
    had = owners[owners["name"] != IDLE].rename(columns={"cpu": "track", "thread": "by"})
    taken = events[(events["kind"] != "thread").to_numpy()]
    taken = taken.rename(columns={"cpu": "track", "source": "name"})
    own = {"thread": "track", "woken_by_name": "by", "name": "track_name", "state": "name"}
    pieces = owned_pieces(critical_path(states), owners, events, recorded[STOLEN])
    pieces = pieces.rename(columns={"owner": "name", "part": "by"}).assign(track=0)
    tracks = {
        "CPUs": had,
        "interrupts": taken,
        "threads of the program": states.rename(columns=own),
    }
    return tracks | {"account of the critical path": pieces}
