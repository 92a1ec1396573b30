"""The families of workloads/mpi/pingpong.c, carried out by the simulator instead of MPI."""

from itertools import product

import numpy as np
import pandas as pd

from nbhelpers.simulation import LogGOPS, simulate
from nbhelpers.simulation.schedule import CALC, RECV, SEND, Schedule

LATE_NS = 200_000


def prtt(network: LogGOPS, messages: int, delay_ns: int, size: int) -> float:
    """n messages of s bytes, d apart (from a send's end), and one back: when rank 0 has it."""
    kind, needs = [], []
    for i in range(messages):
        if i and delay_ns:
            kind.append(CALC)
            needs.append((len(kind) - 1, len(kind) - 2))
        kind.append(SEND)
        if len(kind) > 1:
            needs.append((len(kind) - 1, len(kind) - 2))
    kind.append(RECV)
    first = len(kind)
    kind += [RECV] * messages + [SEND]
    needs += [(first + messages, first + i) for i in range(messages)]
    is_calc = np.array(kind) == CALC
    schedule = Schedule.from_arrays(
        [first, messages + 1],
        kind,
        np.where(is_calc, -1, [1] * first + [0] * (messages + 1)),
        np.where(is_calc, delay_ns, size),
        requires=tuple(np.array(needs).T),
    )
    return simulate(schedule, network).finish_ns[0]


def late_send(network: LogGOPS, size: int) -> float:
    schedule = Schedule.from_arrays(
        [1, 2], [SEND, CALC, RECV], [1, -1, 0], [size, LATE_NS, size], requires=([2], [1])
    )
    result = simulate(schedule, network, critical_path=True)
    if size <= network.S:
        return result.record.end[0] / 1000
    return result.finish_ns[0]


def families(
    network: LogGOPS, sizes: list[int], rounds: int = 8, noise: float = 0.0, seed: int = 0
) -> pd.DataFrame:
    """Times of all families; noise: the mean of what is added to each, as a share."""
    rng = np.random.default_rng(seed)
    rows = []
    for size in sizes:
        trip = prtt(network, 1, 0, size)
        burst = prtt(network, 10, 0, size)
        pause = int(max(1000, 2 * (burst - trip) / 9))
        clean = {
            "roundtrip": (1, 0, trip),
            "burst": (10, 0, burst),
            "delayed": (10, pause, prtt(network, 10, pause, size)),
            "late": (1, LATE_NS, late_send(network, size)),
        }
        for (family, (n, delay, ns)), k, _ in product(clean.items(), range(rounds), range(3)):
            work = ns - delay * (n - 1)
            slower = work * noise * rng.exponential() + (rng.random() < noise / 5) * 50_000
            rows.append((family, size, n, delay, k, ns + slower))
    return pd.DataFrame(rows, columns=["family", "bytes", "messages", "delay_ns", "round", "ns"])
