"""What each kind of noise does to a victim: asked and achieved intensity, and the victim's speed
with noise over its speed without.

A victim on one CPU repeats what its noise should hurt: without noise, with half of what the kind
can do alone (measured first, in the same run), and with all of it, in random order within each
round. Interrupts and duty are aimed at its CPU, everything else comes from
another one. `achieved / asked` near 1 is what a calibrated injector owes; the bound of the victim's
ratio for half a duty is 1 - 0.5. An effect is shown where the interval of the ratio lies below 1.
It takes 4 rounds, a minute; --rounds 12 takes three and narrows the intervals.
"""

import argparse
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from _c_programs import build
from _capacity import measure_capacity

from nbhelpers.injection import Rules, make_plan
from nbhelpers.injection.replay import Replay
from nbhelpers.injection.stressors import cache_bytes, scratch_base
from nbhelpers.machine import online_cpus
from nbhelpers.noise import STRESSORS, NoiseConfig, stressor_noise
from nbhelpers.statistics import percentile_interval

VICTIMS = {
    "duty": "spin",
    "memory_stream": "stream",
    "cache_l3": "last_cache",
    "io_read": "disk_read",
    "io_sync": "disk_read",
    "io_metadata": "names",
    "network": "spin",
    "timer": "spin",
    "ipi": "spin",
}
ON_THE_VICTIM = ("duty", "timer", "ipi")
SECONDS, LEAD_NS = 0.12, 10_000_000
SHARES = (0.0, 0.5, 1.0)  # of what a kind can do


def armed(folder: Path, kind: str, intensity: float, cpus: tuple[int, ...]) -> Replay:
    """Noise that only waits for its start."""
    cpu = cpus[-1 if kind in ON_THE_VICTIM else 0]
    config = NoiseConfig.from_events(stressor_noise(kind, intensity, SECONDS, [cpu]))
    rules = Rules(exit_cost_us=0, shortest_us=0, give_up_ms=1000 * SECONDS)
    replay = Replay(make_plan(config, "origin", rules=rules, scratch=folder))
    replay.start()
    return replay


def wanted_cache() -> int:
    """Half of the L3 cache: it stays there as long as others want at most the other half."""
    return min(max(cache_bytes() // 2, 2**20), 64 * 2**20)


def suffer(program: Path, folder: Path, kind: str, intensity: float, cpus: tuple[int, ...]) -> dict:
    """One run of the victim, with noise of an intensity or without (0)."""
    replay = armed(folder, kind, intensity, cpus) if intensity else None
    command = [
        program,
        VICTIMS[kind],
        str(cpus[-1]),
        str(round(SECONDS * 1e9)),
        folder,
        str(wanted_cache()),
    ]
    victim = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        victim.stdout.readline()
        t0_ns = time.monotonic_ns() + LEAD_NS
        if replay:
            replay.release(t0_ns)
        printed, _ = victim.communicate(f"{t0_ns}\n", timeout=20)
        if replay:
            replay.wait(20)
    finally:
        victim.kill()
        victim.wait()
        if replay:
            replay.close()
    if victim.returncode:
        raise RuntimeError(f"the victim of {kind} failed: {' '.join(map(str, command))}")
    return {
        "kind": kind,
        "speed": int(printed) / SECONDS,
        "asked": intensity,
        "achieved": replay.log["achieved"][0] if replay else np.nan,
    }


def interval(ratios: np.ndarray, seed: int = 0) -> tuple[float, float]:
    """95 % bootstrap interval of the median."""
    if not len(ratios):
        return np.nan, np.nan
    drawn = np.random.default_rng(seed).choice(ratios, (2000, len(ratios)))
    return percentile_interval(np.median(drawn, axis=1))


def summarise(runs: pd.DataFrame) -> pd.DataFrame:
    rows = []
    for (kind, share), noisy in runs[runs["share"] > 0].groupby(["kind", "share"], sort=False):
        calm = runs[(runs["kind"] == kind) & (runs["share"] == 0)]
        pairs = noisy.set_index("round")["speed"] / calm.set_index("round")["speed"].where(
            lambda speed: speed > 0
        )
        ratios = (
            pairs.dropna().to_numpy()
        )  # a victim that never had the CPU, without noise, tells nothing
        low, high = interval(ratios)
        rows.append(
            {
                "kind": kind,
                "victim": VICTIMS[kind],
                "share": share,
                "pairs": len(ratios),
                "asked": noisy["asked"].iloc[0],
                "achieved/asked": (noisy["achieved"] / noisy["asked"]).median(),
                "victim's ratio": np.median(ratios) if len(ratios) else np.nan,
                "low": low,
                "high": high,
                "shown": "yes" if high < 1 else "no",
            }
        )
    return pd.DataFrame(rows)


def measure(
    kinds: list[str], limits: pd.Series, rounds: int, cpus: tuple[int, ...]
) -> pd.DataFrame:
    rows, random = [], np.random.default_rng(1)
    with tempfile.TemporaryDirectory(dir=scratch_base()) as name:
        folder = Path(name)
        program = build(folder, "stressors_victim")
        for number in range(rounds):
            for kind in map(str, random.permutation(kinds)):
                for share in map(float, random.permutation(SHARES)):
                    rows.append(
                        suffer(program, folder, kind, share * float(limits[kind]), cpus)
                        | {
                            "round": number,
                            "share": share,
                        }
                    )
    return pd.DataFrame(rows)


def main() -> None:
    cpus = online_cpus()
    usable = [kind for kind in VICTIMS if len(cpus) > 1 or STRESSORS[kind].needs != "cpus"]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--kinds", nargs="+", choices=usable, default=usable)
    arguments = parser.parse_args()
    limits = measure_capacity(tuple(arguments.kinds), cpu=cpus[-1]).set_index("kind")["achieved"]
    result = summarise(measure(arguments.kinds, limits, arguments.rounds, cpus)).set_index(
        ["kind", "share"]
    )
    result = result.loc[
        [(kind, share) for kind in arguments.kinds for share in SHARES[1:]]
    ].reset_index(level="share")
    result.insert(2, "unit", [STRESSORS[kind].unit for kind in result.index])
    print(
        f"{arguments.rounds} rounds of {SECONDS} s without noise and with two intensities, in"
        f" random order; the victim is on CPU {cpus[-1]}; ratio: its speed with noise over without,"
        " median of pairs and 95 % bootstrap interval; shown: the interval lies below 1"
    )
    print(result.to_string(float_format="{:.4g}".format))


if __name__ == "__main__":
    main()
