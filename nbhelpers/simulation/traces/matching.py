"""Whether the ranks of a traced run agree: each message with its receive, each collective with
those of the other ranks.

Owns the order in which collectives of different communicators are laid, and the errors of traces
that do not match.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ...errors import InputError
from ...mpi import Calls
from ..schedule import ANY, RECV, SEND


@dataclass(frozen=True)
class Instance:
    """One collective call of all ranks of a communicator.

    Parameters
    ----------
    name
        "Allreduce", …
    members
        Its ranks in the world, in the communicator's order.
    bytes
        Length of a rank's part in bytes, as the pattern counts it; in an all-to-all, of a pair's
        part.
    root
        Its place among the members.
    """

    name: str
    members: tuple[int, ...]
    bytes: int
    root: int


def matched_collectives(traced: Calls) -> list[Instance]:
    """All collectives of `checked_calls`, in an order in which every rank has its own calls.

    Raises
    ------
    InputError
        Ranks of a communicator call different collectives, another number of them, or other roots.
    """
    chosen = traced.table[traced.table["collective"] != ""].copy()
    chosen["turn"] = chosen.groupby(["rank", "comm"]).cumcount()
    chosen["place"] = chosen.groupby("rank").cumcount()
    groups = chosen.groupby(["comm", "turn"], sort=False)
    for key in _doubtful(groups, traced.comms):
        _check(groups.get_group(key), traced.comms[int(key[0])])
    places: dict[tuple, list[tuple[int, int]]] = {}
    for row in chosen.itertuples():
        places.setdefault((row.comm, row.turn), []).append((row.rank, row.place))
    parts = chosen.assign(given=chosen["bytes"].clip(lower=0)).groupby(["comm", "turn"])
    values = {"collective": "first", "root": "first", "given": ["max", "mean"]}
    found = parts.agg(values | {"received_bytes": "max"}).loc[_in_order(places)]
    return [_instance(row, traced.comms[int(row[0][0])]) for row in found.itertuples(name=None)]


def _doubtful(groups: Any, comms: Mapping[int, tuple[int, ...]]) -> pd.Index:
    """The collectives, by communicator and turn, whose ranks may disagree; few are looked at one by
    one, where a trace has many thousands.
    """
    counts = groups[["rank", "collective", "root"]].nunique()
    members = counts.index.get_level_values("comm").map(lambda comm: len(comms[int(comm)]))
    alike = (counts[["collective", "root"]] == 1).all(axis=1)
    return counts.index[(counts["rank"] != members) | ~alike]


def _check(part: pd.DataFrame, members: tuple[int, ...]) -> None:
    first = part.iloc[0]
    missing = set(members) - set(part["rank"])
    where = f"communicator {first['comm']}, its collective {first['turn'] + 1}"
    fix = "the trace of a rank is cut short, or of another run: trace it again"
    if missing:
        raise InputError(
            f"rank {min(missing)} doesn't call {first['call']} as rank {first['rank']} does",
            where=where,
            why="all ranks of a communicator take part in a collective",
            fix=fix,
        )
    for column, what in (("collective", "collectives"), ("root", "roots")):
        if part[column].nunique() > 1:
            other = part[part[column] != first[column]].iloc[0]
            raise InputError(
                f"ranks {first['rank']} and {other['rank']} call different {what}:"
                f" {first[column]} and {other[column]}",
                where=where,
                why="they would wait for each other for ever",
                fix=fix,
            )


def _in_order(places: dict[tuple, list[tuple[int, int]]]) -> list[tuple]:
    """The groups sorted such that no rank has a later call of its own before an earlier one."""
    waiting: dict[int, int] = {}
    at = {place: key for key, found in places.items() for place in found}
    ranks = {rank for rank, _ in at}
    ready = [at[rank, 0] for rank in sorted(ranks)]
    left = {key: len(found) for key, found in places.items()}
    order = []
    while ready:
        key = ready.pop(0)
        left[key] -= 1
        if left[key]:
            continue
        order.append(key)
        for rank, place in places[key]:
            waiting[rank] = place + 1
            if (rank, place + 1) in at:
                ready.append(at[rank, place + 1])
    if len(order) < len(places):
        stuck = next(key for key in places if left[key])
        raise InputError(
            "collectives of two communicators in another order on other ranks",
            where=f"communicator {stuck[0]}, its collective {stuck[1] + 1}",
            why="they would wait for each other for ever",
            fix="the trace is not of one run, or the program relies on buffering: trace it again",
        )
    return order


def _instance(row: tuple, members: tuple[int, ...]) -> Instance:
    """From the bytes that one of its ranks gave at most and on average, and got at most."""
    _, name, root, given, mean, came = row
    most, came, count = max(int(given), 0), max(int(came), 0), len(members)
    if name in ("Alltoall", "Alltoallv", "Alltoallw"):
        most = round(mean / count)
    elif name in ("Gatherv", "Allgatherv"):
        most = round(mean)
    elif name in ("Scatter", "Scatterv"):
        most = came or -(-most // count)
    elif name == "Bcast":
        most = max(most, came)
    return Instance(name, members, most, members.index(root) if root in members else 0)


def check_messages(messages: pd.DataFrame) -> None:
    """Whether there is a receive for every send, and a send for every receive.

    Parameters
    ----------
    messages
        `rank`, `kind`, `peer`, `comm`, `tag`, a row a send or receive.

    Raises
    ------
    InputError
        They don't match; the message names the ranks and how many there are of each. Between ranks
        of which the receiver takes anybody's messages, nothing can be said here.
    """
    sends = messages["kind"] == SEND
    ends = pd.DataFrame(
        {
            "source": np.where(sends, messages["rank"], messages["peer"]),
            "target": np.where(sends, messages["peer"], messages["rank"]),
            "comm": messages["comm"],
            "tag": messages["tag"],
            "send": sends,
            "receive": messages["kind"] == RECV,
        }
    )
    anybody = set(ends[(ends["source"] == ANY) | (ends["tag"] == ANY)]["target"])
    counts = (
        ends[~ends["target"].isin(anybody)]
        .groupby(["source", "target", "comm", "tag"])[["send", "receive"]]
        .sum()
    )
    wrong = counts[counts["send"] != counts["receive"]]
    if len(wrong):
        (source, target, comm, tag), row = wrong.index[0], wrong.iloc[0]
        raise InputError(
            f"{row['send']} messages from rank {source} to rank {target}, but"
            f" {row['receive']} receives",
            where=f"tag {tag}, communicator {comm}",
            why="one end of a message is missing: the simulation would never end",
            fix="the trace of a rank is cut short, or of another run: trace it again",
        )
