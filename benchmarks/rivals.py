"""Mechanisms beside their plain rivals, on data that neither was tuned on: how often each is right.

    python benchmarks/rivals.py [NAME …] [--sets 200]

`cutoff`: runs labelled rightly, beside the valley of a kernel density, Tukey's fence and the
slowest quarter. `turns`: false alarms of runs in turn, beside one side after the other. `rounds`:
intervals of a ratio by whole rounds, beside scipy.stats.bootstrap of single runs. `claims`: what
judged trials of mitigations claim, beside Welch's test of each. `choice`: where a mitigation that
is known against the planted cause stands in our order, beside the catalogue's. `switches`: noise
of threads where one switch in fifty is removed. `lengths`: sums of net and of gross lengths.
`merge`: ordinary noise that stays ordinary. `records`: changed bytes and lost lines of recorded
files that are noticed.

Data are made here (seeds of 900,000 and more) or recorded (data/recorded). Intervals are 95 %
(Wilson). A minute or two each.
"""

import argparse
import json
import os
import sys
import tempfile
import warnings
from pathlib import Path
from unittest.mock import patch

for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np
import pandas as pd
from _shares import share
from autopilot import DRAWS, trial
from modes import SHAPES, SINGLES
from scipy.stats import bootstrap, gaussian_kde, ttest_ind

from nbhelpers import records
from nbhelpers.attribution import find_cutoff
from nbhelpers.measurement import recorded_runs
from nbhelpers.mitigation import explain_factor, mitigations
from nbhelpers.mitigation._autopilot import wanted_mitigations
from nbhelpers.mitigation.report import found_factors
from nbhelpers.mitigation.trials import MIXED, SEEMS, Pair, judge_trials
from nbhelpers.noise import NoiseConfig
from nbhelpers.statistics import compare
from nbhelpers.statistics.comparison import NO_DIFFERENCE
from nbhelpers.tracing import netduration, read_recording, tracepoints
from nbhelpers.tracing._missing_switches import SWITCH, WAKE, InferredSwitches

RECORDED = Path(__file__).resolve().parents[1] / "data" / "recorded"
FIRST_SEED = 900_000


# Classes of runs
# --------------------------------------------------------------------------------------------------

TAILS = {
    "tenth, to ×1.5": (200, 0.1, 1.05, 1.5),
    "twentieth, to ×2": (200, 0.05, 1.1, 2.0),
    "tenth, to ×1.2": (100, 0.1, 1.05, 1.2),
}


def valley(values: np.ndarray) -> float | None:
    """The lowest place of a kernel density of the logarithms between two peaks."""
    logs = np.log(values - min(0.0, 2 * values.min()) + 1e-9)
    if logs.std() < 1e-9:
        return None
    grid = np.linspace(logs.min(), logs.max(), 400)
    density = gaussian_kde(logs)(grid)
    lowest = np.flatnonzero((density[1:-1] < density[:-2]) & (density[1:-1] <= density[2:])) + 1
    lowest = (
        lowest[
            [
                (logs > grid[at]).mean() >= 0.03 and (logs <= grid[at]).mean() >= 0.03
                for at in lowest
            ]
        ]
        if lowest.size
        else lowest
    )
    if not lowest.size:
        return None
    cut = grid[lowest[np.argmin(density[lowest])]]
    return float((values[logs <= cut].max() + values[logs > cut].min()) / 2)


def fence(values: np.ndarray) -> float | None:
    """Tukey's upper fence, if three runs or more lie beyond it."""
    low, high = np.percentile(values, [25, 75])
    cut = high + 1.5 * (high - low)
    return float(cut) if (values > cut).sum() >= 3 else None


METHODS = {
    "find_cutoff": lambda values, seed: find_cutoff(values, seed).value,
    "valley of a kernel density": lambda values, seed: valley(values),
    "Tukey's fence": lambda values, seed: fence(values),
    "valley, else fence": lambda values, seed: valley(values) or fence(values),
    "slowest quarter": lambda values, seed: float(np.percentile(values, 75)),
}


