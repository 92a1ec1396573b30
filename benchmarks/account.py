"""Planted truths for the account: is what took a run's time named rightly, and its amount within
10 %?

Six kinds are planted into runs of our programs, of one thread on one CPU: SCHED_FIFO events of 75
to 400 us and of 0.5 to 5 ms, ordinary hogs of three nice levels, a neighbour on another CPU that
wants what a core shares, one that wants the memory's bandwidth, and a slower clock where it can be
set. In each round every kind of a group runs once, and once with what disturbs idle, in random
order; the groups come one after the other, so that a round is short. The truth has an independent
witness: of real-time events a detour loop in the program's place, of ordinary hogs their own CPU
time, of what slows a CPU down the program's CPU time beyond that of the idle run. All intervals are
95 % by bootstrap of rounds. 30 rounds of each group take three minutes.
"""

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from _planted_kinds import OCCUPIED, Group, groups_of, skipped_kinds

from nbhelpers.account import Account, measure_edges
from nbhelpers.injection.rules import may_realtime
from nbhelpers.machine import doctor
from nbhelpers.measurement import Campaign, Cell, finished
from nbhelpers.speed import SpeedProbe, read_speed, read_waits
from nbhelpers.statistics import percentile_interval
from nbhelpers.tracing import (
    DetourTracer,
    Tracer,
    detour_workload,
    read_detours_run,
    read_traces,
    stolen_times,
)

REPEATS = 4000
CAUSES = ("kernel", "edges", "hypervisor", "slow_core", "slow_memory", "unexplained")
PARTS = (*CAUSES, "waiting")  # waiting follows from what was taken from another thread
TOLERANCE = 0.1
SMALLEST_SHARE = 0.01  # of the run time: less is not visible here


def measure(folder: Path, group: Group, arguments: argparse.Namespace) -> pd.DataFrame:
    """Finished runs of a group; of the loops too, in cells that begin with "loop"."""
    records = (Tracer(folder / "traces"), SpeedProbe(folder / "speed"))
    cells = [Cell("idle", group.workload, attachments=(group.idle, *records))]
    cells += [
        Cell(kind.name, group.workload, attachments=(kind.attachment, *records))
        for kind in group.kinds
    ]
    for kind in (kind for kind in group.kinds if kind.witness == "loop"):
        place = folder / f"loop {kind.name}"
        loop = detour_workload(group.seconds, place)
        cells.append(Cell(place.name, loop, attachments=(kind.attachment, DetourTracer(place))))
    campaign = Campaign(folder, cells, runs=arguments.runs, seed=arguments.seed)
    return finished(campaign.run())


def out_to_in_ns(folder: Path, run: pd.Series, schedule) -> float:
    """How long a loop was without its CPU in the gaps that overlap the hog's blocks."""
    gaps = read_detours_run(folder / run["cell"] / f"run-{run['run']:06d}.detours.gz")
    lost_ns = 0.0
    for cpu, blocks in schedule.items():
        here = gaps[gaps["cpu"] == cpu]
        starts, lengths = np.array(blocks).T
        overlaps = (here["start_ns"].to_numpy()[:, None] < starts + lengths) & (
            here["end_ns"].to_numpy()[:, None] > starts
        )
        lost_ns += here["duration_ns"].to_numpy()[overlaps.any(axis=1)].sum()
    return lost_ns


def planted_ms(folder: Path, runs: pd.DataFrame, kind) -> pd.Series:
    """What was planted, by round."""
    cells = {name: own.set_index("round") for name, own in runs.groupby("cell")}
    here, idle = cells[kind.name], cells["idle"]
    if kind.witness == "CPU time":
        return (here["cpu_ns"] - idle["cpu_ns"]) / 1e6
    if kind.witness == "hog":
        return (here["hog_ns"] - idle["hog_ns"].median()) / 1e6
    loops = cells[f"loop {kind.name}"]
    lost_ns = loops.apply(lambda run: out_to_in_ns(folder, run, kind.attachment.schedule), axis=1)
    share = lost_ns / loops["hog_planned_ns"]
    return here["hog_planned_ns"] * share / 1e6


def accounts(folder: Path, runs: pd.DataFrame) -> pd.DataFrame:
    """What the account says of each run: its parts in ms, over all threads together."""
    traces, speed = folder / "traces", folder / "speed"
    events, stolen = read_traces(traces, runs), stolen_times(traces, runs)
    samples, waits = read_speed(speed, runs), read_waits(speed, runs)
    account = Account.of_events(
        runs, events, stolen, measure_edges(folder / "edges"), samples, waits
    )
    return account.table.groupby("run")[list(PARTS)].sum() / 1e6


