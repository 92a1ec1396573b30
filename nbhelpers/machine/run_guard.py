"""A guardian for the runs of this process: it ends what they started if this process is killed.

Owns the entry of the runs in this process's journal. `guardian.py` acts on it, and so does
`settings.repair` at the next start of any campaign.
"""

import contextlib
import os
from collections.abc import Iterator

from . import guardian, kernel, run_groups
from ._watch import Watched, state_folder, watched


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
    with contextlib.ExitStack() as stack:
        with guardian.locked(folder):
            if not any(change["kind"] == guardian.RUNS for change in mine.journal.changes):
                mine.add([entry])
                stack.callback(_end, mine, entry)
                mine.guard()
        yield


def _end(mine: Watched, entry: dict) -> None:
    with guardian.locked(mine.folder):
        mine.journal.drop([entry])
        mine.relax()
