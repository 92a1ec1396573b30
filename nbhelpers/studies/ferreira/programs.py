"""What a noise signature costs a real program on this machine.

Owns the campaign of programs of stage 70: one thread alone, which waits for nobody, and a team of
threads that meet at barriers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from ...injection import Injector
from ...injection.observed_loss import Shield
from ...measurement import Cell, calibrate, finished
from ...noise.signature import Signature
from ...statistics import bootstrap_interval
from ...workloads import Workload
from ...workloads.configuration import Configuration
from .design import QUIET, SignatureCampaign, staggered
from .loops import SHAPE_KEPT

ALONE, TEAM = "one thread", "team"


@dataclass(frozen=True)
class Programs(SignatureCampaign):
    """N-body, alone on a CPU and as a team, without noise and under each signature.

    All runs are shielded (SCHED_FIFO 10), so that no ordinary program interrupts them.

    Parameters
    ----------
    folder, signatures, rounds, seed, recorded_only
        As in `SignatureCampaign`.
    cpus
        Of the team, a thread each; the lone thread has the first.
    seconds
        Length of an undisturbed run.
    """

    @cached_property
    def runs(self) -> pd.DataFrame:
        """The finished runs; `program` and `signature` say what each is."""
        cells = [
            cell
            for program, cpus in self._places().items()
            for cell in self._cells(program, cpus, self._workload(program, cpus))
        ]
        runs = self._measured(cells)
        names = runs["cell"].str.split(": ", n=1, expand=True)
        return finished(runs.assign(program=names[0], signature=names[1]))

    def _places(self) -> dict[str, list[int]]:
        team = {TEAM: list(self.cpus)} if len(self.cpus) > 1 else {}
        return {ALONE: [self.cpus[0]]} | team

    def _workload(self, program: str, cpus: Sequence[int]) -> Workload:
        workload = calibrate(
            "nbody",
            target_seconds=self.seconds,
            threads=len(cpus),
            file=self.folder / f"nbody-{len(cpus)}.json",
            recorded_only=self.recorded_only,
        )
        return Configuration(program, "threads", "TP", tuple(cpus), (), len(cpus)).of(workload)

    def _cells(self, program: str, cpus: Sequence[int], workload: Workload) -> list[Cell]:
        quiet = f"{program}: {QUIET}"
        shield = () if self.recorded_only else (Shield(),)
        cells = [Cell(quiet, workload, "none", shield, ())]
        for name, signature in self.signatures.items():
            if len(cpus) == 1 and signature.simultaneous:
                continue  # of one CPU that is the periodic signature
            # a run that is slow for other reasons must still have noise at its end
            config = staggered(signature, cpus).config(3 * self.seconds, cpus)
            noise = () if self.recorded_only else (Injector(config, "origin", rules=SHAPE_KEPT),)
            cells.append(
                Cell(f"{program}: {name}", workload, config.digest, noise + shield, (quiet,))
            )
        return cells


def program_table(runs: pd.DataFrame, signatures: Mapping[str, Signature]) -> pd.DataFrame:
    """Slow-down, net noise and accumulated slow-down of each program and signature.

    Parameters
    ----------
    runs
        Of `Programs`.
    signatures
        The same.

    Returns
    -------
    One row a program and signature: `program`, `signature`, `pairs` (with the undisturbed run of
    the same round), `slowdown_percent` (mean, its 95 % interval over pairs, and
    `slowdown_median_percent`), `net_percent` (of the disturbed run's time, by the injector's log),
    `accumulated_percent` (slow-down less net noise, section 5.2 of the paper, with its interval)
    and `verdict`: amplified where that interval lies above 0, absorbed below, else cannot tell.
    """
    rows = []
    for (program, name), noisy in runs[runs["signature"].isin(signatures)].groupby(
        ["program", "signature"], sort=False
    ):
        quiet = runs[(runs["program"] == program) & (runs["signature"] == QUIET)]
        rows.append({"program": program, "signature": name} | _costs(noisy, quiet))
    order = {name: place for place, name in enumerate(signatures)}
    rows.sort(key=lambda row: (row["program"] == TEAM, order[row["signature"]]))
    return pd.DataFrame(rows)


def _costs(noisy: pd.DataFrame, quiet: pd.DataFrame) -> dict[str, object]:
    pairs = noisy.merge(quiet[["round", "seconds"]], on="round", suffixes=("", "_quiet"))
    slower = 100 * (pairs["seconds"] / pairs["seconds_quiet"] - 1)
    threads = pairs["threads"].to_numpy(float)
    net = 100 * pairs["injected_ns"] / (threads * pairs["region_seconds"] * 1e9)
    accumulated = (slower - net).to_numpy()
    (low, high), (more_low, more_high) = map(bootstrap_interval, (slower, accumulated))
    return {
        "pairs": len(pairs),
        "slowdown_percent": slower.mean(),
        "slowdown_low_percent": low,
        "slowdown_high_percent": high,
        "slowdown_median_percent": slower.median(),
        "net_percent": net.mean(),
        "accumulated_percent": accumulated.mean(),
        "accumulated_low_percent": more_low,
        "accumulated_high_percent": more_high,
        "verdict": _verdict(more_low, more_high),
    }


def _verdict(low: float, high: float) -> str:
    if np.isnan(low) or low <= 0 <= high:
        return "cannot tell"
    return "amplified" if low > 0 else "absorbed"
