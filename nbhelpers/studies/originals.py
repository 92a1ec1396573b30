"""The unmodified originals of our programs as programs of a study, beside ours as their control.

Owns their names in a folder of builds, and the size in which they run. How each is built, started
and read is in data/knowledge/programs, under the same names.
"""

import os
from collections.abc import Collection, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from ..measurement import calibrate
from ..workloads import Workload, program

ORIGINAL = "original"  # the word that stands for a model, or a compiler
FILES = {
    "nbody": "hecbench-nbody",
    "stream": "babelstream",
    "minife": "minife-openmp",
    "schedbench": "epcc-schedbench",
    "syncbench": "epcc-syncbench",
}
MICROBENCHMARKS = ("schedbench", "syncbench", "stream")  # those of Cui et al. 2023
# EPCC's words for our schedules and constructs
SCHEDULES = {"static": "STATICN", "dynamic": "DYNAMIC", "guided": "GUIDED"}
CONSTRUCTS = {"parallel-for": "PARALLEL_FOR", "lock": "LOCK_CONTENDED"}
# option that is the size, where its search begins, and the power of it by which run time grows
SIZES = {"nbody": ("bodies", 2000, 2.0), "stream": ("repeats", 20, 1.0), "minife": ("nx", 20, 4.0)}


def why_missing(folder: str | Path, programs: Collection[str]) -> str:
    """Why the originals cannot be run here; "" if they can.

    Parameters
    ----------
    folder
        Of their builds.
    programs
        Which are needed, by the names of ours.
    """
    names = [FILES[name] for name in programs]
    lacking = [name for name in names if not os.access(Path(folder) / name, os.X_OK)]
    return f"no program {', '.join(lacking)} in {folder}" if lacking else ""


def original(folder: str | Path, name: str, **options: Any) -> Workload:
    """The original of one of our programs, unmodified.

    Parameters
    ----------
    folder
        Of the builds, named as the files of data/knowledge/programs that describe them.
    name
        Of our program: nbody, stream, minife, schedbench or syncbench.
    options
        Of the description.

    Raises
    ------
    RunError
        It is not there, or does not run on this machine.

    Examples
    --------
    >>> original("/opt/originals", "stream", repeats=20)  # doctest: +SKIP
    Workload(babelstream, omp, Rm: /opt/originals/babelstream -s 4194304 -n 20 --csv)
    """
    # HeCBench's kernels ask for 256 threads a team, which only a limit holds to the CPUs
    env = {"OMP_THREAD_LIMIT": str(len(os.sched_getaffinity(0)))} if name == "nbody" else {}
    path = Path(folder).expanduser().resolve() / FILES[name]
    return program(str(path), description=FILES[name], env=env, **options)


def microbenchmarks(
    folder: str | Path,
    constructs: Collection[str],
    elements: int,
    repeats: int,
    outer: int,
    delay_us: float,
) -> dict[str, Workload]:
    """EPCC's benchmarks and BabelStream by the name of ours: dynamic_1, reduction, stream, ….

    A run of a schedule has a time for every chunk size.

    Parameters
    ----------
    folder
        As of `original`.
    constructs
        Of syncbench, by our names.
    elements, repeats
        Of BabelStream.
    outer
        Outer repetitions of EPCC's.
    delay_us
        Delay of its schedbench.
    """
    schedules = {
        f"{ours}_1": original(folder, "schedbench", schedule=name, outer=outer, delay_us=delay_us)
        for ours, name in SCHEDULES.items()
    }
    constructed = {
        ours: original(
            folder, "syncbench", construct=CONSTRUCTS.get(ours, ours.upper()), outer=outer
        )
        for ours in constructs
    }
    stream = original(folder, "stream", elements=elements, repeats=repeats)
    return {**schedules, **constructed, "stream": stream}


def calibrated_original(
    folder: str | Path,
    name: str,
    data: str | Path,
    target_seconds: float | None,
    recorded_only: bool = False,
    options: Mapping[str, Any] | None = None,
) -> Workload:
    """The original in the size whose run takes so long by its own account, cached with the data.

    Parameters
    ----------
    folder, name
        As of `original`: nbody, stream or minife.
    data
        Folder of the study's data.
    target_seconds
        Time that it reports; BabelStream reports none: from its start to its end.
    recorded_only
        True: nothing is measured.
    options
        Further ones of the description.
    """
    size, start, exponent = SIZES[name]

    def make(value: int) -> Workload:
        return original(folder, name, **{size: value}, **dict(options or {}))

    find = partial(calibrate, make, start, target_seconds, exponent)
    return find(file=Path(data) / f"{name}-{ORIGINAL}.json", recorded_only=recorded_only)
