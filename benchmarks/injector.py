"""What the injector does to a program and costs the machine: beside the published method,
interleaved on the same plans.

A SCHED_FIFO 10 loop on one CPU notes every gap, and noise is injected at SCHED_FIFO 49 and 50 above
it. The BASELINE (sleep for a relative time, then spin on the wall clock for the whole duration) is
written for this comparison in injector_rival.c from its description. Five tables:

1. events of 50 us to 10 ms: what the loop lost between an event's planned start and end (whole
   gaps) less the event's length, with 95 % intervals; beside it what the machine alone takes from
   the loop in windows of these lengths, without any injection;
2. the interrupts and softirqs of a recorded trace, as they are: CPU time that the loop lost to
   them over what was to be injected;
3. CPU time of the injector's own processes while they wait, armed and between events;
4. CPU time to plan a config of 10^6 events and to lay it out for the C core;
5. time until 64 and 256 lanes are ready, beside owners of several sizes (bound 2 s).
"""

import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from _c_programs import build

from nbhelpers.injection import Overheads, Plan, Rules, make_plan, measure_overheads
from nbhelpers.injection.log import DONE, make_log
from nbhelpers.injection.replay import Replay
from nbhelpers.injection.rules import may_realtime
from nbhelpers.machine import online_cpus
from nbhelpers.noise import NoiseConfig
from nbhelpers.statistics import quantile_interval
from nbhelpers.tracing import read_tracepoints

LENGTHS_US = (50, 100, 200, 1000, 3000, 10000)
# the longest round is 0.7 s: after 0.95 s the kernel gives ordinary tasks the CPU
EVENTS, PAUSE_US, ROUNDS, TRACE_ROUNDS = 50, 4000, 5, 7
NOTHING = "no injection"
LEAD_NS = 300_000_000  # time to start and to get ready
RECORDED = Path(__file__).parents[1] / "data/recorded/10-trace-collection/baseline/traces"
WAIT_S, MANY = 5.0, 1_000_000
STARTS, OWNERS_GIB = 9, (0, 1.2, 4)


def make_config(cpu: int, length_us: int, seed: int) -> NoiseConfig:
    """Events at random places of a grid, so that they keep no step with the timer tick."""
    random = np.random.default_rng(seed)
    places_us = np.arange(EVENTS) * (PAUSE_US + length_us) + 1000
    starts = (places_us + random.uniform(0, PAUSE_US - 1500, EVENTS)) * 1000
    return NoiseConfig.from_events(
        pd.DataFrame(
            {
                "run": 0,
                "cpu": cpu,
                "kind": "irq",
                "source": "benchmark",
                "start_ns": starts.astype(np.int64),
                "duration_ns": length_us * 1000,
            }
        )
    )


def observed_gaps(
    program: Path, cpu: int, config: NoiseConfig, noise, length_ns: int
) -> tuple[np.ndarray, pd.DataFrame | None]:
    """Gaps (before, after) in ns from t0 that the loop observed, and the log of our injector."""
    t0_ns = time.monotonic_ns() + LEAD_NS
    with tempfile.TemporaryFile(
        "w+"
    ) as printed:  # a pipe would be full, and the loop would never end, where gaps are many
        loop = subprocess.Popen(
            [program, "observe", str(cpu), str(t0_ns), str(length_ns)], stdout=printed
        )
        try:
            log = noise(config, t0_ns, loop.pid)
            loop.wait(10)
            full = loop.returncode
        finally:
            loop.kill()
            loop.wait()
        printed.seek(0)
        if full:
            sys.exit("the loop has no room for so many gaps")
        gaps = np.array(printed.read().split(), dtype=np.int64).reshape(-1, 2)
    time.sleep(0.1)  # the other programs of the machine have this CPU for a while
    return gaps, log


def published(program: Path, cpu: int):
    def noise(config, t0_ns, pid):
        numbers = config.events()[["start_ns", "duration_ns"]].to_numpy().ravel()
        subprocess.run([program, "baseline", str(cpu), str(t0_ns), *map(str, numbers)], check=True)

    return noise


def ours(rules: Rules, overheads: Overheads):
    def noise(config, t0_ns, pid):
        replay = Replay(make_plan(config, "origin", rules=rules, overheads=overheads))
        try:
            replay.start(pid)
            replay.release(t0_ns)
            replay.wait(10)
        finally:
            replay.close()
        return make_log(replay)

    return noise


