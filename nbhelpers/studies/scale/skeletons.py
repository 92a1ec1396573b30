"""What the skeletons of applications communicate, beside what was published of it.

Owns the table `skeletons`: counts, sizes and shares of time; what only a figure shows without a
number counts as not published.
"""

from collections.abc import Iterator
from math import prod

import numpy as np
import pandas as pd

from ...simulation import applications, patterns
from ...simulation.engine import simulate
from ...simulation.loggops import LogGOPS, known_network
from ...simulation.schedule import CALC, SEND, Schedule
from .applications import RED_STORM

TOLERANCE = 0.2
LARGE_RANKS = 32_768  # where the talk's numbers of messages are compared
_TALK, _PAPER = "Hoefler et al. 2010", "Ferreira et al. 2008"
_TRACE = "trace of Sweep3D"


def communication_share(schedule: Schedule, network: LogGOPS) -> float:
    """Share of the run without noise in which a rank does not compute, the mean over ranks.

    Parameters
    ----------
    schedule
        An application.
    network
        Its parameters.
    """
    work = schedule.column("size")[schedule.kind == CALC].sum() / schedule.ranks
    return float(1 - work / simulate(schedule, network).makespan_ns)


def skeleton_table(ranks: int = 512, share: float = 0.05) -> pd.DataFrame:
    """Counts, sizes and shares of communication of the five skeletons, published and ours.

    Parameters
    ----------
    ranks
        Of the simulated shares (the papers traced up to 512).
    share
        Of the published numbers of collectives, for what is simulated.

    Returns
    -------
    `application`, `quantity`, `published`, `ours`, `difference_share`, `within` (yes, no: by 20 %;
    not published), `source`.
    """
    rows = [*_sweep3d(), *_pop(ranks, share), *_sage(ranks, share), *_cth(ranks), *_amg(ranks)]
    table = pd.DataFrame(rows, columns=["application", "quantity", "published", "ours", "source"])
    difference = table["ours"] / table["published"] - 1
    within = np.where(difference.abs() <= TOLERANCE, "yes", "no")
    table.insert(4, "difference_share", difference)
    table.insert(5, "within", np.where(table["published"].isna(), "not published", within))
    return table


Cell = tuple[str, str, float, float, str]


def _sends(schedule: Schedule) -> np.ndarray:
    """Bytes of every message."""
    return schedule.column("size")[schedule.kind == SEND]


def _sweep3d() -> Iterator[Cell]:
    name, odin = "Sweep3D", known_network("odin")
    whole = applications.sweep3d((2, 2))
    for what, count in applications.SWEEP3D_COLLECTIVES.items():
        yield name, f"{what}s a run", count, _tree_count(whole, what, 4), _TALK
    halves = _sends(whole) == 36_000
    yield name, "messages of 36,000 bytes, 2 x 2 ranks", 5760, int(halves.sum()), _TRACE
    yield name, "run time, 2 x 2 ranks (s)", 42.54, simulate(whole, odin).makespan_ns / 1e9, _TRACE
    yield name, "share of communication", 0.064, communication_share(whole, odin), _TALK
    large = patterns.grid(LARGE_RANKS, 2)
    steps = applications.SWEEP3D_ITERATIONS * 8 * applications.SWEEP3D_BLOCKS
    sweeps = steps * patterns.sweep(large, 1, corners=[(0, 0)]).messages
    collective = _collective_messages(applications.SWEEP3D_COLLECTIVES)
    both = sweeps + collective
    yield (
        name,
        f"point-to-point share of messages, {LARGE_RANKS:,} ranks",
        0.924,
        sweeps / both,
        _TALK,
    )
    yield name, f"messages (million), {LARGE_RANKS:,} ranks", 289, both / 1e6, _TALK


def _collective_messages(counts: dict[str, int], ranks: int = LARGE_RANKS) -> int:
    each = {
        "bcast": patterns.binomial_bcast(ranks, 1).messages,
        "barrier": patterns.barrier(ranks).messages,
        "allreduce": patterns.recursive_doubling_allreduce(ranks, 8).messages,
    }
    return sum(count * each[what] for what, count in counts.items())


