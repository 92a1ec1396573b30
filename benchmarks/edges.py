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
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from nbhelpers.account import measure_edges, occupied_intervals
from nbhelpers.account.edges import Edges, edges_of_gaps
from nbhelpers.account.gaps import (
    CLASSES,
    HYPERVISOR,
    INTERRUPTS,
    SWITCH,
    explained_gaps,
    gaps_with_events,
)
from nbhelpers.account.loop import LoopRun, run_traced_loop
from nbhelpers.injection import Hog
from nbhelpers.machine import online_cpus
from nbhelpers.statistics.intervals import ratio_of_sums_interval

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


_WAYS = {"way_in_us": "in_ns", "between_us": "between_ns", "way_out_us": "out_ns"}
UNRECORDED = "unrecorded"


def edge_accuracy(loops: Sequence[LoopRun], edges: Edges | None = None) -> pd.DataFrame:
    """Compare the occupied intervals of traced loops with the gaps that the loops saw.

    Parameters
    ----------
    loops
        Runs of the loop.
    edges
        Costs measured elsewhere; None: those of each run are fitted to all other runs.

    Returns
    -------
    One row a run and class (`CLASSES`, and "unrecorded": gaps in which nothing was recorded):
    `run`, `class`, `gaps`, `seen_ms` (length of the gaps of the loop), `recorded_ms` (net lengths
    of kernel events, and the hypervisor's time), `predicted_ms` (length of the occupied intervals),
    `loop_ms` (how long the loops looked).
    """
    held = [gaps_with_events(loop) for loop in loops]
    rows = []
    for at, loop in enumerate(loops):
        others = [gaps for number, gaps in enumerate(held) if number != at]
        used = edges or edges_of_gaps(pd.concat(others), repeats=0)
        rows += _compared(loop, held[at], used)
    return pd.DataFrame(rows)


def _compared(loop: LoopRun, held: pd.DataFrame, edges: Edges) -> list[dict]:
    events, stolen = loop.while_watched(loop.events), loop.while_watched(loop.stolen)
    occupied = occupied_intervals(events, stolen, edges)
    lengths = (occupied["end_ns"] - occupied["start_ns"]).groupby(occupied["interruption"]).sum()
    recorded = occupied.groupby("interruption")[["kernel_ns", "hypervisor_ns"]].sum().sum(axis=1)
    seen = _seen(loop, held)
    return [
        {
            "run": loop.run,
            "class": name,
            "gaps": int(seen["gaps"].get(name, 0)),
            "seen_ms": float(seen["ns"].get(name, 0)) / 1e6,
            "recorded_ms": float(recorded.get(name, 0)) / 1e6,
            "predicted_ms": float(lengths.get(name, 0)) / 1e6,
            "loop_ms": loop.loop_ns / 1e6,
        }
        for name in (*CLASSES, UNRECORDED)
    ]


def _seen(loop: LoopRun, held: pd.DataFrame) -> pd.DataFrame:
    """Gaps of the loop by class: how many, and their length."""
    events = loop.while_watched(loop.events)
    gaps = explained_gaps(loop.detours, events, loop.stolen)
    place = pd.MultiIndex.from_frame(gaps[["cpu", "start_ns"]])
    with_events = place.isin(pd.MultiIndex.from_frame(held[["cpu", "start_ns"]]))
    switched = held[held["switch"]]
    with_switch = place.isin(pd.MultiIndex.from_frame(switched[["cpu", "start_ns"]]))
    classes = np.select(
        [gaps["stolen_ns"] > 0, with_switch, with_events],
        [HYPERVISOR, SWITCH, INTERRUPTS],
        UNRECORDED,
    )
    return gaps["duration_ns"].groupby(classes).agg(ns="sum", gaps="size")


def accuracy_by_class(table: pd.DataFrame, seed: int = 0) -> pd.DataFrame:
    """`edge_accuracy` summed over runs, with a bootstrap of runs.

    Returns
    -------
    One row a class, and "recorded" (all classes but "unrecorded"): `class`, `runs`, `gaps`,
    `seen_ms`, `recorded_share` (of `seen_ms`), `predicted_share` with its 95 % interval `low` and
    `high`, and `of_loop` (share of the loops' time that the gaps took).
    """
    recorded = table[table["class"] != UNRECORDED]
    groups = {"recorded": recorded} | dict(list(table.groupby("class", sort=False)))
    return pd.DataFrame(
        [{"class": name} | _shares(group, table, seed) for name, group in groups.items()]
    )


def _shares(group: pd.DataFrame, table: pd.DataFrame, seed: int) -> dict:
    of_runs = group.groupby("run")[["gaps", "seen_ms", "recorded_ms", "predicted_ms"]].sum()
    low, high = ratio_of_sums_interval(of_runs["predicted_ms"], of_runs["seen_ms"], seed)
    sums = of_runs.sum()
    seen_ms = sums["seen_ms"] or np.nan
    return {
        "runs": len(of_runs),
        "gaps": int(sums["gaps"]),
        "seen_ms": sums["seen_ms"],
        "recorded_share": sums["recorded_ms"] / seen_ms,
        "predicted_share": sums["predicted_ms"] / seen_ms,
        "low": low,
        "high": high,
        "of_loop": sums["seen_ms"] / table.groupby("run")["loop_ms"].first().sum(),
    }


def edge_costs(gaps: pd.DataFrame, seed: int = 0) -> pd.DataFrame:
    """What gaps cost beyond the net lengths of their events, by class.

    Parameters
    ----------
    gaps
        Of `gaps_with_events`, of several runs.
    seed
        Of the bootstrap of runs.

    Returns
    -------
    One row a class ("interrupts": interrupts and softirqs only; "switch": with another thread;
    "hypervisor": with time that it took): `runs`, `gaps`; means in µs of `way_in_us`, `between_us`
    and `way_out_us`; `edge_us`, their sum less the hypervisor's time, with its 95 % interval `low`
    and `high`, and `share` of the gaps' length.
    """
    stolen = gaps["stolen_ns"] > 0
    classes = np.select([stolen, gaps["switch"]], [HYPERVISOR, SWITCH], INTERRUPTS)
    return pd.DataFrame(
        [
            {"class": name} | _mean_costs(gaps[classes == name], seed)
            for name in CLASSES
            if (classes == name).any()
        ]
    )


def _mean_costs(gaps: pd.DataFrame, seed: int) -> dict:
    edge_ns = gaps[list(_WAYS.values())].sum(axis=1) - gaps["stolen_ns"]
    of_runs = edge_ns.groupby(gaps["run"]).agg(["sum", "size"])
    low, high = (end / 1e3 for end in ratio_of_sums_interval(of_runs["sum"], of_runs["size"], seed))
    means = {name: float(gaps[column].mean()) / 1e3 for name, column in _WAYS.items()}
    length_ns = (gaps["end_ns"] - gaps["start_ns"]).sum()
    return (
        {"runs": len(of_runs), "gaps": len(gaps)}
        | means
        | {
            "edge_us": float(edge_ns.mean()) / 1e3,
            "low": low,
            "high": high,
            "share": float(edge_ns.sum() / length_ns),
        }
    )


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
