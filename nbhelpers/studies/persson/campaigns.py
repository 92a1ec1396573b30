"""The study of Persson et al. 2025, sections 3 and 5: programs × models × configurations,
undisturbed and under replayed worst cases.

Owns its two campaigns (traced baseline; undisturbed and injected, interleaved) and the choice of
the worst traces; the tables are next door.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from ...errors import InputError
from ...injection import Injector
from ...machine import doctor
from ...measurement import Attachment, Campaign, Cell, PlacementCheck, finished, metrics
from ...noise import NoiseConfig, average_noise, delta_noise
from ...tracing import Tracer, each_trace, read_traces
from ...workloads import Workload
from ..design import Design
from ..replays import replay_campaign

TRACED, UNTRACED, UNDISTURBED = "traced", "untraced", "undisturbed"
MODES = {
    "improved": ("improved", "roam"),
    "pessimistic": ("pessimistic", "roam"),
    "faithful": ("improved", "faithful"),
}
MODE = "improved"  # under which all configurations are compared: that of section 5.2
KEYS = ["program", "model", "config"]
_CELL = r"^(?P<program>\S+) (?P<model>\S+) \S+ (?P<trace>\S+) ?(?P<mode>.*)$"


@dataclass(frozen=True)
class WorstTrace:
    """A program's worst traced run, and what is replayed of it: merge -> noise config."""

    program: str
    model: str
    config: str
    number: int
    run: int
    seconds: float
    configs: Mapping[str, NoiseConfig]
    # of the machine's CPU time, taken by the hypervisor during that run
    steal_ms: float = float("nan")
    planted: bool = False  # the run was disturbed on purpose: nbhelpers.studies.persson.fairness

    @property
    def label(self) -> str:
        """Such as ``#1``, as in the paper's tables; ``planted-omp``, by the traced model."""
        return f"planted-{self.model}" if self.planted else f"#{self.number}"


def baseline_campaign(
    folder: str | Path, design: Design, runs: int, seed: int = 0, recorded_only: bool = False
) -> Campaign:
    """Every program, model and configuration traced (Persson et al. 2025, sec. 5.1), and each
    program and model untraced in the first configuration.

    At the level without a kernel tracer nothing is traced: the runs show the baseline only.

    Parameters
    ----------
    folder
        Of the campaign's data.
    design
        Of the study (`cached_design`).
    runs, seed, recorded_only
        As of `Campaign`.
    """
    folder, cells = Path(folder), []
    traceable = not recorded_only and doctor().capabilities.tracer != "detours"
    tracer = (Tracer(folder / "traces"),) if traceable else ()
    for key, workload in design.placed().items():
        cells.append(Cell(_cell(*key, TRACED), workload, attachments=tracer))
        if key[2] == design.chosen[0]:
            cells.append(Cell(_cell(*key, UNTRACED), workload))
    return Campaign(folder, cells, runs, seed, recorded_only, campaign_attachments(recorded_only))


def _cell(program: str, model: str, config: str, noise: str, mode: str = "") -> str:
    return " ".join(part for part in (program, model, config, noise, mode) if part)


def campaign_attachments(recorded_only: bool) -> tuple[Attachment, ...]:
    """What accompanies every run: where its threads were, and the kernel's counters."""
    return () if recorded_only else (PlacementCheck(), *metrics("kernel"))


def label_runs(runs: pd.DataFrame) -> pd.DataFrame:
    """Finished runs with `program`, `model` (omp, sycl, original), `trace` (traced, untraced,
    undisturbed, #1, …) and `mode` from the cell's name.

    Parameters
    ----------
    runs
        Of `baseline_campaign` or `injected_campaign`.
    """
    data = finished(runs)
    parts = data["cell"].str.extract(_CELL)
    return data.assign(**{name: parts[name] for name in parts})


def worst_traces(
    folder: str | Path,
    runs: pd.DataFrame,
    fallback: str | Path | None = None,
    count: int = 1,
    each_model: bool = False,
) -> list[WorstTrace]:
    """Of each program the runs that were furthest above the mean of their own configuration, with
    their delta under each merge.

    Parameters
    ----------
    folder
        Of the baseline campaign.
    runs
        Its runs (`label_runs`).
    count
        Worst traces a program.
    each_model
        So many of each of its models; then every model is replayed its own traces and the other's
        (the paper's question of fairness, sec. 5.2).
    fallback
        A noise config to take for all programs where nothing was traced, or no trace has anything
        left to replay.

    Raises
    ------
    InputError
        No trace, and no fallback.
    """
    traced = runs[runs["trace"] == TRACED]
    groups = [
        group for _, group in traced.groupby(["program", "model"] if each_model else ["program"])
    ]
    found = [
        worst for group in groups for worst in _worst_of(Path(folder) / "traces", group, count)
    ]
    found = [
        replace(worst, number=sum(other.program == worst.program for other in found[:place]) + 1)
        for place, worst in enumerate(found)
    ]
    replayable = {worst.program for worst in found}
    missing = [program for program in traced["program"].unique() if program not in replayable]
    if not missing:
        return found
    if fallback is None:
        raise InputError(
            f"there is no trace to replay for {', '.join(missing)}",
            where=folder,
            fix="trace more runs, or name a fallback config",
        )
    config = NoiseConfig.read(fallback)
    return found + [_fallback(program, config) for program in missing]


