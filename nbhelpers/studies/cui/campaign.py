"""The campaign of Cui et al. 2023: schedbench, syncbench and BabelStream × compilers ×
configurations, every outer repetition recorded.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ...measurement import Campaign, Cell, FrequencyLogger, PlacementCheck, calibrate, metrics
from ...workloads import Configuration, Workload
from ...workloads.openmp import SCHEDULES, schedbench, stream
from ...workloads.sizes import delay_steps
from ..design import COMPILERS, Design, cached_design, chosen_elements
from ..originals import ORIGINAL, microbenchmarks

THROUGHOUT = ("dynamic_1", "reduction", "stream")  # in every configuration, as in Cui et al. 2023
OUTER = 100  # repetitions of a micro-benchmark in a run (Table 1)
SCHED_DELAY_US, SYNC_DELAY_US = 15.0, 0.1
FAMILIES = ("mitigation", "threads", "nodes")  # of configurations
STREAM_TIMES = 5  # its runs are longer: with a few repetitions least and greatest say nothing
# Cui et al. 2023, Table 1 and section 4.2: iterations a thread of schedbench, length of a
# repetition of syncbench, BabelStream's own default of repetitions
ITERATIONS, TEST_S, REPEATS = 8192, 1e-3, 100
# of the originals, where sizes are not the paper's: EPCC's chunk sizes take a run as long as all
ORIGINAL_OUTER, ORIGINAL_DELAY_US, ORIGINAL_REPEATS = 20, 0.1, 20
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
    originals: str | Path = "",
) -> Design:
    """Schedbench (three schedules), syncbench and BabelStream with each compiler, with the
    parameters of Cui et al. 2023, Table 1.

    The delays and the outer repetitions are the paper's; the iterations a thread (8192 there, 12 s
    a run) and the executions of each construct are chosen so that a run takes about
    `target_seconds`, and cached.

    Parameters
    ----------
    folder, names, target_seconds, recorded_only
        As of `cached_design`.
    compilers
        Of gcc and clang.
    elements
        Of BabelStream's arrays (2**25 there); 0: as `nbhelpers.studies.design.chosen_elements`.
    chunks
        Sizes of the schedules' chunks; 1 is always there (Persson et al. 2025, figure 1).
    constructs
        Of syncbench; reduction is always there.
    published_sizes
        True: iterations, test time and repetitions are the paper's, too.
    originals
        Folder of builds of EPCC's benchmarks and BabelStream, which are then measured beside ours,
        as the last compiler, "original"; empty: ours alone.

    Raises
    ------
    InputError
        As of `cached_design`.
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
        originals=originals,
    )
    ours = tuple(model for model in design.models if model != ORIGINAL)
    names = list(dict.fromkeys(("reduction", *constructs)))
    elements = chosen_elements(folder, elements, recorded_only)
    workloads: dict[tuple[str, str], Workload] = {}
    for compiler in ours:
        size = _Size(folder, compiler, None if recorded_only else target_seconds, published_sizes)
        delays = _delays(folder)
        for chunk in dict.fromkeys((1, *chunks)):
            for schedule in SCHEDULES:
                workload = size.schedule(schedule, chunk, delays["schedbench"])
                workloads[f"{schedule}_{chunk}", compiler] = workload
        for name in names:
            workloads[name, compiler] = size.construct(name, delays["syncbench"])
        workloads["stream", compiler] = size.stream(elements)
    others = tuple(model for model in design.models if model == ORIGINAL)
    for compiler in others:
        found = _originals(originals, names, elements, published_sizes)
        workloads |= {(name, compiler): workload for name, workload in found.items()}
    return replace(design, models=(*ours, *others), workloads=workloads)


def _originals(
    folder: str | Path, constructs: Sequence[str], elements: int, published: bool
) -> dict[str, Workload]:
    if published:
        return microbenchmarks(folder, constructs, elements, REPEATS, OUTER, SCHED_DELAY_US)
    return microbenchmarks(
        folder, constructs, elements, ORIGINAL_REPEATS, ORIGINAL_OUTER, ORIGINAL_DELAY_US
    )


