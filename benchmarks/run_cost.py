"""What a run costs: the CPU time of `run_once` with fifteen counters against a C loop that forks,
executes and waits; all layers against a bare spawn and wait; and how exact its times are.

    .venv/bin/python benchmarks/run_cost.py [rounds]

About a minute. All variants take turns in a random order; medians with a 95 % bootstrap interval.
run_once(lead 5 ms) is what campaigns do: the 5 ms until the common start are waited, not worked.
"""

import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from nbhelpers.measurement import available_layers, metrics, run_once
from nbhelpers.statistics import percentile_interval
from nbhelpers.workloads import program as foreign

VARIED_25_MS = """#include <stdio.h>
#include <time.h>
#include <unistd.h>
static long long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}
int main(void) {
    long long start = now();
    unsigned long long x = (unsigned long long)start * 2654435761u;
    x ^= (unsigned long long)getpid() << 32;
    /* the sum of twelve uniform numbers: nearly normal, with a standard deviation of 1 */
    double sum = -6;
    for (int i = 0; i < 12; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        sum += (double)(x >> 11) * 0x1p-53;
    }
    long long end = start + 25000000LL + (long long)(sum * 310000);
    while (now() < end) ;
    printf("spun %.9f\\n", (double)(now() - start) * 1e-9);
}
"""


def spawn_and_wait(program: str) -> None:
    os.waitpid(os.posix_spawn(program, [program], os.environ), 0)


def with_layers(workload, names):
    layers = metrics(*names)
    return lambda: run_once(workload, layers, lead_ms=0)


def interval(values: np.ndarray, rng: np.random.Generator) -> tuple[float, float, float]:
    """Median and its 95 % bootstrap interval."""
    medians = np.median(rng.choice(values, (2000, len(values))), axis=1)
    return float(np.median(values)), *percentile_interval(medians)


