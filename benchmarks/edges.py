"""How well is it known what interruptions take from a program? A loop on every CPU, traced, alone
and under planted hogs; its gaps against the occupied intervals of the trace.

RUNS (default 20) of 0.5 s each way, one after the other. In every second one a SCHED_FIFO hog on
each CPU takes blocks of 75 to 400 µs. Printed: costs of the ways in and out by class of gap, and
by class what the trace alone and the occupied intervals credit, as share of what the loop saw. The
costs of a run are those of the other runs; the last table has the costs of the undisturbed loop
for the runs under hogs.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from nbhelpers.account import measure_edges, occupied_intervals
from nbhelpers.account.accuracy import accuracy_by_class, edge_accuracy
from nbhelpers.account.gaps import edge_costs, gaps_with_events
from nbhelpers.account.loop import LoopRun, run_traced_loop
from nbhelpers.injection import Hog
from nbhelpers.machine import online_cpus

RUNS, BLOCK, SECONDS = int(sys.argv[1]) if sys.argv[1:] else 20, 5, 0.5
SHORTEST_NS, LONGEST_NS = 75_000, 400_000


def blocks(random: np.random.Generator) -> list[tuple[int, int]]:
    """Blocks of a hog, a pause of 2 to 8 ms before each."""
    found, at_ns = [], 0
    while at_ns < SECONDS * 1e9:
        at_ns += int(random.integers(2_000_000, 8_000_000))
        found.append((at_ns, int(random.integers(SHORTEST_NS, LONGEST_NS))))
        at_ns += found[-1][1]
    return found


def measured(folder: Path) -> list[list[LoopRun]]:
    """The loop alone and under hogs, BLOCK runs in turn."""
    random = np.random.default_rng(0)
    hog = Hog({cpu: blocks(random) for cpu in online_cpus()})
    for done in range(BLOCK, RUNS + BLOCK, BLOCK):
        runs = min(done, RUNS)
        alone = run_traced_loop(folder / "alone", runs, SECONDS)
        tables = [alone, run_traced_loop(folder / "hogs", runs, SECONDS, attachments=(hog,))]
    return [
        [LoopRun(int(run), folder / name) for run in table["run"]]
        for name, table in zip(("alone", "hogs"), tables)
    ]


def show(title: str, table: pd.DataFrame) -> None:
    print(f"\n{title}\n{table.round(3).to_string(index=False)}")


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="noisebook-") as place:
        alone, hogs = measured(Path(place))
        if not alone:
            sys.exit("tracepoints cannot be recorded here: see make doctor")
        edges = measure_edges(Path(place) / "alone", RUNS, SECONDS, recorded_only=True)
        print(edges.sentence())
        for title, loops in (("alone", alone), ("under hogs", hogs)):
            show(f"costs, {title}", edge_costs(pd.concat(map(gaps_with_events, loops))))
            show(f"credited, {title}", accuracy_by_class(edge_accuracy(loops)))
        show(
            "credited, under hogs, costs of the loop alone",
            accuracy_by_class(edge_accuracy(hogs, edges)),
        )
        occupied = [occupied_intervals(loop.events, loop.stolen, edges) for loop in hogs]
        lengths = pd.concat(occupied)[["kernel_ns", "hypervisor_ns", "edges_ns"]].sum() / 1e6
        print(f"\noccupied under hogs, ms:\n{lengths.round(1).to_string()}")


if __name__ == "__main__":
    main()
