"""Attribution: false discoveries and power, the labelled share, speed, wide tables, and where
stopping rules stop.

    python benchmarks/attribution.py [discovery | drift | cutoff | speed | wide | stopping] [--sets
    200] [--columns 39000] [--rows 14400] [--csv]

Without a name all but `wide` are run; data sets are made here, so that their truth is known. Two
processes share the studies.
"""

import argparse
import os
import resource
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(name, "1")  # two processes, a thread each

import numpy as np
import pandas as pd
from scipy.stats import binomtest

from nbhelpers.attribution import explain, filter_columns, find_cutoff
from nbhelpers.attribution.null import null_distribution
from nbhelpers.attribution.screening import Screen
from nbhelpers.attribution.search import Search, Table
from nbhelpers.attribution.tree import fit
from nbhelpers.statistics import stopping

RUNS, COUNTERS = 200, 50


def share(hits: int, count: int) -> str:
    low, high = binomtest(hits, count).proportion_ci(method="wilson")
    return f"{hits:>4} of {count:<4} {hits / count:6.1%} (95 % interval {low:.1%} to {high:.1%})"


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
    name, seed, cutoff = task
    seconds, counters = (NOISES | PLANTED | DRIFTS)[name](np.random.default_rng(seed))
    runs = pd.DataFrame(
        counters, columns=[f"c{number}" for number in range(counters.shape[1])]
    ).assign(seconds=seconds)
    explanation = explain(runs, cutoff=cutoff, seed=seed, workers=1)
    return explanation.found, explanation.found and "c7" in explanation.factors.iloc[0]["members"]


