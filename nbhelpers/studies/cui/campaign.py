"""The campaign of Cui et al. 2023: schedbench, syncbench and BabelStream × compilers ×
configurations, every outer repetition recorded.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from ...measurement import calibrate
from ...measurement.calibration import delay_steps
from ...workloads import Workload
from ...workloads.configuration import FAMILIES
from ...workloads.openmp import SCHEDULES, schedbench, stream
from ..design import COMPILERS, Design, cached_design, chosen_elements

OUTER = 100  # repetitions of a micro-benchmark in a run (Table 1)
SCHED_DELAY_US, SYNC_DELAY_US = 15.0, 0.1
STREAM_TIMES = 5  # its runs are longer: with a few repetitions least and greatest say nothing
# Cui et al. 2023, Table 1 and section 4.2: iterations a thread of schedbench, length of a
# repetition of syncbench, BabelStream's own default of repetitions
ITERATIONS, TEST_S, REPEATS = 8192, 1e-3, 100
_MOST_S = 900.0  # a run of published size: 100 repetitions of 123 ms, more where CPUs are shared


def runtime_design(
    folder: str | Path,
    names: Sequence[str],
    target_seconds: float,
    compilers: Sequence[str] = COMPILERS,
    elements: int = 2**21,
    chunks: Sequence[int] = (1,),
    constructs: Sequence[str] = ("reduction",),
    recorded_only: bool = False,
    published_sizes: bool = False,
) -> Design:
    """Schedbench (three schedules), syncbench and BabelStream with each compiler, with the
    parameters of Cui et al. 2023, Table 1.

    The delays and the outer repetitions are the paper's; the iterations a thread (8192 there, 12 s
    a run) and the executions of each construct are chosen so that a run takes about
    `target_seconds`, and cached.

    Parameters
    ----------
    folder, names, target_seconds, recorded_only
        The study's folder, names of configurations, run length in seconds, and whether only to
        read; see `cached_design`.
    compilers
        Compilers to measure, of gcc and clang.
    elements
        Number of elements of BabelStream's arrays (2**25 there); 0: as
        `nbhelpers.studies.design.chosen_elements`.
    chunks
        Sizes of the schedules' chunks; 1 is always there (Persson et al. 2025, figure 1).
    constructs
        Constructs of syncbench to measure; reduction is always there.
    published_sizes
        True: iterations, test time and repetitions are the paper's, too.

    Raises
    ------
    InputError
        A name that is no configuration, or nothing was recorded; see `cached_design`.
    """
    folder = Path(folder)
    design = cached_design(
        folder,
        names,
        target_seconds,
        programs=(),
        models=compilers,
        families=FAMILIES,
        recorded_only=recorded_only,
    )
    names = list(dict.fromkeys(("reduction", *constructs)))
    elements = chosen_elements(folder, elements, recorded_only)
    length = OUTER * TEST_S if published_sizes else target_seconds
    find = partial(_calibrated, folder, None if recorded_only else length)
    workloads: dict[tuple[str, str], Workload] = {}
    for compiler in design.models:
        known: dict[str, Any] = {"compiler": compiler, "outer": OUTER}
        loops = known | {"delay": delay_steps(SCHED_DELAY_US, folder / "delay.json")}
        calls = known | {"delay": delay_steps(SYNC_DELAY_US, folder / "delay.json")}
        for chunk, schedule in product(dict.fromkeys((1, *chunks)), SCHEDULES):
            options = loops | {"schedule": schedule, "chunk": chunk}
            workloads[f"{schedule}_{chunk}", compiler] = (
                schedbench(ITERATIONS, timeout_s=_MOST_S, **options)
                if published_sizes
                # all of one size, or their times could not be compared
                else find("schedbench", "schedbench.json", **options)
            )
        for name in names:  # each of its own size: a repetition of each takes as long, as EPCC's
            file = "syncbench.json" if name == "reduction" else f"syncbench-{name}.json"
            workloads[name, compiler] = find("syncbench", file, construct=name, **calls)
        workloads["stream", compiler] = (
            stream(REPEATS, elements, compiler=compiler, timeout_s=_MOST_S)
            if published_sizes
            else find("stream", "stream.json", STREAM_TIMES, elements=elements, compiler=compiler)
        )
    return replace(design, workloads=workloads)


def _calibrated(
    folder: Path, seconds: float | None, program: str, file: str, times: float = 1, **options: Any
) -> Workload:
    """A benchmark in the size that takes so long; None: as recorded."""
    target = None if seconds is None else times * seconds
    return calibrate(
        program, target_seconds=target, file=folder / file, recorded_only=target is None, **options
    )
