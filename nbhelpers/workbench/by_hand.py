"""A mitigation that a person does: measured without it, done, measured with it; or, where commands
do and undo it, in turn.

Owns the steps of such a trial, their cells, and how their runs become a pair. Runs that were not
measured in turn have no rounds in common: whatever else changed in between is in the difference,
too, and `when` says when each side was measured.
"""

import subprocess
from collections.abc import Mapping
from datetime import datetime

import pandas as pd

from ..errors import RunError
from ..measurement import Attachment, Cell
from ..mitigation import BASELINE
from ..workloads import Workload

BEFORE, AFTER = "before", "after"  # of a step: "trial.before" measures the untreated side
_LIMIT_S = 120.0
_CAVEAT = (
    "Not measured in turn: whatever else changed in between is in the difference, too. Undo it, and"
    " measure both again: a difference that comes and goes with it is no drift. Where commands can"
    " do and undo it, name them, and it is tried in turn."
)


class Commands(Attachment):
    """Does what a person would do before each run, and undoes it after.

    Parameters
    ----------
    name
        The mitigation.
    apply, undo
        Lines for /bin/sh, as root if this runs as root. A measurement that is killed (SIGKILL)
        undoes nothing.

    Examples
    --------
    >>> Commands("quiet-machine", "systemctl stop x.timer", "systemctl start x.timer").identity
    'by hand quiet-machine: systemctl stop x.timer'
    """

    def __init__(self, name: str, apply: str, undo: str):
        self.name, self.apply, self.undo = name, apply, undo
        self.identity = f"by hand {name}: {apply}"
        self._done = False

    def before(self, workload: Workload) -> None:
        self._done = True  # also a command that fails may have done a part of it
        _shell(self.apply, "no run is measured")

    def after(self, run: dict) -> dict:
        self.close()
        return {"mitigation": self.name}

    def close(self) -> None:
        if self._done:
            self._done = False
            _shell(self.undo, "the machine is as the mitigation left it: undo it by hand")


def _shell(line: str, why: str) -> None:
    """Run a line of a person; what it prints is shown where it fails."""
    words = "/bin/sh", "-c", line
    try:
        done = subprocess.run(words, input="", capture_output=True, text=True, timeout=_LIMIT_S)
    except subprocess.TimeoutExpired:
        raise RunError(f"not done within {_LIMIT_S:.0f} s", where=line, why=why) from None
    if done.returncode:
        said = (done.stdout + done.stderr).strip() or f"status {done.returncode}"
        raise RunError(f"the command failed: {said}", where=line, why=why)


def cells_by_hand(
    workload: Workload, name: str, side: str, apply: str = "", undo: str = ""
) -> list[Cell]:
    """What a step measures: one side as the machine is now, or both in turn by commands.

    Parameters
    ----------
    workload
        The program.
    name
        The mitigation.
    side
        BEFORE or AFTER; empty: both.
    apply, undo
        Of `Commands`.
    """
    if side:
        return [Cell(BASELINE if side == BEFORE else name, workload)]
    does = Commands(name, apply, undo)
    treated = Cell(name, workload, attachments=(does,), compared_with=(BASELINE,))
    return [Cell(BASELINE, workload), treated]


def joined(parts: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """The runs of both sides as one table, without rounds: they are paired in their order.

    Parameters
    ----------
    parts
        BEFORE and AFTER → runs; in place of both "" → runs in turn, which count alone.
    """
    if "" in parts:
        return parts[""]
    table = pd.concat([parts[side] for side in (BEFORE, AFTER) if side in parts])
    return table.drop(columns=["round", "epoch"], errors="ignore").reset_index(drop=True)


def when(untreated: pd.DataFrame, treated: pd.DataFrame) -> str:
    """When both sides were measured, and what that means; empty where they were in turn."""
    if "round" in untreated or "began_unix_s" not in untreated:
        return ""
    times = []
    for runs in (untreated, treated):
        began = runs["began_unix_s"]
        first, last = map(datetime.fromtimestamp, (began.min(), began.max()))
        times.append(f"{first:%Y-%m-%d %H:%M:%S} to {last:%H:%M:%S}")
    return f"Untreated runs: {times[0]}; treated ones: {times[1]}. {_CAVEAT}"
