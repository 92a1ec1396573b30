"""Who owns each µs of a run: its critical path, walked back by who woke whom, and its owners.

Owns the walk and the sharing out of its pieces. Pure: tables in, tables out. The path is that of
Böhme et al. 2010 ("Identifying the root causes of wait states"): a wait is passed on to what
delayed the thread that ended it. The plain way adds up the states of all threads, and calls a wait
at a barrier "waiting", whoever held the late thread's CPU.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

PARTS = (
    *("computing", "taken", "hypervisor", "runnable", "quota"),
    *("stopped", "disk", "asleep", "waiting"),
)
_INTEGERS = ("run", "start_ns", "end_ns", "thread", "cpu")
PATH = dict.fromkeys(_INTEGERS, "int64") | {"part": "str", "owner": "str"}
OWNED = {"run": "int64", "part": "str", "owner": "str", "ns": "float64"}
PROGRAM, TIMER, STOP, DISK, QUOTA = "the program", "own timer", "stop signal", "disk", "quota"
LATENCY, BARRIER, UNSEEN, STARTED = "idle CPU", "barrier", "not recorded", "its start"
OWN = "own thread "
# states that say themselves why a thread did not compute
_ITSELF = {"runnable": ("runnable", ""), "disk": ("disk", DISK), "stopped": ("stopped", STOP)}
_BUSY = 0.5  # share of an interval of marks from which on its thread worked


def critical_path(states: pd.DataFrame, waits: pd.DataFrame | None = None) -> pd.DataFrame:
    """The critical path of each run: one thread's state at each moment, from the end back.

    The walk begins with the thread that ran last. Where it meets the end of a sleep that another
    thread of the program ended, it goes on with that one; so does it at a barrier, with the thread
    that came last. What it meets on its way is what the run waited for.

    Parameters
    ----------
    states
        What threads did (`nbhelpers.tracing.states.thread_states`) in one or more runs.
    waits
        When OpenMP threads worked and waited (`nbhelpers.speed.read_waits`), for those that wait
        without leaving the CPU; None or no rows: by wake-ups alone.

    Returns
    -------
    One row a piece, sorted, without gaps from the begin of the region to its end: `run`,
    `start_ns`, `end_ns`, `thread`, `cpu`, `part` (computing, runnable, stopped, disk, asleep,
    waiting) and `owner` (its name where this table knows it).
    """
    marks = {} if waits is None else dict(iter(waits.groupby("run")))
    pieces = [
        (run, *piece)
        for run, table in states.groupby("run")
        for piece in _Walk.of(table, marks.get(run)).pieces()
    ]
    table = pd.DataFrame(pieces, columns=list(PATH)).astype(PATH)
    return table.sort_values(["run", "start_ns"], kind="stable", ignore_index=True)


@dataclass(frozen=True)
class _Thread:
    """The intervals of a thread, as lists; `working`: (begins, ends) by its marks."""

    start: list[int]
    end: list[int]
    state: list[str]
    cpu: list[int]
    woken_by: list[int]
    woken_by_name: list[str]

    @classmethod
    def of(cls, table: pd.DataFrame) -> "_Thread":
        columns = ("start_ns", "end_ns", "state", "cpu", "woken_by", "woken_by_name")
        return cls(*(table[name].tolist() for name in columns))

    def at(self, moment: int) -> int | None:
        """The row of the interval that ends at the moment or holds it."""
        row = bisect_left(self.end, moment)
        return row if row < len(self.end) and self.start[row] < moment else None


@dataclass(frozen=True)
class _Walk:
    """The threads of one run, and their marks: thread → (begins, ends) of its work."""

    threads: dict[int, _Thread]
    work: dict[int, tuple[list[int], list[int]]]

    @classmethod
    def of(cls, states: pd.DataFrame, marks: pd.DataFrame | None) -> "_Walk":
        threads = {int(one): _Thread.of(table) for one, table in states.groupby("thread")}
        return cls(threads, {} if marks is None else _worked(marks))

    def pieces(self) -> Iterator[tuple]:
        """(start, end, thread, cpu, part, owner), from the last to the first."""
        if not self.threads:
            return
        now = max(thread.end[-1] for thread in self.threads.values())
        thread = self._last(now)
        while now > 0:
            came, when = self._came_last(thread, now)
            if when < now:
                yield from self._leaves(thread, when, now)
            thread, now = came, when
            step = self._step(thread, now)
            if step is None:
                return
            piece, thread = step
            if piece:
                yield piece
                now = piece[0]

    def _last(self, now: int) -> int:
        """Who ran last; of several the first."""
        ends = {
            number: thread.state[-1] == "running"
            for number, thread in sorted(self.threads.items())
            if thread.end[-1] == now
        }
        return next((number for number, runs in ends.items() if runs), next(iter(ends)))

    def _came_last(self, thread: int, now: int) -> tuple[int, int]:
        """Where the walk goes on of who waits by its marks: with the thread that worked last, at
        the end of its work; else here and now.
        """
        if not self.work or thread not in self.work or self._works(thread, now):
            return thread, now
        begins, ends = self.work[thread]
        since = ends[bisect_right(begins, now - 1) - 1] if begins and begins[0] < now else 0
        best, last = thread, since
        for other, (of_begins, of_ends) in self.work.items():
            row = bisect_right(of_begins, now - 1) - 1
            if other != thread and row >= 0 and min(of_ends[row], now) > last:
                best, last = other, min(of_ends[row], now)
        return (best, last) if best != thread else (thread, now)

    def _leaves(self, thread: int, since: int, now: int) -> Iterator[tuple]:
        """The way out of a barrier, from the last arrival on; who has no CPU can't leave it."""
        known = self.threads.get(thread)
        while now > since:
            row = known.at(now) if known else None
            state = "running" if known is None or row is None else known.state[row]
            start = since if known is None or row is None else max(since, known.start[row])
            cpu = -1 if known is None or row is None else known.cpu[row]
            part, owner = _ITSELF.get(state, ("waiting", BARRIER))
            yield (start, now, thread, cpu, part, owner)
            now = start

    def _works(self, thread: int, now: int) -> bool:
        begins, ends = self.work[thread]
        row = bisect_right(begins, now - 1) - 1
        return row >= 0 and ends[row] >= now

    def _step(self, thread: int, now: int) -> tuple[tuple | None, int] | None:
        """The piece that ends now, and whose turn it is before; None: nothing is known before."""
        known = self.threads.get(thread)
        row = known.at(now) if known else None
        if known is None or row is None:
            return self._before_its_life(thread, now)
        start, state, cpu = known.start[row], known.state[row], known.cpu[row]
        begins = self.work.get(thread, ([], []))[0]
        at = bisect_left(begins, now) - 1
        if at >= 0:  # the walk looks at the marks again where its work began
            start = max(start, begins[at])
        if state == "sleeping":
            return self._slept(known, row, thread, now)
        part, owner = _ITSELF.get(state, ("computing", PROGRAM))
        return (start, now, thread, cpu, part, owner), thread

    def _slept(self, known: _Thread, row: int, thread: int, now: int) -> tuple[tuple | None, int]:
        start, waker = known.start[row], known.woken_by[row]
        name = known.woken_by_name[row]
        if waker == -1 and known.end[row] == now:
            waker = self._running_alone(thread, now)
        if waker in self.threads and waker != thread and self._runs(waker, now):
            return None, waker
        if name == "timer":
            part, owner = "asleep", TIMER
        else:
            part, owner = "waiting", name or UNSEEN
        return (start, now, thread, -1, part, owner), thread

    def _runs(self, thread: int, now: int) -> bool:
        row = self.threads[thread].at(now)
        return row is not None and self.threads[thread].state[row] != "sleeping"

    def _running_alone(self, thread: int, now: int) -> int:
        """The one other thread that ran then; −1: none, or several."""
        rows = {number: known.at(now) for number, known in self.threads.items() if number != thread}
        ran = [
            number
            for number, row in rows.items()
            if row is not None and self.threads[number].state[row] == "running"
        ]
        return ran[0] if len(ran) == 1 else -1

    def _before_its_life(self, thread: int, now: int) -> tuple[tuple | None, int] | None:
        """Before a thread was forked its parent's time counts; else that of who ran."""
        known = self.threads.get(thread)
        parent = known.woken_by[0] if known and known.state[0] == "runnable" else -1
        for number in (parent, *sorted(self.threads)):
            if number != thread and number in self.threads and self._runs(number, now):
                return None, number
        return (0, now, thread, -1, "waiting", STARTED), thread


