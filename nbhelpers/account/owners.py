"""Who owns each µs of a run: the owners of the pieces of its critical path.

Owns the sharing out. Pure: tables in, tables out. The plain way adds up the states of all threads,
and calls a wait at a barrier "waiting", whoever held the late thread's CPU: of 42 planted owners it
named 21, this one 41 (benchmarks/owners.py, in the quiet).
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from .path import PROGRAM

PIECES = dict.fromkeys(("run", "cpu", "thread", "start_ns", "end_ns"), "int64")
PIECES |= {"part": "str", "owner": "str", "ns": "float64"}
LATENCY, QUOTA, OWN, SAME_CALLS = "idle CPU", "quota", "own thread ", "the same calls"
AT_HOME = 0.01  # of a thread's time on CPUs; where it ran less, it was before it was pinned
TAKEN = ("taken", "runnable", "hypervisor", QUOTA, "stopped")  # parts that others had
COMPUTED = {  # parts without an owner's name, and what is said of them
    "slower": "a slower CPU or memory",
    "work": "more calls",
    "computing": "longer computing",
}


def owned_pieces(
    path: pd.DataFrame, cpu_owners: pd.DataFrame, events: pd.DataFrame, stolen: pd.DataFrame
) -> pd.DataFrame:
    """Who had the time of each piece of each run's critical path.

    Parameters
    ----------
    path
        `critical_path` of the runs.
    cpu_owners
        Who had each CPU (`nbhelpers.tracing.campaign.read_owners`).
    events
        Noise events (`read_traces`), of which interrupts, softirqs and NMIs count here.
    stolen
        What the hypervisor took (`stolen_times`); may have no rows.

    Returns
    -------
    One row a piece and owner: `run`, `cpu`, `thread` (who computed), `start_ns`, `end_ns`, `part`,
    `owner`, `ns` (what of it this owner had); the sum over a run is the length of its path. What a
    thread of another name than the program's first one computes has this name (a process that it
    started). While a thread is runnable the owner is who had its CPU, or the idle CPU. Where the
    program's threads share a CPU it is who had another one of its CPUs meanwhile; `cpu` is that one
    then.
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
    rest = _less(whole[computing], [taken, lost])
    rest = rest.assign(owner=_computed_in(rest, cpu_owners))
    unseen = _less(whole[runnable], [had]).assign(owner=LATENCY)
    parts = [rest, unseen, had.assign(part="runnable"), taken, lost, whole[~computing & ~runnable]]
    table = pd.concat([part.reindex(columns=list(PIECES), fill_value=0) for part in parts])
    return table[table["ns"] > 0].astype(PIECES).reset_index(drop=True)


def owners_of_path(pieces: pd.DataFrame, throttled_ns: Mapping[int, float]) -> pd.DataFrame:
    """Who had the time of each run's critical path: the sums of its pieces.

    Parameters
    ----------
    pieces
        `owned_pieces`, or these `with_speed`.
    throttled_ns
        How long each run's control group was kept from running by its quota, run → ns. It has what
        a thread waited for a CPU first, as long as it held in sum.

    Returns
    -------
    One row a run, part and owner: `run`, `part`, `owner`, `ns`.
    """
    table = pieces.groupby(["run", "part", "owner"], as_index=False)["ns"].sum()
    return _with_quota(table, throttled_ns)


def _computed_in(pieces: pd.DataFrame, cpu_owners: pd.DataFrame) -> pd.Series:
    """The name of each piece's thread, or `PROGRAM` where it is that of the program's first."""
    own = cpu_owners[cpu_owners["is_program"]].sort_values(["run", "thread"])
    names = own.drop_duplicates(["run", "thread"]).set_index(["run", "thread"])["name"]
    first = pieces["run"].map(names.groupby("run").first())
    name = names.reindex(pd.MultiIndex.from_frame(pieces[["run", "thread"]])).set_axis(pieces.index)
    return name.where(name.notna() & (name != first), PROGRAM)


def without_cpu(states: pd.DataFrame, events: pd.DataFrame, stolen: pd.DataFrame) -> pd.DataFrame:
    """When threads were without their CPU: asleep or kept waiting, interrupted, or stopped by the
    hypervisor; `run`, `thread`, `start_ns`, `end_ns`, which may overlap.

    Parameters
    ----------
    states, events, stolen
        Tables of the same runs, as for `critical_path` and `owned_pieces`.
    """
    columns = ["run", "thread", "start_ns", "end_ns"]
    runs = states["state"] == "running"
    intervals = [events[(events["kind"] != "thread").to_numpy()], stolen]
    taken = [_shared(states[runs], table.assign(owner="", ns=0)) for table in intervals]
    whose = [table.assign(thread=table["piece"].map(states["thread"])) for table in taken]
    return pd.concat([states[~runs], *whose])[columns].astype("int64")


