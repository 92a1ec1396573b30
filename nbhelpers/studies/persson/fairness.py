"""The questions of fairness of Persson et al. 2025, section 5.2: whose trace disturbs whom, and
what a fixed length of noise does to longer runs.

Owns the traces of planted disturbances (the same hogs for each model, so that nothing but the
traced program differs), noise repeated for as long as a program runs, and the campaign of programs
of two lengths. The answers are in `fairness_tables`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from ...files import digest
from ...injection import Injector, random_schedule
from ...injection.hog import Schedule
from ...measurement import Campaign, Cell, finished
from ...noise import NoiseConfig
from ...tracing import Tracer
from ...workloads import Workload
from ...workloads.sizes import size_model
from ..design import Design
from ..originals import ORIGINAL
from ..planted_anomalies import real_time_hog
from ..replays import replay_campaign
from .campaigns import TRACED, UNDISTURBED, WorstTrace, campaign_attachments, trace_configs

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
    """One traced run of each program and model, disturbed by real-time hogs that follow one
    schedule a program, whatever the model.

    An anomaly of known size where natural ones are too weak to show anything. What is replayed is
    made of the trace alone: its noise less what the configuration has on average, as of any other
    trace. The schedule lasts as long as the first model's run on average; in it each of at most
    four CPUs is taken for a quarter of the time, in blocks of 1 to 20 ms.

    Parameters
    ----------
    folder
        Of this campaign.
    design
        Of the study; the runs are in its first configuration.
    baseline
        Runs of `baseline_campaign`, through `label_runs`.
    traces
        Its folder of traces.
    programs
        For which.
    seed, recorded_only
        Of the campaign.

    Returns
    -------
    A trace a program and model, in the first configuration; none where nothing was traced.
    """
    keys = [key for key in design.workloads if key[0] in programs]
    if "trace_events" not in baseline or not keys:
        return []
    config, folder = design.chosen[0], Path(folder)
    cells = {key: _traced_runs(baseline, key, config) for key in keys}
    schedules = _schedules(cells, design.configuration(config).cpus, seed)
    campaign = _planted_campaign(folder, design, schedules, keys, seed, recorded_only)
    runs = finished(campaign.run()).set_index("cell", drop=False)
    found = [
        _planted_trace(
            folder / "traces", runs.loc[[" ".join(key)]], (*key, config), cells[key], Path(traces)
        )
        for key in keys
    ]
    return [trace for trace in found if trace.configs]


def _schedules(
    cells: Mapping[tuple[str, str], pd.DataFrame], cpus: Sequence[int], seed: int
) -> dict[str, Schedule]:
    """One a program, as long as the first of its models takes on average."""
    schedules: dict[str, Schedule] = {}
    for (program, _), runs in cells.items():
        if program not in schedules:
            seconds = float(runs["seconds"].mean())
            schedules[program] = _schedule(seconds, cpus, seed + len(schedules))
    return schedules


def _planted_campaign(
    folder: Path,
    design: Design,
    schedules: Mapping[str, Schedule],
    keys: Sequence[tuple[str, str]],
    seed: int,
    recorded_only: bool,
) -> Campaign:
    place = design.configuration(design.chosen[0])
    tracer = () if recorded_only else (Tracer(folder / "traces"),)
    cells = [
        Cell(
            " ".join(key),
            place.of(design.workloads[key]),
            noise=digest(str(schedules[key[0]])),
            attachments=() if recorded_only else (real_time_hog(schedules[key[0]]), *tracer),
        )
        for key in keys
    ]
    return Campaign(
        folder,
        cells,
        runs=1,
        seed=seed,
        recorded_only=recorded_only,
        attachments=campaign_attachments(recorded_only),
    )


def _schedule(seconds: float, cpus: Sequence[int], seed: int) -> Schedule:
    chosen = sorted(cpus)[:MOST_CPUS]
    share = PLANTED_SHARE * len(chosen)
    return random_schedule(seconds, share, chosen, seed, SHORTEST_MS, LONGEST_MS)


def _planted_trace(
    folder: Path, run: pd.DataFrame, key: tuple[str, str, str], cell: pd.DataFrame, traces: Path
) -> WorstTrace:
    """Of the only run of a cell of the planted campaign.

    Parameters
    ----------
    folder, run
        Of the disturbed run's trace, and its row.
    key
        Program, model, configuration.
    cell, traces
        Undisturbed runs of that configuration, and the folder of their traces.
    """
    row = run.iloc[0]
    steal_ms = 1e3 * row["steal_s"] if "steal_s" in run else float("nan")
    configs = trace_configs(folder, run, int(row["run"]), cell, traces)
    return WorstTrace(
        *key, 1, int(row["run"]), float(row["seconds"]), configs, steal_ms, planted=True
    )


def _traced_runs(baseline: pd.DataFrame, key: tuple[str, str], config: str) -> pd.DataFrame:
    return baseline[
        (baseline["program"] == key[0])
        & (baseline["model"] == key[1])
        & (baseline["config"] == config)
        & (baseline["trace"] == TRACED)
    ]


def repeat_config(config: NoiseConfig, times: int) -> NoiseConfig:
    """The noise of a config again and again: as much a second, for so many times its window.

    What reached beyond the window waits for the noise that comes next, as in the improved merge.
    """
    events = config.events().drop(columns="event").assign(run=0)
    parts = [
        events.assign(start_ns=events["start_ns"] + number * config.window_ns)
        for number in range(times)
    ]
    return NoiseConfig.from_events(
        pd.concat(parts, ignore_index=True),
        window_ns=times * config.window_ns,
        provenance={**config.provenance, "repeated": times},
    )


def longer_programs(
    design: Design, programs: Sequence[str], factor: float
) -> dict[tuple[str, str], Workload]:
    """Our programs of a design with about so many times the work, in its first configuration:
    (program, model) -> workload.
    """
    place = design.configuration(design.chosen[0])
    return {
        key: place.of(_grown(workload, key[0], factor))
        for key, workload in design.workloads.items()
        if key[0] in programs and key[1] != ORIGINAL
    }


_SIZE_OPTIONS = {"nbody": "--bodies", "stream": "--repeats", "minife": "--nx"}


def _grown(workload: Workload, program: str, factor: float) -> Workload:
    words = list(workload.command)
    at = words.index(_SIZE_OPTIONS[program]) + 1
    words[at] = str(round(int(words[at]) * factor ** (1 / size_model(program).exponent)))
    return replace(workload, command=tuple(words))


def length_campaign(
    folder: str | Path,
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
    folder
        Of the campaign's data.
    design
        Of the study.
    planted
        Of `planted_traces`; None is returned if there are none, or no runs.
    runs, seed, recorded_only
        Of the campaign.
    """
    configs: dict[str, dict[str, NoiseConfig]] = {}
    for trace in planted:
        config = trace.configs["improved"]
        repeated = repeat_config(config, REPEATS)
        configs.setdefault(trace.program, {FIXED: config, SCALED: repeated})
    if not configs or not runs:
        return None
    cells = _length_cells(design, configs, recorded_only)
    return replay_campaign(
        folder, cells, runs, seed, recorded_only, campaign_attachments(recorded_only)
    )


