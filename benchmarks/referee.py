"""How often is the referee wrong, how many pairs does it need, and what do other rules say?

`record FOLDER` measures programs against themselves, a stretch of each in turn (the same call goes
on). `evaluate FOLDER` resamples those runs: false alarms without a difference, pairs to a verdict
with a planted one beside the best possible number, and the verdicts of rules that run one side
after the other. `live` compares a program with itself, again and again. `planted` lets the injector
take a known share of each new run, without and with noise on both sides.
"""

import argparse
import gzip
import sys
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import beta, gaussian_kde, norm, ttest_ind

from nbhelpers.injection import Injector
from nbhelpers.measurement import finished, recorded_runs
from nbhelpers.noise import NoiseConfig
from nbhelpers.outcomes import worst_first
from nbhelpers.referee.duel import Duel, quads_of
from nbhelpers.referee.ruling import decide
from nbhelpers.referee.sides import Side
from nbhelpers.statistics.sequential import (
    BETTER,
    LEVEL,
    OPEN,
    WITHIN,
    WORSE,
    ConfidenceSequence,
)
from nbhelpers.tracing import read_traces
from nbhelpers.workloads import Workload, nbody, program

STRETCH = 25  # quads of one program, before the next has its turn
POWER = 0.9
CHANGES = (0.02, 0.05, 0.1)
PLANTED = 0.02  # of the run time, taken by the injector
SIDE_BY_SIDE = 50  # runs of each side for the rules that run one after the other


def programs(folder: Path) -> dict[str, Workload]:
    """Three programs of 10 to 60 ms: two threads that wait for each other, an interpreter that
    starts, and one thread that computes.
    """
    packed = folder / "text.gz"
    if not packed.exists():
        words = " ".join(f"{number * 7919 % 10007:x}" for number in range(900_000)).encode()
        packed.write_bytes(gzip.compress(words, mtime=0))
    return {
        "nbody": nbody(bodies=1200, steps=10, threads=2),
        "python": program([sys.executable, "-I", "-S", "-c", "sum(range(100000))"]),
        "gzip": program(["gzip", "-t", str(packed)]),
    }


def record(folder: Path, quads: int) -> None:
    """Quads of each program against itself; the same call goes on where an earlier one stopped."""
    folder.mkdir(parents=True, exist_ok=True)
    for upto in range(STRETCH, quads + STRETCH, STRETCH):
        for name, workload in programs(folder).items():
            duel = Duel(folder / name, Side(workload), Side(workload), min(upto, quads))
            runs = duel.run()
            print(f"{name}: {len(runs)} runs, {runs['seconds'].median():.4f} s", flush=True)


def recorded(folder: Path) -> dict[str, pd.DataFrame]:
    """Finished runs of each program, in the order of time."""
    names = sorted(path.parent.name for path in folder.glob("*/campaign.json"))
    return {name: finished(recorded_runs(folder / name)).sort_values("t0_ns") for name in names}


def best_pairs(ratios: np.ndarray, change: float, power: float = POWER) -> tuple[float, float]:
    """Pairs of the best test of fixed size that knows the noise beforehand: of the mean, and of
    ranks (Wilcoxon's, whose size follows from the density).
    """
    centred = ratios - np.median(ratios)
    density = gaussian_kde(
        centred, bw_method=0.5 * centred.size**-0.2 / centred.std() * spread_of(centred)
    )
    ranks = 1 / np.sqrt(12) / density.integrate_kde(density)
    factor = ((norm.ppf(1 - LEVEL / 2) + norm.ppf(power)) / np.log1p(change)) ** 2
    return factor * centred.var(), factor * ranks**2


def spread_of(values: np.ndarray) -> float:
    return float(np.subtract(*np.percentile(values, [75, 25])) / 1.349)


def share(count: int, total: int) -> str:
    """With its one-sided 95 % bound (Clopper and Pearson)."""
    bound = beta.ppf(0.95, count + 1, total - count)
    return f"{count} of {total} ({count / total:.2%}, at most {bound:.2%})"


