"""The study of Cui et al. 2023: how much the OpenMP runtime's own operations vary, within a run and
from run to run.

Owns its campaign (schedbench, syncbench and BabelStream × compilers × configurations) and its
tables; the outer repetitions are kept one by one.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ...measurement import Campaign, Cell, FrequencyLogger, PlacementCheck, calibrate, metrics
from ...workloads import Configuration, Workload, delay_steps
from ..design import COMPILERS, Design, cached_design

SCHEDULES = ("static", "dynamic", "guided")
THROUGHOUT = ("dynamic_1", "reduction", "stream")  # in every configuration, as in Cui et al. 2023
OUTER = 100  # repetitions of a micro-benchmark in a run (Table 1)
SCHED_DELAY_US, SYNC_DELAY_US = 15.0, 0.1
FAMILIES = ("mitigation", "threads", "nodes")  # of configurations
STREAM_TIMES = 5  # its runs are longer: with a few repetitions least and greatest say nothing


def runtime_design(
    folder: str | Path,
    names: Sequence[str],
    target_seconds: float,
    compilers: Sequence[str] = COMPILERS,
    elements: int = 2**21,
    chunks: Sequence[int] = (1,),
    constructs: Sequence[str] = ("reduction",),
    recorded_only: bool = False,
) -> Design:
    """Schedbench (three schedules), syncbench and BabelStream with each compiler, with the
    parameters of Cui et al. 2023, Table 1.

    The delays and the outer repetitions are the paper's; the iterations a thread (8192 there, 12 s
    a run) and the executions of each construct are chosen so that a run takes about
    `target_seconds`, and kept.

    Parameters
    ----------
    folder, names, target_seconds, measure, errors : see `cached_design`. compilers : gcc, clang. elements : of BabelStream's arrays (2**25 there).
    chunks
        Sizes of the schedules' chunks; 1 is always there (Persson et al. 2025, figure 1).
    constructs
        Of syncbench; reduction is always there.
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
    wanted, made = None if recorded_only else target_seconds, {}
    for compiler in design.models:
        common = {"target_seconds": wanted, "recorded_only": recorded_only, "compiler": compiler}
        made |= {
            (name, compiler): workload
            for name, workload in _schedules(folder, (1, *chunks), common).items()
        }
        made |= {
            (name, compiler): workload
            for name, workload in _constructs(folder, ("reduction", *constructs), common).items()
        }
        made["stream", compiler] = calibrate(
            "stream",
            file=folder / "stream.json",
            elements=elements,
            **common | {"target_seconds": wanted and STREAM_TIMES * wanted},
        )
    return replace(design, workloads=made)


def _schedules(folder: Path, chunks: Sequence[int], common: dict) -> dict[str, Workload]:
    """All of one size, or their times could not be compared."""
    delay = delay_steps(SCHED_DELAY_US, folder / "delay.json")
    return {
        f"{schedule}_{chunk}": calibrate(
            "schedbench",
            file=folder / "schedbench.json",
            schedule=schedule,
            chunk=chunk,
            delay=delay,
            outer=OUTER,
            **common,
        )
        for chunk in dict.fromkeys(chunks)
        for schedule in SCHEDULES
    }


def _constructs(folder: Path, names: Sequence[str], common: dict) -> dict[str, Workload]:
    """Each of its own size: a repetition of each takes as long, as EPCC's test time has it."""
    delay = delay_steps(SYNC_DELAY_US, folder / "delay.json")
    files = {
        name: folder / ("syncbench.json" if name == "reduction" else f"syncbench-{name}.json")
        for name in names
    }
    return {
        name: calibrate("syncbench", file=path, construct=name, delay=delay, outer=OUTER, **common)
        for name, path in files.items()
    }


def runtime_campaign(
    folder: str | Path, design: Design, runs: int, seed: int = 0, recorded_only: bool = False
) -> Campaign:
    """The benchmarks by each compiler in the configurations that a figure needs them in (`runs_in`),
    in random order.
    """
    cells = [
        Cell(" ".join(key), workload)
        for key, workload in design.placed().items()
        if runs_in(key[0], design.configuration(key[2]))
    ]
    return Campaign(
        folder,
        cells,
        runs=runs,
        seed=seed,
        recorded_only=recorded_only,
        attachments=()
        if recorded_only
        else (PlacementCheck(), FrequencyLogger(), *metrics("kernel")),
    )


def benchmark_names(chunks: Sequence[int], constructs: Sequence[str]) -> list[str]:
    """Names of the benchmarks of one compiler: schedules with their chunks, constructs, and stream."""
    schedules = [
        f"{schedule}_{chunk}" for chunk in dict.fromkeys((1, *chunks)) for schedule in SCHEDULES
    ]
    return [*schedules, *dict.fromkeys(("reduction", *constructs)), "stream"]


def runs_in(benchmark: str, configuration: Configuration) -> bool:
    """Whether a benchmark is run in a configuration.

    dynamic_1, reduction and BabelStream: everywhere. Other schedules and chunks: roaming, with and
    without housekeeping (Persson et al. 2025, figure 1). Other constructs: pinned, for each number
    of threads (Cui et al. 2023, figures 1 and 5).
    """
    if benchmark in THROUGHOUT:
        return True
    if benchmark.split("_")[0] in SCHEDULES:
        return configuration.family == "mitigation" and configuration.base == "Rm"
    return configuration.family == "threads" or configuration.name == "TP"