def _delays(folder: Path) -> dict[str, int]:
    """Steps of the delay loop that take as long as the paper's delays."""
    lengths_us = {"schedbench": SCHED_DELAY_US, "syncbench": SYNC_DELAY_US}
    file = folder / "delay.json"
    return {suite: delay_steps(length_us, file) for suite, length_us in lengths_us.items()}


@dataclass(frozen=True)
class _Size:
    """The benchmarks of a compiler, of the size that takes `target_seconds`; None: as recorded;
    published: of the paper's.
    """

    folder: Path
    compiler: str
    target_seconds: float | None
    published: bool = False

    def schedule(self, schedule: str, chunk: int, delay: int) -> Workload:
        """All of one size, or their times could not be compared."""
        options: dict[str, Any] = {
            "schedule": schedule,
            "chunk": chunk,
            "delay": delay,
            "outer": OUTER,
        }
        if self.published:
            return schedbench(ITERATIONS, compiler=self.compiler, timeout_s=_MOST_S, **options)
        return self._calibrate("schedbench", "schedbench.json", **options)

    def construct(self, name: str, delay: int) -> Workload:
        """Each of its own size: a repetition of each takes as long, as EPCC's test time has it."""
        file = "syncbench.json" if name == "reduction" else f"syncbench-{name}.json"
        return self._calibrate("syncbench", file, construct=name, delay=delay, outer=OUTER)

    def stream(self, elements: int) -> Workload:
        if self.published:
            return stream(REPEATS, elements, compiler=self.compiler, timeout_s=_MOST_S)
        return self._calibrate("stream", "stream.json", STREAM_TIMES, elements=elements)

    def _calibrate(self, program: str, file: str, times: float = 1, **options: Any) -> Workload:
        length = OUTER * TEST_S if self.published else self.target_seconds
        return calibrate(
            program,
            target_seconds=self.target_seconds and length and times * length,
            file=self.folder / file,
            recorded_only=self.target_seconds is None,
            compiler=self.compiler,
            **options,
        )


def runtime_campaign(
    folder: str | Path, design: Design, runs: int, seed: int = 0, recorded_only: bool = False
) -> Campaign:
    """The benchmarks by each compiler, in random order, where a figure needs them (`runs_in`).

    Parameters
    ----------
    folder
        Of the campaign's data.
    design
        Of `runtime_design`.
    runs, seed, recorded_only
        As of `Campaign`.
    """
    cells = [
        Cell(" ".join(key), workload)
        for key, workload in design.placed().items()
        if runs_in(key[0], design.configuration(key[2]))
    ]
    attachments = () if recorded_only else (PlacementCheck(), FrequencyLogger(), *metrics("kernel"))
    return Campaign(folder, cells, runs, seed, recorded_only, attachments)


def benchmark_names(chunks: Sequence[int], constructs: Sequence[str]) -> list[str]:
    """Names of one compiler's benchmarks: schedules with their chunks, constructs, and stream.

    Parameters
    ----------
    chunks
        Sizes of the chunks.
    constructs
        Of syncbench.
    """
    schedules = [
        f"{schedule}_{chunk}" for chunk in dict.fromkeys((1, *chunks)) for schedule in SCHEDULES
    ]
    return [*schedules, *dict.fromkeys(("reduction", *constructs)), "stream"]


def runs_in(benchmark: str, configuration: Configuration) -> bool:
    """Whether a benchmark is run in a configuration.

    dynamic_1, reduction and BabelStream: everywhere. Other schedules and chunks: roaming, with and
    without housekeeping (Persson et al. 2025, figure 1). Other constructs: pinned, for each number
    of threads (Cui et al. 2023, figures 1 and 5).

    Parameters
    ----------
    benchmark
        One of `benchmark_names`.
    configuration
        Where it might run.
    """
    if benchmark in THROUGHOUT:
        return True
    if benchmark.split("_")[0] in SCHEDULES:
        return configuration.family == "mitigation" and configuration.base == "Rm"
    return configuration.family == "threads" or configuration.name == "TP"
