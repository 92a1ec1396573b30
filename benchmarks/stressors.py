"""What each kind of noise does to a victim: asked and achieved intensity, and the victim's speed with noise over its speed without.

A victim on one CPU repeats what its noise should hurt, with and without it, in random order. Interrupts, duty and the small caches are aimed
at its CPU, everything else comes from another one. Each kind is asked for half of what it can do alone (measured first, in the same run), so
that `achieved / asked` near 1 is what a calibrated injector owes; the bound of the victim's ratio for duty is 1 - 0.5.
"""

import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

from nbhelpers.inject import Rules, make_plan
from nbhelpers.inject.kinds import KindOptions, capacity, interrupt_counts, scratch_base
from nbhelpers.inject.replay import Replay
from nbhelpers.machine import online_cpus
from nbhelpers.noise import NoiseConfig, stressor_noise, stressor_table

VICTIMS = {"duty": "spin", "memory_read": "stream", "memory_write": "stream", "memory_stream": "stream", "cache_l1": "cache", "cache_l2": "cache",
           "cache_l3": "last_cache", "memory_hold": "faults", "memory_leak": "faults", "io_read": "disk", "io_write": "disk", "io_sync": "disk",
           "io_metadata": "names", "network": "spin", "timer": "spin", "ipi": "spin", "tlb": "spin", "migrate": "spin"}
ON_THE_VICTIM = ("duty", "cache_l1", "cache_l2", "timer", "ipi", "tlb", "migrate")
ROUNDS, SECONDS, LEAD_NS = 6, 0.12, 10_000_000
MOST_HELD = 64 * 2**20  # bytes of memory_hold: what can be taken in the time of a run
COUNTED = {"timer": "LOC", "ipi": "CAL", "tlb": "TLB", "migrate": "RES"}


def build(folder: Path) -> Path:
    program, source = folder / "victim", Path(__file__).with_name("stressors_victim.c")
    subprocess.run([shutil.which("cc") or "gcc", "-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-o", program, source], check=True)
    return program


def armed(folder: Path, kind: str, intensity: float, cpus: tuple[int, ...]) -> Replay:
    """Noise that only waits for its start."""
    policy, priority = ("SCHED_FIFO", 1) if kind in ("tlb", "migrate") else ("SCHED_OTHER", 0)  # these need the victim's CPU for a moment
    cpu = cpus[-1 if kind in ON_THE_VICTIM else 0]
    config = NoiseConfig.from_events(stressor_noise(kind, intensity, SECONDS, [cpu], policy=policy, priority=priority))
    rules = Rules(exit_cost_us=0, shortest_us=0, give_up_ms=1000 * SECONDS)
    replay = Replay(make_plan(config, "origin", rules=rules, kinds=KindOptions(folder=folder)))
    replay.start()
    return replay


def suffer(program: Path, folder: Path, kind: str, intensity: float | None, cpus: tuple[int, ...]) -> dict:
    """One run of the victim, with noise of an intensity or without (None)."""
    replay = armed(folder, kind, intensity, cpus) if intensity is not None else None
    command = [program, VICTIMS[kind], str(cpus[-1]), str(round(SECONDS * 1e9)), folder]
    victim = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        victim.stdout.readline()
        t0_ns = time.monotonic_ns() + LEAD_NS
        if replay:
            replay.release(t0_ns)
        before = interrupt_counts()
        printed, _ = victim.communicate(f"{t0_ns}\n", timeout=20)
        if replay:
            replay.wait(20)
        counted = (interrupt_counts() - before).loc[cpus[-1]]
    finally:
        victim.kill()
        victim.wait()
        if replay:
            replay.close()
    return {"kind": kind, "noise": intensity is not None, "speed": int(printed or 0) / SECONDS, "asked": intensity or np.nan,
            "achieved": replay.log["achieved"][0] if replay else np.nan,
            "counted_per_s": counted.get(COUNTED.get(kind), np.nan) / SECONDS}


def interval(ratios: np.ndarray, seed: int = 0) -> tuple[float, float]:
    """95 % bootstrap interval of the median."""
    if not len(ratios):
        return np.nan, np.nan
    drawn = np.random.default_rng(seed).choice(ratios, (2000, len(ratios)))
    return tuple(np.quantile(np.median(drawn, axis=1), [0.025, 0.975]))


def summarise(runs: pd.DataFrame) -> pd.DataFrame:
    rows = []
    for kind, own in runs.groupby("kind", sort=False):
        pairs = own.pivot(index="round", columns="noise", values="speed")
        pairs = pairs[pairs[False] > 0]  # a victim that never had the CPU tells nothing
        ratios, noisy = (pairs[True] / pairs[False]).to_numpy(), own[own["noise"]]
        low, high = interval(ratios)
        rows.append({"kind": kind, "victim": VICTIMS[kind], "pairs": len(pairs), "asked": noisy["asked"].iloc[0], "achieved": noisy["achieved"].median(),
                     "achieved/asked": (noisy["achieved"] / noisy["asked"]).median(), "kernel counts/s": noisy["counted_per_s"].median(),
                     "of them without": own.loc[~own["noise"], "counted_per_s"].median(), "victim's ratio": np.median(ratios), "low": low, "high": high})
    return pd.DataFrame(rows)


def main() -> None:
    cpus, random = online_cpus(), np.random.default_rng(1)
    table = stressor_table().set_index("kind")
    usable = [kind for kind in VICTIMS if len(cpus) > 1 or table.loc[kind, "needs"] != "cpus"]
    limits = capacity(tuple(usable), cpu=cpus[-1]).set_index("kind")["achieved"]
    asked = {kind: min(float(limits[kind]) / 2, MOST_HELD if kind == "memory_hold" else np.inf) for kind in usable}
    rows = []
    with tempfile.TemporaryDirectory(dir=scratch_base(KindOptions())) as name:
        folder = Path(name)
        program = build(folder)
        for number in range(ROUNDS):
            for kind in random.permutation(usable):
                for noisy in random.permutation([True, False]):
                    rows.append(suffer(program, folder, str(kind), asked[str(kind)] if noisy else None, cpus) | {"round": number})
    result = summarise(pd.DataFrame(rows)).set_index("kind").loc[usable]
    result.insert(1, "unit", table["unit"])
    result.insert(3, "capacity", limits)
    print(f"{ROUNDS} rounds of {SECONDS} s with and without noise, in random order; the victim is on CPU {cpus[-1]}; ratio: its speed with noise "
          "over without, median and 95 % bootstrap interval")
    print(result.to_string(float_format="{:.4g}".format))


if __name__ == "__main__":
    main()
