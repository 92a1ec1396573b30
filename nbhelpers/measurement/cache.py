"""What is measured once and kept beside the runs: the problem size; and the runs of a campaign,
read back by a later stage.

Owns `calibration.json`, and reading a campaign without knowing its cells.
"""

import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pandas as pd

from ..errors import InputError
from ..files import put_aside, write_json
from ..machine import measuring
from ..workloads import Workload, size_model
from ._store import Store, identity
from .cached_value import measured_once, readable
from .simple import calibrate, undisturbed_seconds
from .table import runs_table

TOLERANCE = (
    0.15  # share by which a run may be shorter than asked for, or what the runs take may be off
)
# times longer than asked for: less can be somebody else's doing, and the size is right after all
SLOWER = 2.0
FRESH_S = 300  # a size found so lately is not checked again


def calibrated(
    make: Callable[..., Workload],
    path: str | Path,
    target_seconds: float | None = None,
    threads: int = 0,
    size: int = 4000,
    recorded_only: bool = False,
    exponent: float = 2.0,
) -> Workload:
    """The workload of a size that was found once for this machine, and is kept with the data.

    Parameters
    ----------
    make
        Gives the workload of a size, as `nbody`: called with the size and the keyword `threads`.
    path
        Of ``calibration.json``.
    target_seconds
        Length of a run to calibrate to; None: whatever was calibrated before.
    threads
        0: as many as there are CPUs.
    size
        Where to begin.
    recorded_only
        True: never measure, the file must be there.
    exponent
        Run time grows as size**exponent.

    Raises
    ------
    InputError
        `recorded_only` is True, and nothing was calibrated, or for another target or number of threads.

    Notes
    -----
    The file is put aside, and the size found anew, when it is of another target or number of
    threads, or when, before anything was measured with it, a run takes less than the target by more
    than `TOLERANCE` (it was found in a slow moment) or more than `SLOWER` times the target. Once
    there are runs their size stays; what they take stands in the file's `notes`, and on the page,
    where it is off by more than `TOLERANCE`.
    """
    path, wanted = Path(path), {"target_seconds": target_seconds, "threads": threads}
    may_measure = not recorded_only and target_seconds is not None
    kept = readable(path, "problem size", not may_measure)
    reason = _wrong(kept, wanted) if path.exists() else ""
    if reason and not may_measure:
        raise InputError(
            f"not the size that is asked for: {reason}",
            where=path,
            why="runs of different sizes must not be mixed",
            fix=(
                "ask for what was calibrated, or measure in a profile of your own: make paper"
                " PROFILE=quick"
            ),
        )
    if may_measure and kept and not reason:
        reason, kept = _checked(make(kept["size"], threads=threads or None), kept, path)
    notes = [_noted(put_aside(path, reason))] if reason else []
    kept = measured_once(
        path,
        lambda: _search(make, target_seconds, threads, size, exponent, notes),
        "problem size",
        not may_measure,
    )
    return make(kept["size"], threads=kept["threads"] or None)


def _wrong(kept: dict, wanted: dict) -> str:
    """Why a file is no calibration for what is asked, or empty."""
    if not {"size", *wanted} <= set(kept):
        return "size, target_seconds and threads are expected in a calibration"
    if wanted["target_seconds"] is None or {name: kept[name] for name in wanted} == wanted:
        return ""
    return (
        f"calibrated for {kept['target_seconds']} s with {kept['threads'] or 'all'} threads, "
        f"now {wanted['target_seconds']} s with {wanted['threads'] or 'all'} are asked for"
    )


def _checked(workload: Workload, kept: dict, path: Path) -> tuple[str, dict]:
    """Why a size must be found anew, or empty; and what is kept, with a note where the runs are not
    as long as asked.

    Only the very command that was calibrated is looked at: others of the same size may take longer
    or shorter.
    """
    if kept.get("command") != _command(workload) or time.time() - path.stat().st_mtime < FRESH_S:
        return "", kept
    times, target = _measured_seconds(path.parent, workload), kept["target_seconds"]
    if not times:
        with measuring(doing="checking the problem size"):
            seconds = undisturbed_seconds(workload)
        if 1 - TOLERANCE <= seconds / target <= SLOWER:
            return "", kept
        return (
            (
                f"a run takes {seconds:.3g} s where {target:g} s is asked for, and nothing was"
                " measured with it yet"
            ),
            kept,
        )
    taken = statistics.median(times)
    if abs(taken / target - 1) > TOLERANCE and not any(
        "in the median" in note for note in kept.get("notes", ())
    ):
        note = _noted(
            f"the runs of {workload.name} take {taken:.2g} s in the median where {target:g} s is"
            " asked for; the size stays, since there are runs of it"
        )
        kept = {**kept, "notes": [*kept.get("notes", []), note]}
        write_json(path, kept)
    return "", kept


def _measured_seconds(folder: Path, workload: Workload) -> list[float]:
    """Run times of a workload, undisturbed and in this very placement, in the campaigns below a
    folder.
    """
    times = []
    for path in sorted(folder.rglob("campaign.json")):
        store = Store(path.parent)
        if "aside" not in path.relative_to(folder).parts:
            names = store.cells_of(workload)
            times += [
                row["seconds"]
                for row in store.rows()
                if row["cell"] in names and row["status"] == "ok"
            ]
    return times


def _command(workload: Workload) -> list[str]:
    return identity({"": (workload, "none", [])}, 0, None, with_programs=False)["cells"][""][
        "command"
    ]


def _noted(sentence: str) -> str:
    return f"{time.strftime('%Y-%m-%d %H:%M')}: {sentence}"


def sized(
    program: str,
    path: str | Path,
    target_seconds: float | None = None,
    threads: int = 0,
    recorded_only: bool = False,
    **options: object,
) -> Workload:
    """One of our programs in the size that was found once for this machine: `calibrated`, knowing
    how the program's time grows.

    Parameters
    ----------
    program
        Nbody, stream, minife, schedbench or syncbench. path, target_seconds, threads, measure,
        errors : see `calibrated`.
    options
        Of the program, for example compiler="clang" or schedule="static"; they are no part of what
        is kept.
    """
    known = size_model(program)
    return calibrated(
        partial(known.make, **options),
        path,
        target_seconds,
        threads,
        known.start,
        recorded_only,
        known.exponent,
    )


def _search(
    make: Callable[..., Workload],
    target_seconds: float,
    threads: int,
    size: int,
    exponent: float,
    notes: list[str],
) -> dict:
    sizes: dict[Workload, int] = {}

    def sized(number: int) -> Workload:
        workload = make(number, threads=threads or None)
        sizes[workload] = number
        return workload

    found = calibrate(sized, size, target_seconds, exponent)
    return {
        "size": sizes[found],
        "target_seconds": target_seconds,
        "threads": threads,
        "command": _command(found),
        **({"notes": notes} if notes else {}),
    }


def recorded_runs(folder: str | Path) -> pd.DataFrame:
    """The runs table of a campaign's folder, of all its cells, failed runs too; how it grew is in
    `attrs["notes"]`.

    Raises
    ------
    InputError
        Nothing was recorded there, or a record is damaged.
    """
    store = Store(folder)
    rows = store.rows()
    if not rows:
        raise InputError(
            "no runs were recorded here",
            where=folder,
            fix="run the stage that measures them first: make paper",
        )
    table = runs_table(rows)
    table.attrs["notes"] = store.notes()
    return table
