"""The questions of fairness of Persson et al. 2025, section 5.2: whose trace disturbs whom, and
what a fixed length of noise does to longer runs.

Owns the traces of planted disturbances (the same hogs beside each model, so that nothing but the
traced program differs), noise repeated for as long as a program runs, and the campaign of programs
of two lengths. The answers are in `fairness_tables`.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import pandas as pd

from ...files import digest
from ...injection import Hog, Injector, random_schedule
from ...machine import doctor
from ...measurement import Campaign, Cell, PlacementCheck, calibrate, finished, metrics
from ...noise import NoiseConfig
from ...tracing import Tracer
from ...workloads import Workload, size_model
from ..design import Design
from .campaigns import TRACED, UNDISTURBED, WorstTrace, trace_configs

PLANTED_SHARE = 0.25  # of each disturbed CPU's time in a run of the target length
MOST_CPUS = 4
SHORTEST_MS, LONGEST_MS = 1.0, 20.0
REPEATS = 8  # of a schedule that is to last as long as any program: more than the longest needs
FIXED, SCALED = "fixed", "scaled"
LENGTHS = {"x1": 1.0, "x2": 2.0}


def planted_traces(
    folder: str | Path,
    design: Design,
    baseline: pd.DataFrame,
    traces: str | Path,
    programs: Sequence[str],
    seed: int = 0,
    recorded_only: bool = False,
) -> list[WorstTrace]:
    """One traced run of each program and model beside real-time hogs that follow one schedule a
    program, whatever the model.

    An anomaly of known size where natural ones are too weak to show anything. What is replayed is
    made of the trace alone: its noise less what the configuration has on average, as of any other
    trace.

    Parameters
    ----------
    folder
        Of this campaign.
    baseline
        Runs of `baseline_campaign`, labelled.
    traces
        Its folder of traces.
    programs
        For which.
    seed, recorded_only
        Of the campaign.

    Returns
    -------
    A trace a program and model, in the first configuration; none where nothing was traced.

    Notes
    -----
    The schedule lasts as long as the first model's run on average; in it each of at most four CPUs
    is taken for a quarter of the time, in blocks of 1 to 20 ms.
    """
    if "trace_events" not in baseline or not set(programs) & {
        program for program, _ in design.workloads
    }:
        return []
    place = design.configuration(design.chosen[0])
    wanted = {
        key: place.of(workload) for key, workload in design.workloads.items() if key[0] in programs
    }
    schedules: dict[str, dict] = {}
    for key in wanted:
        schedules.setdefault(
            key[0],
            _schedule(
                float(_own(baseline, key, design.chosen[0])["seconds"].mean()),
                place.cpus,
                seed + len(schedules),
            ),
        )
    tracer = [] if recorded_only else [Tracer(Path(folder) / "traces")]
    cells = [
        Cell(
            " ".join(key),
            workload,
            noise=digest(str(schedules[key[0]])),
            attachments=() if recorded_only else (_hog(schedules[key[0]]), *tracer),
        )
        for key, workload in wanted.items()
    ]
    runs = finished(
        Campaign(
            folder,
            cells,
            runs=1,
            seed=seed,
            recorded_only=recorded_only,
            attachments=_with_every_run(recorded_only),
        ).run()
    ).set_index("cell", drop=False)
    found = [
        _trace(
            Path(folder) / "traces",
            runs.loc[[" ".join(key)]],
            key,
            baseline,
            Path(traces),
            design.chosen[0],
        )
        for key in wanted
    ]
    return [trace for trace in found if trace.configs]


def _schedule(seconds: float, cpus: Sequence[int], seed: int) -> dict[int, list[tuple[int, int]]]:
    chosen = sorted(cpus)[:MOST_CPUS]
    return random_schedule(
        seconds, PLANTED_SHARE * len(chosen), chosen, seed, SHORTEST_MS, LONGEST_MS
    )


def _hog(schedule: Mapping) -> Hog:
    return Hog(schedule) if doctor().capabilities.fifo else Hog(schedule, priority=0)


def _trace(
    folder: Path,
    run: pd.DataFrame,
    key: tuple[str, str],
    baseline: pd.DataFrame,
    traces: Path,
    config: str,
) -> WorstTrace:
    configs = trace_configs(
        folder, run, int(run["run"].iloc[0]), _own(baseline, key, config), traces
    )
    steal = run["steal_s"].iloc[0] if "steal_s" in run else float("nan")
    return WorstTrace(
        *key,
        config,
        1,
        int(run["run"].iloc[0]),
        float(run["seconds"].iloc[0]),
        configs,
        1e3 * steal,
        planted=True,
    )


def _own(baseline: pd.DataFrame, key: tuple[str, str], config: str) -> pd.DataFrame:
    return baseline[
        (baseline["program"] == key[0])
        & (baseline["model"] == key[1])
        & (baseline["config"] == config)
        & (baseline["trace"] == TRACED)
    ]


def _with_every_run(recorded_only: bool) -> tuple:
    return () if recorded_only else (PlacementCheck(), *metrics("kernel"))


def repeat_config(config: NoiseConfig, times: int) -> NoiseConfig:
    """The noise of a config again and again: as much a second, for so many times its window.

    What reached beyond the window waits for the noise that comes next, as in the improved merge.
    """
    events = config.events().drop(columns="event").assign(run=0)
    parts = [
        events.assign(start_ns=events["start_ns"] + number * config.window_ns)
        for number in range(times)
    ]
    story = {**config.provenance, "repeated": times}
    return NoiseConfig.from_events(
        pd.concat(parts, ignore_index=True), window_ns=times * config.window_ns, provenance=story
    )


def longer_programs(
    folder: str | Path, design: Design, programs: Sequence[str], factor: float
) -> dict[tuple[str, str], Workload]:
    """The design's programs with about so many times the work, in its first configuration:
    (program, model) -> workload.
    """
    place = design.configuration(design.chosen[0])
    return {
        key: place.of(_grown(Path(folder) / f"{key[0]}.json", *key, factor))
        for key in design.workloads
        if key[0] in programs
    }


def _grown(path: Path, program: str, model: str, factor: float) -> Workload:
    known = size_model(program)
    make = partial(known.make, **({} if model == "omp" else {"model": model}))

    def grown(size: int, **threads: int) -> Workload:
        return make(round(size * factor ** (1 / known.exponent)), **threads)

    return calibrate(grown, file=path, recorded_only=True)


def length_campaign(
    folder: str | Path,
    sizes: str | Path,
    design: Design,
    planted: Sequence[WorstTrace],
    runs: int,
    seed: int = 0,
    recorded_only: bool = False,
) -> Campaign | None:
    """Each program and model in two lengths, undisturbed, under noise of fixed length and under
    noise as long as the run, all in random order.

    The noise is that of the program's first planted trace, the same for every model and length
    (most of the paper's are of OpenMP, too).

    Parameters
    ----------
    sizes
        The folder that keeps the programs' sizes.
    planted
        Of `planted_traces`; None is returned if there are none, or no runs.
    """
    noises = {}
    for trace in planted:
        config = trace.configs["improved"]
        noises.setdefault(trace.program, {FIXED: config, SCALED: repeat_config(config, REPEATS)})
    if not noises or not runs:
        return None
    injectors = {
        (program, name): [] if recorded_only else [Injector(config)]
        for program, own in noises.items()
        for name, config in own.items()
    }
    cells = []
    for length, factor in LENGTHS.items():
        for key, workload in longer_programs(sizes, design, tuple(noises), factor).items():
            cells.append(Cell(f"{' '.join(key)} {length} {UNDISTURBED}", workload))
            cells += [
                Cell(
                    f"{' '.join(key)} {length} {name}",
                    workload,
                    noise=config.digest,
                    attachments=injectors[key[0], name],
                )
                for name, config in noises[key[0]].items()
            ]
    return Campaign(
        Path(folder) / digest(*(cell.noise for cell in cells)),
        cells,
        runs=runs,
        seed=seed,
        recorded_only=recorded_only,
        attachments=_with_every_run(recorded_only),
    )


def label_length_runs(runs: pd.DataFrame) -> pd.DataFrame:
    """Finished runs of `length_campaign` with `program`, `length` (x1, x2) and `noise_kind`
    (undisturbed, fixed, scaled).
    """
    data = finished(runs)
    parts = data["cell"].str.extract(r"^(?P<program>\S+) \S+ (?P<length>\S+) (?P<noise_kind>\S+)$")
    return data.assign(**{name: parts[name] for name in parts})
