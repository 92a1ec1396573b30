"""How often does the autopilot say that a mitigation helps when nothing was changed, and how often
when something was?

    python benchmarks/autopilot.py [recorded | made | measured | power] [--sets 200] [--tried 4]
    [--rounds 12]

A set is what the autopilot does with its trials: several mitigations, each in rounds of an
untreated and a treated run, their p-values corrected for their number, and the one that looks best
measured again. `recorded`: treated runs are undisturbed runs of the recorded campaigns, one of each
two neighbours at random; `made`: the same with run times made here; `measured`: a program is run
now, with a mitigation that does nothing; `power`: as `recorded`, with the treated runs of one
mitigation shortened. Two processes; about a minute each, `measured` --sets × --rounds × 0.05 s.
"""

import argparse
import os
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path

for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(name, "1")  # two processes, a thread each

import numpy as np
import pandas as pd
from scipy.signal import lfilter
from scipy.stats import binomtest

from nbhelpers.measurement import Campaign, Cell, finished, recorded_runs
from nbhelpers.mitigation import BASELINE, Treatment, mitigations
from nbhelpers.mitigation.report import HARMS, HELPS, confirmed_table, tried_table
from nbhelpers.statistics import Comparison, compare
from nbhelpers.workloads import Workload, binary_folder

RECORDED = Path(__file__).resolve().parents[1] / "data" / "recorded"
UNDISTURBED = {
    "10-trace-collection/baseline": ("untraced", "traced"),
    "30-injection/*": ("baseline",),
    "52-known-causes/*": ("undisturbed",),
    "55-mitigate-and-compare/*": ("baseline",),
}  # campaigns, and how the names of their cells without a disturbance begin
SHORTER = (0.98, 0.95, 0.9)


def share(hits: int, count: int) -> str:
    low, high = binomtest(hits, count).proportion_ci(method="wilson")
    return f"{hits:>4} of {count:<4} {hits / count:6.1%} (95 % interval {low:.1%} to {high:.1%})"


@cache
def recorded() -> list[np.ndarray]:
    """Run times of undisturbed runs in the order they were measured, an array a campaign and kind
    of cell.
    """
    found = []
    for pattern, wanted in UNDISTURBED.items():
        for folder in sorted(RECORDED.glob(pattern)):
            if not list(folder.glob("runs.jsonl*")):
                continue
            runs = finished(recorded_runs(folder)).sort_values("run")
            found += [
                runs.loc[runs["cell"].str.startswith(name), "seconds"].to_numpy() for name in wanted
            ]
    return [values for values in found if values.size]


def from_recorded(random: np.random.Generator, count: int) -> np.ndarray:
    sources = [values for values in recorded() if values.size >= count]
    values = sources[random.integers(len(sources))]
    first = random.integers(values.size - count + 1)
    return values[first : first + count]


def _autoregression(random: np.random.Generator, count: int) -> np.ndarray:
    return 1 + 0.02 * lfilter([1], [1, -0.9], random.normal(size=count + 100))[100:]


MADE: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "normal": lambda random, count: random.normal(1, 0.02, count),
    "two modes, 80/20": lambda random, count: (
        random.normal(1, 0.01, count) + 0.1 * (random.random(count) < 0.2)
    ),
    "5 % tail at 1.5 ×": lambda random, count: (
        random.normal(1, 0.02, count) * np.where(random.random(count) < 0.05, 1.5, 1)
    ),
    "autoregression 0.9": _autoregression,
    "trend": lambda random, count: random.normal(1, 0.02, count) + np.linspace(0, 0.1, count),
}
DRAWS = {"recorded": from_recorded} | MADE


