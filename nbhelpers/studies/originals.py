"""The programs of the papers themselves (`make originals`) beside our rewrites of them.

Owns which program is the original of which of ours, and the size in which it runs. How each is
started and read is in data/knowledge/programs; ours that has no original here is left out.
"""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ..measurement import calibrate
from ..workloads import Workload, program
from ..workloads.description import find_description
from ..workloads.programs import original_path

NOT_BUILT = "the programs of the papers themselves are not built here (make originals)"
# ours, or an operation of ours → the original
_ORIGINALS = {
    "nbody": "hecbench-nbody",
    "stream": "babelstream",
    "minife": "minife-openmp",
    "reduction": "epcc-syncbench",
    "dynamic_1": "epcc-schedbench",
}
# option that is the size, its least value, where its search begins, and the power of it by which
# run time grows
_SIZES = {
    "nbody": ("bodies", 1, 2000, 2.0),
    "stream": ("repeats", 2, 20, 1.0),
    "minife": ("nx", 1, 20, 4.0),
}


def original(name: str, **options: Any) -> Workload | None:
    """The original of one of our programs, unmodified; None: it is not built here.

    Parameters
    ----------
    name
        A program of ours: nbody, stream, minife; an operation: reduction, dynamic_1; or a
        description.
    options
        Options of its description, and what `program` takes.
    """
    return _made(name, **options) if original_path(_known(name)).is_file() else None


def pairs(
    ours: Mapping[str, Workload],
    folder: str | Path,
    target_seconds: float,
    recorded_only: bool = False,
) -> dict[str, dict[str, Workload]]:
    """Ours and the originals that are built here, each original in the size that runs as long.

    Parameters
    ----------
    ours
        Our programs and operations by name.
    folder
        Folder of the study's data, where the sizes are cached.
    target_seconds
        Time that the original reports; BabelStream reports none: from its start to its end. EPCC's
        have a size of their own.
    recorded_only
        True: nothing is measured, and there are none.

    Returns
    -------
    Name → "ours" and "original".
    """
    found = {}
    for name, workload in ours.items():
        if recorded_only or not (theirs := original(name)):
            continue
        if name in _SIZES:
            theirs = _sized(name, workload, target_seconds, Path(folder) / f"{name}-original.json")
        found[name] = {"ours": workload, "original": theirs}
    return found


def used(names: Iterable[str]) -> str:
    """Whose originals a table has, and under which licence, in one line; "" where it has none.

    Parameters
    ----------
    names
        The names of `original`.

    Examples
    --------
    >>> used(["minife"])
    'Originals, as their authors build them: miniFE c79e0f7f (2026-05-13); LGPL-3.'
    """
    sources = dict.fromkeys(find_description(_known(name)).source for name in names)
    return f"Originals, as their authors build them: {'. '.join(sources)}." if sources else ""


def _known(name: str) -> str:
    return _ORIGINALS.get(name, name)


def _made(name: str, **options: Any) -> Workload:
    # HeCBench's kernels ask for 256 threads a team, which only a limit holds to the CPUs
    cpus = str(len(os.sched_getaffinity(0)))
    env = {"OMP_THREAD_LIMIT": cpus, "OMP_NUM_THREADS": cpus}
    return program(description=_known(name), env=env, **options)


def _sized(name: str, ours: Workload, target_seconds: float, file: Path) -> Workload:
    size, least, start, exponent = _SIZES[name]
    words = ours.command
    same = {"elements": words[words.index("--elements") + 1]} if name == "stream" else {}

    def make(value: int) -> Workload:
        return _made(name, **same, **{size: max(least, value)})

    return calibrate(make, start, target_seconds, exponent, file=file)
