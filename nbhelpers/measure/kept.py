"""What is measured once and kept beside the runs: the problem size; and the runs of a campaign, read back by a later stage.

Owns `calibration.json`, and reading a campaign without knowing its cells.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pandas as pd

from ..errors import InputError
from ..workloads import Workload, sizing
from .once import measured_once
from .simple import calibrate
from .table import runs_table
from ._store import Store


def calibrated(make: Callable[..., Workload], path: str | Path, target_seconds: float | None = None, threads: int = 0, size: int = 4000,
               measure: bool = True, exponent: float = 2.0) -> Workload:
    """The workload of a size that was found once for this machine, and is kept with the data.

    Parameters
    ----------
    make : gives the workload of a size, as `nbody`: called with the size and the keyword `threads`.
    path : of ``calibration.json``.
    target_seconds : length of a run to calibrate to; None: whatever was calibrated before.
    threads : 0: as many as there are CPUs.
    size : where to begin.
    measure : False: never measure, the file must be there.
    exponent : run time grows as size**exponent.

    Raises
    ------
    InputError : nothing was calibrated yet, or for another target or number of threads.
    """
    kept = measured_once(path, lambda: _search(make, target_seconds, threads, size, exponent), "problem size",
                         measure and target_seconds is not None)
    if not {"size", "target_seconds", "threads"} <= set(kept):
        raise InputError("not a calibration: size, target_seconds and threads are expected", where=path, mend="make measure-again")
    if target_seconds is not None and (kept["target_seconds"], kept["threads"]) != (target_seconds, threads):
        raise InputError(f"the size was calibrated for {kept['target_seconds']} s with {kept['threads'] or 'all'} threads, "
                         f"not for {target_seconds} s with {threads or 'all'}", where=path,
                         why="runs of different sizes must not be mixed", mend="keep the old data aside and measure anew: make measure-again")
    return make(kept["size"], threads=kept["threads"] or None)


def sized(program: str, path: str | Path, target_seconds: float | None = None, threads: int = 0, measure: bool = True, **options: object) -> Workload:
    """One of our programs in the size that was found once for this machine: `calibrated`, knowing how the program's time grows.

    Parameters
    ----------
    program : nbody, stream, minife, schedbench or syncbench.
    path, target_seconds, threads, measure, errors : see `calibrated`.
    options : of the program, for example compiler="clang" or schedule="static"; they are no part of what is kept.
    """
    known = sizing(program)
    return calibrated(partial(known.make, **options), path, target_seconds, threads, known.start, measure, known.exponent)


def _search(make: Callable[..., Workload], target_seconds: float, threads: int, size: int, exponent: float) -> dict:
    sizes: dict[Workload, int] = {}

    def sized(number: int) -> Workload:
        workload = make(number, threads=threads or None)
        sizes[workload] = number
        return workload

    return {"size": sizes[calibrate(sized, size, target_seconds, exponent)], "target_seconds": target_seconds, "threads": threads}


def recorded_runs(folder: str | Path) -> pd.DataFrame:
    """The runs table of a campaign's folder, failed runs too.

    Raises
    ------
    InputError : nothing was recorded there, or a record is damaged.
    """
    rows = Store(folder).rows()
    if not rows:
        raise InputError("no runs were recorded here", where=folder, mend="run the stage that measures them first: make paper")
    return runs_table(rows)
