"""Replays of losses that are calibrated: the replay is itself measured, the loss of each CPU
compared with what was planned, and the plan corrected.

Owns that loop, its corrections and what they leave. What is compared is time without the CPU, never
the run time of the anomaly: a replay that hits that has not been fitted to it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from ..empty import because
from ..injection import Injector
from ..measurement import Attachment, Campaign, Cell, finished
from ..noise import NoiseConfig
from ..speed import SpeedProbe
from ..workloads import Workload
from .replayed_losses import (
    CLASSES_NS,
    REPLAY,
    UNDISTURBED,
    Replayed,
    by_cpu_and_interval,
    compare,
    length_class,
    summarise_round,
)
from .worst_runs import WorstCase

_MOST = 1.25  # no length is corrected by more than this factor, or less than its inverse


@dataclass(frozen=True, repr=False)
class CalibratedReplay:
    """A noise config whose replay takes what was lost, as far as it could be reached.

    Attributes
    ----------
    config
        What was to be lost.
    injected
        What is to be injected for that.
    scales
        One row a CPU and class of lengths: `cpu`, `class`, `scale` (injected over asked length).
    rounds
        One row a round of replays; see `calibrated_replay`.
    intervals
        Of the last round, means of its replays, one row a CPU and 10 ms: `cpu`, `start_ns`,
        `planned_ms`, `observed_ms` (by the injector), `without_cpu_ms` (by the program's own
        clocks beyond the undisturbed runs; NaN without probe).
    tolerance
        Of the loss of a CPU.
    """

    config: NoiseConfig
    injected: NoiseConfig
    scales: pd.DataFrame
    rounds: pd.DataFrame
    intervals: pd.DataFrame
    tolerance: float

    def __repr__(self) -> str:
        error = self.rounds["error"].iloc[-1] if len(self.rounds) else float("nan")
        return f"CalibratedReplay({self.injected!r}, {len(self.rounds)} rounds, {error:+.2%})"

    @property
    def is_within(self) -> bool:
        """Whether the last round lost what was planned, on every CPU."""
        return bool(len(self.rounds)) and bool(self.rounds["within"].iloc[-1])

    def corrected(self, config: NoiseConfig) -> NoiseConfig:
        """Another config with the corrections of this one, which are the machine's."""
        return scaled_config(config, self.scales)

    def sentences(self) -> list[str]:
        """How close the replay came, in sentences."""
        if not len(self.rounds):
            return ["The replay was not calibrated: no replay was measured."]
        last = self.rounds.iloc[-1]
        verdict = "is within" if self.is_within else "is **not** within"
        return [
            f"The replay took **{last['observed_ms']:.1f} ms** of the {last['planned_ms']:.1f} ms"
            f" that were to be lost ({last['error']:+.2%} [{last['error_low']:+.2%},"
            f" {last['error_high']:+.2%}], n = {last['runs']}), after {len(self.rounds)}"
            f" round{'s' if len(self.rounds) > 1 else ''}; at worst {last['worst_error']:+.2%} on"
            f" CPU {last['worst_cpu']}. That {verdict} {self.tolerance:.0%}."
        ]


def calibrated_replay(
    folder: str | Path,
    workload: Workload,
    config: NoiseConfig,
    *,
    rounds: int = 3,
    runs: int = 5,
    tolerance: float = 0.01,
    placement: str = "faithful",
    seed: int = 0,
    recorded_only: bool = False,
    attachments: Sequence[Attachment] = (),
    **options,
) -> CalibratedReplay:
    """Replay losses a few times, compare what was taken with what was to be, correct the lengths.

    Parameters
    ----------
    folder
        Holds a campaign for each round, with the injector's logs and the samples of speed.
    workload
        The program.
    config
        Of `loss_config`.
    rounds
        At most; it ends when every CPU is within the tolerance.
    runs
        Replays of a round, and as many undisturbed runs, in turn.
    tolerance
        Share of the planned loss of a CPU.
    placement, options
        Of `Injector`.
    seed, recorded_only, attachments
        Of the campaigns; recorded data give the same corrections again.

    Returns
    -------
    CalibratedReplay : its `rounds` has one row a round: `round`, `noise` (digest), `runs`,
    `planned_ms`, `observed_ms` (mean of a replay, all CPUs, until its end), `error` with a 95 %
    bootstrap interval over the replays (`error_low`, `error_high`), `worst_error` and `worst_cpu`,
    `reached_share` (of the time that the injector took, what the program was without: below 1 where
    noise met an idle CPU, NaN where it is not known), `undisturbed_seconds`, `replay_seconds`
    (medians), `within`.

    Notes
    -----
    The injector logs since when the program was without the CPU and when it gave it back. The
    clocks of the program's threads say whether it was the program that waited: wall time less CPU
    time, beyond that of the undisturbed runs, is no less than the time in which the injector ran.
    """
    plan, scales, rows = config, _ones(config), []
    intervals = pd.DataFrame()
    for number in range(1, rounds + 1):
        round_folder = Path(folder) / plan.digest
        if recorded_only and not round_folder.exists():
            break
        cells = _cells(round_folder, workload, plan, placement, recorded_only, options)
        with_probe = (
            *attachments,
            *([] if recorded_only else [SpeedProbe(round_folder / "speed")]),
        )
        ok = finished(Campaign(round_folder, cells, runs, seed, recorded_only, with_probe).run())
        parts = compare(round_folder, ok, config)
        if parts.lost.empty:  # the replays ended before the first loss
            break
        intervals = by_cpu_and_interval(parts)
        rows.append(
            {"round": number, "noise": plan.digest} | summarise_round(ok, parts, tolerance, seed)
        )
        if rows[-1]["within"]:
            break
        scales = corrected_scales(scales, parts)
        plan = scaled_config(config, scales)
    return CalibratedReplay(config, plan, scales, pd.DataFrame(rows), intervals, tolerance)


