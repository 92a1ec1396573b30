"""The study of Persson et al. 2025, sections 3 and 5: its runs, and the traces that are replayed.

Owns what accompanies the runs, and how a worst run becomes the noise that is replayed; the cells of
the campaigns stand on the page, the tables are next door.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from ...empty import because
from ...errors import InputError
from ...injection._lanes import Placement
from ...machine import doctor
from ...measurement import Attachment, PlacementCheck, finished, metrics
from ...noise import NoiseConfig, average_noise, delta_noise
from ...tracing import Tracer, each_trace, read_traces

TRACED, UNTRACED, UNDISTURBED = "traced", "untraced", "undisturbed"
MERGES = ("improved", "pessimistic")
THREADS = ("raised", "slices")  # of the improved merge: how thread noise gets the CPU
NOTHING_TRACED = (
    "none of these programs was traced with anything left to replay; make doctor says what tracing"
    " takes on this machine"
)
KEYS = ["program", "model", "config"]
_CELL = r"^(?P<program>\S+) (?P<model>\S+) \S+ (?P<trace>\S+) ?(?P<mode>.*)$"


@dataclass(frozen=True)
class WorstTrace:
    """A program's worst traced run, and what is replayed of it: mode -> noise config."""

    program: str
    model: str
    config: str
    number: int
    run: int
    seconds: float
    configs: Mapping[str, NoiseConfig]
    # of the machine's CPU time, taken by the hypervisor during that run
    steal_ms: float = float("nan")
    planted: bool = False  # the run was disturbed on purpose

    @property
    def label(self) -> str:
        """Such as ``#1``, as in the paper's tables; ``planted-omp``, by the traced model."""
        return f"planted-{self.model}" if self.planted else f"#{self.number}"

    @property
    def modes(self) -> list[tuple[str, NoiseConfig, Placement]]:
        """Name, noise and placement of each mode of replay; the first is that of the tables.

        "raised" is the improved injection of section 5.2: the improved merge, with thread noise at
        nice −20. "slices" gives thread noise the CPU for as long as the trace says. The others
        replay it at the nice of the trace.
        """
        improved, pessimistic = self.configs["improved"], self.configs["pessimistic"]
        return [
            ("improved", improved, "roam"),
            ("pessimistic", pessimistic, "roam"),
            ("faithful", improved, "faithful"),
            *((threads, self.configs[threads], "roam") for threads in THREADS),
        ]

    def is_of(self, model: str, config: str) -> bool:
        """Whether it was traced in this model and configuration."""
        return (self.model, self.config) == (model, config)


def attachments(
    folder: str | Path, recorded_only: bool = False
) -> tuple[tuple[Attachment, ...], tuple[Attachment, ...]]:
    """What accompanies traced runs (a tracer, where there is one), and what all runs: where their
    threads were, and the kernel's counters.

    Parameters
    ----------
    folder
        The campaign's folder; traces lie in its subfolder `traces`.
    recorded_only
        True: the runs are only read, and nothing accompanies them.
    """
    if recorded_only:
        return (), ()
    traceable = doctor().capabilities.tracer != "detours"
    tracer = (Tracer(Path(folder) / "traces"),) if traceable else ()
    return tracer, (PlacementCheck(), *metrics("kernel"))


def label_runs(runs: pd.DataFrame) -> pd.DataFrame:
    """Finished runs with `program`, `model` (omp, sycl, original), `trace` (traced, untraced,
    undisturbed, #1, …) and `mode` from the cell's name; `steal_s` and `epoch` where there was none.

    Parameters
    ----------
    runs
        Runs of the baseline or the injected campaign.
    """
    data = finished(runs)
    for name, missing in (("steal_s", np.nan), ("epoch", 0)):
        data = data if name in data else data.assign(**{name: missing})
    parts = data["cell"].str.extract(_CELL)
    return data.assign(**{name: parts[name] for name in parts})


