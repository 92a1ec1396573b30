"""How often is the referee wrong, how many pairs does it need, and what do other rules say?

`record FOLDER` measures programs against themselves, a stretch of each in turn (the same call goes
on). `evaluate FOLDER` resamples those runs: how often `ab` and other rules call two sides changed,
without a difference and with a planted one. `simulate` does so with known noise. `live` measures
duels now: a loop against itself and against 2 and 5 % more turns, so many of each. `planted` lets
the injector take a known share of each new run, without and with noise on both sides.
"""

import argparse
import gzip
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.signal import lfilter
from scipy.stats import beta, mannwhitneyu, ttest_1samp, ttest_ind, ttest_rel, wilcoxon

from nbhelpers.injection import Injector
from nbhelpers.measurement import finished, recorded_runs
from nbhelpers.noise import NoiseConfig
from nbhelpers.outcomes import worst_first
from nbhelpers.referee.duel import Duel, log_ratios
from nbhelpers.referee.ruling import decide
from nbhelpers.referee.sides import Side
from nbhelpers.statistics.sequential import (
    BETTER,
    LEVEL,
    WORSE,
    Looks,
    signed_rank_interval,
)
from nbhelpers.tracing import read_traces
from nbhelpers.workloads import Workload, nbody, program

STRETCH = 50  # pairs of one program, before the next has its turn
CHANGES = (0.0, 0.02, 0.05)
SPREADS = (0.02, 0.03, 0.04, 0.05)  # of a run; from quartiles, where tails are heavy
NOISES = ("normal", "t2", "skewed", "neighbours", "drift")
PLANTED = 0.02  # of the run time, taken by the injector
LOOP = 1_000_000  # turns


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


def record(folder: Path, pairs: int) -> None:
    """Pairs of each program against itself; the same call goes on where an earlier one stopped."""
    folder.mkdir(parents=True, exist_ok=True)
    for upto in range(STRETCH, pairs + STRETCH, STRETCH):
        for name, workload in programs(folder).items():
            duel = Duel(folder / name, Side(workload), Side(workload), min(upto, pairs))
            runs = duel.run()
            print(f"{name}: {len(runs)} runs, {runs['seconds'].median():.4f} s", flush=True)


def recorded(folder: Path) -> dict[str, pd.DataFrame]:
    """Finished runs of each program, in the order of time."""
    names = sorted(path.parent.name for path in folder.glob("*/campaign.json"))
    return {name: finished(recorded_runs(folder / name)).sort_values("t0_ns") for name in names}


def share(count: int, total: int) -> str:
    """With its one-sided 95 % bound (Clopper and Pearson)."""
    bound = beta.ppf(0.95, count + 1, total - count) if count < total else 1
    return f"{count} of {total} ({count / total:.2%}, at most {bound:.2%})"


