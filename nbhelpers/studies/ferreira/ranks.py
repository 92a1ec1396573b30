"""Real MPI programs on a few real ranks under injected signatures: the campaigns of stage 75.

Owns the sizes of the programs, the cells, and the noise whose phases are drawn for each run.
"""

import os
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from ...empty import because, why_empty
from ...errors import Unavailable
from ...injection import Injector, make_plan
from ...injection.log import noise_ns
from ...measurement import Campaign, Cell, finished, recorded_runs, series
from ...mpi import installation
from ...mpi.programs import mpi_program
from ...noise import NoiseConfig
from ...noise.presets import PRESETS
from ...noise.signature import Signature
from ...workloads import Workload

NONE = "none"
# Ferreira et al. 2008, section 5.2 and Figure 2: 2.5 % of a CPU, three ways; the phases of each CPU
# are random, or all CPUs are struck at once.
SIGNATURES: Mapping[str, Signature] = MappingProxyType(
    dict(PRESETS)
    | {f"{name}, co-scheduled": one.with_(coscheduled=True, phase="aligned")
       for name, one in PRESETS.items()}
)  # fmt: skip
# The option that a run's length is proportional to, and its value at length 1: about 0.5 s on two
# virtual cores. The grid of halo2d gives about 20 times as many reductions a second as halo3d's
# (section 6.1); all else is the programs' default.
_LENGTHS: Mapping[str, tuple[str, int]] = MappingProxyType(
    {
        "halo2d": ("steps", 2),
        "halo3d": ("steps", 200),
        "adaptive": ("steps", 600),
        "sweep": ("iterations", 8),
        "amg": ("solves", 5),
    }
)
_WINDOW_S = 60.0  # of injected noise: longer than any run
_RUNS = {"program": str, "ranks": int, "noise": str, "round": int}
_RUNS |= dict.fromkeys(("seconds", "net_noise_ns", "noisy_cpus", "runqueue_wait_ns"), float)
_CALLS = {"operation": str, "ranks": int, "bytes": int, "noise": str, "round": int, "rank": int}
_CALLS |= {"mean_us": float}


def mpi_here() -> str:
    """Name and version of the MPI that starts ranks here, or why none can be started."""
    return why_not() or str(installation())


def why_not() -> str:
    """Why no ranks can be started here; "" if they can."""
    try:
        installation()
    except Unavailable as error:
        return f"{error.what}: {error.fix}"
    return ""


def rank_program(name: str, ranks: int, length: float = 1.0, **options: Any) -> Workload:
    """A program of the study, on its CPUs: a rank each, or all on all CPUs if there are more ranks.

    Parameters
    ----------
    name
        One of `nbhelpers.mpi.PROGRAMS`.
    ranks
        How many.
    length
        Length of a run, in multiples of about half a second.
    options
        Further ones of the program.
    """
    if name in _LENGTHS:
        option, units = _LENGTHS[name]
        options = {option: max(1, round(units * length))} | options
    cpus = _cpus(ranks)
    placed = "TP" if len(cpus) == ranks else "Rm"
    return mpi_program(name, ranks, timeout_s=_WINDOW_S, **options).placed(placed, cpus)


def rank_runs(
    folder: str | Path,
    programs: Sequence[str],
    ranks: Sequence[int],
    signatures: Sequence[str],
    rounds: int,
    *,
    length: float = 1.0,
    seed: int = 8,
    recorded_only: bool = False,
    **options: Any,
) -> pd.DataFrame:
    """Run programs with and without injected signatures, in rounds of random order.

    Parameters
    ----------
    folder
        The campaign's folder: each round holds all programs on all numbers of ranks.
    programs, ranks, signatures
        Names of programs, numbers of ranks, and names of `SIGNATURES`.
    rounds
        Runs of each cell.
    length, seed
        Length of a run, in multiples of about half a second (`rank_program`), and seed of the
        order.
    recorded_only
        Measure nothing; what the folder has.
    options
        Further ones of the programs.

    Returns
    -------
    Finished runs (data/README.md) with `program`, `ranks` and `noise`; without rows, and
    with the reason, where no MPI is.
    """
    folder = Path(folder)
    if recorded_only and (folder / "campaign.json").exists():
        found = _labelled(finished(recorded_runs(folder)))
        return found[found["program"].isin(programs)].reset_index(drop=True)
    if recorded_only or why_not():
        return _without_rows(_RUNS, "" if recorded_only else why_not())
    workloads = {
        (name, number): rank_program(name, number, length, **options)
        for name in programs
        for number in ranks
    }
    return _labelled(finished(_run_cells(folder, workloads, signatures, rounds, seed)))


