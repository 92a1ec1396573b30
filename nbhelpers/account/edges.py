"""What an interruption costs beyond its records: the way into the kernel and the way out of it.

Owns the measurement by a loop that is traced (`loop.py`), and its fit.
"""

from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd

from ..statistics import percentile_interval
from .gaps import gaps_with_events
from .loop import LoopRun, run_traced_loop

RUNS, SECONDS = 10, 0.5  # of a measurement that nobody specified
FEWEST = 50  # gaps, or typical numbers are used
FEWEST_OF_CLASS = 10  # gaps of one class, or it has the costs of all
# A longer way in or out is a stop of the hypervisor that no record has.
STOP_NS = 100_000
_SHORT, _LONG = 0.1, 0.99  # quantiles of the first event's length
REPEATS = 500
_COSTS = ("interrupt_in_us", "switch_in_us", "in_per_us", "interrupt_out_us", "switch_out_us")


@dataclass(frozen=True)
class Edges:
    """What an interruption takes from a program before its first record and after its last.

    Both are means: sums over many interruptions are what they are for. The way in of a virtual
    machine is the hypervisor's: it stops the CPU before the kernel runs. What makes the kernel slow
    makes the way in long: it follows the net length of the first event.

    Attributes
    ----------
    interrupt_in_us, switch_in_us
        Before the first record: interrupts and softirqs only, or with another thread. This is where
        the first event is as short as `short_us`...
    in_per_us
        ...and so much more for each µs that the first event is longer than that...
    short_us, long_us
        ...up to `long_us` (10th and 99th percentile of the first event).
    interrupt_out_us, switch_out_us
        After the last record.
    intervals
        95 % bootstrap intervals, name -> (low, high); what is resampled are runs, at least two.
    runs, gaps
        Runs of the loop, and gaps in them that hold an event and no time of the hypervisor.
    measured
        False: tracepoints cannot be recorded here; the numbers are typical of a virtual machine.
    """

    interrupt_in_us: float = 9.0
    switch_in_us: float = 9.0
    in_per_us: float = 1.1
    short_us: float = 7.0
    long_us: float = 25.0
    interrupt_out_us: float = 0.5
    switch_out_us: float = 2.0
    intervals: dict[str, tuple[float, float]] = field(default_factory=dict)
    runs: int = 0
    gaps: int = 0
    measured: bool = False

    def way_in_ns(self, first_ns: np.ndarray, switch: np.ndarray) -> np.ndarray:
        """The way in before a first event of so long a net length; `switch`: another thread ran."""
        longer_us = np.clip(first_ns / 1e3, self.short_us, self.long_us) - self.short_us
        base_us = np.where(switch, self.switch_in_us, self.interrupt_in_us)
        return np.rint((base_us + self.in_per_us * longer_us) * 1e3).astype(np.int64)

    def way_out_ns(self, switch: np.ndarray) -> np.ndarray:
        """The way out after the last event."""
        out_us = np.where(switch, self.switch_out_us, self.interrupt_out_us)
        return np.rint(out_us * 1e3).astype(np.int64)

    def sentence(self) -> str:
        """What an interruption costs beyond its records."""
        if not self.measured:
            return (
                "What an interruption costs beyond its records was not measured here: it is taken"
                f" as {self.interrupt_in_us:.1f} µs before and {self.interrupt_out_us:.1f} µs after"
                " it."
            )
        low, high = self.intervals.get("interrupt_in_us", (np.nan, np.nan))
        return (
            f"An interruption costs {self.interrupt_in_us:.1f} µs ({low:.1f} to {high:.1f}) before"
            f" its first record and {self.interrupt_out_us:.1f} µs after its last, with a thread"
            f" {self.switch_in_us:.1f} and {self.switch_out_us:.1f} µs"
            f" ({self.gaps} gaps in {self.runs} runs of a loop)."
        )


