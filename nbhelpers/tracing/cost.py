"""What recording costs: the direct cost of one event, measured where it arises.

Owns a ping-pong of two threads on one CPU that is timed in turn with and without recording.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import IO, cast

import numpy as np
import pandas as pd

from ..errors import RunError
from ..measurement.cache import cached_value
from ._tracefs import Instance

_ROUND_TRIPS = 2000
# Two processes on one CPU hand a byte to and fro, so every round trip is two switches. It runs in a
# process of its own: pinning and
# forking are no business of the caller's.
_PING_PONG = """
import os, sys, time
cpu, trips = int(sys.argv[1]), int(sys.argv[2])
os.sched_setaffinity(0, {cpu})
to_child, from_parent = os.pipe()[::-1]
to_parent, from_child = os.pipe()[::-1]
if os.fork() == 0:
    os.close(to_child)
    while os.read(from_parent, 1):
        os.write(to_parent, b"x")
    os._exit(0)
for line in sys.stdin:
    begin = time.monotonic_ns()
    for _ in range(trips):
        os.write(to_child, b"x")
        os.read(from_child, 1)
    print(time.monotonic_ns() - begin, flush=True)
"""


def event_costs(path: str | Path, source: str, recorded_only: bool = False) -> pd.Series:
    """The direct cost of one recorded event in ns, a value a pair of blocks, measured one time.

    Parameters
    ----------
    path
        File of the cache.
    source
        Source of the events (`Tracer.source`); those of a loop cost nothing that could be measured.
    recorded_only
        True: read what was recorded.

    Returns
    -------
    Series; without values where the kernel records no events.

    Raises
    ------
    InputError
        It was not measured yet and `recorded_only` is True.
    """
    if source == "detours":
        return pd.Series(dtype=float)
    cached = cached_value(
        path, lambda: {"costs_ns": event_costs_ns().tolist()}, "cost of an event", recorded_only
    )
    return pd.Series(cached["costs_ns"])


def event_costs_ns(blocks: int = 20) -> np.ndarray:
    """Measure the direct cost of one recorded event in ns, for each pair of blocks.

    One block of a pair is recorded and the other is not, in random order.

    A block is 2000 round trips of a byte between two processes on one CPU, that is 4000 switches,
    each a `sched_switch` event. The cost holds all there is between two events: probe, clock,
    reservation, copy. It is measured on the last of the CPUs that are allowed.

    Parameters
    ----------
    blocks
        Number of pairs.

    Raises
    ------
    Unavailable
        Tracefs cannot be used.
    """
    cpu = max(os.sched_getaffinity(0))
    instance = Instance("cost", buffer_kib=8192)
    try:
        events = ["sched/sched_switch"]
        with subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _PING_PONG, str(cpu), str(_ROUND_TRIPS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as player:
            try:
                _block_ns(player)
                order = np.random.default_rng(0).permuted(
                    np.tile([False, True], (blocks, 1)), axis=1
                )
                return np.array(
                    [_pair_cost_ns(player, instance, events, pair) for pair in order.tolist()]
                )
            finally:
                cast(IO[str], player.stdin).close()
    finally:
        instance.close()


def _pair_cost_ns(
    player: subprocess.Popen, instance: Instance, events: list[str], recorded_in: list[bool]
) -> float:
    spent_ns, count = {}, 0
    for recorded in recorded_in:
        if recorded:
            instance.enable(events)
            instance.start()
        spent_ns[recorded] = _block_ns(player)
        if recorded:
            instance.stop()
            count = sum(
                account["entries"] + account["overrun"] + account["dropped events"]
                for account in instance.stats().values()
            )
            instance.enable(())
    return (spent_ns[True] - spent_ns[False]) / max(count, 1)


def _block_ns(player: subprocess.Popen) -> int:
    # both are pipes
    asking, answering = cast(IO[str], player.stdin), cast(IO[str], player.stdout)
    asking.write("go\n")
    asking.flush()
    answer = answering.readline()
    if not answer:
        raise RunError("the ping-pong that measures the cost of an event has died")
    return int(answer)