def _worked(marks: pd.DataFrame) -> dict[int, tuple[list[int], list[int]]]:
    """When each thread worked: intervals of its marks that follow each other are one."""
    length = marks["end_ns"] - marks["start_ns"]
    busy = marks[marks["busy_ns"] >= _BUSY * length].sort_values(["thread", "start_ns"])
    work = {}
    for thread, rows in busy.groupby("thread"):
        start, end = rows["start_ns"].to_numpy(), rows["end_ns"].to_numpy()
        new = np.append(True, start[1:] > end[:-1])
        work[int(thread)] = (start[new].tolist(), end[np.append(new[1:], True)].tolist())
    return work


# --- owners ---------------------------------------------------------------------------------------


def owners_of_path(
    path: pd.DataFrame,
    cpu_owners: pd.DataFrame,
    events: pd.DataFrame,
    stolen: pd.DataFrame,
    throttled_ns: Mapping[int, float] | None = None,
) -> pd.DataFrame:
    """Who had the time of each run's critical path.

    Parameters
    ----------
    path
        `critical_path` of the runs.
    cpu_owners
        Who had each CPU (`nbhelpers.tracing.states.cpu_owners`).
    events
        Noise events (`read_traces`), of which interrupts, softirqs and NMIs count here.
    stolen
        What the hypervisor took (`stolen_times`); may have no rows.
    throttled_ns
        How long each run's control group was kept from running by its quota, run → ns.

    Returns
    -------
    One row a run, part and owner: `run`, `part` (one of `PARTS`), `owner`, `ns`; the sum over a run
    is the length of its path. While a thread is runnable the owner is the quota, as long as it held
    in sum, then who had its CPU, or the idle CPU. Where the program's threads share a CPU it is who
    had another one of its CPUs meanwhile.
    """
    computing = path["part"] == "computing"
    runnable = path["part"] == "runnable"
    interrupts = events[(events["kind"] != "thread").to_numpy()]
    named = interrupts.assign(owner=interrupts["source"].astype(str), ns=interrupts["duration_ns"])
    taken = _shared(path[computing], named).assign(part="taken")
    lost = _shared(path[computing], stolen.assign(owner="hypervisor", ns=stolen["duration_ns"]))
    lost = lost.assign(part="hypervisor")
    had = _had(path[runnable], cpu_owners)
    whole = path.assign(ns=path["end_ns"] - path["start_ns"])
    rest = _less(whole[computing], [taken, lost]).assign(owner=PROGRAM)
    unseen = _less(whole[runnable], [had]).assign(owner=LATENCY)
    columns = ["run", "part", "owner", "ns"]
    parts = [rest, unseen, had.assign(part="runnable"), taken, lost, whole[~computing & ~runnable]]
    table = pd.concat([part[columns] for part in parts], ignore_index=True)
    table = table.groupby(columns[:3], as_index=False)["ns"].sum()
    return _with_quota(table[table["ns"] > 0], throttled_ns or {}).astype(OWNED)


