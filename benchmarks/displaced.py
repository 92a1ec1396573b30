"""How much of a replayed burst a program feels: on one CPU or on both, threads free or pinned.

    .venv/bin/python benchmarks/displaced.py [--runs 20] [--programs nbody,lulesh]

Bursts of known length (SCHED_FIFO) on one CPU, on each in turn, and on both at the same time; the
program's threads roam, or each has its CPU. Share: what the run took longer than undisturbed runs,
over the length of the bursts that it met (at the same time: of one CPU's), with the interval of
rounds. All cells in random order within a round. As root, with nothing beside it: a minute a
program and 10 rounds.

What recorded replays say of it (N-body, threads free, a barrier every 20 ms, 15 rounds a run): the
configs of 4 slow runs stop both CPUs together for nearly all of their length, and cost 0.87, 0.96,
0.98 and 0.99 of it; those of 6 stop one CPU at a time, and cost 0.59 to 0.80 of it.
"""

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
import pandas as pd
from foreign_worst import PROGRAMS

from nbhelpers.injection import Injector
from nbhelpers.measurement import Campaign, Cell, finished
from nbhelpers.noise import NoiseConfig
from nbhelpers.statistics.intervals import resampled_means
from nbhelpers.workloads import Workload, nbody

MS = 1_000_000
FREE, PINNED = "free", "pinned"
OWN = {"own": lambda: nbody(bodies=4870, threads=2)}
BURSTS = {"one": ((0,),), "in turn": ((0,), (1,)), "both": ((0, 1),)}  # CPUs of each, in turn


def bursts(how: str, count: int, length_ms: float, period_ms: float) -> NoiseConfig:
    """So many bursts; "in turn": on the two CPUs alternately."""
    turns, rows = BURSTS[how], []
    for number in range(count):
        start_ns = round((5 + number * period_ms) * MS)
        rows += [(cpu, start_ns) for cpu in turns[number % len(turns)]]
    events = pd.DataFrame(rows, columns=["cpu", "start_ns"])
    facts = {"run": 0, "kind": "hardware", "source": how, "duration_ns": round(length_ms * MS)}
    window_ns = round((10 + count * period_ms) * MS)
    return NoiseConfig.from_events(events.assign(**facts), window_ns=window_ns)


def of_program(name: str, folder: Path, options: argparse.Namespace) -> pd.DataFrame:
    """A row a cell: the share of the bursts that the program felt."""
    free: Workload = OWN[name]() if name in OWN else PROGRAMS[name]()
    places = {FREE: free, PINNED: free.on("TP", "TP", (0, 1), 2)}
    cells = []
    size = options.count, options.length, options.period
    for place, workload in places.items():
        cells.append(Cell(place, workload))
        for how in BURSTS:
            config = bursts(how, *size)
            noisy = (Injector(config, "faithful"),)
            cells.append(Cell(f"{place} {how}", workload, config.digest, noisy))
    done = finished(Campaign(folder, cells, options.runs, seed=1).run())
    by_round = {"index": ["epoch", "round"], "columns": "cell"}
    wide = done.pivot(values="seconds", **by_round).dropna()
    injected, rows = done.pivot(values="injected_ns", **by_round).loc[wide.index] / 1e9, []
    for place in places:
        for how in BURSTS:
            of_a_cpu = injected[f"{place} {how}"] / len(BURSTS[how][0])
            share = ((wide[f"{place} {how}"] - wide[place]) / of_a_cpu).to_numpy()
            drawn = resampled_means(share, np.random.default_rng(0), 4000)
            low, high = np.quantile(drawn, [0.025, 0.975])
            row = {"program": name, "threads": place, "bursts": how, "n": len(share)}
            row |= {"undisturbed": wide[place].mean(), "share": share.mean(), "low": low}
            rows.append(row | {"high": high, "median": np.median(share)})
    return pd.DataFrame(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--programs", default="nbody,lulesh")
    parser.add_argument("--count", type=int, default=30, help="bursts")
    parser.add_argument("--length", type=float, default=5.0, help="of a burst, ms")
    parser.add_argument("--period", type=float, default=15.0, help="from burst to burst, ms")
    options = parser.parse_args()
    for name in options.programs.split(","):
        with tempfile.TemporaryDirectory(prefix="noisebook-displaced-") as folder:
            table = of_program(name, Path(folder), options)
        print(table.to_string(index=False, float_format="%.3f"), flush=True)


if __name__ == "__main__":
    main()
