"""How often does the autopilot say that a mitigation helps when nothing was changed, and how often
when something was?

    python benchmarks/autopilot.py [recorded | made | measured | power] [--sets 200] [--tried 4]
    [--rounds 12]

A set is what the autopilot does with its trials: several mitigations, each in rounds of an
untreated and a treated run, judged together, and what seems to help measured again. `recorded`:
treated runs are undisturbed runs of the recorded campaigns, one of each two neighbours at random;
`made`: the same with run times made here; `measured`: a program is run now, with a mitigation that
does nothing; `power`: as `recorded`, with the treated runs of one mitigation shortened. Two
processes; about a minute each, `measured` --sets × --rounds × 0.05 s.
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
from _shares import aligned_share as share
from scipy.signal import lfilter

from nbhelpers.measurement import Campaign, Cell, finished, recorded_runs
from nbhelpers.mitigation import BASELINE, Treatment, mitigations
from nbhelpers.mitigation.trials import HARMS, MIXED, SEEMS, Pair, judge_trials
from nbhelpers.workloads import Workload, binary_folder

RECORDED = Path(__file__).resolve().parents[1] / "data" / "recorded"
UNDISTURBED = {
    "10-trace-collection/baseline": ("untraced", "traced"),
    "30-injection/*": ("baseline",),
    "52-known-causes/*": ("undisturbed",),
    "55-mitigate-and-compare/*": ("baseline",),
}  # campaigns, and how the names of their cells without a disturbance begin
SHORTER = (0.98, 0.95, 0.9)


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


def trial(values: np.ndarray, random: np.random.Generator, factor: float = 1.0) -> Pair:
    """Neighbours are a round; which of the two counts as treated is drawn; then it takes `factor`
    times as long.
    """
    sides = values.reshape(-1, 2)
    treated = random.integers(0, 2, len(sides))
    rows = np.arange(len(sides))
    return tuple(
        pd.DataFrame({"seconds": scale * sides[rows, place], "round": rows})
        for scale, place in ((1.0, 1 - treated), (factor, treated))
    )


def _set(task: tuple[str, int, int, int, float]) -> tuple[bool, bool, bool]:
    """Whether one seems to help, is confirmed, makes it worse."""
    name, seed, tried, rounds, factor = task
    random = np.random.default_rng(seed)
    ids = list(mitigations())[:tried]

    def drawn(place: str) -> Pair:
        return trial(DRAWS[name](random, 2 * rounds), random, factor if place == ids[0] else 1.0)

    return _claims({place: drawn(place) for place in ids}, drawn)


def _claims(pairs: dict[str, Pair], drawn: Callable[[str], Pair]) -> tuple[bool, bool, bool]:
    """What seems to help is measured again, as the autopilot does."""
    verdicts = {name: trial.verdict for name, trial in judge_trials(pairs).items()}
    again = judge_trials({name: drawn(name) for name, one in verdicts.items() if one == SEEMS})
    found = set(verdicts.values())
    confirmed = any(one.verdict == SEEMS for one in again.values())
    return bool(found & {SEEMS, MIXED}), confirmed, HARMS in found


def told(name: str, results: list[tuple[bool, bool, bool]], began: float) -> None:
    helps, again, worse = (sum(column) for column in zip(*results))
    count = len(results)
    print(
        f"{name:<24} seems to help {share(helps, count)}   confirmed {share(again, count)}   worse"
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
        placebo = next(iter(mitigations()))
        runs = {placebo: _measured(program, options.rounds, seed)}
        results.append(
            _claims(runs, lambda name, seed=seed: _measured(program, options.rounds, 10_000 + seed))
        )
    told("measured here", results, began)


def _measured(program: Workload, rounds: int, seed: int) -> Pair:
    cells = [
        Cell(name, program, attachments=(Treatment(name, (), program),))
        for name in (BASELINE, "placebo")
    ]
    runs = finished(Campaign(None, cells, rounds, seed).run())
    return runs[runs["cell"] == BASELINE], runs[runs["cell"] == "placebo"]


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
