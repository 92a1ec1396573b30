"""Attribution: false discoveries and power, the labelled share, and speed.

    python benchmarks/attribution.py [discovery | drift | cutoff | speed] [--sets 200]

Without a name all are run; data sets are made here, so that their truth is known. Two processes
share the studies.
"""

import argparse
import os
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor

for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(name, "1")  # two processes, a thread each

import numpy as np
import pandas as pd
from _shares import aligned_share as share

from nbhelpers.attribution import explain, find_cutoff
from nbhelpers.attribution.null import null_distribution
from nbhelpers.attribution.screening import Screen
from nbhelpers.attribution.search import Search, Table
from nbhelpers.attribution.tree import unfitted

RUNS, COUNTERS = 200, 50


# False discoveries and power
# ----------------------------------------------------------------------------------------------


def noise(random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    return random.normal(1, 0.01, RUNS), _counters(random)


def noise_with_modes(random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    return random.normal(1, 0.01, RUNS) + 0.1 * (random.random(RUNS) < 0.2), _counters(random)


def noise_with_tail(random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    return random.normal(1, 0.02, RUNS) * np.where(random.random(RUNS) < 0.05, 1.5, 1), _counters(
        random
    )


def _counters(random: np.random.Generator) -> np.ndarray:
    """As counters are: a third counts of few, a third large and skewed, a third in correlated
    families.
    """
    counts, skewed = random.poisson(3, (RUNS, 17)), random.lognormal(8, 0.5, (RUNS, 17))
    family = random.normal(size=(RUNS, 4))[:, np.arange(COUNTERS - 34) % 4] + 0.5 * random.normal(
        size=(RUNS, COUNTERS - 34)
    )
    return np.hstack([counts, skewed, family])


def planted(effect_sd: float) -> Callable:
    """One counter of fifty differs by so many standard deviations in the slow fifth of the runs."""

    def draw(random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        slow, counters = random.random(RUNS) < 0.2, _counters(random)
        counters[:, 7] = random.normal(size=RUNS) + effect_sd * slow
        return random.normal(1, 0.01, RUNS) + 0.1 * slow, counters

    return draw


def dependent(rho: float) -> Callable:
    """Run time and counters that depend on their own past, but not on each other."""

    def draw(random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        values = np.zeros((RUNS + 200, 21))
        steps = random.normal(size=values.shape)
        for row in range(1, len(values)):
            values[row] = rho * values[row - 1] + steps[row]
        return 1 + 0.01 * values[200:, 0], values[200:, 1:]

    return draw


def trending(random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    trend = np.linspace(0, 2, RUNS)
    return (
        1 + 0.01 * (random.normal(size=RUNS) + trend),
        random.normal(size=(RUNS, 20)) + trend[:, None],
    )


def stepping(random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    step = 3 * (np.arange(RUNS) > 0.6 * RUNS)
    return (
        1 + 0.01 * (random.normal(size=RUNS) + step),
        random.normal(size=(RUNS, 20)) + step[:, None],
    )


NOISES = {"noise": noise, "noise, two modes": noise_with_modes, "noise, 5 % tail": noise_with_tail}
PLANTED = {f"planted, {effect} sd": planted(effect) for effect in (0.5, 0.75, 1.0, 1.5)}
DRIFTS = {
    "autoregression 0.5": dependent(0.5),
    "autoregression 0.9": dependent(0.9),
    "random walks": dependent(1.0),
    "same trend": trending,
    "same step": stepping,
}


def _one(task: tuple[str, int, str | None]) -> tuple[bool, bool]:
    """Whether a factor was claimed, and whether it is the planted one."""
    name, seed = task
    seconds, counters = (NOISES | PLANTED | DRIFTS)[name](np.random.default_rng(seed))
    runs = pd.DataFrame(
        counters, columns=[f"c{number}" for number in range(counters.shape[1])]
    ).assign(seconds=seconds)
    explanation = explain(runs, seed=seed)
    return explanation.found, explanation.found and "c7" in explanation.factors.iloc[0]["members"]


def study(cases: dict[str, Callable], sets: int, pool: ProcessPoolExecutor) -> None:
    for name in cases:
        begin = time.perf_counter()
        results = list(pool.map(_one, [(name, seed) for seed in range(sets)], chunksize=4))
        claimed, right = (sum(column) for column in zip(*results))
        first = f"   planted counter first: {share(right, sets)}" if name in PLANTED else ""
        print(
            f"{name:<34} claimed"
            f" {share(claimed, sets)}{first}   {time.perf_counter() - begin:.0f} s",
            flush=True,
        )


def benchmark_discovery(options: argparse.Namespace, pool: ProcessPoolExecutor) -> None:
    print(f"\nA factor claimed, {RUNS} runs × {COUNTERS} counters (bound: 5 % of the noise sets)")
    study({"noise": noise}, options.sets, pool)
    study(
        {name: draw for name, draw in NOISES.items() if draw is not noise},
        max(20, options.sets // 4),
        pool,
    )
    study(PLANTED, max(20, options.sets // 4), pool)


def benchmark_drift(options: argparse.Namespace, pool: ProcessPoolExecutor) -> None:
    print(
        "\nA factor claimed where run time and counters drift, each on its own account (bound: 5 %)"
    )
    study(DRIFTS, max(20, options.sets // 5), pool)


# The labelled share
# --------------------------------------------------------------------------------------------------


def _two_modes(share_slow: float) -> Callable:
    def draw(random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        slow = random.random(RUNS) < share_slow
        return random.normal(1, 0.01, RUNS) + 0.1 * slow, slow

    return draw


def _tail(random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    slow = random.random(RUNS) < 0.05
    return random.normal(1, 0.02, RUNS) * np.where(slow, 1.5, 1), slow


def _single(draw: Callable) -> Callable:
    return lambda random: (draw(random), np.zeros(RUNS, bool))


SAMPLES = {
    "two modes, 50/50": _two_modes(0.5),
    "two modes, 80/20": _two_modes(0.2),
    "5 % tail at 1.5 ×": _tail,
    "normal": _single(lambda random: random.normal(1, 0.01, RUNS)),
    "lognormal, sigma 0.2": _single(lambda random: random.lognormal(0, 0.2, RUNS)),
    "lognormal, sigma 0.5": _single(lambda random: random.lognormal(0, 0.5, RUNS)),
    "gamma, shape 4": _single(lambda random: random.gamma(4, 1, RUNS)),
    "gamma, shape 25": _single(lambda random: random.gamma(25, 1, RUNS)),
    "uniform": _single(lambda random: random.uniform(1, 2, RUNS)),
    "Student, 5 degrees": _single(lambda random: 50 + random.standard_t(5, RUNS)),
    "autoregression 0.6": _single(lambda random: dependent(0.6)(random)[0]),
    "autoregression 0.95": _single(lambda random: dependent(0.95)(random)[0]),
}


def _label(task: tuple[str, int]) -> tuple[str, bool]:
    values, slow = SAMPLES[task[0]](np.random.default_rng(task[1]))
    found = find_cutoff(values, task[1])
    return found.kind, abs(found.share_slow - slow.mean()) <= 0.02


def benchmark_cutoff(options: argparse.Namespace, pool: ProcessPoolExecutor) -> None:
    print(
        f"\nLabelled share within two points of the truth, {RUNS} runs (bound for the first four:"
        " 95 %); a single class for the others"
    )
    for name in SAMPLES:
        results = list(
            pool.map(_label, [(name, seed) for seed in range(min(options.sets, 100))], chunksize=10)
        )
        kinds = ", ".join(
            f"{count} {kind}" for kind, count in Counter(kind for kind, _ in results).most_common()
        )
        print(
            f"{name:<22} within {share(sum(within for _, within in results), len(results))}  "
            f" {kinds}",
            flush=True,
        )


# Speed
# --------------------------------------------------------------------------------------------------


def timed(action: Callable) -> float:
    begin = time.perf_counter()
    action()
    return time.perf_counter() - begin


def benchmark_speed(options: argparse.Namespace, pool: ProcessPoolExecutor) -> None:
    random = np.random.default_rng(0)
    print(
        "\nSpeed, 1000 runs × 50 counters (bounds: 10 s with the null, 0.3 s without); one"
        " scikit-learn tree as the unit"
    )
    for name, effect in (("noise", 0), ("planted", 3)):
        slow, counters = random.random(1000) < 0.1, random.normal(size=(1000, 50))
        counters[:, 7] += effect * slow
        runs = pd.DataFrame(counters, columns=[f"c{number}" for number in range(50)]).assign(
            seconds=random.normal(1, 0.01, 1000) + 0.1 * slow
        )
        tree = min(
            timed(lambda: unfitted(slow.size).fit(counters.astype(np.float32), slow))
            for _ in range(5)
        )
        screen = Screen(runs, "seconds", slow=slow)
        search = Search(Table.of(screen.columns.to_numpy(), []), screen.times, slow)
        actions = {
            "with its null": lambda: explain(runs),
            "without null": lambda: explain(runs, permutations=0),
            "find_cutoff alone": lambda: find_cutoff(runs["seconds"]),
            "the null alone": lambda: null_distribution(search, None, 1000, 0.01, 0),
        }
        for label, action in actions.items():
            seconds = timed(action)
            print(
                f"{name:<10} {label:<32} {seconds:7.3f} s {seconds / tree:9.1f} trees", flush=True
            )


BENCHMARKS = {
    "discovery": benchmark_discovery,
    "drift": benchmark_drift,
    "cutoff": benchmark_cutoff,
    "speed": benchmark_speed,
}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", choices=[*BENCHMARKS, []], default=[])
    parser.add_argument("--sets", type=int, default=200)
    chosen = parser.parse_args()
    with ProcessPoolExecutor(2) as processes:
        for wanted in chosen.names or BENCHMARKS:
            BENCHMARKS[wanted](chosen, processes)