def _had(runnable: pd.DataFrame, cpu_owners: pd.DataFrame) -> pd.DataFrame:
    """Who had the CPU for which a thread waited: a row a piece and owner.

    Two threads of the program share a CPU because somebody else has another one of its CPUs: then
    this is the owner. While nobody has, it is the thread of its own.
    """
    intervals = cpu_owners.rename(columns={"name": "owner"})
    intervals = intervals.assign(ns=intervals["end_ns"] - intervals["start_ns"])
    had = _shared(runnable, intervals)
    is_own = had["is_program"].astype(bool) & (had["owner"] != "idle")
    own, others = had[is_own].reset_index(drop=True), had[~is_own]
    outside = intervals[~intervals["is_program"] & (intervals["owner"] != "idle")]
    places = intervals.loc[intervals["is_program"], ["run", "cpu"]].drop_duplicates()
    held = dict(iter(outside.merge(places, on=["run", "cpu"]).groupby("run")))
    parts = [_overlaps(one, held[run]) for run, one in own.groupby("run") if run in held]
    elsewhere = pd.concat(parts) if parts else own.head(0)
    # several CPUs may be held at the same time
    sums = elsewhere.groupby("piece")["ns"].sum()
    scale = (own["ns"].reindex(sums.index) / sums).clip(upper=1).rename("scale")
    elsewhere = elsewhere.assign(ns=elsewhere["ns"] * elsewhere["piece"].map(scale).fillna(0))
    left = own["ns"] - elsewhere.groupby("piece")["ns"].sum().reindex(own.index).fillna(0)
    elsewhere = elsewhere.assign(piece=elsewhere["piece"].map(own["piece"]))
    own = own.assign(ns=left.clip(lower=0), owner=OWN + own["owner"].astype(str))
    others = others.assign(owner=others["owner"].mask(others["owner"] == "idle", LATENCY))
    return pd.concat([others, elsewhere, own], ignore_index=True)