def trial(
    values: np.ndarray, random: np.random.Generator, factor: float = 1.0, seed: int = 0
) -> Comparison:
    """Neighbours are a round; which of the two counts as treated is drawn; then it takes `factor`
    times as long.
    """
    rounds = np.arange(values.size) // 2
    treated = (
        np.arange(values.size) + np.repeat(random.integers(0, 2, values.size // 2), 2)
    ) % 2 == 1
    table = pd.DataFrame(
        {
            "seconds": np.where(treated, factor, 1.0) * values,
            "round": rounds,
            "start_ns": np.arange(values.size),
        }
    )
    return compare(table[~treated], table[treated], seed=seed)


def _set(task: tuple[str, int, int, int, float]) -> tuple[bool, bool, bool]:
    """Whether one is said to help, to help also when measured again, to make it worse."""
    name, seed, tried, rounds, factor = task
    random = np.random.default_rng(seed)
    ids = list(mitigations())[:tried]
    compared = {
        name_of: trial(DRAWS[name](random, 2 * rounds), random, factor if place == 0 else 1.0, seed)
        for place, name_of in enumerate(ids)
    }
    table = tried_table(compared, {})
    return _claims(
        table,
        lambda best: trial(
            DRAWS[name](random, 2 * rounds), random, factor if best == ids[0] else 1.0, seed
        ),
    )


def _claims(table: pd.DataFrame, again: Callable[[str], Comparison]) -> tuple[bool, bool, bool]:
    helping = table[table["verdict"] == HELPS]
    worse = bool((table["verdict"] == HARMS).any())
    if helping.empty:
        return False, False, worse
    best = helping[["mean_ratio", "sd_ratio"]].min(axis=1).idxmin()
    return (
        True,
        bool(confirmed_table(table, best, again(best)).loc[best, "verdict"] == HELPS),
        worse,
    )


def told(name: str, results: list[tuple[bool, bool, bool]], began: float) -> None:
    helps, again, worse = (sum(column) for column in zip(*results))
    count = len(results)
    print(
        f"{name:<24} helps {share(helps, count)}   and measured again {share(again, count)}   worse"
        f" {share(worse, count)}   {time.perf_counter() - began:.0f} s",
        flush=True,
    )


def study(
    name: str,
    draw: str,
    options: argparse.Namespace,
    pool: ProcessPoolExecutor,
    sets: int,
    factor: float = 1.0,
) -> None:
    began = time.perf_counter()
    tasks = [(draw, seed, options.tried, options.rounds, factor) for seed in range(sets)]
    told(name, list(pool.map(_set, tasks, chunksize=2)), began)


def benchmark_recorded(options: argparse.Namespace, pool: ProcessPoolExecutor) -> None:
    sizes = [values.size for values in recorded()]
    print(
        f"\nNothing was changed; {sum(sizes)} recorded undisturbed runs of {len(sizes)} campaigns;"
        f" {options.tried} tried, {options.rounds} rounds (bound: 5 %)"
    )
    study("recorded runs", "recorded", options, pool, options.sets)


def benchmark_made(options: argparse.Namespace, pool: ProcessPoolExecutor) -> None:
    print(
        f"\nNothing was changed; run times made here; {options.tried} tried, {options.rounds}"
        " rounds (bound: 5 %)"
    )
    for name in MADE:
        study(name, name, options, pool, max(20, options.sets // 2))


def benchmark_power(options: argparse.Namespace, pool: ProcessPoolExecutor) -> None:
    print(f"\nOne of {options.tried} mitigations shortens recorded runs; {options.rounds} rounds")
    for factor in SHORTER:
        study(
            f"{1 - factor:.0%} shorter",
            "recorded",
            options,
            pool,
            max(20, options.sets // 2),
            factor,
        )


def benchmark_measured(options: argparse.Namespace, pool: ProcessPoolExecutor) -> None:
    """One mitigation a set, since the program is really run; it runs in this process, so that
    nobody else is at work.
    """
    print(
        "\nNothing was changed; a program run now with a mitigation that does nothing; 1 tried,"
        f" {options.rounds} rounds (bound: 5 %)"
    )
    program = Workload(
        "victim compute",
        "external",
        (str(binary_folder() / "victim"), "compute", "1500", "0"),
        start="mark",
    )
    began, results = time.perf_counter(), []
    for seed in range(max(20, options.sets // 2)):
        table = tried_table(
            {next(iter(mitigations())): _measured(program, options.rounds, seed)}, {}
        )
        results.append(
            _claims(
                table, lambda best, seed=seed: _measured(program, options.rounds, 10_000 + seed)
            )
        )
    told("measured here", results, began)


def _measured(program: Workload, rounds: int, seed: int) -> Comparison:
    cells = [
        Cell(name, program, attachments=(Treatment(name, (), program),))
        for name in (BASELINE, "placebo")
    ]
    runs = finished(Campaign(None, cells, rounds, seed).run())
    return compare(runs[runs["cell"] == BASELINE], runs[runs["cell"] == "placebo"], seed=seed)


BENCHMARKS = {
    "recorded": benchmark_recorded,
    "made": benchmark_made,
    "power": benchmark_power,
    "measured": benchmark_measured,
}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", choices=[*BENCHMARKS, []], default=[])
    parser.add_argument("--sets", type=int, default=200)
    parser.add_argument("--tried", type=int, default=4, help="mitigations in a set")
    parser.add_argument(
        "--rounds", type=int, default=12, help="of each; the autopilot takes 12 to 100"
    )
    chosen = parser.parse_args()
    with ProcessPoolExecutor(2) as processes:
        for wanted in chosen.names or list(BENCHMARKS):
            BENCHMARKS[wanted](chosen, processes)
