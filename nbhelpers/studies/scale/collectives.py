"""Collectives under noise, by implicit evaluation: scaling, co-scheduling, network speed, overhead
against slow-down, benchmark loops.

Each function gives a table, a row a case; slow-downs are medians over seeds with the 95 % bootstrap
interval of the median.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from ...errors import InputError
from ...simulation.implicit import evaluate
from ...simulation.loggops import LogGOPS, known_network
from ...simulation.machines import spread_over
from ...simulation.noise import Detours, Noise
from ...simulation.replicates import Outcome, replicate
from .signatures import RECORDED_SOURCE

Traces = Detours | Sequence[Detours]
DEFAULT_NETWORK = LogGOPS()


def scaling(
    noises: Mapping[str, Traces] | Traces,
    ranks: Sequence[int] | int,
    *,
    seeds: int = 30,
    networks: Mapping[str, LogGOPS] | LogGOPS = DEFAULT_NETWORK,
    pattern: str = "dissemination",
    bytes: Sequence[int] | int = 1,
    repetitions: int = 1,
    cosched: Sequence[bool] | bool = False,
    seed: int = 0,
    **options: Any,
) -> pd.DataFrame:
    """How much longer a collective takes under noise: every noise on every number of ranks and
    every network.

    Parameters
    ----------
    noises
        By name; a trace for all ranks, or several of which each rank has one drawn at random. One
        alone needs no name.
    ranks
        How many; several are cases.
    seeds, seed
        How many replicates, at least 2, and what their seeds follow from.
    networks
        By name, or one for all. Noises and networks of the same names go together (a system has one
        of each).
    pattern, bytes, repetitions, options
        Of `evaluate`; bytes one number, or several of which each is a case.
    cosched
        Whether noise strikes all ranks at once; [False, True] for both.

    Returns
    -------
    `noise`, `network`, `ranks`, `bytes`, `cosched`, `overhead_share` (of a rank's time
    that the noise takes), `ideal_us`, `noisy_us` (median), and of
        the slow-down `median`, `low`, `high` (95 % interval of the median), `least`, `most`,
        `seeds`.
    """
    noises = noises if isinstance(noises, Mapping) else {_name(noises): noises}
    networks = networks if isinstance(networks, Mapping) else {"": networks}
    cases = product(
        np.atleast_1d(ranks).tolist(),
        np.atleast_1d(bytes).tolist(),
        noises.items(),
        np.atleast_1d(cosched).tolist(),
    )
    rows = []
    for number, size, (noise, traces), together in cases:
        call_options = {"bytes": size, "repetitions": repetitions} | options
        for label in _networks_of(noises, networks, noise):
            call = partial(_evaluated, pattern, number, networks[label], call_options)
            case = {
                "noise": noise,
                "network": label,
                "ranks": number,
                "bytes": size,
                "cosched": together,
                "overhead_share": overhead(traces),
            }
            rows.append(case | slowdown(call, traces, number, seeds, seed, together))
    return pd.DataFrame(rows)


def _evaluated(
    pattern: str, ranks: int, network: LogGOPS, options: dict, noise: Noise | None
) -> Outcome:
    return evaluate(pattern, ranks, network, noise, **options)


def slowdown(
    call: Callable[[Noise | None], Outcome],
    traces: Traces,
    ranks: int,
    seeds: int,
    seed: int = 0,
    cosched: bool = False,
) -> dict[str, float]:
    """How much longer a call takes under noise.

    Returns
    -------
    Columns of a study's table: `ideal_us`, `noisy_us` (median), and `median`, `low`, `high` (95 %
    interval), `least`, `most`, `seeds` of the slow-down.
    """
    noise = spread_over(_as_list(traces), ranks, seed, cosched)
    found = replicate(call, noise, seeds, seed)
    interval, values = found.intervals(["slowdown"]).loc["slowdown"], found.table["slowdown"]
    ideal_us = found.ideal_ns / 1e3
    return {
        "ideal_us": ideal_us,
        "noisy_us": float(interval["median"]) * ideal_us,
        "median": float(interval["median"]),
        "low": float(interval["low"]),
        "high": float(interval["high"]),
        "least": float(values.min()),
        "most": float(values.max()),
        "seeds": len(values),
    }


def overhead(traces: Traces) -> float:
    """Share of its time that a rank loses, the mean over the traces."""
    return float(np.mean([trace.overhead for trace in _as_list(traces)]))


def _as_list(traces: Traces) -> Sequence[Detours]:
    return [traces] if isinstance(traces, Detours) else traces


def _networks_of(noises: Mapping, networks: Mapping, noise: str) -> list[str]:
    """A system's own network if noises and networks are both named by systems, else all."""
    return [noise] if set(noises) <= set(networks) else list(networks)


def _name(traces: Traces) -> str:
    return traces.name if isinstance(traces, Detours) else f"{len(traces)} traces"