def _length_cells(
    design: Design,
    configs: Mapping[str, Mapping[str, NoiseConfig]],
    recorded_only: bool,
) -> list[Cell]:
    injectors = {
        (program, name): () if recorded_only else (Injector(config),)
        for program, noises in configs.items()
        for name, config in noises.items()
    }
    cells = []
    for length, factor in LENGTHS.items():
        for key, workload in longer_programs(design, tuple(configs), factor).items():
            prefix = f"{' '.join(key)} {length}"
            cells.append(Cell(f"{prefix} {UNDISTURBED}", workload))
            cells += [
                Cell(
                    f"{prefix} {name}",
                    workload,
                    noise=config.digest,
                    attachments=injectors[key[0], name],
                )
                for name, config in configs[key[0]].items()
            ]
    return cells


def label_length_runs(runs: pd.DataFrame) -> pd.DataFrame:
    """Finished runs of `length_campaign` with `program`, `length` (x1, x2) and `noise_kind`
    (undisturbed, fixed, scaled).

    Parameters
    ----------
    runs
        Of `length_campaign`.
    """
    data = finished(runs)
    parts = data["cell"].str.extract(r"^(?P<program>\S+) \S+ (?P<length>\S+) (?P<noise_kind>\S+)$")
    return data.assign(**{name: parts[name] for name in parts})
