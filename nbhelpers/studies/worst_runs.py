"""The slowest natural runs of a campaign, replayed: how much of each the kernel's events explain,
how much the hypervisor, how much nothing.

Owns the design of that study. Each run is replayed with the noise that the kernel has events for,
with the time that the hypervisor took besides, and with all that the account says was lost; all
interleaved with the undisturbed program. What the replays of losses say is in `worst_losses.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..errors import InputError
from ..injection.injector import Injector
from ..measurement import Campaign, Cell
from ..noise import NoiseConfig, average_noise, delta_noise
from ..outcomes import worst_first
from ..statistics import as_values, percentile_interval, same_epochs
from ..statistics.intervals import resampled_means
from ..tracing import with_stolen_time
from ..workloads import Workload
from .replays import replay_campaign
from .worst_losses import (
    BY_TIME,
    LOSSES,
    chosen_runs,
    describe_losses,
    loss_parts,
    loss_sentences,
)

UNDISTURBED, KERNEL, BOTH = "undisturbed", "kernel", "kernel and hypervisor"
_REPEATS = 4000


@dataclass(frozen=True)
class WorstCase:
    """One slow run and what is to be replayed of it.

    Parameters
    ----------
    case, run, seconds
        Number of the case, from 1, the slowest run first; its run, and the time of that.
    kernel
        The config of its kernel events; None where nothing is left to replay.
    both
        With the time that the hypervisor took; None where it took nothing beyond the average.
    losses
        The config of all that was lost (`loss_config`); None where nothing is known of that.
    shares
        What of the excess that config holds (`replayable_shares`).
    chosen
        By time, or because enough of it can be replayed.
    """

    case: int
    run: int
    seconds: float
    kernel: NoiseConfig | None
    both: NoiseConfig | None
    losses: NoiseConfig | None = None
    shares: pd.DataFrame | None = None
    chosen: str = BY_TIME

    @property
    def replayable_share(self) -> float:
        """Share of the excess that can be replayed; NaN where nothing is known of losses."""
        return float("nan") if self.shares is None else float(self.shares["share"].sum())


def worst_cases(
    runs: pd.DataFrame,
    events: pd.DataFrame,
    stolen: pd.DataFrame,
    count: int = 10,
    merge: str = "improved",
    losses: pd.DataFrame | None = None,
    **gate,
) -> list[WorstCase]:
    """The slowest runs, each with its delta: its noise less what every run has.

    With losses, also the slowest of those runs of which enough (80 %) can be replayed.

    Parameters
    ----------
    runs
        Finished, traced runs of one campaign.
    events
        Their noise events (`read_traces`).
    stolen
        What the hypervisor took of them (`stolen_times`).
    count
        How many by time, and how many of those that can be replayed.
    merge
        Of `NoiseConfig.from_events`.
    losses
        What these runs lost beyond the typical run: `run`, and the columns of `loss_config`.
    gate
        `shortest_ns` and `realtime` of `replayable_shares`.

    Raises
    ------
    InputError
        There are not more runs than `count`.
    """
    if not 1 <= count < len(runs):
        raise InputError(
            f"{count} worst runs of {len(runs)}",
            why="a run is slow only in comparison with others",
            fix="choose fewer, or trace more runs",
        )
    everything = with_stolen_time(events, stolen)
    averages = average_noise(events, runs), average_noise(everything, runs)
    is_known = len(stolen) > 0
    if losses is None:
        chosen: list[tuple[dict, dict]] = [
            (row, {}) for row in worst_first(runs).head(count).to_dict("records")
        ]
    else:
        chosen = chosen_runs(runs, losses, count, **gate)
    return [
        replace(_case(case, row, runs, (events, everything), averages, merge, is_known), **more)
        for case, (row, more) in enumerate(chosen, start=1)
    ]


def _case(
    case: int,
    row: dict[str, Any],
    runs: pd.DataFrame,
    tables: tuple,
    averages: tuple,
    merge: str,
    is_known: bool,
) -> WorstCase:
    """`is_known`: of the hypervisor's part; a loop's detours are of kind hardware too, and nobody
    knows whose they are.
    """
    kernel, both = (
        _config(events, average, runs, int(row["run"]), merge)
        for events, average in zip(tables, averages)
    )
    has_more = is_known and both is not None and (both.events()["kind"] == "hardware").any()
    return WorstCase(
        case, int(row["run"]), float(row["seconds"]), kernel, both if has_more else None
    )


def _config(
    events: pd.DataFrame, average: pd.DataFrame, runs: pd.DataFrame, run: int, merge: str
) -> NoiseConfig | None:
    delta = delta_noise(events, average, runs, run=run)
    return NoiseConfig.from_events(delta, merge=merge) if (delta["duration_ns"] > 0).any() else None


def describe_worst(cases: Sequence[WorstCase]) -> pd.DataFrame:
    """One row a case: `case`, `run`, `seconds`; what is replayed: `kernel_events`, `kernel_ms`,
    `hypervisor_events`, `hypervisor_ms`. Where losses are known: `chosen`, `lost_events`,
    `lost_ms` (replayed, the sum of all CPUs), `replayable_share`, and by cause what the CPU that
    lost most in each 10 ms lost: `slow_core_lost_ms` and so on, and `unexplained_lost_ms`.

    Parameters
    ----------
    cases
        Of `worst_cases`.
    """
    return pd.DataFrame([_describe(case) | describe_losses(case) for case in cases])


def _describe(case: WorstCase) -> dict:
    kernel = None if case.kernel is None else case.kernel.events()
    hardware = None if case.both is None else case.both.events().query("kind == 'hardware'")
    counted = {
        f"{name}_{what}": 0 if table is None else value(table)
        for name, table in (("kernel", kernel), ("hypervisor", hardware))
        for what, value in (("events", len), ("ms", lambda table: table["duration_ns"].sum() / 1e6))
    }
    return {"case": case.case, "run": case.run, "seconds": case.seconds} | counted


def worst_campaign(
    folder: Path,
    workload: Workload,
    cases: Sequence[WorstCase],
    runs: int,
    seed: int = 0,
    recorded_only: bool = False,
    attachments: tuple = (),
    **options,
) -> Campaign:
    """In each block one undisturbed run, and for each case one run with each of its configs, in
    random order.

    Parameters
    ----------
    folder, runs, seed, recorded_only, attachments
        Of the campaign, which gets a folder of its own for these very configs.
    workload
        The program.
    cases
        Of `worst_cases`.
    options
        Of `Injector`.
    """
    cells = [Cell(UNDISTURBED, workload)]
    for case in cases:
        for name, config in ((KERNEL, case.kernel), (BOTH, case.both), (LOSSES, case.losses)):
            if config is not None:
                injector = () if recorded_only else (Injector(config, **options),)
                cells.append(
                    Cell(f"{name} {case.case}", workload, noise=config.digest, attachments=injector)
                )
    return replay_campaign(folder, cells, runs, seed, recorded_only, attachments)


def worst_table(runs: pd.DataFrame, cases: Sequence[WorstCase], seed: int = 0) -> pd.DataFrame:
    """What explains each slow run, by its replays.

    Parameters
    ----------
    runs
        Finished runs of `worst_campaign`.
    cases
        As there.
    seed
        Of the bootstrap.

    Returns
    -------
    One row a case: `case`, `run`, `runs` (replays), `anomaly_seconds`, `undisturbed_seconds`;
    `ratio_kernel` and `ratio` (mean of the replays of kernel events, and of these with the
    hypervisor's part, over the anomaly) and `ratio_undisturbed` (the control), and the anomaly's
    `excess_ms` over the undisturbed mean, split into `kernel_ms`, `hypervisor_ms` (what the replay
    of its part adds) and `unexplained_ms`; each with a 95 % bootstrap interval (`…_low`, `…_high`).
    The anomaly is one run, a constant. A part can be negative: chance, or a replay that costs more
    than what it replays. Where losses are known, also `chosen`, `replayable_share`, `ratio_losses`
    (mean of the replays of what was lost, over the anomaly), `losses_ms` (what these replays add)
    and `missing_ms` (what they lack), with intervals; and the losses of `describe_worst`.
    """
    cells = [part for _, part in runs.groupby("cell")]
    samples = {part["cell"].iloc[0]: as_values(part["seconds"]) for part in same_epochs(*cells)}
    random = np.random.default_rng(seed)
    means = {
        cell: np.append(values.mean(), resampled_means(values, random, _REPEATS))
        for cell, values in samples.items()
    }
    return pd.DataFrame([_split(case, samples, means) for case in cases])


def _split(case: WorstCase, samples: dict[str, np.ndarray], means: dict[str, np.ndarray]) -> dict:
    """Of each mean the first value is the sample's own, the others are of its resamples."""
    calm, anomaly = means[UNDISTURBED], case.seconds
    kernel = means.get(f"{KERNEL} {case.case}", calm)
    both = means.get(f"{BOTH} {case.case}", kernel)
    parts = {
        "ratio_kernel": kernel / anomaly,
        "ratio": both / anomaly,
        "ratio_undisturbed": calm / anomaly,
        "excess_ms": (anomaly - calm) * 1e3,
        "kernel_ms": (kernel - calm) * 1e3,
        "hypervisor_ms": (both - kernel) * 1e3,
        "unexplained_ms": (anomaly - both) * 1e3,
    }
    parts |= loss_parts(case, means.get(f"{LOSSES} {case.case}", calm), calm)
    described = describe_losses(case)
    row = {
        "case": case.case,
        "run": case.run,
        "runs": min(len(values) for values in samples.values()),
        "anomaly_seconds": anomaly,
        "undisturbed_seconds": float(calm[0]),
    }
    for name, values in parts.items():
        low, high = percentile_interval(values[1:])
        row |= {name: float(values[0]), f"{name}_low": float(low), f"{name}_high": float(high)}
    return row | described


def worst_sentences(table: pd.DataFrame, tracer: str = "") -> list[str]:
    """What the table says, in sentences.

    Parameters
    ----------
    table
        Of `worst_table`.
    tracer
        The source of the events; of "detours" nobody knows that they were the kernel's.
    """
    recorded = "detours of a loop" if tracer == "detours" else "kernel events"
    error, kernel, control = (
        (table[name] - 1).abs() for name in ("ratio", "ratio_kernel", "ratio_undisturbed")
    )
    holds = int(((table["ratio_low"] <= 1) & (table["ratio_high"] >= 1)).sum())
    of_losses = loss_sentences(table)
    replay = "replay of events and gaps, its mean," if of_losses else "replay's mean"
    return [
        *(of_losses or [_explanation(table, recorded)]),
        (
            f"Of the {len(table)} slowest run{'s' if len(table) > 1 else ''} the {replay} was"
            f" off by **{error.mean():.1%}** on average and {error.max():.1%} at most; with"
            f" {recorded} alone by {kernel.mean():.1%}, with no replay at all by"
            f" {control.mean():.1%}."
        ),
        (
            f"In {holds} of {len(table)} cases the 95 % interval of replayed / anomaly contains 1."
            " Each anomaly is a single run: the undisturbed program's own spread is in it, and no"
            " replay of events can bring that back."
        ),
    ]


def _explanation(table: pd.DataFrame, recorded: str) -> str:
    """What most of the excess of all cases is explained by, and the parts of it.

    A part is shown in a case where its interval and the one of the excess lie above 0.
    """
    words = {
        "kernel": f"replayed {recorded}",
        "hypervisor": "replayed hypervisor gaps",
        "unexplained": "nothing that was replayed",
    }
    excess_ms = table["excess_ms"].sum()
    runs = f"the {len(table)} slowest runs together" if len(table) > 1 else "the slowest run"
    if excess_ms <= 0:
        return f"Cannot tell here: {runs} took {-excess_ms:.1f} ms less than the undisturbed mean."
    parts_ms = {name: table[f"{name}_ms"].sum() for name in words}
    most = max(parts_ms, key=parts_ms.__getitem__)
    shown = int(((table[f"{most}_ms_low"] > 0) & (table["excess_ms_low"] > 0)).sum())
    of_cases = f"shown by the 95 % intervals in {shown} of {len(table)} cases"
    verdict = f"Mostly **{words[most]}**, {of_cases}" if shown else "Cannot tell here"
    parts = ", ".join(
        f"{part_ms:.1f} ms ({part_ms / excess_ms:.0%}) by {words[name]}"
        for name, part_ms in parts_ms.items()
    )
    return (
        f"{verdict}: {runs} took **{excess_ms:.1f} ms** longer than the undisturbed mean, explained"
        f" {parts} (n = {table['runs'].min()} replays of each)."
    )