def with_speed(pieces: pd.DataFrame, slower: pd.DataFrame) -> pd.DataFrame:
    """Split what was computed by the speed of fixed work.

    Parameters
    ----------
    pieces
        `owned_pieces`.
    slower
        Factors by which the calls of functions took longer (`nbhelpers.speed.ruler.slowness`).

    Returns
    -------
    `pieces`, where each that was computed is split: `slower`, what the same calls took longer
    (negative: shorter) than in ordinary runs; `work`, what they take there; `computing`, outside of
    them.
    """
    is_computed = pieces["part"] == "computing"
    computed = pieces[is_computed]
    calls = _shared(computed, slower.assign(owner="", ns=slower["busy_ns"]), "thread")
    if calls.empty:
        return pieces
    calls = calls.assign(
        slow=calls["ns"] * (1 - 1 / calls["factor"]), covered=calls["end_ns"] - calls["start_ns"]
    )
    sums = calls.groupby("piece")[["ns", "slow", "covered"]].sum().reindex(computed.index)
    # calls of nested functions overlap
    length_ns = computed["end_ns"] - computed["start_ns"]
    in_calls = computed["ns"] * (sums["covered"] / length_ns).clip(upper=1).fillna(0)
    scale = (in_calls / sums["ns"]).fillna(0)
    slow = calls["slow"] * calls["piece"].map(scale)
    calls = calls.assign(ns=slow, cpu=calls["piece"].map(computed["cpu"]))
    work = in_calls - slow.groupby(calls["piece"]).sum().reindex(computed.index).fillna(0)
    split = [
        calls.assign(part="slower", owner=SAME_CALLS)[list(PIECES)],
        computed.assign(part="work", ns=work),
        computed.assign(ns=computed["ns"] - in_calls),
    ]
    split = [rows[rows["ns"] != 0] for rows in split]
    return pd.concat([pieces[~is_computed], *split], ignore_index=True).astype(PIECES)


def _had(runnable: pd.DataFrame, cpu_owners: pd.DataFrame) -> pd.DataFrame:
    """Who had the CPU for which a thread waited: a row a piece and owner.

    Two threads of the program share a CPU because somebody else has another one of its CPUs: then
    this is the owner. While nobody has, it is the thread of its own.
    """
    own, elsewhere, others = _sharing(runnable, cpu_owners)
    left = own["ns"] - elsewhere.groupby("piece")["ns"].sum().reindex(own.index).fillna(0)
    elsewhere = elsewhere.assign(piece=elsewhere["piece"].map(own["piece"]))
    own = own.assign(ns=left.clip(lower=0), owner=OWN + own["owner"].astype(str))
    others = others.assign(owner=others["owner"].mask(others["owner"] == "idle", LATENCY))
    return pd.concat([others, elsewhere, own], ignore_index=True)


def _sharing(
    runnable: pd.DataFrame, cpu_owners: pd.DataFrame
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Who had the CPU of ready threads: threads of their own program, with who had another of its
    CPUs meanwhile (`piece`: row of the first table), and all others. Another CPU counts if one of
    the two threads is at home there, too: pinned ones share theirs, whoever has the rest.
    """
    intervals = cpu_owners.rename(columns={"name": "owner"})
    intervals = intervals.assign(ns=intervals["end_ns"] - intervals["start_ns"])
    had = _shared(runnable, intervals)
    is_own = had["is_program"].astype(bool) & (had["owner"] != "idle")
    own, others = had[is_own].reset_index(drop=True), had[~is_own]
    outside = intervals[~intervals["is_program"] & (intervals["owner"] != "idle")]
    columns = ["run", "cpu", "thread"]
    ran_ns = intervals[intervals["is_program"]].groupby(columns)["ns"].sum()
    lives_there = ran_ns >= AT_HOME * ran_ns.groupby(["run", "thread"]).transform("sum")
    places = ran_ns.reset_index()[columns[:2]].drop_duplicates()
    held = dict(iter(outside.merge(places).groupby("run")))
    parts = [_overlaps(one, held[run]) for run, one in own.groupby("run") if run in held]
    elsewhere = pd.concat(parts) if parts else own.head(0)
    both = [own["thread"], own["piece"].map(runnable["thread"])]
    of = [elsewhere.assign(thread=elsewhere["piece"].map(one))[columns] for one in both]
    homes = [pd.MultiIndex.from_frame(one).isin(ran_ns.index[lives_there]) for one in of]
    elsewhere = elsewhere[np.any(homes, axis=0)]
    # several CPUs may be held at the same time
    sums = elsewhere.groupby("piece")["ns"].sum()
    scale = (own["ns"].reindex(sums.index) / sums).clip(upper=1).rename("scale")
    elsewhere = elsewhere.assign(ns=elsewhere["ns"] * elsewhere["piece"].map(scale).fillna(0))
    return own, elsewhere, others


def _shared(pieces: pd.DataFrame, intervals: pd.DataFrame, by: str = "cpu") -> pd.DataFrame:
    """What of each interval (`cpu`, `start_ns`, `end_ns`, `owner`, `ns`) lies in each piece of its
    run and CPU, or thread: a row a pair, with `piece` (the piece's label) and `ns`.
    """
    held = dict(iter(intervals.groupby(["run", by])))
    parts = [_overlaps(own, held[key]) for key, own in pieces.groupby(["run", by]) if key in held]
    if parts:
        return pd.concat(parts, ignore_index=True)
    names = ("run", "cpu", "thread", "owner", "ns", "piece", "is_program", "start_ns", "end_ns")
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
    meet = until > since  # one that ended before may lie between two that did not
    row, piece, since, until = row[meet], piece[meet], since[meet], until[meet]
    share = (until - since) / (end[row] - start[row])
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