def bottleneck(
    noises: Mapping[str, Traces] | Traces,
    ranks: int,
    *,
    speeds: Sequence[float] = (0.1, 1, 10),
    network: LogGOPS = DEFAULT_NETWORK,
    seeds: int = 30,
    **options: Any,
) -> pd.DataFrame:
    """What a faster network gains under noise: L, g and G divided by each speed, o as it is
    (Hoefler et al. 2010).

    Parameters
    ----------
    noises, ranks, seeds, options
        As of `scaling`.
    speeds
        By which the network is multiplied.
    network
        Its parameters.

    Returns
    -------
    As of `scaling`, with `speed` for `network`, `noisy_low_us`, `noisy_high_us`
    (interval of `noisy_us`) and `gain_share`, `ideal_gain_share`:
        how much less time than at the speed before.
    """
    networks = {
        f"{speed:g}": network.scaled(L=1 / speed, g=1 / speed, G=1 / speed) for speed in speeds
    }
    table = scaling(noises, ranks, networks=networks, seeds=seeds, **options).rename(
        columns={"network": "speed"}
    )
    table["speed"] = table["speed"].astype(float)
    table["noisy_low_us"] = table["low"] * table["ideal_us"]
    table["noisy_high_us"] = table["high"] * table["ideal_us"]
    groups = table.groupby(["noise", "cosched"], sort=False)
    return table.assign(
        gain_share=-groups["noisy_us"].pct_change(),
        ideal_gain_share=-groups["ideal_us"].pct_change(),
    )


def overhead_and_slowdown(
    systems: Mapping[str, Traces],
    ranks: int,
    *,
    seeds: int = 30,
    networks: Mapping[str, LogGOPS] | None = None,
    **options: Any,
) -> pd.DataFrame:
    """Systems in the order of the CPU time that their noise takes, and in that of what it does to a
    collective.

    Parameters
    ----------
    systems
        Noise by system.
    ranks, seeds, options
        As of `scaling`.
    networks
        By the same names; None: those of `nbhelpers.simulation.network`.

    Returns
    -------
    As of `scaling`, sorted by overhead, with `overhead_rank` and `slowdown_rank`, 1 the
    largest, and `detours`: recorded, or synthetic.
    """
    networks = {name: known_network(name) for name in systems} if networks is None else networks
    table = scaling(systems, ranks, networks=networks, seeds=seeds, **options)
    for column, by in (("overhead_rank", "overhead_share"), ("slowdown_rank", "median")):
        table[column] = table[by].rank(ascending=False).astype(int)
    table["detours"] = [
        "recorded" if getattr(systems[name], "sources", ()) == RECORDED_SOURCE else "synthetic"
        for name in table["noise"]
    ]
    return table.sort_values("overhead_share", ascending=False, ignore_index=True)


def rank_correlation(table: pd.DataFrame) -> tuple[float, float]:
    """Spearman's correlation of overhead and slow-down over the systems of a table, and its
    two-sided p-value; NaN where all are slowed down alike.

    Raises
    ------
    InputError
        Fewer than three systems.
    """
    from scipy.stats import spearmanr

    if len(table) < 3:
        raise InputError(f"{len(table)} systems can't be correlated", fix="three at least")
    if table["median"].nunique() == 1 or table["overhead_share"].nunique() == 1:
        return float("nan"), float("nan")
    found = spearmanr(table["overhead_share"], table["median"])
    return float(found.statistic), float(found.pvalue)


def pipelining(
    ranks: Sequence[int],
    *,
    times: int = 100,
    bytes: int = 1,
    patterns: Sequence[str] = ("binomial_bcast", "scatter", "binomial_reduce"),
    network: LogGOPS = DEFAULT_NETWORK,
) -> pd.DataFrame:
    """What the loop of a benchmark makes of a collective: the time a call in a loop, over the time
    of one call.

    Hoefler, Schneider, Lumsdaine: LogGP in Theory and Practice, Simulation Modelling Practice and
    Theory 17(9), 2009.

    Parameters
    ----------
    ranks
        How many.
    times
        Calls in the loop.
    bytes
        Of each message.
    patterns
        Names of collectives.
    network
        Its parameters.

    Returns
    -------
    `pattern`, `ranks`, `single_us`, `loop` (same root: fixed or rotated), `call_us`,
    `error_us` and `error_share`: by how much a call in the loop seems shorter.
    """
    rows = []
    for pattern in patterns:
        for number in ranks:
            single_us = evaluate(pattern, number, network, bytes=bytes).makespan_ns / 1e3
            for loop in ("fixed root", "rotated root"):
                whole = evaluate(
                    pattern,
                    number,
                    network,
                    bytes=bytes,
                    repetitions=times,
                    rotate_root=loop == "rotated root",
                )
                call_us = whole.makespan_ns / times / 1e3
                rows.append(
                    {
                        "pattern": pattern,
                        "ranks": number,
                        "loop": loop,
                        "single_us": single_us,
                        "call_us": call_us,
                        "error_us": single_us - call_us,
                        "error_share": 1 - call_us / single_us,
                    }
                )
    return pd.DataFrame(rows)