def collective_times(folder: str | Path, runs: pd.DataFrame) -> pd.DataFrame:
    """Mean time of each collective, size and rank in runs of the program `collectives`.

    Parameters
    ----------
    folder
        The campaign's folder.
    runs
        Its runs (`rank_runs`); may have no rows.

    Returns
    -------
    DataFrame
        `operation`, `ranks`, `bytes`, `noise`, `round`, `rank`, `values`, `mean_us` (of the
        values): a row an operation, size, rank and run.
    """
    if runs.empty:
        return _without_rows(_CALLS, why_empty(runs))
    grouped = series(folder).groupby(["run", "name"], sort=False)["value"]
    table = grouped.agg(values="size", mean_us="mean").reset_index()
    parts = table["name"].str.split("_", expand=True)
    table = table.assign(operation=parts[0], bytes=parts[1].astype(int), rank=parts[2].astype(int))
    return table.drop(columns="name").merge(runs[["run", "ranks", "noise", "round"]], on="run")


def _without_rows(columns: Mapping[str, type], why: str) -> pd.DataFrame:
    table = pd.DataFrame({name: pd.Series(dtype=kind) for name, kind in columns.items()})
    return because(table, why or "no runs of real ranks were recorded")


def _labelled(runs: pd.DataFrame) -> pd.DataFrame:
    """With the names that the cells have."""
    parts = runs["cell"].str.split(", ", n=2, expand=True)
    ranks = parts[1].str.removesuffix(" ranks").astype(int)
    return runs.assign(program=parts[0], ranks=ranks, noise=parts[2])


def _cpus(ranks: int) -> tuple[int, ...]:
    """The CPUs that so many ranks have; more ranks than CPUs share them."""
    return tuple(sorted(os.sched_getaffinity(0)))[:ranks]


def _run_cells(
    folder: Path,
    workloads: Mapping[tuple[str, int], Workload],
    signatures: Sequence[str],
    rounds: int,
    seed: int,
) -> pd.DataFrame:
    """Run workloads, by name and number of ranks, without noise and under each signature; all of
    them in each round, in random order.
    """
    sizes = {len(_cpus(ranks)) for _, ranks in workloads}
    injected = {
        (noise, cpus): FreshPhases(SIGNATURES[noise], _WINDOW_S, _cpus(cpus))
        for noise in signatures
        for cpus in sizes
    }
    cells = []
    for (name, ranks), workload in workloads.items():
        plain, cpus = f"{name}, {ranks} ranks, {NONE}", len(_cpus(ranks))
        cells.append(Cell(plain, workload, compared_with=()))
        for noise in signatures:
            phases = (injected[noise, cpus],)
            cells.append(Cell(f"{name}, {ranks} ranks, {noise}", workload, noise, phases, (plain,)))
    return Campaign(folder, cells, rounds, seed).run()


class FreshPhases(Injector):
    """Injects a signature on CPUs, each run with another seed; runs are of one cell all the same.

    One config for all runs would measure one set of phases again and again.

    Parameters
    ----------
    signature
        What to inject; its own seed is not used.
    window_s
        Longer than any run.
    cpus
        CPU numbers.

    Notes
    -----
    Further columns of the runs table: `phase_seed`, by which a run's noise can be made again;
    `net_noise_ns`, what each CPU lost to it within the region (mean over `noisy_cpus`).
    """

    def __init__(self, signature: Signature, window_s: float, cpus: Sequence[int]):
        self._signature, self._window_s, self._cpus = signature, window_s, tuple(cpus)
        self._seed = 0
        super().__init__(self._drawn(), "origin", keep_logs=True)
        self.identity = f"injected {signature!r} on {len(self._cpus)} CPUs, fresh phases"

    def _drawn(self) -> NoiseConfig:
        return self._signature.with_(seed=self._seed).config(self._window_s, self._cpus)

    def before(self, workload: Workload) -> None:
        """Draw the phases of the next run."""
        self._seed = secrets.randbelow(2**31)
        self.config = self._drawn()
        self.plan = make_plan(self.config, "origin")
        super().before(workload)

    def after(self, run: dict) -> dict:
        """The columns of an `Injector`, the seed, each CPU's net noise within the region."""
        columns = super().after(run)
        log = self.logs.pop(run["run"], None)
        if log is None or run.get("end_ns") is None:
            return columns
        region = (run["start_ns"] - run["t0_ns"], run["end_ns"] - run["t0_ns"])
        return columns | {
            "phase_seed": self._seed,
            "net_noise_ns": net_noise_ns(log, *region) / len(self._cpus),
            "noisy_cpus": len(self._cpus),
        }


def net_noise_ns(log: pd.DataFrame, start_ns: int, end_ns: int) -> float:
    """What the events that began within a region took from the program, up to its end.

    Parameters
    ----------
    log
        Log of an injection, a row an event.
    start_ns, end_ns
        Begin and end of the timed region in ns from t0. The injector goes on until the program has
        ended, and programs check their results after the region.
    """
    inside = log[(log["taken_ns"] >= start_ns) & (log["taken_ns"] < end_ns)]
    left_ns = end_ns - inside["taken_ns"]
    return float(np.minimum(noise_ns(inside), left_ns).sum())