def rounds_table(found: CalibratedReplay | None) -> pd.DataFrame:
    """`CalibratedReplay.rounds`; no row, with the reason, where there was nothing to replay."""
    if found is None:
        return because(pd.DataFrame(columns=["round"]), "no run lost anything that can be replayed")
    if found.rounds.empty:
        return because(
            pd.DataFrame(columns=["round"]), "the replays ended before the run's first loss"
        )
    return found.rounds


def calibrated_cases(
    folder: str | Path, workload: Workload, cases: Sequence[WorstCase], **options
) -> tuple[list[WorstCase], CalibratedReplay | None]:
    """The cases with corrected losses: calibrated for the first that has any, corrected for all.

    Parameters
    ----------
    folder, workload, options
        Of `calibrated_replay`.
    cases
        Of `worst_cases`.
    """
    first = next((case.losses for case in cases if case.losses is not None), None)
    if first is None:
        return list(cases), None
    found = calibrated_replay(folder, workload, first, **options)
    corrected = [
        replace(case, losses=found.corrected(case.losses)) if case.losses is not None else case
        for case in cases
    ]
    return corrected, found


def _cells(
    round_folder: Path,
    workload: Workload,
    plan: NoiseConfig,
    placement: str,
    recorded_only: bool,
    options: dict,
) -> list[Cell]:
    injector = (
        () if recorded_only else (Injector(plan, placement, log_folder=round_folder, **options),)
    )
    return [
        Cell(UNDISTURBED, workload),
        Cell(REPLAY, workload, noise=plan.digest, attachments=injector),
    ]


def _ones(config: NoiseConfig) -> pd.DataFrame:
    index = pd.MultiIndex.from_product(
        [config.cpus, range(len(CLASSES_NS))], names=["cpu", "class"]
    )
    return pd.DataFrame({"scale": 1.0}, index=index).reset_index()


def corrected_scales(scales: pd.DataFrame, found: Replayed) -> pd.DataFrame:
    """Each scale with what its events took more or less than asked, and what reached nobody."""
    took_ns = found.events["observed_ns"] * found.reached.fillna(1.0).median()
    keys = pd.MultiIndex.from_frame(scales[["cpu", "class"]])
    # what was asked is longer than what was to be lost by the scale of this round
    scale = (found.events["asked_ns"] / took_ns.clip(lower=1)).reindex(keys).to_numpy()
    new = np.where(np.isfinite(scale), scale, scales["scale"])
    return scales.assign(scale=new.clip(1 / _MOST, _MOST))


def scaled_config(config: NoiseConfig, scales: pd.DataFrame) -> NoiseConfig:
    """The config with each length times the scale of its CPU and class, about the same middle."""
    events = config.events().drop(columns="event")
    keys = pd.MultiIndex.from_arrays([events["cpu"], length_class(events["duration_ns"])])
    scale = scales.set_index(["cpu", "class"])["scale"].reindex(keys).fillna(1.0).to_numpy()
    length_ns = (events["duration_ns"] * scale).round().astype(np.int64)
    start_ns = events["start_ns"] - (length_ns - events["duration_ns"]) // 2
    events = events.assign(run=0, duration_ns=length_ns, start_ns=start_ns.clip(lower=0))
    return NoiseConfig.from_events(events, window_ns=config.window_ns, provenance=config.provenance)