def nothing(config, t0_ns, pid):
    """The loop alone: its gaps are the machine's own."""


def losses(config: NoiseConfig, gaps: np.ndarray) -> pd.DataFrame:
    """For each event: what the loop lost, how much that is beyond its length, and start of its
    first gap less its planned start, in us.
    """
    rows = []
    for event in config.events().itertuples():
        own = gaps[
            (gaps[:, 1] > event.start_ns) & (gaps[:, 0] < event.start_ns + event.duration_ns)
        ]
        lost_ns = (own[:, 1] - own[:, 0]).sum()
        began_ns = own[0, 0] - event.start_ns if len(own) else np.nan
        rows.append((lost_ns / 1e3, (lost_ns - event.duration_ns) / 1e3, began_ns / 1e3))
    return pd.DataFrame(rows, columns=["lost_us", "error_us", "gap_start_us"], dtype=float)


def run_round(program, cpu, length_us, seed, noise):
    config = make_config(cpu, length_us, seed)
    length_ns = (EVENTS + 1) * (PAUSE_US + length_us) * 1000
    gaps, log = observed_gaps(program, cpu, config, noise, length_ns)
    table = losses(config, gaps).assign(length_us=length_us)
    if log is None:
        return table, None
    done = log[log["outcome"].isin(DONE)]
    return table, (done["start_ns"] - done["planned_start_ns"]) / 1e3


def compare_events(program: Path, cpu: int, methods: dict, shortest_us: float) -> None:
    tables, wakes = [], []
    for seed in range(ROUNDS):
        for length_us in LENGTHS_US:
            every = methods | {NOTHING: nothing}
            for name in np.random.default_rng(seed).permutation(list(every)):
                table, wake_us = run_round(program, cpu, length_us, seed, every[name])
                tables.append(table.assign(method=name))
                wakes += [] if wake_us is None else [wake_us]
    table = pd.concat(tables)
    alone = table["method"] == NOTHING
    report_events(table[~alone & (table["lost_us"] > 0)], pd.concat(wakes), shortest_us)
    report_alone(table[alone])


def report_alone(table: pd.DataFrame) -> None:
    """What the machine takes from the loop in windows of the events' lengths."""
    print("\nwithout injection, what the machine takes in windows of these lengths, us:")
    lost = table.groupby("length_us")["lost_us"]
    columns = {"windows": lost.size(), "with a gap": lost.agg(lambda x: (x > 0).mean()).round(3)}
    columns |= {f"p{100 * q:g}": lost.quantile(q).round(1) for q in (0.5, 0.9, 0.99)}
    print(pd.DataFrame(columns).T.to_string())


def told(values: pd.Series, share: float) -> str:
    """A quantile and its 95 % interval."""
    low, high = quantile_interval(values, share)
    return f"{values.quantile(share):.1f} [{low:.1f}, {high:.1f}]"


def report_events(table: pd.DataFrame, wake_us: pd.Series, shortest_us: float) -> None:
    print(
        f"\n1. lost beyond an event's length, us ({ROUNDS} rounds of {EVENTS} events, interleaved):"
    )
    groups = table.groupby(["length_us", "method"])["error_us"]
    columns = {
        "events": groups.size(),
        "median": groups.agg(lambda x: told(x, 0.5)),
        "p10": groups.quantile(0.1).round(1),
        "p90": groups.quantile(0.9).round(1),
        "median of |error|": groups.agg(lambda x: told(x.abs(), 0.5)),
        "p90 of |error|": groups.agg(lambda x: told(x.abs(), 0.9)),
    }
    print(
        pd.DataFrame(columns)
        .unstack("length_us")
        .swaplevel(axis=1)
        .sort_index(axis=1, level=0, sort_remaining=False)
        .T.to_string()
    )
    starts = table.groupby("method")["gap_start_us"].quantile([0.1, 0.5, 0.9]).unstack()
    print(f"\nfirst gap less planned start, us:\n{starts.round(1).to_string()}")
    print(
        f"\nwake-up less planned start (ours, {len(wake_us)} events), us: "
        + ", ".join(f"p{100 * q:g} {wake_us.quantile(q):.1f}" for q in (0.1, 0.5, 0.9, 0.99))
    )
    medians = (
        table[table["length_us"] >= shortest_us]
        .groupby("method")["error_us"]
        .apply(lambda x: x.abs().median())
    )
    print(
        f"shorter than {shortest_us:g} us, this machine's floor, ours are carried by others or left"
        " out, and the log says so"
    )
    print(
        f"median |error| above the floor: published {medians['published (BASELINE)']:.1f} us, ours"
        f" {medians['ours']:.1f} us, ratio {medians['published (BASELINE)'] / medians['ours']:.1f}"
    )