def stretches(times: np.ndarray, campaigns: int, pairs: int, seed: int) -> np.ndarray:
    """Logarithms of run times of campaigns (campaigns × pairs × 2), from stretches of measured
    runs of equal sides in the order of time.
    """
    random = np.random.default_rng(seed)
    rests = np.log(times[: len(times) // 2 * 2]).reshape(-1, 2)
    length = max(1, round(2 * len(rests) ** (1 / 3)))
    starts = random.integers(len(rests), size=(campaigns, -(-pairs // length)))
    places = (starts[..., None] + np.arange(length)) % len(rests)
    return rests[places.reshape(campaigns, -1)[:, :pairs]]


def synthetic(noise: str, spread: float, campaigns: int, pairs: int, seed: int) -> np.ndarray:
    """The same of noise that is known: normal; Student's t with 2 degrees of freedom; exponential;
    autoregressive, 0.5 from a round to the next; normal with a random walk and a trend.
    """
    random, shape = np.random.default_rng(seed), (campaigns, 2 * pairs)
    logs = random.normal(size=shape)
    if noise == "t2":
        logs = random.standard_t(2, shape) / 1.21  # its quartiles, over the normal's
    elif noise == "skewed":
        logs = random.exponential(size=shape)
    elif noise == "neighbours":
        share = np.sqrt(0.5)  # from a run to the next
        logs = lfilter([np.sqrt(1 - share**2)], [1, -share], logs, axis=1)
    elif noise == "drift":
        logs += np.cumsum(0.1 * random.normal(size=shape), axis=1) + np.linspace(0, 2, shape[1])
    return spread * logs.reshape(campaigns, pairs, 2)


@dataclass(frozen=True)
class Duels:
    """Campaigns with a change: logarithms of run times of both sides in turn, and of one side
    after the other (campaigns × runs of a side each).
    """

    old: np.ndarray
    new: np.ndarray
    first: np.ndarray
    then: np.ndarray

    @classmethod
    def of(cls, logs: np.ndarray, change: float, seed: int) -> "Duels":
        coins = np.random.default_rng(seed).random((*logs.shape[:2], 1)) < 0.5
        is_new = coins ^ np.array([False, True])
        flat, size = logs.reshape(len(logs), -1), len(logs)
        first, then = np.split(flat, 2, axis=1)
        sides = logs[~is_new].reshape(size, -1), logs[is_new].reshape(size, -1)
        return cls(sides[0], sides[1] + np.log1p(change), first, then + np.log1p(change))


def by_ab(duels: Duels) -> list[Looks]:
    """What is known of each campaign at its verdict or end."""
    return [Looks().over(ratios, [len(ratios)]) for ratios in duels.new - duels.old]


def ended_by_time(duels: Duels, change: float) -> str:
    """Intervals without the true change, where a campaign ends after the seconds of half its runs
    (a run takes 1 s, more or less), and no look is before.
    """
    seconds = np.exp(duels.new) + np.exp(duels.old)
    pairs = 1 + (seconds.cumsum(axis=1) > seconds.shape[1]).argmax(axis=1)
    ends = [
        signed_rank_interval(ratios[:count], LEVEL)
        for ratios, count in zip(duels.new - duels.old, pairs)
    ]
    low, high = np.expm1(ends).T
    return share(int(((low > change) | (high < change)).sum()), len(ends))


def by_paired_t(duels: Duels) -> np.ndarray:
    return ttest_rel(duels.new, duels.old, axis=1).pvalue < LEVEL


def by_mann_whitney(duels: Duels) -> np.ndarray:
    return mannwhitneyu(duels.new, duels.old, axis=1).pvalue < LEVEL


def by_pyperf(duels: Duels) -> np.ndarray:
    """`pyperf compare_to`: Student's t with the pooled variance, two-sided at 95 %; one side after
    the other.
    """
    return ttest_ind(np.exp(duels.first), np.exp(duels.then), axis=1).pvalue < 0.05


def by_hyperfine(duels: Duels) -> np.ndarray:
    """As its ratio is read: 1 lies outside of "times faster", plus or minus its error; one side
    after the other.
    """
    first, then = np.exp(duels.first), np.exp(duels.then)
    ratio = then.mean(axis=1) / first.mean(axis=1)
    errors = [side.std(axis=1, ddof=1) / side.mean(axis=1) for side in (first, then)]
    return np.abs(ratio - 1) > ratio * np.hypot(*errors)


RULES = {
    "paired t": by_paired_t,
    "Mann-Whitney": by_mann_whitney,
    "pyperf": by_pyperf,
    "hyperfine": by_hyperfine,
}


def compared(logs: np.ndarray, change: float, seed: int) -> dict[str, str]:
    """How many campaigns each rule calls changed; of `ab` the mean number of pairs, too."""
    duels = Duels.of(logs, change, seed)
    found = by_ab(duels)
    changed = sum(looks.verdict in (BETTER, WORSE) for looks in found)
    pairs = np.mean([looks.units for looks in found])
    others = {name: f"{rule(duels).mean():.2%}" for name, rule in RULES.items()}
    return {"ab": share(changed, len(found)), "pairs": f"{pairs:.0f}"} | others


def evaluate(folder: Path, campaigns: int, pairs: int, seed: int) -> None:
    rows = []
    for name, table in recorded(folder).items():
        logs = stretches(table["seconds"].to_numpy(), campaigns, pairs, seed)
        for change in CHANGES:
            found = compared(logs, change, seed + 1)
            rows.append({"program": name, "runs": len(table), "change": f"{change:.0%}"} | found)
            print(rows[-1], flush=True)
    print(pd.DataFrame(rows).to_string(index=False))


def simulate(campaigns: int, pairs: int, seed: int) -> None:
    """Power of all spreads; of the widest false alarms, too, and intervals at the end of a time."""
    for noise in NOISES:
        for spread in SPREADS:
            logs = synthetic(noise, spread, campaigns, pairs, seed)
            for change in CHANGES[:2] if spread == max(SPREADS) else CHANGES[1:2]:
                found = compared(logs, change, seed + 1)
                print({"noise": noise, "sd": spread, "change": f"{change:.0%}"} | found, flush=True)
        for change in CHANGES:
            missed = ended_by_time(Duels.of(logs, change, seed + 2), change)
            print(f"{noise}, {change:.0%}, ended by time: true change excluded in {missed}")


def live(campaigns: int, pairs: int, seed: int) -> None:
    """Duels that are measured now, in random order: a loop of an interpreter against itself, and
    against the same loop with 2 and with 5 % more turns. Beside: what the paired t-test
    and Wilcoxon's say once, of the pairs that the referee measured.
    """
    duels = [change for change in CHANGES for _ in range(campaigns)]
    found = {change: [] for change in CHANGES}
    for number in np.random.default_rng(seed).permutation(len(duels)):
        change = duels[number]
        old, new = (looped(round(LOOP * factor)) for factor in (1, 1 + change))
        with tempfile.TemporaryDirectory() as folder:
            ruling = decide(old, new, folder, pairs=pairs, seed=seed + int(number))
            ratios = log_ratios(finished(recorded_runs(folder)))
        row = {"ab": ruling.verdict, "pairs": len(ratios), "t": ttest_1samp(ratios, 0).pvalue}
        row["signed rank"] = wilcoxon(ratios).pvalue
        found[change].append(row)
    for change, rows in found.items():
        table = pd.DataFrame(rows)
        counts = table["ab"].value_counts().to_dict()
        print(f"{change:.0%} more turns: {counts}, pairs {table['pairs'].median():.0f} (median)")
        said = {"ab": table["ab"].isin([BETTER, WORSE])}
        said |= {name: table[name] < LEVEL for name in ("t", "signed rank")}
        for name, changed in said.items():
            print(f"  {name} says changed: {share(int(changed.sum()), len(changed))}", flush=True)


def looped(turns: int) -> Side:
    """A loop of an interpreter, some 30 ms."""
    return Side(program([sys.executable, "-I", "-S", "-c", f"for i in range({turns}): pass"]))


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
    parser.add_argument("task", choices=["record", "evaluate", "simulate", "live", "planted"])
    parser.add_argument("folder", type=Path, nargs="?", default=Path(tempfile.gettempdir()) / "ab")
    parser.add_argument("--record", type=int, default=900, help="pairs of each program")
    parser.add_argument("--campaigns", type=int, default=1000)
    parser.add_argument("--pairs", type=int, default=500, help="budget of a campaign")
    parser.add_argument("--seconds", type=float, default=60.0, help="planted: of a comparison")
    parser.add_argument("--seed", type=int, default=2024)
    chosen = parser.parse_args()
    {
        "record": lambda: record(chosen.folder.absolute(), chosen.record),
        "evaluate": lambda: evaluate(chosen.folder, chosen.campaigns, chosen.pairs, chosen.seed),
        "simulate": lambda: simulate(chosen.campaigns, chosen.pairs, chosen.seed),
        "live": lambda: live(chosen.campaigns, chosen.pairs, chosen.seed),
        "planted": lambda: planted(chosen.pairs, chosen.seconds),
    }[chosen.task]()


if __name__ == "__main__":
    main()
