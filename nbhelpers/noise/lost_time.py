"""The time that a run lost, as noise to replay: whole intervals without the CPU as events, slow
phases as bursts that take as much of it.

Owns the shape of the bursts, the gate (which part of an excess can be replayed at all), and what a
run lost beyond ordinary runs. Page 37 puts the plain rival beside it, the delta of its events. Of
the 10 slowest of 200 recorded runs that replay misses the time by 18.2 % (mean), this by 0.5 %;
undisturbed runs are 21.9 % away (15 replays of each).
"""

from collections.abc import Collection, Iterator, Mapping

import numpy as np
import pandas as pd

from ..errors import InputError
from ._tables import require_columns, require_one_run
from .config import NoiseConfig

INTERVAL_NS = 10_000_000  # bursts take what was lost in each of these
BURSTS = 4  # in each interval, at most; a power of two
SHORTEST_NS = 70_000
# shorter pauses on all CPUs at the same time count as none, and all CPUs as stopped (`Rules`)
PAUSE_NS = 1_100_000
SLOW = ("slower",)
CAUSES = ("kernel", "hypervisor", *SLOW)
COLUMNS = ("cpu", "start_ns", "end_ns", "lost_ns", "cause")
_KINDS = {"kernel": "irq"}  # what is not the kernel's is the hardware's


def loss_config(
    losses: pd.DataFrame,
    window_ns: int,
    cpus: Collection[int],
    *,
    shortest_ns: int = SHORTEST_NS,
    provenance: Mapping | None = None,
) -> NoiseConfig:
    """Turn what a run's critical path lost into noise that takes the same in each 10 ms.

    Parameters
    ----------
    losses
        Losses of one run, a row each: `start_ns`, `end_ns`, `lost_ns`, `cause`. Times taken from
        the same interval by several causes add up.
    window_ns
        Length of the run.
    cpus
        CPUs of the program: all of them stop together.
    shortest_ns
        The shortest event that this machine can inject (`Overheads.shortest_us`).
    provenance
        Further facts for the provenance.

    Returns
    -------
    NoiseConfig : all its events are SCHED_FIFO; the source of an event is the cause of the loss.
    Its provenance has `lost_ns`, and `left_out_ns`: beyond the window, or more than an interval.

    Raises
    ------
    InputError
        There is no loss, or it is of several runs.

    Notes
    -----
    What the critical path lost, the program lost, whichever CPU it was on. So all its CPUs stop: a
    thread that is stopped alone moves to another CPU, or others wait for it anyway. Of 10 recorded
    slow runs, replays whose events stopped both CPUs together cost 0.87 to 0.99 of their length (4
    runs), those on a CPU at a time 0.59 to 0.80 (6 runs; 15 rounds each).

    Time that the kernel or the hypervisor took becomes one event where it was taken. Slow phases,
    and what is shorter than `shortest_ns`, become bursts. Bursts that would be too short become
    rarer and longer; a sum that is too short for one waits for the next interval. A burst and an
    event that overlap become one, as long as both.
    """
    _check(losses)
    inside = _inside(losses, window_ns)
    taken, spread = _apart(inside, shortest_ns)
    rows = [*zip(taken["start_ns"], taken["lost_ns"], taken["cause"])]
    rows += _bursts(spread, window_ns, shortest_ns)
    events = pd.DataFrame(rows, columns=["start_ns", "duration_ns", "cause"])
    events["kind"] = events["cause"].map(lambda cause: _KINDS.get(cause, "hardware"))
    events["source"] = events.pop("cause").str.replace("_", " ")
    events = events.merge(pd.DataFrame({"run": 0, "cpu": sorted(cpus)}), how="cross")
    lost_ns = int(inside["lost_ns"].sum())
    facts = {"lost_ns": lost_ns, "left_out_ns": int(losses["lost_ns"].sum()) - lost_ns}
    facts |= provenance or {}
    return NoiseConfig.from_events(events, window_ns=window_ns, provenance=facts)


def _check(losses: pd.DataFrame) -> None:
    require_columns(losses, COLUMNS, "losses")
    require_one_run(losses, "losses", "losses[losses['run'] == NUMBER]")
    unknown = set(losses["cause"]) - set(CAUSES)
    if unknown:
        raise InputError(f"unknown cause {min(unknown)!r}", fix=f"use one of {', '.join(CAUSES)}")


def _inside(losses: pd.DataFrame, window_ns: int) -> pd.DataFrame:
    """The losses within the window, none longer than its interval; of one that reaches beyond, the
    share that lies in it.
    """
    times = losses[["start_ns", "end_ns"]].round().astype(np.int64)
    start_ns, end_ns = times["start_ns"].clip(lower=0), times["end_ns"].clip(upper=window_ns)
    share = (end_ns - start_ns) / (times["end_ns"] - times["start_ns"]).clip(lower=1)
    lost_ns = (losses["lost_ns"] * share).clip(upper=end_ns - start_ns).round().astype(np.int64)
    inside = losses.assign(start_ns=start_ns, end_ns=end_ns, lost_ns=lost_ns)[list(COLUMNS)]
    return inside[(end_ns > start_ns) & (lost_ns > 0)].astype({"cause": str})