def recorded_interrupts(cpu: int) -> NoiseConfig:
    """The interrupts and softirqs of the recorded run that has most of them on one CPU, moved to
    `cpu`.
    """
    tables = [read_tracepoints(path) for path in sorted(RECORDED.glob("*.gz"))[:10]]
    parts = [
        own
        for table in tables
        for _, own in table[table["kind"].isin(("irq", "softirq"))].groupby("cpu")
    ]
    most = max(parts, key=lambda own: own["duration_ns"].sum())
    return NoiseConfig.from_events(most.assign(cpu=cpu), window_ns=int(most["end_ns"].max()))


def taken_ns(gaps: np.ndarray, start_ns: np.ndarray, end_ns: np.ndarray) -> int:
    """Length of all gaps that overlap one of the events; each gap counts once."""
    first = np.searchsorted(end_ns, gaps[:, 0], side="right")
    touched = (first < len(start_ns)) & (
        start_ns[np.minimum(first, len(start_ns) - 1)] < gaps[:, 1]
    )
    return int((gaps[touched, 1] - gaps[touched, 0]).sum())


def compare_trace(program: Path, cpu: int, methods: dict, overheads: Overheads) -> None:
    if not RECORDED.exists():
        return print("\n2. skipped: there is no recorded trace")
    config, ratios = recorded_interrupts(cpu), {name: [] for name in methods}
    planned = config.events().sort_values("start_ns")
    replayed = make_plan(config, "origin", overheads=overheads)
    carried = replayed.injected.sort_values("start_ns")
    for seed in range(TRACE_ROUNDS):
        for name in np.random.default_rng(seed).permutation(list(methods)):
            gaps, _ = observed_gaps(
                program, cpu, config, methods[name], config.window_ns + 20_000_000
            )
            events = carried if name == "ours" else planned
            took = taken_ns(
                gaps,
                events["start_ns"].to_numpy(),
                (events["start_ns"] + events["duration_ns"]).to_numpy(),
            )
            ratios[name].append(took / events["duration_ns"].sum())
    print(
        f"\n2. {config!r}\nCPU time that the loop lost at the events over what was to be injected"
        f" ({TRACE_ROUNDS} rounds, interleaved):"
    )
    print(
        pd.DataFrame(
            {name: np.quantile(own, [0, 0.25, 0.5, 0.75, 1]) for name, own in ratios.items()},
            ["least", "p25", "median", "p75", "most"],
        )
        .T.round(3)
        .to_string()
    )
    plan, moved = replayed.events, replayed.injected
    moved_ms = (moved["start_ns"] - moved["recorded_start_ns"]).abs().max() / 1e6
    share = moved["duration_ns"].sum() / plan["recorded_duration_ns"].sum()
    print(
        f"the floor rule (farthest moved {moved_ms:.1f} ms): injected or carried {share:.1%} of the"
        " planned time, the rest is below the floor and dropped"
    )


def cpu_ns(pids) -> int:
    return sum(int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) for pid in pids)


def waiting_cost() -> None:
    """CPU time of supervisor and lanes while they wait to be released, and between two events that
    lie far apart.
    """
    cpus = online_cpus()
    events = pd.DataFrame(
        [
            (0, cpu, "irq", "benchmark", start, 1_000_000)
            for cpu in cpus
            for start in (0, round((WAIT_S + 2) * 1e9))
        ],
        columns=["run", "cpu", "kind", "source", "start_ns", "duration_ns"],
    )
    plan = make_plan(NoiseConfig.from_events(events), "origin")
    replay, shares = Replay(plan), {}
    try:
        replay.start()
        for state in ("armed", "between events"):
            before = cpu_ns(replay.pids)
            time.sleep(WAIT_S)
            shares[state] = (cpu_ns(replay.pids) - before) / (WAIT_S * 1e9)
            replay.release(time.monotonic_ns())
            time.sleep(0.1)
    finally:
        replay.close()
    print(
        f"\n3. CPU share of {len(plan.lanes)} injectors and their supervisor while they wait"
        f" {WAIT_S:g} s (bound 0.1 %): "
        + ", ".join(f"{state} {share:.4%}" for state, share in shares.items())
    )