def _shared(pieces: pd.DataFrame, intervals: pd.DataFrame) -> pd.DataFrame:
    """What of each interval (`cpu`, `start_ns`, `end_ns`, `owner`, `ns`) lies in each piece of its
    run and CPU: a row a pair, with `piece` (the piece's label) and `ns`.
    """
    held = dict(iter(intervals.groupby(["run", "cpu"])))
    parts = [
        _overlaps(own, held[key]) for key, own in pieces.groupby(["run", "cpu"]) if key in held
    ]
    if parts:
        return pd.concat(parts, ignore_index=True)
    names = ("run", "owner", "ns", "piece", "is_program", "start_ns", "end_ns")
    return pd.DataFrame({name: pd.Series(dtype=float) for name in names})


def _overlaps(pieces: pd.DataFrame, intervals: pd.DataFrame) -> pd.DataFrame:
    intervals = intervals.sort_values("start_ns", kind="stable")
    start, end = intervals["start_ns"].to_numpy(), intervals["end_ns"].to_numpy()
    reach = np.maximum.accumulate(end) if len(end) else end
    first = np.searchsorted(reach, pieces["start_ns"].to_numpy(), side="right")
    last = np.searchsorted(start, pieces["end_ns"].to_numpy(), side="left")
    counts = np.maximum(last - first, 0)
    piece = np.repeat(np.arange(len(pieces)), counts)
    row = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    row = row + np.repeat(first, counts)
    until = np.minimum(end[row], pieces["end_ns"].to_numpy()[piece])
    since = np.maximum(start[row], pieces["start_ns"].to_numpy()[piece])
    share = np.clip(until - since, 0, None) / np.maximum(end[row] - start[row], 1)
    found = intervals.iloc[row]
    ns = found["ns"].to_numpy() * share
    return found.assign(piece=pieces.index[piece], ns=ns, start_ns=since, end_ns=until)


def _less(pieces: pd.DataFrame, parts: list[pd.DataFrame]) -> pd.DataFrame:
    """The pieces without what the parts had of them."""
    had = pd.concat([part[["piece", "ns"]] for part in parts]).groupby("piece")["ns"].sum()
    return pieces.assign(ns=(pieces["ns"] - had.reindex(pieces.index).fillna(0)).clip(lower=0))


def _with_quota(table: pd.DataFrame, throttled_ns: Mapping[int, float]) -> pd.DataFrame:
    """What the quota kept a thread from: first while its CPU was idle, then while others had it."""
    left = {int(run): max(0.0, ns) for run, ns in throttled_ns.items() if ns == ns}
    parts = []
    for is_idle in (True, False):
        of = (table["part"] == "runnable") & ~table["owner"].str.startswith(OWN)
        of &= (table["owner"] == LATENCY) == is_idle
        had = table["ns"].where(of, 0.0)
        sums = had.groupby(table["run"]).sum()
        share = (pd.Series(left, dtype=float).reindex(sums.index).fillna(0) / sums).clip(upper=1)
        held = had * table["run"].map(share.fillna(0))
        parts.append(table[held > 0].assign(part=QUOTA, owner=QUOTA, ns=held[held > 0]))
        table = table.assign(ns=table["ns"] - held)
        used = held.groupby(table["run"]).sum()
        left = {run: ns - used.get(run, 0.0) for run, ns in left.items()}
    whole = pd.concat([table[table["ns"] > 0], *parts], ignore_index=True)
    return whole.groupby(["run", "part", "owner"], as_index=False)["ns"].sum()
