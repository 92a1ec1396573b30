"""How much noise of each kind this machine can make."""

import time

import pandas as pd

from ..machine import online_cpus
from ..noise import NoiseConfig, stressor_noise
from ..noise._vocabulary import STRESSOR_KINDS, STRESSORS
from ._interrupts import interrupt_counts
from ._memory import available_memory
from .plan import make_plan
from .replay import Replay
from .rules import Rules
from .stressor_options import StressorOptions

_BEYOND_ANY_MACHINE = 1e15


def measure_capacity(
    kinds: tuple[str, ...] = STRESSOR_KINDS,
    cpu: int | None = None,
    seconds: float = 0.1,
    options: StressorOptions | None = None,
) -> pd.DataFrame:
    """Measure how much noise of each kind this machine can make, each kind alone.

    Each kind is requested with more intensity than any machine can make (duty: all of a CPU). For
    memory_hold the answer is what one process may hold; that memory is not taken.

    Parameters
    ----------
    kinds
        Names of `stressor_table`.
    cpu
        The CPU to disturb; None: the last one that is online.
    seconds
        For each kind.
    options
        What the noise may use.

    Returns
    -------
    One row a kind: `kind`, `unit`, `achieved` (in that unit), `cpu_share` (CPU time that the
    process used, of its duration), and for the whole machine in the meantime `LOC_per_s`,
    `RES_per_s`, `CAL_per_s`, `TLB_per_s`: interrupts counted by the kernel.
    """
    options = options or StressorOptions()
    cpu = online_cpus()[-1] if cpu is None else cpu
    rows = []
    for kind in kinds:
        if kind == "memory_hold":
            limit = available_memory() * options.memory_share
            rows.append({"kind": kind, "unit": STRESSORS[kind].unit, "achieved": limit})
        else:
            rows.append(_capacity_row(kind, cpu, seconds, options))
    return pd.DataFrame(rows)


def _capacity_row(kind: str, cpu: int, seconds: float, options: StressorOptions) -> dict:
    intensity = 1.0 if kind == "duty" else _BEYOND_ANY_MACHINE
    config = NoiseConfig.from_events(stressor_noise(kind, intensity, seconds, [cpu]))
    # alone on the time line, so it may begin late
    rules = Rules(exit_cost_us=0, shortest_us=0, give_up_ms=10_000, any_intensity=True)
    replay = Replay(make_plan(config, "origin", rules=rules, stressors=options))
    try:
        replay.start()
        before = interrupt_counts().sum()
        replay.release(time.monotonic_ns() + 1_000_000)
        replay.wait(seconds + 30)
        counted = interrupt_counts().sum() - before
    finally:
        replay.close()
    log = {name: column[0] for name, column in replay.log.items()}
    lasted_ns = max(int(log["end_ns"] - log["start_ns"]), 1)
    return {
        "kind": kind,
        "unit": STRESSORS[kind].unit,
        "achieved": float(log["achieved"]),
        "cpu_share": int(log["cpu_time_ns"]) / lasted_ns,
    } | {f"{name}_per_s": value / seconds for name, value in counted.items()}