def _worst_of(folder: Path, traced: pd.DataFrame, count: int) -> list[WorstTrace]:
    if "trace_events" not in traced:
        return []
    excess = traced["seconds"] / traced.groupby(["model", "config"])["seconds"].transform("mean")
    ordered = traced.assign(excess=excess).sort_values(["excess", "run"], ascending=[False, True])
    worst: list[WorstTrace] = []
    for row in ordered.itertuples():
        cell = traced[(traced["model"] == row.model) & (traced["config"] == row.config)]
        configs = trace_configs(
            folder, traced[traced["run"] == row.run], int(row.run), cell, folder
        )
        if configs:
            steal_ms = 1e3 * getattr(row, "steal_s", float("nan"))
            worst.append(
                WorstTrace(
                    row.program,
                    row.model,
                    row.config,
                    len(worst) + 1,
                    int(row.run),
                    float(row.seconds),
                    configs,
                    steal_ms,
                )
            )
        if len(worst) == count:
            break
    return worst


def trace_configs(
    folder: Path, runs: pd.DataFrame, run: int, cell: pd.DataFrame, cell_folder: Path
) -> dict[str, NoiseConfig]:
    """A run's noise less what its configuration has on average, under each merge; empty if nothing
    is left.

    Parameters
    ----------
    folder, runs
        Of the run's trace.
    cell
        The traced runs of its configuration, with their traces in `cell_folder`.
    """
    events = read_traces(folder, runs)
    if not (events["run"] == run).any():
        return {}
    average = average_noise(each_trace(cell_folder, cell), cell)
    delta = delta_noise(events, average, runs, run=run)
    if not (delta["duration_ns"] > 0).any():
        return {}
    return {
        merge: NoiseConfig.from_events(delta, merge=merge)
        for merge in {merge for merge, _ in MODES.values()}
    }


def _fallback(program: str, config: NoiseConfig) -> WorstTrace:
    seconds = float(config.provenance.get("seconds", config.window_ns / 1e9))
    return WorstTrace(
        program, "none", "none", 1, -1, seconds, {merge: config for merge, _ in MODES.values()}
    )


def injected_campaign(
    folder: str | Path,
    design: Design,
    worst: list[WorstTrace],
    runs: int,
    seed: int = 0,
    recorded_only: bool = False,
) -> Campaign:
    """Each program, model and configuration undisturbed and under its program's worst traces (sec.
    5.2), all in random order.

    The configuration that a trace came from is injected under every mode: the pessimistic merge,
    the improved one, and the improved one with interrupts on their own CPUs (`MODES`). `worst`
    holds natural traces and planted ones alike.

    Parameters
    ----------
    folder
        Of the campaign's data; it has a subfolder for these very configs.
    design
        Of the study (`cached_design`).
    worst
        Of `worst_traces` and `planted_traces`.
    runs, seed, recorded_only
        As of `Campaign`.
    """
    injectors = _Injectors(recorded_only)
    cells = []
    for key, workload in design.placed().items():
        program, model, config = key
        cells.append(Cell(_cell(*key, UNDISTURBED), workload))
        for trace in worst:
            if trace.program != program:
                continue
            is_source = (trace.model, trace.config) == (model, config)
            for mode in MODES if is_source else (MODE,):
                cells.append(injectors.cell(trace, mode, key, workload))
    return replay_campaign(
        folder, cells, runs, seed, recorded_only, campaign_attachments(recorded_only)
    )


class _Injectors:
    """One injector a trace and mode, whichever configurations it accompanies."""

    def __init__(self, recorded_only: bool):
        self._recorded_only = recorded_only
        self._made: dict[tuple[str, str, str], tuple[Attachment, ...]] = {}

    def cell(
        self, trace: WorstTrace, mode: str, key: tuple[str, str, str], workload: Workload
    ) -> Cell:
        """The cell of a workload under a trace."""
        merge, placement = MODES[mode]
        config, which = trace.configs[merge], (trace.program, trace.label, mode)
        if which not in self._made:
            self._made[which] = () if self._recorded_only else (Injector(config, placement),)
        return Cell(
            _cell(*key, trace.label, mode),
            workload,
            noise=config.digest,
            attachments=self._made[which],
        )


def describe_traces(worst: list[WorstTrace]) -> pd.DataFrame:
    """One row a worst trace: `program`, `model`, `config`, `trace`, `run`, `anomaly_seconds`,
    `steal_ms` during it, and what the improved merge replays: `events`, `noise_ms`.

    Parameters
    ----------
    worst
        Of `worst_traces` and `planted_traces`.
    """
    rows = []
    for trace in worst:
        events = trace.configs[MODES[MODE][0]].events()
        rows.append(
            {
                "program": trace.program,
                "model": trace.model,
                "config": trace.config,
                "trace": trace.label,
                "run": trace.run,
                "anomaly_seconds": trace.seconds,
                "steal_ms": trace.steal_ms,
                "events": len(events),
                "noise_ms": events["duration_ns"].sum() / 1e6,
            }
        )
    return pd.DataFrame(rows)