def study(
    cases: dict[str, Callable], sets: int, pool: ProcessPoolExecutor, cutoff: str | None = None
) -> None:
    for name in cases:
        begin = time.perf_counter()
        results = list(pool.map(_one, [(name, seed, cutoff) for seed in range(sets)], chunksize=4))
        claimed, right = (sum(column) for column in zip(*results))
        first = f"   planted counter first: {share(right, sets)}" if name in PLANTED else ""
        print(
            f"{name + (', cutoff searched' if cutoff else ''):<34} claimed"
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
    study({"noise": noise}, max(20, options.sets // 4), pool, "search")
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
        tree = min(timed(lambda: fit(counters.astype(np.float32), slow)) for _ in range(5))
        screen = Screen(runs, "seconds", slow=slow)
        search = Search(Table.of(screen.columns.to_numpy(), []), screen.times, slow)
        actions = {
            "with its null": lambda: explain(runs),
            "cutoff searched, with its null": lambda: explain(runs, cutoff="search"),
            "without null": lambda: explain(runs, permutations=0),
            "find_cutoff alone": lambda: find_cutoff(runs["seconds"]),
            "the null alone": lambda: null_distribution(search, None, 1000, 0.01, 0),
        }
        for label, action in actions.items():
            seconds = timed(action)
            print(
                f"{name:<10} {label:<32} {seconds:7.3f} s {seconds / tree:9.1f} trees", flush=True
            )


# Wide tables
# --------------------------------------------------------------------------------------------------


def made_parquet(folder: Path, rows: int, columns: int) -> Path:
    """A table as profilers write them: constants, counts, floats, and one column in a hundred that
    goes with the outcome.
    """
    import pyarrow as arrow
    import pyarrow.parquet as parquet

    random = np.random.default_rng(0)
    seconds = random.lognormal(0, 0.1, rows)
    kinds = (
        lambda: np.zeros(rows, np.float32),
        lambda: random.poisson(3, rows).astype(np.float32),
        lambda: random.random(rows, np.float32).round(4),
        lambda: random.normal(100, 5, rows).astype(np.float32).round(3),
    )
    table = {"seconds": seconds}
    for number in range(columns):
        table[f"metric{number}"] = (
            (seconds * random.normal(1, 0.5, rows)).astype(np.float32)
            if number % 100 == 7
            else kinds[number % 4]()
        )
    parquet.write_table(
        arrow.table(table),
        folder / "wide.parquet",
        compression="none",
        use_dictionary=False,
        write_statistics=False,
    )
    return folder / "wide.parquet"


def benchmark_wide(options: argparse.Namespace, pool: ProcessPoolExecutor) -> None:
    print(
        f"\n{options.rows} rows × {options.columns} columns filtered to the informative ones"
        " (bounds: 60 s, 16 GiB)"
    )
    with tempfile.TemporaryDirectory() as folder:
        with ProcessPoolExecutor(
            1
        ) as maker:  # in a process of its own, so that its memory is not counted here
            source = maker.submit(
                made_parquet, Path(folder), options.rows, options.columns
            ).result()
            sources = [source, maker.submit(_as_csv, source).result()] if options.csv else [source]
        for path in sources:
            size = path.stat().st_size
            read = timed(lambda: _read_through(path))
            with ProcessPoolExecutor(1) as reader:
                seconds, peak, told = reader.submit(_sieve, path).result()
            print(
                f"{path.suffix:<9} {size / 2**30:6.2f} GiB   {seconds:6.1f} s,"
                f" {seconds / read:6.1f} × reading its bytes, peak {peak:.2f} GiB   {told}",
                flush=True,
            )


def _as_csv(path: Path) -> Path:
    import pyarrow.csv as csv
    import pyarrow.parquet as parquet

    csv.write_csv(parquet.read_table(path), path.with_suffix(".csv"))
    return path.with_suffix(".csv")


def _read_through(path: Path) -> None:
    with open(path, "rb", buffering=0) as file:
        while file.read(2**24):
            pass


def _sieve(path: Path) -> tuple[float, float, str]:
    begin = time.perf_counter()
    result = filter_columns(path, "seconds")
    return (
        time.perf_counter() - begin,
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        f"{result}",
    )


# Stopping rules
# --------------------------------------------------------------------------------------------------


DISTRIBUTIONS = {
    "normal, CV 2 %": lambda random, count: random.normal(1, 0.02, count),
    "lognormal, 0.3": lambda random, count: random.lognormal(0, 0.3, count),
    "modes 80/20": lambda random, count: (
        random.normal(1, 0.01, count) + 0.1 * (random.random(count) < 0.2)
    ),
    "5 % tail at 1.5 ×": lambda random, count: (
        random.normal(1, 0.02, count) * np.where(random.random(count) < 0.05, 1.5, 1)
    ),
    "autoregression 0.9": lambda random, count: 1 + 0.02 * _autoregression(random, count, 0.9),
}
TRUTH_SIZE, MOST_RUNS, REPLAYS = 200_000, 1500, 20


def _autoregression(random: np.random.Generator, count: int, rho: float) -> np.ndarray:
    from scipy.signal import lfilter

    return lfilter([1], [1, -rho], random.normal(size=count + 200))[200:]


def _stop(task: tuple[str, str, int]) -> tuple[int, bool, float, float, float, int]:
    """Runs at the stop, whether it stopped, errors of mean, CV and p99 then, and values beyond 1.25
    seen.
    """
    rule, name, seed = task
    values = DISTRIBUTIONS[name](np.random.default_rng(seed), MOST_RUNS)
    end = stopping.evaluate_rule(
        stopping.RULES[rule],
        values,
        np.ones(MOST_RUNS),
        every=1 if rule in ("count", "duration", "rare mode") else 10,
    )
    seen = values[: end.runs]
    return (
        end.runs,
        end.stopped,
        seen.mean(),
        seen.std(ddof=1) / seen.mean(),
        np.quantile(seen, 0.99),
        int((seen > 1.25).sum()),
    )


def benchmark_stopping(options: argparse.Namespace, pool: ProcessPoolExecutor) -> None:
    print(
        f"\nWhere stopping rules stop (median of {REPLAYS} replays of at most {MOST_RUNS} runs),"
        " and the error of what has been seen by then"
    )
    for name, draw in DISTRIBUTIONS.items():
        truth = draw(np.random.default_rng(10**6), TRUTH_SIZE)
        true = truth.mean(), truth.std() / truth.mean(), np.quantile(truth, 0.99)
        print(
            f"{name:<20} {'rule':<26} {'runs':>5} {'stopped':>8} {'|mean|':>8} {'|CV|':>8}"
            f" {'|p99|':>8}" + ("   twice in the tail" if "tail" in name else "")
        )
        for rule in stopping.RULES:
            ends = np.array(
                list(pool.map(_stop, [(rule, name, seed) for seed in range(REPLAYS)], chunksize=2)),
                float,
            )
            errors = [
                np.median(np.abs(ends[:, 2 + place] / value - 1))
                for place, value in enumerate(true)
            ]
            tail = f" {np.mean(ends[:, 5] >= 2):18.0%}" if "tail" in name else ""
            print(
                f"{'':<20} {rule:<26} {np.median(ends[:, 0]):5.0f} {np.mean(ends[:, 1]):8.0%} "
                + " ".join(f"{error:8.2%}" for error in errors)
                + tail,
                flush=True,
            )


BENCHMARKS = {
    "discovery": benchmark_discovery,
    "drift": benchmark_drift,
    "cutoff": benchmark_cutoff,
    "speed": benchmark_speed,
    "wide": benchmark_wide,
    "stopping": benchmark_stopping,
}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", choices=[*BENCHMARKS, []], default=[])
    parser.add_argument("--sets", type=int, default=200)
    parser.add_argument("--columns", type=int, default=39_000)
    parser.add_argument("--rows", type=int, default=14_400)
    parser.add_argument("--csv", action="store_true", help="the wide table as a CSV, too (4 GB)")
    chosen = parser.parse_args()
    with ProcessPoolExecutor(2) as processes:
        for wanted in chosen.names or [name for name in BENCHMARKS if name != "wide"]:
            BENCHMARKS[wanted](chosen, processes)