def rounds_table(folder: Path, group: Group, runs: pd.DataFrame) -> pd.DataFrame:
    """A row a round and kind: `kind`, `round`, `planted` (ms, by the witness), `longer` (ms of run
    time) and, for each cause, how much more of it the account says than of the idle run.
    """
    ours = runs[~runs["cell"].str.startswith("loop")]
    said = ours.join(accounts(folder, ours), on="run").set_index(["cell", "round"])
    idle, tables = said.loc["idle"], []
    for kind in group.kinds:
        here = said.loc[kind.name]
        table = (here[list(PARTS)] - idle[list(PARTS)]).assign(
            planted=planted_ms(folder, runs, kind),
            longer=(here["region_seconds"] - idle["region_seconds"]) * 1e3,
            undisturbed=idle["region_seconds"] * 1e3,
        )
        tables.append(table.dropna(subset=["planted", "longer"]).assign(kind=kind.name))
    return pd.concat(tables).reset_index()


def medians(rounds: pd.DataFrame, seed: int = 0) -> pd.DataFrame:
    """Medians over the rounds of a kind: the first row as measured, then those of resamples."""
    numbers = rounds.drop(columns=["kind", "round"])
    random = np.random.default_rng(seed)
    drawn = random.integers(len(numbers), size=(REPEATS, len(numbers)))
    resamples = np.median(numbers.to_numpy()[drawn], axis=1)
    return pd.DataFrame(np.vstack([numbers.median(), resamples]), columns=numbers.columns)


def verdict(draws: pd.DataFrame, kind) -> dict:
    """A row of the report on a kind."""
    said = draws[list(CAUSES)].iloc[0]
    said = pd.concat([pd.Series({"occupied": said[list(OCCUPIED)].sum()}), said.drop([*OCCUPIED])])
    named = said.idxmax()
    amount = draws[list(kind.causes)].sum(axis=1)
    ratio = (amount / draws["planted"]).to_numpy()
    planted = draws["planted"].to_numpy()
    visible = percentile_interval(planted[1:])[0] > SMALLEST_SHARE * draws["undisturbed"].iloc[0]
    right = named == kind.named
    return {
        "planted ms": interval(planted, "{:.1f}"),
        **{part: f"{draws[part].iloc[0]:+.1f}" for part in PARTS},
        "run time ms": interval(draws["longer"].to_numpy(), "{:+.1f}"),
        "named": named,
        "rightly": ("yes" if right else "NO") if visible else "not visible here",
        "account / planted": interval(ratio, "{:.3f}") if visible else "",
        "within 10 %": ("yes" if abs(ratio[0] - 1) <= TOLERANCE else "NO") if visible else "",
    }


def interval(values: np.ndarray, form: str) -> str:
    """The first value and the 95 % interval of the others."""
    low, high = percentile_interval(values[1:])
    return f"{form} [{form}, {form}]".format(values[0], low, high)


def report(tables: list[pd.DataFrame], groups: list[Group], arguments: argparse.Namespace) -> None:
    rounds = pd.concat(tables)
    if arguments.save:
        rounds.to_csv(arguments.save, index=False)
    rows = {}
    for kind in (kind for group in groups for kind in group.kinds):
        own = rounds[rounds["kind"] == kind.name]
        rows[kind.name] = {
            "rounds": len(own),
            "witness": kind.witness,
            **verdict(medians(own), kind),
        }
    table = pd.DataFrame(rows)
    print(
        "planted, and what the account says more than of the idle runs of the same rounds (ms a"
        " run, all threads together; medians of rounds, 95 % by bootstrap of rounds):"
    )
    print(table.to_string())
    visible = table.loc["rightly"] != "not visible here"
    print(
        f"named rightly: {(table.loc['rightly'] == 'yes').sum()} of {visible.sum()}; within"
        f" {TOLERANCE:.0%}: {(table.loc['within 10 %'] == 'yes').sum()} of {visible.sum()}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=30, help="rounds of each group")
    parser.add_argument("--seconds", type=float, default=0.15, help="of an undisturbed run")
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--groups", nargs="*", help="only these")
    parser.add_argument("--save", type=Path, help="a CSV file for what was measured, by round")
    parser.add_argument("--folder", type=Path, help="where runs are kept; none: they are not")
    arguments = parser.parse_args()
    if not may_realtime(50) or doctor().capabilities.tracer == "detours":
        sys.exit("skipped: SCHED_FIFO is not permitted here, or the kernel cannot be traced")
    for name, reason in skipped_kinds().items():
        print(f"skipped: {name}: {reason}")
    with tempfile.TemporaryDirectory() as name:
        folder = arguments.folder or Path(name)
        groups = [
            group
            for group in groups_of(folder, arguments.seconds, arguments.seed)
            if not arguments.groups or group.name in arguments.groups
        ]
        measured = [(group, measure(folder / group.name, group, arguments)) for group in groups]
        tables = [rounds_table(folder / group.name, group, runs) for group, runs in measured]
    report(tables, groups, arguments)


if __name__ == "__main__":
    main()
