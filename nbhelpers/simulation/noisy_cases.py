"""How much longer programs take under noise: a table of cases, and a row of results for each.

Owns the way from what an experiment varies (columns of a table) to replicates of one simulation.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from inspect import signature
from typing import Any

import numpy as np
import pandas as pd

from ..statistics import bootstrap_interval
from .detours import Detours
from .engine import simulate
from .loggops import LogGOPS
from .machines import spread_over
from .replicates import replicate
from .schedule import Schedule

Traces = Detours | Sequence[Detours]
Program = Schedule | Callable[..., Schedule]
_US = {"us": 1, "ms": 1e3}  # microseconds in a unit


def cases(**varied: Sequence[Any]) -> pd.DataFrame:
    """Every combination of what is varied, a row each; the last name varies fastest.

    Examples
    --------
    >>> cases(ranks=[2, 8], cosched=[False, True]).to_numpy().tolist()
    [[2, False], [2, True], [8, False], [8, True]]
    """
    values = [list(each) for each in varied.values()]
    return pd.MultiIndex.from_product(values, names=list(varied)).to_frame(index=False)


def slowdowns(
    cases: pd.DataFrame,
    programs: Program | Mapping[Any, Program],
    noises: Mapping[str, Traces] | None = None,
    networks: LogGOPS | Mapping[Any, LogGOPS] = LogGOPS(),
    seeds: int = 30,
    unit: str = "us",
) -> pd.DataFrame:
    """Simulate every case without noise, and under its noise with other phases for each seed.

    Parameters
    ----------
    cases
        What is varied, a row a case. `noise` and `network` name one of `noises` and `networks`;
        `cosched`: noise strikes all ranks at once; `seeds`: replicates of this case; `mode`: of
        `simulate`. A column that
        a program has as a parameter (`ranks`, `bytes`) is passed to it.
    programs
        A schedule, or a function that makes one (`patterns.dissemination`); or one for each
        value of the first column of `cases` (where keys are tuples, of the first columns).
    noises
        Traces by name; None: without noise.
    networks
        One, or one for each value of `network` (without such a column, of `noise`).
    seeds
        Replicates of each case; of one there is no interval. Equal seeds give equal phases.
    unit
        "us" or "ms": of the times, and the end of their names.

    Returns
    -------
    The cases with `overhead_share` (of a rank's time that the noise takes), `ideal_us` (without
    noise), `noisy_us` (median) and, of the slow-down, `median`, `low`, `high` (95 % bootstrap
    interval of the median), `least`, `most`, `seeds`; without noise only with `ideal_us`.

    Examples
    --------
    >>> from nbhelpers.simulation import patterns, periodic
    >>> varied = cases(noise=["1000 Hz"], ranks=[4, 64], bytes=[1])
    >>> table = slowdowns(varied, patterns.dissemination, {"1000 Hz": periodic(1000, 100)}, seeds=5)
    >>> table["ideal_us"].tolist()
    [11.0, 33.0]
    """
    rows: list[dict] = []
    last: Any = None
    for case in cases.to_dict("records"):
        program, options = _program(case, programs)
        if last != (program, options):
            last = program, options
            schedule = program if isinstance(program, Schedule) else program(**options)
        network = networks
        if isinstance(network, Mapping):
            network = network[case["network" if "network" in case else "noise"]]
        call = partial(simulate, schedule, network, mode=case.get("mode", "exact"))
        ideal_ns = call().makespan_ns
        ideal = {f"ideal_{unit}": ideal_ns / 1e3 / _US[unit]}
        if noises is None:
            rows.append(case | ideal)
            continue
        traces = noises[case["noise"]]
        traces = [traces] if isinstance(traces, Detours) else traces
        noise = spread_over(traces, schedule.ranks, 0, case.get("cosched", False))
        found = replicate(call, noise, case.pop("seeds", seeds))
        own = {"overhead_share": float(np.mean([trace.overhead for trace in traces]))}
        row = summary(found / ideal_ns)
        noisy = {f"noisy_{unit}": row["median"] * (ideal_ns / 1e3) / _US[unit]}
        rows.append(case | own | ideal | noisy | row)
    return pd.DataFrame(rows)


def _program(case: dict, programs: Program | Mapping[Any, Program]) -> tuple[Program, dict]:
    """The program of a case, and which columns are its parameters."""
    program: Any = programs
    if isinstance(programs, Mapping):
        first, values = next(iter(programs)), list(case.values())
        program = programs[tuple(values[: len(first)]) if isinstance(first, tuple) else values[0]]
    if isinstance(program, Schedule):
        return program, {}
    known = signature(program).parameters
    bound = program.keywords if isinstance(program, partial) else {}
    return program, {name: case[name] for name in case if name in known and name not in bound}


def summary(slowdown: np.ndarray) -> dict[str, float]:
    """The median of slow-downs with its interval, the ends, and how many there are."""
    low, high = bootstrap_interval(slowdown, "median") if len(slowdown) > 1 else (np.nan, np.nan)
    return {
        "median": float(np.median(slowdown)),
        "low": low,
        "high": high,
        "least": float(slowdown.min()),
        "most": float(slowdown.max()),
        "seeds": len(slowdown),
    }


def propagation(table: pd.DataFrame) -> pd.DataFrame:
    """The delay of each case over that of a lone computation of the same length.

    A lone computation loses overhead / (1 - overhead). Below 1 noise is absorbed; at 1 each rank
    loses the time of its own noise; above 1 also that of others.

    Parameters
    ----------
    table
        Table of `slowdowns`.

    Returns
    -------
    With `propagated`, `propagated_low`, `propagated_high`.
    """
    alone = table["overhead_share"] / (1 - table["overhead_share"])
    return table.assign(
        propagated=(table["median"] - 1) / alone,
        propagated_low=(table["low"] - 1) / alone,
        propagated_high=(table["high"] - 1) / alone,
    )