def _tree_count(schedule: Schedule, what: str, ranks: int) -> int:
    """How often a collective occurs: every part of a composition has tags of its own."""
    size = {"bcast": 64, "barrier": 1, "allreduce": 8}[what]
    sends = schedule.kind == SEND
    tags = schedule.column("tag")[sends & (schedule.column("size") == size)]
    return len(np.unique(tags))


def _pop(ranks: int, share: float) -> Iterator[Cell]:
    name = "POP"
    small = applications.pop((2, 2), halos=0)
    for what, count in applications.POP_COLLECTIVES.items():
        yield name, f"{what}s a run", count, _tree_count(small, what, 4), _TALK
    collective = _collective_messages(applications.POP_COLLECTIVES)
    halos = applications.POP_HALOS * 8 * LARGE_RANKS
    both = collective + halos
    yield (
        name,
        f"point-to-point share of messages, {LARGE_RANKS:,} ranks",
        0.002,
        halos / both,
        _TALK,
    )
    yield name, f"messages (million), {LARGE_RANKS:,} ranks", 625, both / 1e6, _TALK
    pop = applications.pop(patterns.grid(ranks, 2), share)
    sage = applications.sage(patterns.grid(ranks, 3), 4)
    reductions = applications.scaled(applications.POP_COLLECTIVES, share)["allreduce"]
    often = [
        count / simulate(schedule, RED_STORM).makespan_ns
        for count, schedule in ((reductions, pop), (4, sage))
    ]
    yield name, "reductions a time, over SAGE's", 20, often[0] / often[1], _PAPER
    yield name, "share of communication", np.nan, communication_share(pop, RED_STORM), "a figure"


def _sage(ranks: int, share: float) -> Iterator[Cell]:
    schedule = applications.sage(patterns.grid(ranks, 3), 4)
    reduced = _sends(schedule)
    yield "SAGE", "bytes of a reduction", 8, float(reduced[reduced < 1024].mean()), _PAPER
    yield (
        "SAGE",
        "share of communication",
        np.nan,
        communication_share(schedule, RED_STORM),
        "a figure",
    )


def _cth(ranks: int) -> Iterator[Cell]:
    name, shape, steps = "CTH", patterns.grid(ranks, 3), 4
    schedule = applications.cth(shape, steps)
    sizes = _sends(schedule)
    yield name, "bytes of a reduction", 32, float(sizes[sizes < 64].mean()), _PAPER
    yield name, "bytes of a broadcast", 1024, float(sizes[sizes == 1024].mean()), _PAPER
    whole = simulate(schedule, RED_STORM).makespan_ns
    halos = patterns.loop(patterns.halo(shape, 40_960), steps, applications.STEP_NS)
    work = steps * applications.STEP_NS
    sides = (simulate(halos, RED_STORM).makespan_ns - work) / (whole - work)
    yield name, "sends, receives and waits, share of communication", 0.6, sides, _PAPER
    yield (
        name,
        "share of communication",
        np.nan,
        communication_share(schedule, RED_STORM),
        "a figure",
    )


def _amg(ranks: int) -> Iterator[Cell]:
    schedule = applications.amg(patterns.grid(ranks, 3), 2)
    assert schedule.ranks == prod(patterns.grid(ranks, 3))
    yield "AMG", "share of communication", np.nan, communication_share(schedule, RED_STORM), "none"


def skeletons_sentence(table: pd.DataFrame) -> str:
    """How many of the published quantities the skeletons have within 20 %.

    Parameters
    ----------
    table
        Of `skeleton_table`.
    """
    known = table[table["within"] != "not published"]
    wrong = known[known["within"] == "no"]
    named = "; ".join(
        f"{row['application']}, {row['quantity']}: {row['ours']:.3g} for {row['published']:.3g}"
        for row in wrong.to_dict("records")
    )
    return f"{len(known) - len(wrong)} of {len(known)} published quantities agree within 20 %" + (
        f". Not: {named}." if named else "."
    )