def worst_traces(
    folder: str | Path,
    ranked: pd.DataFrame,
    fallback: str | Path | None = None,
    count: int = 1,
    each_model: bool = False,
) -> list[WorstTrace]:
    """The first runs of each program that have anything left to replay, with their delta under each
    merge.

    Parameters
    ----------
    folder
        The campaign's folder of traces.
    ranked
        Traced runs of all configurations (`label_runs`), the worst first.
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
    found: list[WorstTrace] = []
    for _, group in ranked.groupby(["program", "model"] if each_model else ["program"]):
        found += _worst_of(Path(folder), group, count, found)
    replayable = {worst.program for worst in found}
    missing = [program for program in sorted(set(ranked["program"])) if program not in replayable]
    if missing and fallback is None:
        raise InputError(
            f"there is no trace to replay for {', '.join(missing)}",
            where=folder,
            fix="trace more runs, or name a fallback config",
        )
    return found + [_fallback(program, NoiseConfig.read(str(fallback))) for program in missing]


def _worst_of(
    folder: Path, ranked: pd.DataFrame, count: int, before: list[WorstTrace]
) -> list[WorstTrace]:
    """Numbered after those of the same program before them."""
    worst: list[WorstTrace] = []
    number = sum(one.program == ranked["program"].iloc[0] for one in before)
    for row in ranked.itertuples() if "trace_events" in ranked else ():
        cell = ranked[(ranked["model"] == row.model) & (ranked["config"] == row.config)]
        own = ranked[ranked["run"] == row.run]
        configs = trace_configs(folder, own, int(row.run), cell.sort_values("run"), folder)
        if configs:
            key, place = (row.program, row.model, row.config), number + len(worst) + 1
            steal_ms = 1e3 * row.steal_s
            worst.append(
                WorstTrace(*key, place, int(row.run), float(row.seconds), configs, steal_ms)
            )
        if len(worst) == count:
            break
    return worst


def trace_configs(
    folder: Path, runs: pd.DataFrame, run: int, cell: pd.DataFrame, cell_folder: Path
) -> dict[str, NoiseConfig]:
    """A run's noise less what its configuration has on average, under each merge, and by how
    threads get the CPU; empty if nothing is left.

    Parameters
    ----------
    folder, runs
        Where the run's trace lies, and the run's row.
    run
        Its number.
    cell, cell_folder
        The traced runs of its configuration, and where their traces lie.
    """
    events = read_traces(folder, runs)
    if not (events["run"] == run).any():
        return {}
    average = average_noise(each_trace(cell_folder, cell), cell)
    delta = delta_noise(events, average, runs, run=run)
    if not (delta["duration_ns"] > 0).any():
        return {}
    merged = {merge: NoiseConfig.from_events(delta, merge=merge) for merge in MERGES}
    return merged | {how: NoiseConfig.from_events(delta, threads=how) for how in THREADS}


def _fallback(program: str, config: NoiseConfig) -> WorstTrace:
    seconds = float(config.provenance.get("seconds", config.window_ns / 1e9))
    configs = dict.fromkeys((*MERGES, *THREADS), config)
    return WorstTrace(program, "none", "none", 1, -1, seconds, configs)


def traced_cell(runs: pd.DataFrame, worst: WorstTrace) -> pd.DataFrame:
    """The traced runs of the configuration that a worst trace is of."""
    key = (worst.program, worst.model, worst.config)
    return runs[(runs["trace"] == TRACED) & (runs[KEYS] == key).all(axis=1)]


def trace_lanes(folder: str | Path, runs: pd.DataFrame, worst: WorstTrace | None) -> pd.DataFrame:
    """The four rows of figure 4, of real runs.

    Parameters
    ----------
    folder, runs
        Folder of the baseline campaign, and its runs through `label_runs`.
    worst
        One of `worst_traces` that was traced there; None: nothing was, and the table has no row but
        the reason.

    Returns
    -------
    One row an event: `lane`, `cpu`, `kind`, `source`, `start_ns`, `duration_ns`, `worst` and `left`
    (bool: the lane is that). Lanes: the worst run; what of it is average noise, at the end of each
    event; what is left and injected; and that beside the noise of the run nearest to the median,
    which is what a replay meets.
    """
    shown = ["cpu", "kind", "source", "start_ns", "duration_ns"]
    if worst is None:
        kinds = {"cpu": int, "start_ns": int, "duration_ns": int, "worst": bool, "left": bool}
        empty = pd.DataFrame(columns=[*shown, "lane", "worst", "left"]).astype(kinds)
        return because(empty, NOTHING_TRACED)
    cell = traced_cell(runs, worst)
    events = read_traces(Path(folder) / "traces", cell)
    events["event"] = np.arange(len(events))
    left = delta_noise(events, average_noise(events, cell), cell, run=worst.run)
    usual = int(cell.loc[(cell["seconds"] - cell["seconds"].median()).abs().idxmin(), "run"])
    traced, other = (events[events["run"] == run] for run in (worst.run, usual))
    left_ns = traced["event"].map(left.set_index("event")["duration_ns"]).fillna(0).astype("int64")
    taken = traced.assign(
        start_ns=traced["start_ns"] + left_ns, duration_ns=traced["duration_ns"] - left_ns
    )
    lanes = {
        f"worst run ({worst.run})": traced,
        "average noise in it": taken[taken["duration_ns"] > 0],
        "left: injected": left,
        f"run {usual}, with the replay": pd.concat([other[shown], left[shown]]),
    }
    table = pd.concat([part[shown].assign(lane=lane) for lane, part in lanes.items()])
    of = {name: table["lane"].str.startswith(name) for name in ("worst", "left")}
    return table.assign(**of).reset_index(drop=True)
