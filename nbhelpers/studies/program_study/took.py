"""What the slow runs of a program lost, by name, and what else they did differently.

Owns the join of two searches: names of the trace over traced runs, counters and output over all.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pandas as pd
from scipy.stats import spearmanr

from ...account import owned_ms
from ...account.owners import SAME_CALLS
from ...account.path import PROGRAM
from ...attribution import slow_runs, who_took_it
from ...attribution.who import (
    ALIKE,
    CHANCE,
    COMPUTED,
    EXPLAINS,
    FEWEST,
    NOT_OF_TRACE,
    SURE,
    SlowRuns,
    best_first,
    counters_of,
    in_words,
    is_new,
    output_of,
    slowest_quarter,
)
from ...measurement import consequences, rates
from ...outcomes import Outcome
from ...speed import read_speed
from ...statistics.claims import p_text

# counters of the program's own work: a slower CPU makes none of them larger
_WORK = {
    "instructions": "executed {} times as many instructions",
    "io_read_chars": "read {} times as many bytes",
    "io_write_chars": "wrote {} times as many bytes",
    "minor_faults": "touched {} times as many new pages",
}
# what tells classes of runs apart where other load hides them in the run times
_SET_APART = ("user_s", "io_read_chars", "io_write_chars", "instructions", "output_lines")
SLOWER_CPU = "a slower CPU or memory"
SPEEDS = ["latency", "throughput", "memory"]  # of the probe
FEWEST_SLOW = 3
_LONGER = 1.05  # of user time: it is said


@dataclass(frozen=True)
class Thresholds:
    """What counts as an explanation of slow runs.

    Parameters
    ----------
    explains
        Share of what they took longer from which on a name comes before all counters.
    most, others
        A name with so large a share needs no p, where no other run lost so large a share of it.
    chance
        Largest p of anything else.
    alike
        Counters that differ by a smaller share explain nothing.
    sure
        Largest p of a class that its user time or its output shows, that it costs more.
    """

    explains: float = EXPLAINS
    most: float = 0.5
    others: float = 0.2
    chance: float = CHANCE
    alike: float = ALIKE
    sure: float = SURE


class Later(NamedTuple):
    """What the later half of the traced runs says of the name that the earlier half gives first.

    Parameters
    ----------
    part, name
        As in the table of `nbhelpers.attribution.who_took_it`.
    p_value
        As in the table, of this name alone and of the later runs.
    before, runs
        Earlier and later runs.
    """

    part: str
    name: str
    p_value: float
    before: int
    runs: int

    def __str__(self) -> str:
        again = "again" if self.p_value <= CHANCE else "not beyond chance"
        runs = f"The first {self.before} traced runs name it, the next {self.runs}"
        return f"{runs} {again} (p {p_text(self.p_value)})."


@dataclass(frozen=True)
class Took:
    """What slow runs lost, by name.

    Parameters
    ----------
    slow
        Which of the runs are slow, traced or not.
    lost_ms
        Who had the time of each traced run (`nbhelpers.account.owned_ms`).
    table
        Names, counters and output, the best first (`nbhelpers.attribution.who_took_it`).
    user_s
        Median user time of the slow runs, and of the others.
    printed
        Which runs print more than the others, in words, be they slow or not; empty: none.
    speed
        How fast the loop of the speed probe ran beside the slow ones, of its speed beside the
        others; NaN: no slower, beyond chance.
    thresholds
        The limits by which it was judged.
    tested
        The name of the earlier traced runs in the later ones; None: they are too few.
    """

    slow: SlowRuns
    lost_ms: pd.DataFrame
    table: pd.DataFrame
    user_s: tuple[float, float]
    printed: str = ""
    speed: float = float("nan")
    thresholds: Thresholds = Thresholds()
    tested: Later | None = None

    @property
    def best(self) -> pd.Series | None:
        """What separates the slow runs beyond chance, the first of the table; None: nothing.

        The slowest of one class have other counters in any case, and compute longer, which says
        something where the probe's loop took longer, too.
        """
        unnamed = [] if self.slow.is_class else [*NOT_OF_TRACE]
        unnamed += [] if self.slow.is_class or self.speed < 1 else [*COMPUTED]
        return self._first(~self.table["part"].isin(unnamed))

    @property
    def later(self) -> Later | None:
        """What later runs say of the best; None: earlier ones alone do not name it."""
        best, tested = self.best, self.tested
        if best is None or tested is None or (best["part"], best["name"]) != tested[:2]:
            return None
        return tested

    @property
    def name(self) -> str:
        """Who or what the best is, in few words; empty: nothing separates the slow runs."""
        if self.best is None:
            return ""
        own = {"slower": "the same calls took longer", "output": "other output"}
        computed = SLOWER_CPU if self._slower_cpu else "the program's own computing"
        if self.best["name"] == PROGRAM:
            own |= dict.fromkeys(("computing", "work"), computed)
        return own.get(self.best["part"], str(self.best["name"]))

    @property
    def other_output(self) -> pd.Series | None:
        """The row of the output, where that separates a class of slow runs beyond chance."""
        return self._first((self.table["part"] == "output") & self.slow.is_class)

    def words(self) -> str:
        """What the best says; of runs that compute longer, or print something else, both."""
        best, other, (slow_s, usual_s) = self.best, self.other_output, self.user_s
        if best is None:
            return ""
        said, more = [in_words(best)], self._more_work() if best["part"] in COMPUTED else ""
        if more:
            said = [f"{said[0].partition(':')[0].rstrip('.')}: more work.", more]
        elif self._slower_cpu:
            said = [f"{said[0].partition(':')[0].rstrip('.')}: {SLOWER_CPU}."]
            said.append(f"A loop beside them ran at {100 * self.speed:.0f} % of its usual speed.")
        if best["part"] in (*COMPUTED, "output") and slow_s > _LONGER * usual_s and len(said) < 2:
            said.append(f"Their user time is {slow_s:.3g} s, ordinary {usual_s:.3g} s.")
        if best["part"] in COMPUTED and other is not None and not more:
            said.append(in_words(other))
        if self._second is not None:
            said.append(in_words(self._second).replace("They", "They also", 1))
        return " ".join(said)

    @property
    def _second(self) -> pd.Series | None:
        """Who explains some of it beside a CPU or a program that took longer; None: nobody."""
        others = ~self.table["part"].isin([*COMPUTED, *NOT_OF_TRACE])
        named = others & (self.table.get("explained_share", 0) >= self.thresholds.explains)
        is_computed = self.best is not None and self.best["part"] in COMPUTED
        return self._first(named) if is_computed else None

    @property
    def _slower_cpu(self) -> bool:
        """Whether what was computed longer was so since the CPU or the memory was slower."""
        best = self.best
        computed = best is not None and best["part"] in COMPUTED and not is_new(best)
        more = self.other_output is not None or bool(self._more_work())
        return computed and self.speed < 1 and not more

    def _more_work(self) -> str:
        """The counter by which each slow run did more than any other run, or that they come back by
        number; empty: neither.
        """
        if not self.slow.is_class or (self.best is not None and is_new(self.best)):
            return ""
        known = self.table[self.table["name"].isin(_WORK) & (self.table["part"] == "counter")]
        times = known["slow_low"] / known["others_high"].where(known["others_high"] > 0)
        more = known[(times > _LONGER) & (known["p_value"] <= self.thresholds.chance)]
        if more.empty:
            pattern = self.slow.pattern
            return f"No CPU is slower {pattern}." if pattern.startswith("every") else ""
        first = times[more.index].idxmax()
        what = _WORK[known.loc[first, "name"]].format(f"{times[first]:.2g}")
        return f"They {what} as any other run."

    def _first(self, chosen: pd.Series) -> pd.Series | None:
        if self.table.empty:
            return None
        limits = self.thresholds
        plain = self.table.get("explained_share", 0) >= limits.most  # a sum of the path: no chance
        plain &= self.table["others_high"] < limits.others * self.table["slow_high"]
        plain &= ~self.table["part"].isin([*COMPUTED, *NOT_OF_TRACE])
        shown = self.table[chosen & (plain | (self.table["p_value"] <= limits.chance))]
        return None if shown.empty else shown.iloc[0]


def took_of(
    runs: pd.DataFrame, folder: Path, outcome: Outcome, seed: int, thresholds: Thresholds
) -> Took:
    """What the slow ones of some runs lost.

    Parameters
    ----------
    runs
        Finished runs; `cell` is untraced, or traced for those of which there are traces.
    folder
        Folder of their campaign.
    outcome, seed
        What they are judged by; seed of the nulls.
    thresholds
        What counts as an explanation.
    """
    runs = runs.set_index("run")
    traced = runs[runs["cell"] == "traced"]
    lost_ms = owned_ms(folder / "traces", traced.reset_index(), folder / "speed")
    costs = _costs(runs, outcome)
    found = _slow(runs, costs, seed, thresholds.sure)
    is_few = found.slow[traced.index].sum() < FEWEST_SLOW  # one or two hide what all lose
    for slow in (slowest_quarter(costs), found) if is_few else (found,):
        of_traced = slow.slow[traced.index]
        names = who_took_it(
            traced["region_seconds"], lost_ms, None, of_traced, seed, thresholds.explains
        )
        if len(names) and _is_named(names.iloc[0], thresholds.chance):
            break
    counters = counters_of(rates(runs), slow.slow, consequences(), thresholds.alike)
    if len(lost_ms.columns):  # the trace has interrupts and waits by name, with their time
        counters = counters.drop(columns=counters.filter(regex="^((soft)?irq|idle_state)_"))
    rest = who_took_it(
        runs["region_seconds"], output_of(runs), counters, slow.slow, seed, thresholds.explains
    )
    parts = [part for part in (names, rest) if len(part)]
    table = pd.concat(parts) if parts else names
    if parts:  # of two searches, each with its own null
        table = table.assign(p_value=(2 * table["p_value"]).clip(upper=1))
        table = best_first(table, thresholds.explains)
    speed = _speed(traced.reset_index(), of_traced, folder / "speed", thresholds.chance)
    printed = _printed(runs, seed, thresholds.sure)
    tested = _tested(traced["region_seconds"].sort_index(), lost_ms, seed, thresholds.explains)
    return Took(slow, lost_ms, table, _user_s(runs, slow.slow), printed, speed, thresholds, tested)


def _tested(seconds: pd.Series, lost_ms: pd.DataFrame, seed: int, explains: float) -> Later | None:
    """The best name of the earlier half of some runs, in the later half: of runs in turn, what
    passes by would be in both halves. The program itself has no test: it computes longer in any
    longer run. The rival is an e-value of ranks, as of counters: of names that strike 15 % of 40
    runs it finds 18 % again, this p all but 5 % (simulated, n = 60).
    """
    half = len(seconds) // 2
    if half < FEWEST:
        return None
    earlier, later = seconds.iloc[:half], seconds.iloc[half:]
    names = who_took_it(earlier, lost_ms, seed=seed, explains=explains)
    if names.empty or names.loc[0, "name"] in (PROGRAM, SAME_CALLS):
        return None
    part, name = names.loc[0, ["part", "name"]]
    again = who_took_it(later, lost_ms[[(part, name)]], seed=seed, explains=0.0)
    return Later(part, name, float(again.loc[0, "p_value"]), half, len(later))


def _is_named(best: pd.Series, chance: float) -> bool:
    """Whether somebody else had the time, beyond the chance of two searches."""
    return bool(best["p_value"] <= chance / 2 and best["part"] not in COMPUTED)


def _speed(traced: pd.DataFrame, slow: pd.Series, folder: Path, chance: float) -> float:
    """How fast the probe's loop ran beside slow runs, of its speed beside the others; the lowest of
    core and memory, where it follows the run times.
    """
    if "speed_samples" not in traced or not slow.any():
        return float("nan")
    speeds = read_speed(folder, traced).groupby("run")[SPEEDS].median().dropna()
    if len(speeds) < FEWEST:
        return float("nan")
    seconds = traced.set_index("run")["region_seconds"][speeds.index]
    ratios = speeds[slow[speeds.index]].median() / speeds[~slow[speeds.index]].median()
    for name, speed in speeds.items():
        p_value = spearmanr(speed, seconds, alternative="less").pvalue
        if not p_value < chance / len(SPEEDS):
            ratios[name] = float("nan")
    return float(ratios.min())


def _user_s(runs: pd.DataFrame, slow: pd.Series) -> tuple[float, float]:
    by_class = runs.groupby(slow)["user_s"].median()
    return by_class.get(True, 0.0), by_class.get(False, 0.0)


def _printed(runs: pd.DataFrame, seed: int, sure: float = SURE) -> str:
    """Which runs print more lines: where other load hides it, a larger input shows here alone."""
    if "output_lines" not in runs or runs["output_lines"].min() < 1:
        return ""
    lines = runs["output_lines"].astype(float)
    found = slow_runs(lines, seed, sure=sure)
    if not found.is_class:
        return ""
    more, usual = (f"{lines[part].median():,.0f}" for part in (found.slow, ~found.slow))
    slow_s, usual_s = _user_s(runs, found.slow)
    when = f", {found.pattern}" if found.pattern else ""
    return (
        f" {found.slow.sum()} of {len(runs)} runs print other output ({more} lines, ordinary"
        f" {usual}{when}); their user time is {slow_s:.3g} s, ordinary {usual_s:.3g} s."
    )


def _costs(runs: pd.DataFrame, outcome: Outcome) -> pd.Series:
    """What each run cost, in the order in which they ran; tracing itself makes none slow."""
    costs = pd.Series(outcome.costs(runs[outcome.name]), runs.index)
    return costs * costs.median() / costs.groupby(runs["cell"]).transform("median")


def _slow(runs: pd.DataFrame, costs: pd.Series, seed: int, sure: float) -> SlowRuns:
    """Which runs are slow, by their costs or by what they did."""
    also = [runs[name].astype(float) for name in _SET_APART if name in runs]
    # a time that is printed has more digits in a long run: its bytes make no class
    also += [values for (_, name), values in output_of(runs).items() if name != "bytes"]
    return slow_runs(costs, seed, also, sure)
