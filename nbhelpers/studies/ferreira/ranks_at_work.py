"""Real MPI programs on 2 and 4 real ranks under injected signatures: what is run, and the campaign.

Owns the sizes of the programs and the cells; what follows from the runs is in `accumulated`.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pandas as pd

from ...empty import because
from ...errors import Unavailable
from ...measurement import Campaign, Cell, finished, recorded_runs
from ...mpi import installation
from ...mpi.programs import PROGRAMS, mpi_program
from ...noise.presets import PRESETS
from ...noise.signature import Signature
from ...workloads import Workload
from .fresh_phases import FreshPhases

NONE = "none"
# Ferreira et al. 2008, section 5.2 and Figure 2: 2.5 % of a CPU, three ways; the phases of each CPU
# are random, or all CPUs are struck at once.
SIGNATURES: Mapping[str, Signature] = MappingProxyType(
    dict(PRESETS)
    | {f"{name}, co-scheduled": one.with_(coscheduled=True, phase="aligned")
       for name, one in PRESETS.items()}
)  # fmt: skip
APPLICATIONS = tuple(name for name in PROGRAMS if name != "collectives")
# The option that a run's length is proportional to, and its value at length 1: about 0.5 s on two
# virtual cores. The grid of halo2d gives about 20 times as many reductions a second as halo3d's
# (section 6.1); all else is the programs' default.
LENGTHS: Mapping[str, tuple[str, int]] = MappingProxyType(
    {
        "halo2d": ("steps", 2),
        "halo3d": ("steps", 200),
        "adaptive": ("steps", 600),
        "sweep": ("iterations", 8),
        "amg": ("solves", 5),
    }
)
LENGTH_S = 0.5  # of a run of length 1, about
WAITED_SHARE = 0.1  # of a run, by which waiting for a CPU decides how long it takes
_WINDOW_S = 60.0  # of injected noise: longer than any run


def why_not() -> str:
    """Why no ranks can be started here; "" if they can."""
    try:
        installation()
    except Unavailable as error:
        return f"{error.what}: {error.fix}"
    return ""


def ranks_table(ranks: Sequence[int], recorded_on: Mapping[str, Any] | None = None) -> pd.DataFrame:
    """What started the ranks, and where they ran: `what`, `here`.

    Parameters
    ----------
    ranks
        How many there are.
    recorded_on
        The machine that recorded the runs; None: this one.
    """
    cpus = len(rank_cpus(10**6)) if recorded_on is None else len(recorded_on["cpus"])
    mpi = "that of the recording" if recorded_on is not None else why_not() or str(installation())
    rows = {
        "MPI": mpi,
        "CPUs": str(cpus),
        "ranks": ", ".join(map(str, ranks)),
        "placement": sharing_sentence(ranks, cpus) or "each rank has a CPU of its own",
    }
    return pd.DataFrame(rows.items(), columns=["what", "here"])


def programs_table() -> pd.DataFrame:
    """The programs: `program`, `stands for`, `does`."""
    rows = [(name, one.stands_for, one.does) for name, one in PROGRAMS.items()]
    return pd.DataFrame(rows, columns=["program", "stands_for", "does"])


def rank_cpus(ranks: int) -> tuple[int, ...]:
    """The CPUs that so many ranks have; more ranks than CPUs share them."""
    return tuple(sorted(os.sched_getaffinity(0)))[:ranks]


def sharing_sentence(ranks: Sequence[int], cpus: int) -> str:
    """What it means that there are more ranks than CPUs; "" if there are not."""
    most = max(ranks, default=0)
    if most <= cpus:
        return ""
    return (
        f"{most} ranks share {cpus} CPUs, unbound: a rank that waits gives its CPU to another one "
        "(Open MPI yields), and noise on a CPU strikes all ranks that want it. These runs show a "
        "time-shared machine, not a larger one."
    )


def waiting_sentence(runs: pd.DataFrame) -> str:
    """In how many undisturbed runs the ranks waited for a CPU, by their number; "" without runs.

    Parameters
    ----------
    runs
        Of `rank_runs`.
    """
    if runs.empty:
        return ""
    quiet = runs[runs["noise"] == NONE]
    waited = quiet["runqueue_wait_ns"] * 1e-9 > WAITED_SHARE * quiet["seconds"]
    parts = [
        f"{group.sum()} of {len(group)} on {ranks} ranks"
        for ranks, group in waited.groupby(quiet["ranks"])
    ]
    return (
        f"Undisturbed runs whose ranks together waited for a CPU for over {WAITED_SHARE:.0%} of the"
        f" run, though they were ready: {', '.join(parts)}."
    )


def rank_program(name: str, ranks: int, length: float = 1.0, **options: Any) -> Workload:
    """A program of the study, on its CPUs: a rank each, or all on all CPUs if there are more ranks.

    Parameters
    ----------
    name
        One of `APPLICATIONS`, or "collectives".
    ranks
        How many.
    length
        Of a run, in multiples of that in `LENGTHS`.
    options
        Further ones of the program.
    """
    if name in LENGTHS:
        option, units = LENGTHS[name]
        options = {option: max(1, round(units * length))} | options
    cpus = rank_cpus(ranks)
    placed = "TP" if len(cpus) == ranks else "Rm"
    return mpi_program(name, ranks, timeout_s=_WINDOW_S, **options).placed(placed, cpus)


def cell_name(program: str, ranks: int, noise: str) -> str:
    """Of a cell of the campaign."""
    return f"{program}, {ranks} ranks, {noise}"


def run_cells(
    folder: Path,
    workloads: Mapping[tuple[str, int], Workload],
    signatures: Sequence[str],
    rounds: int,
    seed: int,
) -> Campaign:
    """Run workloads with and without signatures, all of them in each round, in random order.

    Parameters
    ----------
    folder
        Of the campaign.
    workloads
        By name and number of ranks.
    signatures
        Names of `SIGNATURES`; under each a workload is compared with its runs without noise.
    rounds, seed
        Runs of each cell; of the order.
    """
    sizes = {len(rank_cpus(ranks)) for _, ranks in workloads}
    injected = {
        (noise, cpus): FreshPhases(SIGNATURES[noise], _WINDOW_S, rank_cpus(cpus))
        for noise in signatures
        for cpus in sizes
    }
    cells = []
    for (name, ranks), workload in workloads.items():
        plain, cpus = cell_name(name, ranks, NONE), len(rank_cpus(ranks))
        cells.append(Cell(plain, workload, compared_with=()))
        for noise in signatures:
            phases = (injected[noise, cpus],)
            cells.append(Cell(cell_name(name, ranks, noise), workload, noise, phases, (plain,)))
    campaign = Campaign(folder, cells, rounds, seed)
    campaign.run()
    return campaign


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
) -> pd.DataFrame:
    """Run programs with and without injected signatures, in rounds of random order.

    Parameters
    ----------
    folder
        Of the campaign: each round holds all programs on all numbers of ranks.
    programs, ranks, signatures
        Names of `APPLICATIONS`, numbers of ranks, and names of `SIGNATURES`.
    rounds
        Runs of each cell.
    length, seed
        Of a run, see `rank_program`; of the order.
    recorded_only
        Measure nothing; what the folder has.

    Returns
    -------
    Finished runs (CONTRIBUTING.md, Tables) with `program`, `ranks` and `noise`; without rows, and
    with the reason, where no MPI is.
    """
    if recorded_only or why_not():
        return _recorded(Path(folder), programs, why_not() if not recorded_only else "")
    workloads = {
        (name, number): rank_program(name, number, length) for name in programs for number in ranks
    }
    campaign = run_cells(Path(folder), workloads, signatures, rounds, seed)
    return labelled(finished(campaign.runs()))


def _recorded(folder: Path, programs: Sequence[str], why: str) -> pd.DataFrame:
    if not (folder / "campaign.json").exists():
        empty = pd.DataFrame(columns=["program", "ranks", "noise", "round", "seconds"])
        return because(empty, why or "no runs of real ranks were recorded")
    found = labelled(finished(recorded_runs(folder)))
    return found[found["program"].isin(programs)].reset_index(drop=True)


def labelled(runs: pd.DataFrame) -> pd.DataFrame:
    """With the names that the cells have."""
    parts = runs["cell"].str.split(", ", n=2, expand=True)
    return runs.assign(
        program=parts[0],
        ranks=parts[1].str.removesuffix(" ranks").astype(int),
        noise=parts[2],
    )
