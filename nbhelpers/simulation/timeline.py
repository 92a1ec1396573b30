"""Small cases to look at: what every rank did when, with one process delayed; and what a delay
became on the others.

Owns the cases; `Result.timeline` has what is drawn, `perfetto.py` writes it for a viewer.
"""

import numpy as np
import pandas as pd

from ..errors import InputError
from . import patterns
from .engine import simulate
from .loggops import LogGOPS
from .noise import Detours, Noise, pareto
from .result import Result
from .schedule import Schedule


def delayed(
    schedule: Schedule, late: int, delay_us: float, at_us: float = 0.0, network: LogGOPS = LogGOPS()
) -> Result:
    """A schedule in which one rank is struck by one detour, with a record of what happened.

    Parameters
    ----------
    late
        The rank.
    delay_us, at_us
        How long the detour is, and when it begins.

    Raises
    ------
    InputError
        There is no such rank, or the detour has no length.
    """
    if not 0 <= late < schedule.ranks:
        raise InputError(
            f"there is no rank {late}", where=schedule.name, fix=f"0 to {schedule.ranks - 1}"
        )
    if not (delay_us > 0 and at_us >= 0):
        raise InputError(
            f"a detour of {delay_us} µs at {at_us} µs", why="it must last, and not begin before 0"
        )
    delay = Detours(
        np.array([at_us * 1e3]),
        np.array([delay_us * 1e3]),
        1e15,
        np.zeros(1, np.int32),
        ("delay",),
        f"a delay of {delay_us:g} µs",
    )
    return simulate(
        schedule,
        network,
        Noise.on_ranks(delay, schedule.ranks, phases_ns=np.zeros(schedule.ranks), noisy=[late]),
        critical_path=True,
    )


def delayed_barrier(
    ranks: int = 8, late: int = 3, delay_us: float = 20.0, network: LogGOPS = LogGOPS()
) -> Result:
    """The dissemination barrier with one delayed process: who has to wait for it, and who is spared
    (Hoefler et al. 2010, "a noisy example").
    """
    return delayed(patterns.barrier(ranks), late, delay_us, network=network)


def noisy_loop(
    ranks: int = 8,
    steps: int = 4,
    compute_us: float = 50.0,
    seed: int = 0,
    network: LogGOPS = LogGOPS(),
) -> Result:
    """Computation and a small all-reduce, again and again, with detours at random on every rank:
    most of a few µs, some much longer.
    """
    schedule = patterns.loop(
        patterns.recursive_doubling_allreduce(ranks, 8), steps, round(compute_us * 1e3)
    )
    traces = [
        pareto(20_000, 2, 1.2, 100, seconds=0.1, seed=1000 * seed + rank) for rank in range(ranks)
    ]
    return simulate(schedule, network, Noise.on_ranks(traces, ranks, seed), critical_path=True)


def on_path(result: Result) -> pd.DataFrame:
    """The time line's detours, each with `path_ns`: what it added to the critical path (0: it was
    absorbed, or struck off the path).

    Returns
    -------
    DataFrame : `rank`, `source`, `start_ns`, `end_ns`, `path_ns`, by start.
    """
    timeline = result.timeline()
    all_of_them = timeline.loc[
        timeline["what"] == "detour", ["rank", "source", "start_ns", "end_ns"]
    ]
    struck = result.struck().groupby(["rank", "start_ns"], as_index=False)["path_ns"].sum()
    keys = [
        all_of_them.assign(at=all_of_them["start_ns"].round()),
        struck.assign(at=struck["start_ns"].clip(lower=0).round())[["rank", "at", "path_ns"]],
    ]
    merged = (
        keys[0]
        .merge(
            keys[1].groupby(["rank", "at"], as_index=False)["path_ns"].sum(),
            on=["rank", "at"],
            how="left",
        )
        .drop(columns="at")
    )
    return merged.fillna({"path_ns": 0.0}).sort_values(["start_ns", "rank"], ignore_index=True)
