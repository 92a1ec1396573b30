"""Synthetic equivalents of noise that was published as figures only: traces with the same overhead,
rate and quantiles of the durations.

Owns how a distribution is made of some of
its quantiles.
"""

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from ...errors import InputError
from ...noise.presets import published_noise
from ...simulation.detours import Detours
from ...simulation.loggops import LogGOPS, known_network

QUANTILES = {
    "p1_us": 0.01,
    "p10_us": 0.1,
    "p25_us": 0.25,
    "median_us": 0.5,
    "p75_us": 0.75,
    "p90_us": 0.9,
    "p99_us": 0.99,
    "p99_9_us": 0.999,
    "p99_99_us": 0.9999,
    "max_us": 1.0,
}


def published_signatures(seconds: float = 100.0, seed: int = 0) -> dict[str, Detours]:
    """`published_signature` of every system of `published_noise`, by names that
    `nbhelpers.simulation.network` knows, too.

    Parameters
    ----------
    seconds
        Length of each trace, which then repeats.
    seed
        Equal seeds give equal traces.

    Returns
    -------
    System -> trace.
    """
    made = {}
    for row in published_noise().to_dict("records"):
        quantiles = {
            share: row[column] for column, share in QUANTILES.items() if np.isfinite(row[column])
        }
        made[row["system"]] = published_signature(
            quantiles,
            row["detours_per_s"],
            row["overhead_percent"] / 100,
            seconds,
            seed,
            row["system"],
        )
    return made


def system_networks() -> dict[str, LogGOPS]:
    """The network of every system of `published_noise`: its published parameters; where these have
    o = 0, the o that was measured there.

    With o = 0 a message takes no time on any CPU, and noise on CPUs has nothing to strike.
    """
    rows = published_noise().set_index("system")["o_ns"]
    return {
        name: known_network(name) if np.isnan(o_ns) else known_network(name).with_(o=o_ns)
        for name, o_ns in rows.items()
    }


def published_signature(
    quantiles_us: Mapping[float, float],
    detours_per_s: float,
    overhead: float | None = None,
    seconds: float = 100.0,
    seed: int = 0,
    name: str = "signature",
) -> Detours:
    """A trace of detours at random moments whose durations have these quantiles.

    Parameters
    ----------
    quantiles_us
        Share ─► duration, at least 0.5, 0.99 and 1 (the maximum).
    overhead
        Share of the time that is lost. If nothing is known below the median, it fixes that: the
        shortest detour, or, if the detours are even then too short, how steeply the last hundredth
        rises. Otherwise it follows from the quantiles.
    seconds
        Length of the trace, which then repeats.

    Notes
    -----
    Between the quantiles the logarithm of the duration is linear in the share, beyond the 99th
    percentile in the logarithm of what is left (a Pareto tail). When detours come (regularly, in
    bursts) is not published; here it is at random.

    Raises
    ------
    InputError
        Figures that no distribution has.
    """
    known = dict(sorted(quantiles_us.items()))
    if (
        not {0.5, 0.99, 1.0} <= set(known)
        or min(known) <= 0
        or min(known.values()) <= 0
        or np.any(np.diff(list(known.values())) < 0)
        or detours_per_s <= 0
    ):
        raise InputError(
            "a signature that no noise has",
            where=name,
            why=(
                "median, 99th percentile and maximum are needed, durations that grow, and a rate"
                " above 0"
            ),
        )
    count = max(2, round(detours_per_s * seconds))
    mean_us = None if overhead is None or min(known) < 0.5 else overhead * 1e6 / detours_per_s
    duration_us = (
        _durations_us(count, known) if mean_us is None else _fitted_us(count, known, mean_us, name)
    )
    rng = np.random.default_rng(seed)
    start = np.sort(rng.random(count)) * seconds * 1e9
    return Detours(
        start,
        rng.permutation(duration_us) * 1e3,
        seconds * 1e9,
        np.zeros(count, np.int32),
        (name,),
        name,
    )


def _durations_us(count: int, known: Mapping[float, float], late: float = 1.0) -> np.ndarray:
    """`count` evenly spaced quantiles. late: 1 for a Pareto tail, more for one that rises late,
    less for one that rises at once.
    """
    share = (np.arange(count) + 0.5) / count
    at, durations = np.array(list(known)), np.log(list(known.values()))
    body = np.interp(share, at[at <= 0.99], durations[at <= 0.99])
    left = -np.log10(np.maximum(1 - at[at >= 0.99], 0.5 / count))
    tail = np.interp(_bent(-np.log10(1 - share), left, late), left, durations[at >= 0.99])
    made = np.exp(np.where(share <= 0.99, body, tail))
    made[-1] = known[1.0]
    return made


def _bent(place: np.ndarray, left: np.ndarray, late: float) -> np.ndarray:
    reach = max(left[-1] - left[0], 1e-9)
    return left[0] + reach * np.clip((place - left[0]) / reach, 0, 1) ** late


def _fitted_us(count: int, known: Mapping[float, float], mean_us: float, name: str) -> np.ndarray:
    """The shortest detour, 1/1000 of the median to the median, such that the mean is right; or else
    the tail.
    """

    def shortest(log_ratio: float) -> np.ndarray:
        return _durations_us(count, {1e-9: known[0.5] * np.exp(log_ratio), **known})

    def tail(log_late: float) -> np.ndarray:
        return _durations_us(count, {1e-9: known[0.5], **known}, np.exp(log_late))

    def shortest_and_tail(log_late: float) -> np.ndarray:
        return _durations_us(count, {1e-9: known[0.5] / 1e3, **known}, np.exp(log_late))

    for low, high, durations in (
        (np.log(1e-3), 0.0, shortest),
        (-3.0, 3.0, tail),
        (0.0, 5.0, shortest_and_tail),
    ):
        at = _root(partial(_excess_us, durations, mean_us), low, high)
        if at is not None:
            return durations(at)
    raise InputError(
        f"no distribution with these quantiles has a mean of {mean_us:.3g} µs",
        where=name,
        why="overhead over rate is the mean",
    )


def _excess_us(durations: Callable[[float], np.ndarray], mean_us: float, at: float) -> float:
    return float(durations(at).mean()) - mean_us


def _root(function: Callable[[float], float], low: float, high: float) -> float | None:
    """Where a function is 0 between two points; None: it has the same sign at both."""
    from scipy.optimize import brentq

    ends = (function(low), function(high))
    return float(brentq(function, low, high, xtol=1e-9)) if min(ends) <= 0 <= max(ends) else None