def measure_edges(
    folder: str | Path, runs: int = RUNS, seconds: float = SECONDS, recorded_only: bool = False
) -> Edges:
    """Measure what an interruption costs beyond its records.

    The detour loop runs on every CPU while tracepoints are recorded. A gap that it saw begins
    before the first record of the kernel and ends after the last one.

    Parameters
    ----------
    folder
        The campaign's folder; `run_traced_loop` measures there, or goes on there.
    runs
        Number of runs of the loop.
    seconds
        Undisturbed time that a loop needs.
    recorded_only
        True: read what was recorded in `folder`.

    Returns
    -------
    Edges : typical numbers, with `measured` False, where tracepoints cannot be recorded, or where
    nothing was recorded.

    Raises
    ------
    LostEvents
        A trace or the loop had no room.
    """
    folder = Path(folder)
    if recorded_only and not folder.exists():
        return Edges()
    table = run_traced_loop(folder, runs, seconds, recorded_only)
    gaps = [gaps_with_events(LoopRun(int(run), folder)) for run in table["run"]]
    return edges_of_gaps(pd.concat(gaps) if gaps else pd.DataFrame())


def edges_of_gaps(gaps: pd.DataFrame, seed: int = 0, repeats: int = REPEATS) -> Edges:
    """Fit the costs to gaps (`gaps_with_events`) of several runs; typical numbers for too few."""
    usable = _usable(gaps) if len(gaps) else gaps
    if len(usable) < FEWEST:
        return Edges()
    first_us = usable["first_ns"].to_numpy() / 1e3
    limits_us = (float(np.quantile(first_us, _SHORT)), float(np.quantile(first_us, _LONG)))
    edges = _fit(usable, limits_us)
    groups = [group for _, group in usable.groupby("run")]
    random = np.random.default_rng(seed)
    draws = [
        _fit(pd.concat([groups[at] for at in picked]), limits_us)
        for picked in random.integers(len(groups), size=(repeats, len(groups)))
    ]
    several = len(groups) > 1 and repeats > 0
    intervals = {name: _interval(draws, name) for name in _COSTS if several}
    return replace(edges, intervals=intervals, runs=len(groups), gaps=len(usable), measured=True)


def _interval(draws: list[Edges], name: str) -> tuple[float, float]:
    low, high = percentile_interval([getattr(draw, name) for draw in draws])
    return round(low, 3), round(high, 3)


def _usable(gaps: pd.DataFrame) -> pd.DataFrame:
    """Gaps whose ways in and out are the kernel's."""
    ways = gaps[["in_ns", "out_ns"]]
    near = (ways > -STOP_NS).all(axis=1) & (ways < STOP_NS).all(axis=1)
    return gaps[near & (gaps["stolen_ns"] == 0) & gaps["begins_with_interrupt"]]


def _fit(gaps: pd.DataFrame, limits_us: tuple[float, float]) -> Edges:
    """Least squares, since sums are wanted: the mean is right, whatever the distribution."""
    first_us, switch = gaps["first_ns"].to_numpy() / 1e3, gaps["switch"].to_numpy(bool)
    longer_us = np.clip(first_us, *limits_us) - limits_us[0]
    one_class = min(switch.sum(), (~switch).sum()) < FEWEST_OF_CLASS
    classes = [np.ones(len(gaps))] if one_class else [~switch, switch]
    into_us = gaps["in_ns"].to_numpy() / 1e3
    *bases, slope = np.linalg.lstsq(np.column_stack([*classes, longer_us]), into_us, rcond=None)[0]
    if slope < 0:  # only by chance
        slope, bases = 0.0, [np.average(into_us, weights=member) for member in classes]
    outs = [np.average(gaps["out_ns"].to_numpy() / 1e3, weights=member) for member in classes]
    values = (bases[0], bases[-1], slope, outs[0], outs[-1])
    into, switched, per_us, out, out_switched = (round(max(float(v), 0.0), 3) for v in values)
    return Edges(
        interrupt_in_us=into,
        switch_in_us=switched,
        in_per_us=per_us,
        short_us=round(limits_us[0], 3),
        long_us=round(limits_us[1], 3),
        interrupt_out_us=out,
        switch_out_us=out_switched,
    )