def _apart(losses: pd.DataFrame, shortest_ns: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """What becomes an event each, and what becomes bursts."""
    is_slow = losses["cause"].isin(SLOW)
    taken = losses[~is_slow].sort_values("lost_ns", ascending=False, kind="stable")
    by_interval = taken.groupby(["start_ns", "end_ns"], as_index=False)
    taken = by_interval.agg(lost_ns=("lost_ns", "sum"), cause=("cause", "first"))
    is_short = taken["lost_ns"] < shortest_ns
    return taken[~is_short], pd.concat([losses[is_slow], taken[is_short]])


def _bursts(spread: pd.DataFrame, window_ns: int, shortest_ns: int) -> list[tuple[int, int, str]]:
    found: list[tuple[int, int, str]] = []
    waiting_ns = 0
    for low_ns, high_ns, lost_ns, cause in _by_interval(spread, window_ns):
        waiting_ns += lost_ns
        if waiting_ns >= shortest_ns or high_ns == window_ns:
            total_ns = min(waiting_ns, high_ns - low_ns)
            found += _grid(low_ns, high_ns, total_ns, shortest_ns, cause)
            waiting_ns -= total_ns
    if waiting_ns:  # too short for a burst, or all of the last interval is full
        start_ns, length_ns, cause = found.pop() if found else (low_ns, 0, cause)
        found.append((start_ns, length_ns + waiting_ns, cause))
    return found


def _by_interval(spread: pd.DataFrame, window_ns: int) -> Iterator[tuple[int, int, int, str]]:
    """Begin, end, loss and most frequent cause of each interval that has a loss."""
    if not len(spread):
        return
    parts = _parts(spread)
    sums = parts.pivot_table("lost_ns", "interval", "cause", "sum", fill_value=0.0)
    total_ns = np.rint(sums.sum(axis=1).cumsum()).astype(np.int64)
    lost_ns = total_ns.diff().fillna(total_ns).astype(np.int64)
    for interval, lost, cause in zip(sums.index, lost_ns, sums.idxmax(axis=1)):
        low_ns = int(interval) * INTERVAL_NS
        yield low_ns, min(low_ns + INTERVAL_NS, window_ns), int(lost), cause


def _parts(losses: pd.DataFrame) -> pd.DataFrame:
    """Each row cut at multiples of 10 ms: `interval`, `lost_ns` (its share), and all else."""
    start, end = (losses[name].to_numpy(float) for name in ("start_ns", "end_ns"))
    length = np.maximum(end - start, 1)
    first = (start // INTERVAL_NS).astype(np.int64)
    counts = ((start + length - 1) // INTERVAL_NS).astype(np.int64) - first + 1
    row = np.repeat(np.arange(len(start)), counts)
    interval = first[row] + np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
    low_ns = np.maximum(start[row], interval * INTERVAL_NS)
    high_ns = np.minimum(end[row], (interval + 1) * INTERVAL_NS)
    parts, share = losses.iloc[row], (high_ns - low_ns) / length[row]
    return parts.assign(interval=interval, lost_ns=parts["lost_ns"] * share)


def _grid(
    low_ns: int, high_ns: int, total_ns: int, shortest_ns: int, cause: str
) -> Iterator[tuple[int, int, str]]:
    """Bursts of one interval, about the middles of its equal parts; as many as are long enough and
    leave pauses.
    """
    length_ns, count = high_ns - low_ns, BURSTS
    while count > 1 and (total_ns < count * shortest_ns or length_ns - total_ns < count * PAUSE_NS):
        count //= 2
    ends_ns = [total_ns * number // count for number in range(count + 1)]
    for number in range(count):
        burst_ns = ends_ns[number + 1] - ends_ns[number]
        middle_ns = low_ns + length_ns * (2 * number + 1) // (2 * count)
        yield max(middle_ns - burst_ns // 2, 0), burst_ns, cause


def replayable_shares(
    losses: pd.DataFrame,
    excess_ns: float,
    window_ns: int,
    *,
    shortest_ns: int = SHORTEST_NS,
    realtime: bool = True,
) -> pd.DataFrame:
    """How much of a slow run's excess `loss_config` can replay on this machine, by cause.

    Parameters
    ----------
    losses, window_ns, shortest_ns
        Losses of a run, length of the run, and shortest event; see `loss_config`. There may be no
        loss.
    excess_ns
        Time that the run took beyond the typical run.
    realtime
        Whether SCHED_FIFO is permitted here; nothing can be replayed without it.

    Returns
    -------
    One row a cause, and one for what is unexplained: `cause`, `lost_ms`, `replayable_ms`, `share`
    (replayable part of the excess), `means` (events, bursts or nothing), `why` (of what cannot be
    replayed). `unexplained` is the rest of the excess, below 0 where more was lost than that.
    """
    require_columns(losses, COLUMNS, "losses")
    inside = _inside(losses, window_ns)
    sums_ms = inside.groupby("cause")["lost_ns"].sum() / 1e6
    lost_ms = sums_ms.reindex(list(CAUSES), fill_value=0.0)
    enough = realtime and lost_ms.sum() * 1e6 >= shortest_ns
    replayable_ms = lost_ms * enough
    why = "shorter than any event here" if realtime else "SCHED_FIFO is not permitted"
    rows = [
        _share(cause, lost_ms[cause], replayable_ms[cause], excess_ns / 1e6, why)
        for cause in CAUSES
        if lost_ms[cause] > 0
    ]
    rest_ms = excess_ns / 1e6 - lost_ms.sum()
    rows.append(_share("unexplained", rest_ms, 0.0, excess_ns / 1e6, "no record says when"))
    return pd.DataFrame(rows)


def _share(cause: str, lost_ms: float, replayable_ms: float, excess_ms: float, why: str) -> dict:
    means = "bursts" if cause in SLOW else "events"
    return {
        "cause": cause,
        "lost_ms": float(lost_ms),
        "replayable_ms": float(replayable_ms),
        "share": float(replayable_ms / excess_ms) if excess_ms > 0 else float("nan"),
        "means": means if replayable_ms > 0 else "nothing",
        "why": why if replayable_ms < lost_ms else "",
    }


def cause_name(cause: str) -> str:
    """The name of a cause, or of `unexplained`, in a sentence."""
    return {
        "kernel": "the kernel's work",
        "hypervisor": "the hypervisor",
        "slower": "slower calls",
        "unexplained": "an unknown cause",
    }[cause]


def loss_delta(losses: pd.DataFrame, runs: pd.DataFrame, ordinary: Collection[int]) -> pd.DataFrame:
    """Reduce the losses of each run by what ordinary runs lose in the same time, cause by cause.

    Parameters
    ----------
    losses
        Losses of several runs (`owned_and_lost`): `run` and the columns of `loss_config`.
    runs
        The runs: `run`, `region_seconds`.
    ordinary
        Numbers of the runs that are typical.

    Returns
    -------
    The same rows with less in `lost_ns`; those that lost nothing beyond are left out.

    Raises
    ------
    InputError
        No run is ordinary, or a column is missing.

    Notes
    -----
    An ordinary run loses a share of its time. As much is taken off: off each interval without the
    CPU the same time, and off each phase the same share of its length, but never more than there
    is. So ticks and the probe's own noise disappear, and what stands out stays where it was.
    """
    require_columns(losses, ("run", *COLUMNS), "losses")
    region_ns = runs.set_index("run")["region_seconds"] * 1e9
    usual = region_ns.reindex(list(ordinary)).dropna()
    if not len(usual):
        raise InputError("no ordinary run", fix="name some of the runs, such as the middle half")
    of_ordinary = losses[losses["run"].isin(usual.index)]
    rates = of_ordinary.groupby("cause")["lost_ns"].sum() / usual.sum()
    left = [
        _less(part, rates.get(cause, 0.0) * region_ns[run], cause in SLOW)
        for (run, cause), part in losses.groupby(["run", "cause"], observed=True)
    ]
    delta = pd.concat(left).sort_index() if left else losses
    return delta[delta["lost_ns"] > 0]


def _less(part: pd.DataFrame, typical_ns: float, is_slow: bool) -> pd.DataFrame:
    """Rows of one run and cause less `typical_ns` in all: from each what one level, times its
    weight, takes away.
    """
    lost_ns = part["lost_ns"].to_numpy(float)
    length_ns = (part["end_ns"] - part["start_ns"]).to_numpy(float)
    weight = np.maximum(length_ns, 1) if is_slow else np.ones(len(part))
    left_ns = np.maximum(lost_ns - _level(lost_ns, weight, typical_ns) * weight, 0)
    # rounded in sum, not row by row
    whole_ns = np.diff(np.rint(np.cumsum(left_ns)), prepend=0).astype(np.int64)
    return part.assign(lost_ns=np.minimum(whole_ns, part["lost_ns"].to_numpy()))


def _level(lost: np.ndarray, weight: np.ndarray, less: float) -> float:
    """The level from 0 on at which all that is below it, Σ min(lost, level × weight), is `less`."""
    order = np.argsort(lost / weight, kind="stable")
    lost, weight = lost[order], weight[order]
    levels = lost / weight
    below = np.cumsum(lost) + levels * (weight.sum() - np.cumsum(weight))
    is_lost = lost > 0  # negative: gained
    below = np.append(lost[~is_lost].sum(), below[is_lost])
    return float(np.interp(less, below, np.append(0, levels[is_lost])))
