"""How much noise of each kind this machine can make."""

import time

import pandas as pd

from nbhelpers.injection.plan import make_plan
from nbhelpers.injection.replay import Replay
from nbhelpers.injection.rules import Rules
from nbhelpers.machine import online_cpus
from nbhelpers.noise import NoiseConfig, stressor_noise
from nbhelpers.noise._vocabulary import STRESSOR_KINDS, STRESSORS

_BEYOND_ANY_MACHINE = 1e15


def measure_capacity(
    kinds: tuple[str, ...] = STRESSOR_KINDS,
    cpu: int | None = None,
    seconds: float = 0.1,
) -> pd.DataFrame:
    """Measure how much noise of each kind this machine can make, each kind alone.

    Each kind is requested with more intensity than any machine can make (duty: all of a CPU).

    Parameters
    ----------
    kinds
        Names of `noise.STRESSORS`.
    cpu
        The CPU to disturb; None: the last one that is online.
    seconds
        For each kind.

    Returns
    -------
    One row a kind: `kind`, `unit`, `achieved` (in that unit), `cpu_share` (CPU time that the
    process used, of its duration).
    """
    cpu = online_cpus()[-1] if cpu is None else cpu
    return pd.DataFrame([_capacity_row(kind, cpu, seconds) for kind in kinds])


def _capacity_row(kind: str, cpu: int, seconds: float) -> dict:
    intensity = 1.0 if kind == "duty" else _BEYOND_ANY_MACHINE
    config = NoiseConfig.from_events(stressor_noise(kind, intensity, seconds, [cpu]))
    # alone on the time line, so it may begin late
    rules = Rules(exit_cost_us=0, shortest_us=0, give_up_ms=10_000, any_intensity=True)
    replay = Replay(make_plan(config, "origin", rules=rules))
    try:
        replay.start()
        replay.release(time.monotonic_ns() + 1_000_000)
        replay.wait(seconds + 30)
    finally:
        replay.close()
    log = {name: column[0] for name, column in replay.log.items()}
    lasted_ns = max(int(log["end_ns"] - log["start_ns"]), 1)
    return {
        "kind": kind,
        "unit": STRESSORS[kind].unit,
        "achieved": float(log["achieved"]),
        "cpu_share": int(log["cpu_time_ns"]) / lasted_ns,
    }
