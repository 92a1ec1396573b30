"""Applications under noise, on the engine: who absorbs and who propagates, overlap, sensitivity to
the network, extrapolation.

The skeletons are those of `nbhelpers.simulation.applications`: compare shapes, not seconds.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
import pandas as pd

from ...simulation import applications, patterns
from ...simulation.engine import simulate
from ...simulation.loggops import LogGOPS, known_network
from ...simulation.noise import Detours, Noise
from ...simulation.result import Result
from ...simulation.schedule import Schedule
from .collectives import Traces, overhead, slowdown

Programs = Mapping[str, Schedule] | Callable[[], Mapping[str, Schedule]]


def _made(schedules: Programs) -> Mapping[str, Schedule]:
    """A call that makes schedules is made only where they are needed."""
    return schedules() if callable(schedules) else schedules


RED_STORM = known_network("red-storm")
MOST_STEPS = 10  # of SAGE and CTH: 0.1 s, a period of the rarer noise


def applications_on(ranks: int, share: float = 0.1) -> dict[str, Schedule]:
    """Sweep3D, POP and AMG on so many ranks; `share` of the published numbers of collectives (AMG:
    of 60 cycles, which is our choice).

    Parameters
    ----------
    ranks
        How many.
    share
        Of the published numbers of collectives.

    Returns
    -------
    Application -> schedule.
    """
    plane, space = patterns.grid(ranks, 2), patterns.grid(ranks, 3)
    return {
        "Sweep3D": applications.sweep3d(plane, share),
        "POP": applications.pop(plane, share),
        "AMG": applications.amg(space, max(1, round(60 * share))),
    }


def talked_of(ranks: int, share: float = 0.1) -> dict[str, Schedule]:
    """POP and AMG on so many ranks: those of which the talk prints a slow-down."""
    made = applications_on(ranks, share)
    return {name: made[name] for name in ("POP", "AMG")}


def traced_sweep(*, seeds: int, frequency_hz: int = 1000, duration_us: int = 100) -> pd.DataFrame:
    """Sweep3D on 2 x 2 ranks as it was traced, under regular noise, by both modes of the engine.

    The reference's rule (compat) lengthens a computation by the detours within its own time; exact
    also counts those that come while it is longer.

    Parameters
    ----------
    seeds
        Replicates, at least 2.
    frequency_hz, duration_us
        Of the noise. Its trace lasts 100 s: the reference's rule needs one longer than any
        computation.

    Returns
    -------
    `mode`, `ranks`, `ideal_ms`, the slow-down's `median`, `low`, `high`, `seeds`.
    """
    count = 100 * frequency_hz
    noise = Detours(
        np.arange(count) * (1e9 / frequency_hz),
        np.full(count, duration_us * 1e3),
        period_ns=100e9,
        name=f"{frequency_hz} Hz x {duration_us} us",
    )
    schedule = applications.traced_sweep3d("reference")
    rows = []
    for mode in ("compat", "exact"):
        call = partial(simulate, schedule, LogGOPS(), mode=mode)
        slow = slowdown(call, noise, schedule.ranks, seeds)
        rows.append(
            {"mode": mode, "ranks": schedule.ranks, "ideal_ms": slow["ideal_us"] / 1e3}
            | {name: slow[name] for name in ("median", "low", "high", "seeds")}
        )
    return pd.DataFrame(rows)


def injected_codes(ranks: int, share: float = 0.1) -> dict[str, Schedule]:
    """POP, SAGE and CTH on so many ranks: a share of POP's published numbers of collectives, and
    a tenth of a second of the others at most.
    """
    plane, space = patterns.grid(ranks, 2), patterns.grid(ranks, 3)
    reductions = applications.scaled(applications.POP_COLLECTIVES, share)["allreduce"]
    steps = max(2, min(MOST_STEPS, reductions))
    return {
        "POP": applications.pop(plane, share),
        "SAGE": applications.sage(space, steps),
        "CTH": applications.cth(space, steps),
    }


def pop_alone(ranks: int, share: float = 0.1) -> dict[str, Schedule]:
    """POP on so many ranks."""
    return {"POP": applications.pop(patterns.grid(ranks, 2), share)}


def application_slowdown(
    schedules: Programs,
    noises: Mapping[str, Traces],
    *,
    seeds: int = 30,
    network: LogGOPS | Mapping[str, LogGOPS] = RED_STORM,
) -> pd.DataFrame:
    """How much longer applications take under noise, and what the noise alone takes from each CPU.

    Parameters
    ----------
    schedules
        By application; or a call that makes them (`partial(applications_on, 1024)`), when they are
        needed.
    noises
        By name.
    seeds
        Replicates of each simulation, at least 2.
    network
        Its parameters; or one for each noise, by the noise's name.

    Returns
    -------
    `application`, `ranks`, `noise`, `overhead_share`, `ideal_ms`, `noisy_ms` (median),
    the slow-down's `median`, `low`, `high`, `least`, `most`, `seeds`, and `propagated`,
    `propagated_low`, `propagated_high`: the delay over that of a lone computation of the same
    length, overhead / (1 − overhead). Below 1 noise is absorbed; at 1 each rank loses the time of
    its own noise; above 1 also that of others.
    """
    rows = []
    for application, schedule in _made(schedules).items():
        for noise, traces in noises.items():
            own = network if isinstance(network, LogGOPS) else network[noise]
            slow = _slowdown(schedule, traces, seeds, own)
            rows.append(
                {
                    "application": application,
                    "ranks": schedule.ranks,
                    "noise": noise,
                    "overhead_share": overhead(traces),
                    **slow,
                    **_propagated(slow, overhead(traces)),
                }
            )
    return pd.DataFrame(rows)


def _slowdown(schedule: Schedule, traces: Traces, seeds: int, network: LogGOPS) -> dict[str, float]:
    """As of `slowdown`, in ms."""
    found = slowdown(partial(_simulated, schedule, network), traces, schedule.ranks, seeds)
    return {
        "ideal_ms": found.pop("ideal_us") / 1e3,
        "noisy_ms": found.pop("noisy_us") / 1e3,
        **found,
    }


def _simulated(schedule: Schedule, network: LogGOPS, noise: Noise | None) -> Result:
    return simulate(schedule, network, noise)


def _propagated(slow: dict[str, float], overhead: float) -> dict[str, float]:
    alone = overhead / (1 - overhead)
    return {
        name: (slow[of] - 1) / alone
        for name, of in (
            ("propagated", "median"),
            ("propagated_low", "low"),
            ("propagated_high", "high"),
        )
    }


# --- does point-to-point communication matter? ----------------------------------------------------


def communication_kinds(
    ranks: int, steps: int, compute_ns: int, bytes: int = 8
) -> dict[str, Schedule]:
    """The same computation with a barrier only at the end, with a halo exchange, a wavefront or an
    all-reduce in each step.
    """
    shape = patterns.grid(ranks, 2)
    last, step = patterns.barrier(ranks), patterns.halo(shape, bytes)
    sweeps = patterns.sweep(shape, bytes, steps, compute_ns, corners=[(0, 0)])
    return {
        "nothing": patterns.compose([last], [steps * compute_ns], name="nothing"),
        "halo": patterns.compose([step] * steps + [last], [compute_ns] * steps + [0], name="halo"),
        "wavefront": patterns.sequence(sweeps, last),
        "all-reduce": patterns.compose(
            [patterns.recursive_doubling_allreduce(ranks, bytes)] * steps + [last],
            [compute_ns] * steps + [0],
            name="all-reduce",
        ),
    }


def point_to_point(
    noises: Mapping[str, Traces],
    ranks: int,
    *,
    steps: int = 100,
    compute_ns: int = 500_000,
    seeds: int = 30,
    network: LogGOPS = RED_STORM,
) -> pd.DataFrame:
    """Does point-to-point communication absorb noise or pass it on? As `application_slowdown`, over
    `communication_kinds`.

    Parameters
    ----------
    noises
        By name.
    ranks, steps, compute_ns
        Of the programs: how many ranks, steps, and how long each computes in a step.
    seeds
        Replicates of each simulation, at least 2.
    network
        Its parameters.
    """
    return application_slowdown(
        communication_kinds(ranks, steps, compute_ns), noises, seeds=seeds, network=network
    )


# --- networks without noise -----------------------------------------------------------------------


def overlap_potential(
    schedules: Programs,
    *,
    shares: Sequence[float] = (0, 0.25, 0.5, 0.75, 1),
    network: LogGOPS = RED_STORM,
) -> pd.DataFrame:
    """How much an application would gain if communication occupied its CPUs less: o from 0 to g and
    O from 0 to G (Hoefler et al. 2010, overlap potential).

    Returns
    -------
    `application`, `share` (o / g and O / G), `ms`, `ratio` (to share 0: everything
    overlaps that the program's order allows).
    """
    rows = [
        {
            "application": name,
            "share": share,
            "ms": (
                simulate(
                    schedule, network.with_(o=share * network.g, O=share * network.G)
                ).makespan_ns
                / 1e6
            ),
        }
        for name, schedule in _made(schedules).items()
        for share in shares
    ]
    table = pd.DataFrame(rows)
    return table.assign(
        ratio=table["ms"] / table.groupby("application", sort=False)["ms"].transform("first")
    )


def sensitivity(
    schedules: Programs,
    *,
    factors: Sequence[float] = (0.25, 0.5, 1, 2, 4),
    network: LogGOPS = RED_STORM,
    parameters: Sequence[str] = ("L", "G"),
) -> pd.DataFrame:
    """Run time of applications with one network parameter multiplied, over that with the network as
    it is.

    Parameters
    ----------
    schedules
        By application; or a call that makes them.
    factors
        By which each parameter is multiplied.
    network
        Its parameters.
    parameters
        Which of them.

    Returns
    -------
    `application`, `parameter`, `factor`, `ms`, `ratio`.
    """
    rows = []
    for name, schedule in _made(schedules).items():
        plain_ms = simulate(schedule, network).makespan_ns / 1e6
        for parameter in parameters:
            for factor in factors:
                ms = (
                    plain_ms
                    if factor == 1
                    else simulate(schedule, network.scaled(**{parameter: factor})).makespan_ns / 1e6
                )
                rows.append(
                    {
                        "application": name,
                        "parameter": parameter,
                        "factor": factor,
                        "ms": ms,
                        "ratio": ms / plain_ms,
                    }
                )
    return pd.DataFrame(rows)


# --- extrapolation --------------------------------------------------------------------------------


def extrapolated_sweep3d(
    shape: Sequence[int],
    times: int,
    iterations: int = 3,
    *,
    blocks: int = 10,
    block_bytes: int = 36_000,
    block_ns: int = 27_100_000,
) -> Schedule:
    """Sweep3D on a small grid extrapolated to `times` as many ranks by the reference generator's
    scheme: point-to-point messages are copied for each block of ranks, collectives are made anew
    over all ranks.
    """
    small = patterns.sweep(shape, block_bytes, blocks, block_ns)
    copied = small if times == 1 else patterns.side_by_side(*[small] * times)
    reduction = patterns.recursive_doubling_allreduce(copied.ranks, 8)
    return patterns.compose(
        [copied, reduction] * iterations,
        [None] + [0] * (2 * iterations - 1),
        name=f"Sweep3D extrapolated {times} times",
    )


def extrapolation(
    shape: Sequence[int] = (4, 4),
    times: Sequence[int] = (1, 4, 16),
    noise: Detours | None = None,
    *,
    iterations: int = 3,
    seeds: int = 30,
    network: LogGOPS = RED_STORM,
    **options: int,
) -> pd.DataFrame:
    """Extrapolated Sweep3D and Sweep3D made for as many ranks: how long each takes, and with
    `noise` each one's slow-down.

    Parameters
    ----------
    shape
        Of the small grid.
    times
        Squares, so that the grid keeps its proportions.
    noise
        Of the slow-down; None: only how long each takes.
    iterations
        Of the application.
    seeds
        Replicates of each simulation, at least 2.
    network
        Its parameters.
    options
        Of `extrapolated_sweep3d`.

    Returns
    -------
    `ranks`, `times`, `made` (extrapolated, generated), `ideal_ms`, `error_share` (to
    the generated) and of the slow-down `median`, `low`, `high`, `seeds`.
    """
    rows = []
    for factor in times:
        side = round(factor**0.5)
        grown = extrapolated_sweep3d([side * length for length in shape], 1, iterations, **options)
        made = {
            "generated": grown,
            "extrapolated": extrapolated_sweep3d(shape, factor, iterations, **options),
        }
        for label, schedule in made.items():
            took = (
                {"ideal_ms": simulate(schedule, network).makespan_ns / 1e6}
                if noise is None
                else _slowdown(schedule, noise, seeds, network)
            )
            rows.append({"ranks": schedule.ranks, "times": factor, "made": label, **took})
    table = pd.DataFrame(rows)
    first = table.groupby("times", sort=False)["ideal_ms"].transform("first")
    table.insert(4, "error_share", table["ideal_ms"] / first - 1)
    return table
