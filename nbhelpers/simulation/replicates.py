"""The same simulation with other phases of the noise, many times: on all cores, or on a cluster by
Dask.

Owns the seeds of replicates and the table of them; what is replicated is any call that takes noise
and gives a result.
"""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pandas as pd

from ..errors import InputError
from ..progress import each
from ..statistics import STATISTICS, bootstrap_interval
from .noise import Noise

COLUMNS = ("makespan_ns", "slowdown", "delay_ns", "noise_ns", "amplification")


class Outcome(Protocol):
    """What a call must give: a `Result` of simulate() or an `Evaluation` of evaluate()."""

    @property
    def finish_ns(self) -> np.ndarray: ...
    @property
    def noise_ns(self) -> np.ndarray: ...


@dataclass(frozen=True, eq=False, repr=False)
class Replicates:
    """What the replicates took.

    Parameters
    ----------
    table
        One row a replicate: `replicate`, `seed` (of the phases), `makespan_ns`, `slowdown` (over
        the ideal), `delay_ns` (beyond the ideal), `noise_ns` (mean of the ranks), `amplification`
        (delay over noise: below 1 noise was absorbed).
    ideal_ns
        Without noise.
    finish_ns
        float64[n, P], or None: each rank's end.
    """

    table: pd.DataFrame
    ideal_ns: float
    finish_ns: np.ndarray | None = None

    def intervals(
        self, columns: Sequence[str] = COLUMNS, statistic: str = "median", level: float = 0.95
    ) -> pd.DataFrame:
        """A statistic of each column with its bootstrap interval: index the column, columns
        `statistic`'s name, `low`, `high`, `n`.

        Raises
        ------
        InputError
            Fewer than two replicates, or an unknown statistic.
        """
        rows = {}
        for column in columns:
            values = self.table[column].dropna().to_numpy()
            low, high = (
                bootstrap_interval(values, statistic, level=level)
                if len(values) > 1 or column != "amplification"
                else (np.nan, np.nan)
            )
            rows[column] = {
                statistic: float(STATISTICS[statistic](values)) if len(values) else np.nan,
                "low": low,
                "high": high,
                "n": len(values),
            }
        return pd.DataFrame(rows).T.astype({"n": int})

    def __repr__(self) -> str:
        return (
            f"Replicates({len(self.table)}: slowdown {self.table['slowdown'].median():.3g} in the"
            f" median, {self.table['slowdown'].max():.3g} at most)"
        )


def seeds_of(n: int, seed: int) -> np.ndarray:
    """The seeds of n replicates, uint32[n]; the first m of more are those of m."""
    return np.random.SeedSequence(seed).generate_state(n)


def replicate(
    call: Callable[[Noise | None], Outcome],
    noise: Noise,
    n: int = 30,
    seed: int = 0,
    *,
    workers: int | None = None,
    keep_finish: bool = False,
    client: Any = None,
) -> Replicates:
    """Repeat a simulation with phases drawn anew.

    Parameters
    ----------
    call
        What is simulated, a function of the noise: `lambda noise: evaluate("dissemination", 32768,
        noise=noise)`, or `functools.partial`.
    noise
        Whose phases are drawn anew for each replicate (`Noise.with_seed`); its traces are shared by
        all.
    n
        How many. The seed of each follows from `seed`, so that the results don't depend on the
        workers.
    workers
        Threads; None: one a core. They share all arrays, and the simulator runs without Python's
        lock.
    keep_finish
        Record each rank's end, n × P × 8 bytes.
    client
        A dask.distributed Client (`pip install distributed`): the replicates are
        computed by its workers; `call` must then survive pickling.

    Returns
    -------
    Replicates
        A row a replicate, and the time without noise.

    Raises
    ------
    InputError
        n below 1, or noise without phases to draw.

    Examples
    --------
    >>> from nbhelpers.simulation import evaluate, periodic
    >>> noise = Noise.on_ranks(periodic(1000, 100), 64)
    >>> found = replicate(lambda noise: evaluate("dissemination", 64, noise=noise), noise, n=5)
    >>> found.ideal_ns, len(found.table)
    (33000.0, 5)
    """
    if isinstance(n, bool) or int(n) != n or n < 1:
        raise InputError(
            f"n = {n!r} replicates", fix="at least one, and 30 for an interval worth the name"
        )
    if not isinstance(noise, Noise):
        raise InputError(
            f"the noise is {type(noise).__name__}",
            why="only phases on ranks can be drawn anew",
            fix="Noise.on_ranks(trace, ranks)",
        )
    seeds = seeds_of(int(n), seed)
    ideal_ns = float(call(None).finish_ns.max())
    finish = np.empty((len(seeds), noise.ranks)) if keep_finish else None
    if client is not None:
        rows = _by_dask(client, call, noise, seeds, finish)
    else:
        rows = _by_threads(call, noise, seeds, finish, workers or len(os.sched_getaffinity(0)))
    return Replicates(_table(rows, seeds, ideal_ns), ideal_ns, finish)


def _by_threads(
    call: Callable, noise: Noise, seeds: np.ndarray, finish: np.ndarray | None, workers: int
) -> list[tuple[float, float]]:
    def one(i: int) -> tuple[float, float]:
        outcome = call(noise.with_seed(int(seeds[i])))
        if finish is not None:
            finish[i] = outcome.finish_ns
        return _numbers(outcome)

    noise.tables()  # the traces' tables, once for all threads
    with ThreadPoolExecutor(workers) as pool:
        return list(each(pool.map(one, range(len(seeds))), "simulating", "replicates", len(seeds)))


def _by_dask(
    client: Any, call: Callable, noise: Noise, seeds: np.ndarray, finish: np.ndarray | None
) -> list[tuple[float, float]]:
    """One task a handful of replicates; the noise travels to each worker once."""
    everywhere = client.scatter(noise, broadcast=True)
    handfuls = np.array_split(seeds, min(len(seeds), 4 * max(1, sum(client.nthreads().values()))))
    tasks = [
        client.submit(_handful, call, everywhere, handful, finish is not None, pure=False)
        for handful in handfuls
    ]
    rows, done = [], 0
    for numbers, ends in client.gather(tasks):
        rows += numbers
        if finish is not None:
            finish[done : done + len(numbers)] = ends
        done += len(numbers)
    return rows


def _handful(
    call: Callable, noise: Noise, seeds: np.ndarray, keep_finish: bool
) -> tuple[list[tuple[float, float]], list[np.ndarray]]:
    numbers, ends = [], []
    for seed in seeds:
        outcome = call(noise.with_seed(int(seed)))
        numbers.append(_numbers(outcome))
        if keep_finish:
            ends.append(outcome.finish_ns)
    return numbers, ends


def _numbers(outcome: Outcome) -> tuple[float, float]:
    return float(outcome.finish_ns.max()), float(outcome.noise_ns.mean())


def _table(rows: list[tuple[float, float]], seeds: np.ndarray, ideal_ns: float) -> pd.DataFrame:
    makespan_ns, noise_ns = np.array(rows).T
    with np.errstate(divide="ignore", invalid="ignore"):
        amplification = np.where(noise_ns > 0, (makespan_ns - ideal_ns) / noise_ns, np.nan)
        slowdown = makespan_ns / ideal_ns
    return pd.DataFrame(
        {
            "replicate": np.arange(len(seeds)),
            "seed": seeds,
            "makespan_ns": makespan_ns,
            "slowdown": slowdown,
            "delay_ns": makespan_ns - ideal_ns,
            "noise_ns": noise_ns,
            "amplification": amplification,
        }
    )