def costs(variants: dict, rounds: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Milliseconds a call, interleaved."""
    spent = {name: [] for name in variants}
    for call in variants.values():
        call()
    for _ in range(rounds):
        for name in rng.permutation(list(variants)):
            began = time.perf_counter()
            variants[name]()
            spent[name].append((time.perf_counter() - began) * 1e3)
    return {name: np.array(values) for name, values in spent.items()}


def counted_in_c(program: str) -> None:
    """The rival of one kind of counter: perf stat, where it is installed."""
    subprocess.run(
        [
            "perf",
            "stat",
            "-x,",
            "-e",
            "task-clock,page-faults,context-switches,cpu-migrations",
            program,
        ],
        capture_output=True,
    )


FIFTEEN = """layer: fifteen
title: fifteen counters of five sources
sources:
  - reader: perf
    metrics:
      - {id: f_task, event: task-clock, title: CPU time}
      - {id: f_faults, event: page-faults, title: page faults}
      - {id: f_switches, event: context-switches, title: switches}
      - {id: f_moves, event: cpu-migrations, title: migrations}
  - reader: taskstats
    metrics:
      - {id: f_wait, field: wait_ns, title: run-queue wait}
      - {id: f_slices, field: timeslices, title: timeslices}
  - reader: file
    path: /proc/stat
    format: rows
    metrics:
      - {id: f_steal, key: cpu, column: 7, scale: ticks, title: steal}
      - {id: f_ctxt, key: ctxt, title: switches of all}
      - {id: f_forks, key: processes, title: forks of all}
  - reader: file
    path: /proc/softirqs
    format: softirqs
    metrics:
      - {id: f_timer, key: TIMER, title: timers}
      - {id: f_sched, key: SCHED, title: balancing}
      - {id: f_rcu, key: RCU, title: callbacks}
  - reader: file
    path: /proc/{pid}/io
    format: rows
    metrics:
      - {id: f_read, key: syscr, title: reads}
      - {id: f_write, key: syscw, title: writes}
      - {id: f_bytes, key: rchar, title: bytes read}
"""


def print_costs(rounds: int, rng: np.random.Generator) -> None:
    program = "/bin/true"
    workload = foreign(program)
    names = [name for name in available_layers().index if metrics(name)]
    variants = {
        "posix_spawn and waitpid": lambda: spawn_and_wait(program),
        "subprocess.run": lambda: subprocess.run([program]),
        "run_once, lead 0": with_layers(workload, ()),
        "run_once, lead 5 ms": lambda: run_once(workload),
    }
    variants |= {f"run_once, lead 0, {name}": with_layers(workload, (name,)) for name in names}
    variants["run_once, lead 0, all layers"] = with_layers(workload, ("all",))
    with tempfile.TemporaryDirectory() as folder:
        layer = Path(folder, "fifteen.yml")
        layer.write_text(FIFTEEN)
        variants["run_once, lead 0, 15 counters"] = with_layers(workload, (layer,))
    if shutil.which("perf"):
        variants["perf stat, 4 counters"] = lambda: counted_in_c(program)
    spent = costs(variants, rounds, rng)
    bare = np.median(spent["posix_spawn and waitpid"])
    print(
        f"{rounds} runs of {program} each, interleaved: median ms a run [95 % interval], ratio to"
        " posix_spawn and waitpid"
    )
    for name, values in spent.items():
        middle, low, high = interval(values, rng)
        print(f"  {name:34s} {middle:7.3f} [{low:.3f}, {high:.3f}]  {middle / bare:6.2f}")
    print("\nLayers on this process: us of a start and an end")
    for name, row in available_layers().iterrows():
        print(
            f"  {name:15s} {row['here_us']:9.0f}   in its file: {row['cost_us']:9.0f}  "
            f" {row['columns']:3d} columns"
        )


BATCH = 25  # runs between two readings of the CPU time


def cpu_ms() -> float:
    """CPU time of this process and of the children that it reaped."""
    used = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used) * 1e3


def print_cpu_time(rounds: int, rng: np.random.Generator) -> None:
    """CPU time a run, children included: ours with fifteen counters and without, and the C loop of
    fork_exec.c; batches take turns.
    """
    program, workload = "/bin/true", foreign("/bin/true")
    with tempfile.TemporaryDirectory() as folder:
        loop, layer = Path(folder, "fork_exec"), Path(folder, "fifteen.yml")
        source = Path(__file__).with_name("fork_exec.c")
        subprocess.run(["cc", "-O2", source, "-o", loop], check=True)
        layer.write_text(FIFTEEN)
        spent = {"C: fork, exec, wait": [], "run_once": [], "run_once, 15 counters": []}
        calls = {
            "run_once": with_layers(workload, ()),
            "run_once, 15 counters": with_layers(workload, (layer,)),
        }
        for number in range(rounds + 1):  # the first warms up
            printed = subprocess.run([loop, str(BATCH), program], capture_output=True, check=True)
            row = {"C: fork, exec, wait": float(printed.stdout.split()[0]) / 1e3}
            for name, call in calls.items():
                began = cpu_ms()
                for _ in range(BATCH):
                    call()
                row[name] = (cpu_ms() - began) / BATCH
            for name, value in row.items() if number else ():
                spent[name].append(value)
    in_c = np.array(spent["C: fork, exec, wait"])
    print(f"\nCPU time a run of {program}, {rounds} batches of {BATCH} each: median ms [95 %]")
    for name, values in spent.items():
        middle, low, high = interval(np.array(values), rng)
        more = "beyond C {:+.3f} [{:+.3f}, {:+.3f}]".format(*interval(np.array(values) - in_c, rng))
        print(f"  {name:34s} {middle:7.3f} [{low:.3f}, {high:.3f}]  {more}")
    print("  (target of 15 counters beyond C: at most 2)")


def bare(program: Path) -> float:
    """Seconds from before the spawn to after the wait, as a shell's loop would have it."""
    began = time.perf_counter()
    os.waitpid(
        os.posix_spawn(
            program,
            [program],
            os.environ,
            file_actions=[(os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)],
        ),
        0,
    )
    return time.perf_counter() - began


def sd_ratio(
    values: np.ndarray, printed: np.ndarray, rng: np.random.Generator
) -> tuple[float, float, float]:
    """Standard deviation over that of the printed times, with its 95 % bootstrap interval,
    the runs resampled.
    """
    drawn = rng.integers(0, len(printed), (2000, len(printed)))
    ratios = values[drawn].std(axis=1, ddof=1) / printed[drawn].std(axis=1, ddof=1)
    return values.std(ddof=1) / printed.std(ddof=1), *percentile_interval(ratios)


def print_accuracy(rounds: int, rng: np.random.Generator) -> None:
    """Recorded times and those that the program prints; a shell's loop and runs without and
    with all layers take turns.
    """
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder, "spin.c"), Path(folder, "spin")
        source.write_text(VARIED_25_MS)
        subprocess.run(["cc", "-O2", source, "-o", program], check=True)
        workload = foreign([program], seconds=r"spun (?P<seconds>\S+)")
        layers = metrics("all")
        bares, rows = [], {"without layers": [], "with all layers": []}
        for _ in range(rounds):
            bares.append(bare(program))
            rows["without layers"].append(run_once(workload))
            rows["with all layers"].append(run_once(workload, layers))
        for layer in layers:
            layer.close()
    print(
        f"\nA program of 25 ms and a standard deviation of 0.31 ms, {rounds} runs each: ms, and the"
        " recorded sd over the printed in the same runs (target: 0.9 to 1.1)"
    )
    print(
        f"  {'spawn and wait, no record':34s} mean {np.mean(bares) * 1e3:7.3f}  sd"
        f" {np.std(bares, ddof=1) * 1e3:6.3f}"
    )
    for name, table in rows.items():
        printed, wall = (
            np.array([row[column] for row in table]) for column in ("seconds", "wall_seconds")
        )
        print(
            f"  {name + ', printed time':34s} mean {printed.mean() * 1e3:7.3f}  sd"
            f" {printed.std(ddof=1) * 1e3:6.3f}"
        )
        print(
            f"  {name + ', start to end':34s} mean {wall.mean() * 1e3:7.3f}  sd"
            f" {wall.std(ddof=1) * 1e3:6.3f}  ratio {{:.3f}} [{{:.3f}}, {{:.3f}}]".format(
                *sd_ratio(wall, printed, rng)
            )
        )


if __name__ == "__main__":
    ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    print_cpu_time(max(5, ROUNDS // 10), np.random.default_rng(3))
    print_costs(ROUNDS, np.random.default_rng(1))
    print_accuracy(max(10, ROUNDS), np.random.default_rng(2))