def with_tail(random: np.random.Generator, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Runs of CV 1 %, some of them lengthened by a uniform factor."""
    runs, part, least, most = TAILS[name]
    slow = random.permutation(np.arange(runs) < round(part * runs))
    return random.normal(1, 0.01, runs) * np.where(slow, random.uniform(least, most, runs), 1), slow


def of_shape(random: np.random.Generator, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Runs of a shape of benchmarks/modes.py, and which are slow."""
    shape = SHAPES[name]
    slow = random.permutation(np.arange(shape.runs) < round(shape.slow * shape.runs))
    fast_class, slow_class = (
        each.rvs(shape.runs, random_state=random) for each in (shape.fast_class, shape.slow_class)
    )
    return np.where(slow, slow_class, fast_class), slow


def agreement(found: np.ndarray, slow: np.ndarray) -> float:
    """Mean of the shares of slow and of fast runs that are labelled rightly."""
    return float((found[slow].mean() + (~found[~slow]).mean()) / 2)


def cutoff(sets: int) -> None:
    each = max(2, sets // 20)
    good = dict.fromkeys(METHODS, 0)
    tailed, divided = good.copy(), good.copy()
    for draw, names, counts in ((of_shape, SHAPES, good), (with_tail, TAILS, tailed)):
        for name in names:
            for seed in range(FIRST_SEED, FIRST_SEED + each):
                values, slow = draw(np.random.default_rng(seed), name)
                for method, cut in METHODS.items():
                    at = cut(values, seed)
                    counts[method] += at is not None and agreement(values > at, slow) >= 0.9
    for single in SINGLES.values():
        for seed in range(FIRST_SEED, FIRST_SEED + each):
            values = single(np.random.default_rng(seed), 100)
            for method, cut in METHODS.items():
                divided[method] += cut(values, seed) is not None
    sizes = len(SHAPES) * each, len(TAILS) * each, len(SINGLES) * each
    print("nine tenths of slow and of fast runs labelled rightly (two modes; tails), and one class")
    print("divided")
    for method in METHODS:
        cells = (
            share(*pair) for pair in zip((good[method], tailed[method], divided[method]), sizes)
        )
        print(f"{method:<28}{'   '.join(cells)}")


# Comparisons
# --------------------------------------------------------------------------------------------------


def turns(sets: int) -> None:
    """The same undisturbed runs, split in the middle or by a coin in each pair of neighbours."""
    for source in ("recorded", "trend", "autoregression 0.9"):
        wrong = {"one after the other, Welch": 0, "in turn, Welch": 0, "in turn, by rounds": 0}
        for seed in range(FIRST_SEED, FIRST_SEED + sets):
            random = np.random.default_rng(seed)
            values = DRAWS[source](random, 60)
            old, new = trial(values, random)
            wrong["one after the other, Welch"] += differs(values[:30], values[30:])
            wrong["in turn, Welch"] += differs(old["seconds"], new["seconds"])
            wrong["in turn, by rounds"] += compare(old, new).better != NO_DIFFERENCE
        print(f"{source}, undisturbed, 30 runs of a side: a difference is claimed")
        for name, count in wrong.items():
            print(f"   {name:<28}{share(count, sets)}")


def differs(old: object, new: object) -> bool:
    return bool(ttest_ind(old, new, equal_var=False).pvalue < 0.05)


def rounds(sets: int) -> None:
    """Intervals of a ratio of means of equal sides: how often 1 lies outside, and how wide."""
    for source in ("recorded", "trend", "autoregression 0.9"):
        outside = {"by rounds": 0, "scipy.stats.bootstrap": 0}
        ratios = []
        for seed in range(FIRST_SEED, FIRST_SEED + sets):
            random = np.random.default_rng(seed)
            old, new = trial(DRAWS[source](random, 60), random)
            ours = compare(old, new, seed=seed).table.loc["mean", ["low", "high"]].to_numpy(float)
            plain = scipy_interval(new["seconds"], old["seconds"], random)
            for name, (low, high) in zip(outside, (ours, plain)):
                outside[name] += not low <= 1 <= high
            ratios.append((ours[1] - ours[0]) / (plain[1] - plain[0]))
        print(f"{source}, 30 rounds: width by rounds / by runs {np.median(ratios):.2f} (median)")
        for name, count in outside.items():
            print(f"   {name:<24}1 outside: {share(count, sets)}")


def scipy_interval(
    above: pd.Series, below: pd.Series, random: np.random.Generator
) -> tuple[float, float]:
    def ratio(first: np.ndarray, second: np.ndarray, axis: int) -> np.ndarray:
        return first.mean(axis=axis) / second.mean(axis=axis)

    options = {"n_resamples": 2000, "method": "percentile", "rng": random}
    found = bootstrap((above, below), ratio, vectorized=True, **options).confidence_interval
    return float(found.low), float(found.high)


def claims(sets: int) -> None:
    """Four mitigations, 30 rounds each: none does anything, or the first saves a twentieth."""
    names = list(mitigations())[:4]
    for source in ("recorded", "normal", "two modes, 80/20", "trend"):
        for factor in (1.0, 0.95):
            seeds = range(FIRST_SEED, FIRST_SEED + sets)
            said = [_said(names, source, factor, seed) for seed in seeds]
            idle = set(names) if factor == 1 else set(names[1:])
            print(f"{source}, the first takes {factor:g} of its time: a false gain; the true one")
            for rule in said[0]:
                wrong = sum(bool(one[rule] & idle) for one in said)
                right = sum(names[0] in one[rule] for one in said)
                found = share(right, sets) if factor < 1 else ""
                print(f"   {rule:<28}{share(wrong, sets):<34}{found}")


def _said(names: list[str], source: str, factor: float, seed: int) -> dict[str, set[str]]:
    """By rule, the mitigations that are said to help."""
    random = np.random.default_rng(seed)

    def drawn(name: str) -> Pair:
        return trial(DRAWS[source](random, 60), random, factor if name == names[0] else 1.0)

    pairs = {name: drawn(name) for name in names}
    seeming = {name for name, one in judge_trials(pairs).items() if one.verdict in (SEEMS, MIXED)}
    again = judge_trials({name: drawn(name) for name in names if name in seeming})
    p_values = {name: gain_p_value(*pair) for name, pair in pairs.items()}
    return {
        "Welch, each alone": {name for name, p_value in p_values.items() if p_value < 0.05},
        "Welch, Bonferroni": {name for name, p_value in p_values.items() if p_value < 0.05 / 4},
        "judged together": seeming,
        "judged, and confirmed": {name for name, one in again.items() if one.verdict == SEEMS},
    }


def gain_p_value(old: pd.DataFrame, new: pd.DataFrame) -> float:
    """Of Welch's test, two-sided; 1 where the treated runs are not faster."""
    test = ttest_ind(old["seconds"], new["seconds"], equal_var=False)
    return float(test.pvalue) if test.statistic > 0 else 1.0


# Mitigations to try
# --------------------------------------------------------------------------------------------------


def choice(sets: int) -> None:
    """Where the first mitigation that is known against the planted cause stands in the order of
    the autopilot, and in the catalogue's; held-out causes.
    """
    sys.path.insert(0, str(RECORDED.parents[1] / "extras" / "known_causes"))
    from noisebook_known_causes.scores import explained_cause
    from noisebook_known_causes.tables import HELD_OUT, PLANTED, bench_tables, split

    effects = split().set_index(["cause", "dose"])["low"]

    catalogue = [name for name, one in mitigations().items() if one.automated]
    places: dict[str, list[float]] = {
        "autopilot": [],
        "catalogue": [],
        "autopilot, then catalogue": [],
    }
    for one in bench_tables(HELD_OUT):
        known = [
            name for factor in one.cause.factors for name in explain_factor(factor).mitigations
        ]
        against = {name for name in known if name in catalogue}
        if one.kind != PLANTED or not against or effects[one.cause.id, one.dose] <= 1:
            continue
        factors = list(found_factors(explained_cause(one.runs, FIRST_SEED)).index)
        ours = list(wanted_mitigations(None, factors, False))
        orders = ours, catalogue, [*ours, *(name for name in catalogue if name not in ours)]
        for found, order in zip(places.values(), orders):
            found.append(next((at for at, name in enumerate(order, 1) if name in against), np.inf))
    for name, found in places.items():
        for first in (1, 2, 5):
            early = int((np.array(found) <= first).sum())
            print(f"{name:<28}one of them among the first {first}: {share(early, len(found))}")


# Traces
# --------------------------------------------------------------------------------------------------


def _as_recorded(raw: pd.DataFrame) -> InferredSwitches:
    return InferredSwitches(raw[raw["event"] != WAKE], 0, 0)


def switches(sets: int) -> None:
    """Noise of threads in recorded traces from which switches were removed."""
    paths = sorted(
        (RECORDED / "10-trace-collection" / "baseline" / "traces").glob("*.tracepoints.gz")
    )
    off: dict[str, list[float]] = {"inferred": [], "as recorded": []}
    for number, path in enumerate(paths[: max(10, sets // 5)]):
        header, raw = read_recording(path)
        random = np.random.default_rng(FIRST_SEED + number)
        lost = (raw["event"] == SWITCH).to_numpy() & (random.random(len(raw)) < 0.02)
        truth = of_threads(tracepoints.events_of_recording(header, raw, path))
        thinned = raw[~lost].reset_index(drop=True)
        off["inferred"].append(
            of_threads(tracepoints.events_of_recording(header, thinned, path)) - truth
        )
        with patch.object(netduration, "infer_switches", _as_recorded):
            found = of_threads(tracepoints.events_of_recording(header, thinned, path))
        off["as recorded"].append(found - truth)
    print(
        f"{len(off['inferred'])} recorded runs, a switch in fifty removed; noise of threads is off"
    )
    for name, errors in off.items():
        size = np.abs(errors) / 1e6
        print(
            f"{name:<16}{np.median(size):.3f} ms (median), {size.mean():.3f} ms (mean),"
            f" {size.max():.3f} ms (largest)"
        )


def of_threads(events: pd.DataFrame) -> float:
    """Net ns of threads in a run."""
    return float(events.loc[events["kind"] == "thread", "duration_ns"].sum())


def lengths(sets: int) -> None:
    """The sum of the events' lengths in recorded traces, beside the time that they cover."""
    folders = (
        "10-trace-collection/baseline",
        "35-planted-anomaly/traced",
        "40-mitigations/planted",
    )
    for folder in folders:
        paths = sorted((RECORDED / folder / "traces").glob("*.tracepoints.gz"))
        sums = np.zeros(3)
        for path in paths[: max(10, sets // 5)]:
            events = tracepoints.read_tracepoints(path)
            gross = (events["end_ns"] - events["start_ns"]).sum()
            sums += gross, events["duration_ns"].sum(), covered_ns(events)
        print(
            f"{folder:<30}gross {sums[0] / sums[2]:.2%}, net {sums[1] / sums[2]:.2%} of"
            f" {sums[2] / 1e6:.1f} ms"
        )


def covered_ns(events: pd.DataFrame) -> int:
    """Time of all CPUs that lies within some event."""
    total = 0
    for _, own in events.sort_values("start_ns").groupby("cpu"):
        start, end = own["start_ns"].to_numpy(), own["end_ns"].to_numpy()
        until = np.maximum.accumulate(end)
        total += int((until - np.maximum(start, np.append(0, until[:-1]))).clip(min=0).sum())
    return total


def merge(sets: int) -> None:
    """Ordinary noise of recorded runs that stays ordinary in the list that is replayed."""
    paths = sorted(
        (RECORDED / "10-trace-collection" / "baseline" / "traces").glob("*.tracepoints.gz")
    )
    merges = "improved", "pessimistic"
    sums = dict.fromkeys(merges, 0.0)
    for path in paths[: max(10, sets // 5)]:
        events = tracepoints.read_tracepoints(path)
        for name in merges:
            sums[name] += ordinary(NoiseConfig.from_events(events, merge=name).events())
    for name in merges:
        print(f"{name:<14}{sums[name] / 1e6:.1f} ms of ordinary noise")


def ordinary(events: pd.DataFrame) -> float:
    return float(events.loc[events["policy"] == "SCHED_OTHER", "duration_ns"].sum())


# Records
# --------------------------------------------------------------------------------------------------


def noticed(content: bytes, path: Path) -> bool:
    path.write_bytes(content)
    return bool(records.read(path).damage)


def as_json(content: bytes) -> bool:
    """Whether some line is no JSON object."""
    try:
        return not all(isinstance(json.loads(line), dict) for line in content.splitlines())
    except ValueError:
        return True


def record_files(sets: int) -> None:
    """One byte of a recorded file replaced by another printable one, or one line left out."""
    rows = recorded_runs(RECORDED / "30-injection/2850c1bb1b476a02").head(40)
    random = np.random.default_rng(FIRST_SEED)
    found = {"byte, our checks": 0, "byte, JSON": 0, "line, our checks": 0, "line, JSON": 0}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "runs.jsonl"
        whole = records.write_records(path, json.loads(rows.to_json(orient="records"))).read_bytes()
        for _ in range(sets):
            at = int(random.integers(len(whole)))
            others = [byte for byte in range(32, 127) if byte != whole[at]]
            changed = whole[:at] + bytes([int(random.choice(others))]) + whole[at + 1 :]
            lines = whole.splitlines(keepends=True)
            gone = int(random.integers(len(lines) - 1))  # the seal counts those at the end
            shorter = b"".join(lines[:gone] + lines[gone + 1 :])
            for name, content in (("byte", changed), ("line", shorter)):
                found[f"{name}, our checks"] += noticed(content, path)
                found[f"{name}, JSON"] += as_json(content)
    for name, count in found.items():
        print(f"{name:<20}{share(count, sets)} noticed")


BENCHMARKS = {
    "cutoff": cutoff,
    "turns": turns,
    "rounds": rounds,
    "claims": claims,
    "choice": choice,
    "switches": switches,
    "lengths": lengths,
    "merge": merge,
    "records": record_files,
}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", choices=[*BENCHMARKS, []], default=[])
    parser.add_argument("--sets", type=int, default=200)
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    for wanted in chosen.names or list(BENCHMARKS):
        print(f"\n{wanted}")
        BENCHMARKS[wanted](chosen.sets)