def drawn_campaigns(rests: np.ndarray, campaigns: int, size: int, seed: int) -> np.ndarray:
    """Campaigns of `size` quads from stretches of measured ones, sides by a coin.

    Parameters
    ----------
    rests
        Log ratios of quads of equal sides, n × 2, in the order of time.
    campaigns, size, seed
        How many, of how many quads, and the seed of the drawing.

    Returns
    -------
    campaigns × size × 2.
    """
    random = np.random.default_rng(seed)
    length = max(1, round(2 * len(rests) ** (1 / 3)))
    starts = random.integers(len(rests), size=(campaigns, -(-size // length)))
    places = (starts[..., None] + np.arange(length)) % len(rests)
    chosen = rests[places.reshape(campaigns, -1)[:, :size]]
    return chosen * random.choice([-1.0, 1.0], (campaigns, size, 1))


def settle(campaigns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Verdicts of campaigns (log ratios, campaigns × quads × 2), and the quads until each."""
    verdicts, units = [], []
    for quads in campaigns:
        sequence = ConfidenceSequence()
        for first, second in quads:
            sequence.add(first, second)
            if sequence.verdict != OPEN:
                break
        verdicts.append(sequence.verdict)
        units.append(sequence.units)
    return np.array(verdicts), np.array(units)


def false_alarms(quads: dict[str, np.ndarray], campaigns: int, pairs: int, seed: int) -> None:
    print(f"\nA/A: {campaigns} campaigns of up to {pairs} pairs each, stretches of recorded runs")
    for name, measured in quads.items():
        drawn = drawn_campaigns(measured, campaigns, pairs // 2, seed)
        verdicts, _ = settle(drawn)
        wrong = int(np.isin(verdicts, [BETTER, WORSE]).sum())
        none = np.mean(verdicts == WITHIN)
        print(f"  {name}: false alarms {share(wrong, campaigns)}; within the margin {none:.0%}")


def power(quads: dict[str, np.ndarray], campaigns: int, pairs: int, seed: int) -> None:
    rows = []
    for name, measured in quads.items():
        drawn = drawn_campaigns(measured - np.median(measured), campaigns, pairs // 2, seed)
        for change in CHANGES:
            verdicts, units = settle(drawn + np.log1p(change))
            used = 2 * np.where(verdicts == WORSE, units, pairs // 2)
            mean, ranks = best_pairs(np.ravel(measured), change)
            rows.append(
                {
                    "program": name,
                    "change": f"{change:.0%}",
                    "paired sd": f"{np.std(measured):.1%} (robust {spread_of(measured):.1%})",
                    "in 100": f"{np.mean((verdicts == WORSE) & (used <= 100)):.0%}",
                    f"in {pairs}": f"{np.mean(verdicts == WORSE):.0%}",
                    "mean pairs": round(used.mean()),
                    "p90": round(np.quantile(used, 0.9)),
                    "best mean": round(mean),
                    "best ranks": round(ranks),
                    "over best": over(verdicts, used.mean() / max(min(mean, ranks), 20)),
                }
            )
    print(
        "\nplanted (new run times multiplied); best: pairs of a test of fixed size that knows the"
    )
    print(f"noise, power {POWER:.0%}, level {LEVEL}; a verdict takes 20 pairs or more by design")
    print(pd.DataFrame(rows).to_string(index=False))


def over(verdicts: np.ndarray, ratio: float) -> str:
    """The ratio, unless the budget ended too many campaigns before they had their verdict."""
    return f"{ratio:.2f}" if np.mean(verdicts == WORSE) >= 0.98 else "–"


def welch(old: np.ndarray, new: np.ndarray, level: float) -> bool:
    return bool(ttest_ind(old, new, equal_var=False).pvalue < level)


def pyperf(old: np.ndarray, new: np.ndarray) -> bool:
    """`pyperf compare_to`: Student's t with the pooled variance, two-sided at 95 %."""
    return bool(ttest_ind(old, new).pvalue < 0.05)


def hyperfine(old: np.ndarray, new: np.ndarray) -> bool:
    """As its ratio is read: 1 lies outside of "times faster", plus or minus its error."""
    ratio = new.mean() / old.mean()
    error = ratio * np.hypot(old.std(ddof=1) / old.mean(), new.std(ddof=1) / new.mean())
    return bool(abs(ratio - 1) > error)


RULES = {
    "Welch, 1 %": partial(welch, level=0.01),
    "Welch, 5 %": partial(welch, level=0.05),
    "pyperf": pyperf,
    "hyperfine": hyperfine,
}


def one_after_the_other(runs: dict[str, pd.DataFrame], campaigns: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    rows = []
    for name, table in runs.items():
        seconds = table["seconds"].to_numpy()
        starts = random.integers(seconds.size - 2 * SIDE_BY_SIDE, size=campaigns)
        for change in (0.0, 0.02, 0.05):
            pairs = [
                (
                    seconds[at : at + SIDE_BY_SIDE],
                    seconds[at + SIDE_BY_SIDE : at + 2 * SIDE_BY_SIDE] * (1 + change),
                )
                for at in starts
            ]
            found = {rule: np.mean([says(*pair) for pair in pairs]) for rule, says in RULES.items()}
            rows.append({"program": name, "change": f"{change:.0%}"} | found)
    table = pd.DataFrame(rows)
    table[list(RULES)] = table[list(RULES)].map("{:.0%}".format)
    print(
        f"\nother rules, {SIDE_BY_SIDE} runs of a side, then {SIDE_BY_SIDE} of the other: they say"
    )
    print("that the two differ in this share of the same recorded runs (0 %: false alarms)")
    print(table.to_string(index=False))


def evaluate(folder: Path, campaigns: int, pairs: int, seed: int) -> None:
    runs = recorded(folder)
    quads = {name: quads_of(table).to_numpy() for name, table in runs.items()}
    print(", ".join(f"{name}: {len(table)} runs" for name, table in runs.items()))
    false_alarms(quads, campaigns, pairs, seed)
    power(quads, campaigns, pairs, seed + 1)
    one_after_the_other(runs, campaigns, seed + 2)


def live(campaigns: int, pairs: int, seed: int) -> None:
    """A short program against itself, measured anew each time."""
    side = Side(program([sys.executable, "-I", "-S", "-c", "pass"]))
    verdicts = []
    for number in range(campaigns):
        verdicts.append(decide(side, side, pairs=pairs, seed=seed + number).verdict)
    wrong = sum(verdict in (BETTER, WORSE) for verdict in verdicts)
    print(f"live A/A, up to {pairs} pairs: false alarms {share(wrong, campaigns)};")
    print(f"  within the margin {verdicts.count(WITHIN)}, can't tell {verdicts.count(OPEN)}")


def replayed_noise() -> pd.DataFrame:
    """All noise events of the slowest run of a recorded campaign (stage 10)."""
    place = Path(__file__).parents[1] / "data/recorded/10-trace-collection/baseline"
    runs = finished(recorded_runs(place)).query("cell == 'traced'")
    return read_traces(place / "traces", worst_first(runs).head(1))


def events_of(start_ns: int, duration_ns: int) -> pd.DataFrame:
    """A real-time event on each of two CPUs."""
    one = {"run": 0, "kind": "irq", "source": "planted", "start_ns": start_ns}
    return pd.DataFrame([one | {"cpu": cpu, "duration_ns": duration_ns} for cpu in (0, 1)])


def disturbed(workload: Workload, noise: pd.DataFrame, label: str) -> Side:
    config = NoiseConfig.from_events(noise.assign(run=0), window_ns=10**9)
    return Side(workload, (Injector(config, "origin"),), label)


def planted(pairs: int, seconds: float) -> None:
    """What the injector takes from each new run, and what the referee says."""
    workload = nbody(bodies=3000, steps=15, threads=2)
    usual = finished(Duel(None, Side(workload), Side(workload), 3).run())["seconds"].median()
    taken_ns = int(PLANTED * usual * 1e9)
    print(f"nbody, {usual:.3f} s; the injector takes {taken_ns / 1e6:.2f} ms more of each new run")
    small = events_of(10**6, 20_000)
    large = events_of(10**6, 20_000 + taken_ns)
    noise = replayed_noise()
    for name, common in (("alone", small.iloc[:0]), ("under replayed noise", noise)):
        old, same, new = (
            disturbed(workload, pd.concat([common, own]), label)
            for own, label in ((small, "without"), (small, "without"), (large, "with"))
        )
        for label, side in (("no difference", same), ("planted", new)):
            ruling = decide(old, side, pairs=pairs, seconds=seconds)
            print(f"  {name}, {label}: {ruling.sentence}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("task", choices=["record", "evaluate", "live", "planted"])
    parser.add_argument("folder", type=Path, nargs="?", default=Path(tempfile.gettempdir()) / "ab")
    parser.add_argument("--quads", type=int, default=450, help="record: of each program")
    parser.add_argument("--campaigns", type=int, default=1000)
    parser.add_argument("--pairs", type=int, default=500, help="budget of a campaign")
    parser.add_argument("--seconds", type=float, default=60.0, help="planted: of a comparison")
    parser.add_argument("--seed", type=int, default=2024)
    chosen = parser.parse_args()
    {
        "record": lambda: record(chosen.folder.absolute(), chosen.quads),
        "evaluate": lambda: evaluate(chosen.folder, chosen.campaigns, chosen.pairs, chosen.seed),
        "live": lambda: live(chosen.campaigns, chosen.pairs, chosen.seed),
        "planted": lambda: planted(chosen.pairs, chosen.seconds),
    }[chosen.task]()


if __name__ == "__main__":
    main()