def many_events() -> NoiseConfig:
    random, cpus = np.random.default_rng(0), online_cpus()
    count = MANY // len(cpus)
    columns = {
        "run": 0,
        "cpu": np.repeat(cpus, count),
        "kind": random.choice(["irq", "softirq", "thread"], count * len(cpus)),
        "source": "benchmark",
        "start_ns": np.tile(np.arange(count) * 100_000, len(cpus)),
        "duration_ns": random.integers(500, 60_000, count * len(cpus)),
    }
    return NoiseConfig.from_events(pd.DataFrame(columns))


def planning_cost(overheads: Overheads) -> None:
    config, seconds = many_events(), {"make_plan": [], "Replay": []}
    for _ in range(5):
        start = time.process_time()
        plan: Plan = make_plan(config, rules=Rules(allow_full_stop=True), overheads=overheads)
        middle = time.process_time()
        Replay(plan)
        seconds["make_plan"].append(middle - start)
        seconds["Replay"].append(time.process_time() - middle)
    print(
        f"\n4. {len(config.events())} events, CPU seconds (median of 5; bound 0.3 s together): "
        + ", ".join(f"{name} {np.median(own):.3f}" for name, own in seconds.items())
    )


def start_times(lanes: int) -> None:
    """Time until so many lanes are ready, beside owners of several sizes; of small objects, since
    they have the most page tables.
    """
    print(f"\n5. ms until {lanes} lanes are ready, median (least to most) of {STARTS}:")
    for gib in OWNERS_GIB:
        program = [sys.executable, __file__, "start", str(gib), str(lanes)]
        own = subprocess.run(program, capture_output=True, text=True, check=True).stdout.split()
        took = np.array(own, dtype=float)
        print(
            f"   owner with {gib:g} GiB more:"
            f" {np.median(took):.0f} ({took.min():.0f} to {took.max():.0f})"
        )


def start_beside(gib: float, lanes: int) -> None:
    """Print the ms of each start, in a process that holds so much."""
    ballast = [str(number) * 7 for number in range(10**9, 10**9 + round(gib * 2**30 / 128))]
    cpus = online_cpus()
    columns = {
        "run": 0,
        "cpu": cpus[0],
        "kind": "irq",
        "source": "benchmark",
        "start_ns": np.arange(1, lanes + 1) * 50_000,
        "duration_ns": 10_000,
    }
    plan = make_plan(NoiseConfig.from_events(pd.DataFrame(columns)))
    each = pd.DataFrame({"cpu": -1, "first": range(lanes), "count": 1})
    plan = replace(plan, lanes=each.astype(plan.lanes.dtypes.to_dict()))
    for _ in range(STARTS):
        replay = Replay(plan)
        began = time.perf_counter()
        replay.start()
        print(1e3 * (time.perf_counter() - began))
        replay.close()
    del ballast


def main() -> None:
    if sys.argv[1:2] == ["start"]:
        start_beside(float(sys.argv[2]), int(sys.argv[3]))
        return
    if not may_realtime(50):
        sys.exit("skipped: SCHED_FIFO is not permitted here")
    costs, as_it_is = measure_overheads(again=True), Rules(exit_cost_us=0, shortest_us=0)
    print(costs)
    with tempfile.TemporaryDirectory() as folder:
        program, cpu = build(Path(folder), "injector_rival"), online_cpus()[-1]
        rivals = {
            "published (BASELINE)": published(program, cpu),
            "ours, exit cost 0, no floor": ours(as_it_is, costs),
            "ours": ours(Rules(), costs),
        }
        compare_events(program, cpu, rivals, costs.shortest_us)
        compare_trace(program, cpu, rivals, costs)
    waiting_cost()
    planning_cost(costs)
    for lanes in (64, 256):
        start_times(lanes)


if __name__ == "__main__":
    main()
