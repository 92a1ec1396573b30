"""A guardian for the runs of this process: it ends what they started if this process is killed.

Owns the entry of the runs in this process's journal. `guardian.py` acts on it, and so does
`settings.repair` at the next start of any campaign.
"""

import contextlib
import os
from collections.abc import Iterator

from . import guardian, kernel, run_groups
from ._watch import state_folder, watched


@contextlib.contextmanager
def guarded_runs() -> Iterator[None]:
    """Have a guardian process stand by while the block measures; nested blocks share it.

    Raises
    ------
    SettingError
        There is no state folder, or the guardian does not start.

    Examples
    --------
    >>> with guarded_runs():
    ...     pass  # measure
    """
    folder = state_folder()
    mine = watched(folder)
    path = f"{run_groups.base() or '/proc'}/{run_groups.prefix()}"
    entry = {"kind": guardian.RUNS, "path": path, "at": 0}
    entry |= {"pid": os.getpid(), "started": kernel.start_time(os.getpid())}
    with guardian.locked(folder):
        entered = not any(change["kind"] == guardian.RUNS for change in mine.journal.changes)
        if entered:
            mine.add([entry])
    try:
        if entered:
            with guardian.locked(folder):
                mine.guard()
        yield
    finally:
        if entered:
            with guardian.locked(folder):
                mine.journal.drop([entry])
                mine.relax()
