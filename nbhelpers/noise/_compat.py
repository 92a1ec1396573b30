"""The delta as the published code of Persson et al. computes it, which is not what their section
4.2 says.

Owns that one algorithm, from its description; it is offered so that numbers can be compared with
published ones.

Per CPU and task (the source's name, of whatever kind): frequency = mean over the runs of count /
seconds; "average duration" = mean over the runs of the *sum* of the durations in the run. Over all
CPUs: expected number = int(sum of the frequencies × seconds of the run); average = sum of the
averages / number of CPUs. Then, as often as expected, the event of the task whose *present*
duration is closest to that average is shortened by it; below zero it is removed. Since the average
is that of a whole run, the largest events (outliers) come first, and a recurring source disappears
altogether.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from ._tables import coded, renumbered, whole_numbers
from .average import of_finished_runs


def compat_reduction(
    events: pd.DataFrame, run_events: pd.DataFrame, seconds: pd.Series, run: int
) -> tuple[np.ndarray, np.ndarray]:
    """What the published code takes from each event of the run (ns), and which events it keeps."""
    task_names, average_ns, expected = _task_averages(events, seconds, run)
    task, names = coded(run_events["source"], "source")
    place = pd.Index(task_names).get_indexer(pd.Index(names))
    duration = whole_numbers(run_events, "duration_ns", "events")
    task = task.astype(np.int16 if len(names) < 2**15 else np.int64)
    picks = _picks(run_events, task, duration, average_ns[place], expected[place])
    taken = picks * average_ns[place][task]
    remains = taken <= duration
    return np.minimum(taken, duration), remains


def _task_averages(
    events: pd.DataFrame, seconds: pd.Series, run: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Name, average (whole ns) and expected number of each task; sums run in the order run, then
    CPU, as the code's do.
    """
    events, at = of_finished_runs(events, seconds)
    task, names = coded(events["source"], "source")
    cpu, cpus = renumbered(*_from_zero(whole_numbers(events, "cpu", "events")))
    task_cpu, present = renumbered(task * len(cpus) + cpu, len(names) * len(cpus))
    lengths = seconds.to_numpy()
    cell, cells = renumbered(
        task_cpu.astype(np.int64) * len(lengths) + at, len(present) * len(lengths)
    )
    total_ns = np.bincount(cell, weights=whole_numbers(events, "duration_ns", "events"))
    owner, of_run = np.divmod(cells, len(lengths))
    frequency = np.bincount(owner, weights=np.bincount(cell) / lengths[of_run]) / len(lengths)
    mean_sum_ns = np.bincount(owner, weights=total_ns) / len(lengths)
    task = present // len(cpus)
    expected = (np.bincount(task, weights=frequency) * seconds[run]).astype(np.int64)
    average = np.floor(np.bincount(task, weights=mean_sum_ns) / len(cpus) + 0.5).astype(np.int64)
    return names, average, expected


def _from_zero(cpu: np.ndarray) -> tuple[np.ndarray, int]:
    return cpu, int(cpu.max()) + 1


def _picks(
    run_events: pd.DataFrame,
    code: np.ndarray,
    duration: np.ndarray,
    average_ns: np.ndarray,
    expected: np.ndarray,
) -> np.ndarray:
    """How often each event is picked, without picking one by one."""
    active = np.flatnonzero((average_ns > 0)[code] & (expected > 0)[code])
    bundles = _bundles(active, duration[active], average_ns[code[active]])
    order = np.argsort(bundles.distance)
    order = order[np.argsort(code[bundles.row[order]], kind="stable")]
    ends = np.cumsum(np.bincount(code[bundles.row], minlength=len(expected)))
    picks = np.zeros(len(run_events), np.int64)
    for end, count, wanted in zip(ends, np.diff(ends, prepend=0), expected):
        mine = _ties_in_turn(run_events, bundles, order[end - count : end], wanted)
        before = np.cumsum(bundles.size[mine]) - bundles.size[mine]
        np.add.at(picks, bundles.row[mine], np.clip(wanted - before, 0, bundles.size[mine]))
    return picks


@dataclass(frozen=True)
class Bundles:
    """Picks that come in a row: of which event, at which distance, how many; `turn` 0 or 1 of an
    event's two bundles.
    """

    row: np.ndarray
    distance: np.ndarray
    size: np.ndarray
    turn: np.ndarray


def _bundles(row: np.ndarray, duration: np.ndarray, average: np.ndarray) -> Bundles:
    """An event's picks as at most two bundles, so that picks in order of distance are a sort of
    bundles.

    An event of duration d = q·a + r (a the average, 0 ≤ r < a) is picked at distance |d − a|; while
    it is still at least a long its distance only shrinks, so that it is picked at once again: q
    picks in a row. It is then r long, at distance a − r, and its next pick removes it; that pick,
    too, is made at once if its distance is below the first one.
    """
    times, rest = np.divmod(duration, average)
    first, last = np.abs(duration - average), average - rest
    later = np.flatnonzero((times > 0) & (last >= first))
    size = times + 1
    size[later] -= 1
    both = np.repeat([0, 1], [len(row), len(later)])
    return Bundles(
        np.concatenate([row, row[later]]),
        np.concatenate([first, last[later]]),
        np.concatenate([size, np.ones(len(later), np.int64)]),
        both,
    )


def _ties_in_turn(
    run_events: pd.DataFrame, bundles: Bundles, mine: np.ndarray, wanted: int
) -> np.ndarray:
    """Bundles of a task in order of distance; those equally far at which the picks run out as the
    code looks: by CPU, then start.
    """
    done = np.cumsum(bundles.size[mine])
    if not len(mine) or done[-1] <= wanted:
        return mine
    distance = bundles.distance[mine]
    limit = distance[np.searchsorted(done, wanted, side="right")]
    low, high = np.searchsorted(distance, limit), np.searchsorted(distance, limit, side="right")
    tied = mine[low:high]
    keys = [
        run_events[name].to_numpy()[bundles.row[tied]]
        for name in ("pid", "duration_ns", "start_ns", "cpu")
        if name in run_events.columns
    ]
    return np.concatenate(
        [mine[:low], tied[np.lexsort([bundles.turn[tied], bundles.row[tied], *keys])], mine[high:]]
    )
