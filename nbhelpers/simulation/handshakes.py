"""Rendezvous as MPI libraries carry it out: large messages are announced and called for, by
messages that cost what messages cost.

Owns the schedule with these messages; in the engine itself a rendezvous is only a send that ends
when it is matched.
"""

import numpy as np

from .schedule import ANY, CALC, SEND, Edges, Schedule, ScheduleError

_TAGS = 4  # of each tag: of small messages, requests to send, clearances, and the data
_MOST = 2**31 // _TAGS


def with_handshakes(schedule: Schedule, above: int) -> Schedule:
    """The schedule with three messages for each one of more than `above` bytes: request to send,
    clear to send, data.

    A large send becomes: send the request (1 byte), receive the clearance, send the data; a large
    receive: receive the request, send the clearance, receive the data. What required the operation
    requires its data; what required its begin, the request. So the sender hears of a late receive
    after L, and both CPUs pay o for each message. Simulate it with an S that is above all sizes.

    Raises
    ------
    ScheduleError
        Receives with ANY next to large messages (whom to clear is not known before the run), or a
        tag of 2^29 or more.
    """
    large = (schedule.kind != CALC) & (schedule.column("size") > above)
    if not large.any():
        return schedule
    _check(schedule)
    width = np.where(large, 3, 1)
    first = np.concatenate([[0], np.cumsum(width)[:-1]])
    of = np.repeat(np.arange(len(schedule)), width)
    step, split = np.arange(len(of)) - first[of], large[of]
    kind = np.where(split & (step == 1), 3 - schedule.kind[of], schedule.kind[of])  # SEND 1, RECV 2
    columns = {name: schedule.column(name)[of] for name in ("peer", "tag", "cpu", "nic")}
    columns["tag"] = _TAGS * columns["tag"] + np.where(split, step + 1, 0)
    size = np.where(split & (step < 2), 1, schedule.column("size")[of])
    requires, irequires = _edges(schedule, first, first + width - 1, np.flatnonzero(large))
    counts = np.diff(np.concatenate([[0], np.cumsum(width)])[schedule.rank_start])
    return Schedule.from_arrays(
        counts,
        kind,
        columns["peer"],
        size,
        tag=columns["tag"],
        cpu=columns["cpu"],
        nic=columns["nic"],
        requires=requires,
        irequires=irequires,
        line=schedule.line[of] if len(schedule.line) else None,
        label=[schedule.label[int(i)] for i in of] if len(schedule.label) else (),
        name=schedule.name,
    )


def _edges(
    schedule: Schedule, begin: np.ndarray, end: np.ndarray, large: np.ndarray
) -> tuple[Edges, Edges]:
    """Those of the schedule, and those within each large message: its second operation begins with
    the first (send), or follows it (receive), and so on.
    """
    sends, receives = (
        begin[large[(schedule.kind[large] == SEND) == which]] for which in (True, False)
    )
    operation, needed = schedule.edges("requires")
    requires = (
        np.concatenate([begin[operation], sends + 2, receives + 1]),
        np.concatenate([end[needed], sends + 1, receives]),
    )
    operation, needed = schedule.edges("irequires")
    irequires = (
        np.concatenate([begin[operation], sends + 1, receives + 2]),
        np.concatenate([begin[needed], sends, receives + 1]),
    )
    return requires, irequires


def _check(schedule: Schedule) -> None:
    receives = schedule.kind != CALC
    for name, what in (("peer", "ANY source"), ("tag", "ANY tag")):
        wild = np.flatnonzero(receives & (schedule.column(name) == ANY))
        if len(wild):
            raise ScheduleError(
                f"a receive from {what} next to large messages",
                where=f"{schedule.name}: {schedule.where(int(wild[0]))}",
                why="whom a handshake is with has to stand in the schedule",
                fix="name the source and the tag, or simulate without handshakes",
            )
    tags = schedule.column("tag")
    if int(tags.max(initial=0)) >= _MOST:
        raise ScheduleError(
            f"a tag of {_MOST} or more",
            where=f"{schedule.name}: {schedule.where(int(np.argmax(tags)))}",
            why="handshakes need four tags for each",
        )
