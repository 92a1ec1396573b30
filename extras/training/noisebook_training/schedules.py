"""A training step as a schedule of the LogGOPS engine, on as many replicas as one likes.

Owns the translation of groups into messages: a stream is a CPU of its rank, a worker is a rank.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from nbhelpers.errors import InputError
from nbhelpers.simulation.loggops import LogGOPS
from nbhelpers.simulation.schedule import CALC, RECV, SEND, Schedule

from .dependencies import EMBEDDING, GATHER, MESSAGES, SCATTER
from .scenarios import WhatIf

FREE_NETWORK = LogGOPS(L=0, o=0, g=0, G=0, O=0)
"""Costs nothing: transfer times are in the schedule, as they were measured."""
STREAMS = {
    **{kind: number for number, kind in enumerate(MESSAGES, 1)},
    **dict.fromkeys((GATHER, SCATTER, EMBEDDING), 5),
}


@dataclass
class _Rank:
    """Operations of one rank of a replica, with ranks relative to the replica's first."""

    kind: list[int] = field(default_factory=list)
    peer: list[int] = field(default_factory=list)
    away: list[int] = field(default_factory=list)  # how many replicas further the peer is
    around: list[int] = field(default_factory=list)  # or how many ranks further
    tag: list[int] = field(default_factory=list)
    cpu: list[int] = field(default_factory=list)
    operation: list[int] = field(default_factory=list)  # whose time it takes; -1: none
    needs: list[tuple[int, int]] = field(default_factory=list)
    last: dict[int, int] = field(default_factory=dict)  # of each operation of the job

    def add(
        self,
        kind: int,
        needs: Iterable[int],
        *,
        peer: int = 0,
        away: int = 0,
        around: int = 0,
        tag: int = 0,
        cpu: int = 0,
        operation: int = -1,
    ) -> int:
        number = len(self.kind)
        for name, value in zip(
            ("kind", "peer", "away", "around", "tag", "cpu", "operation"),
            (kind, peer, away, around, tag, cpu, operation),
        ):
            getattr(self, name).append(value)
        self.needs += [(number, need) for need in needs]
        return number


def step_schedule(
    result: WhatIf, replicas: int | None = None, seconds: np.ndarray | None = None
) -> Schedule:
    """One step as a schedule; rank = replica × stages + stage.

    Each kind of messages and the collectives have a CPU beside that of computations.
    Partners exchange a byte when they are ready, and then take the transfer time that was measured.
    Replicas meet in a dissemination of messages.

    Parameters
    ----------
    replicas
        Number of replicas of the schedule; None: as many as were recorded.
    seconds
        float64 [O, replicas]; what each operation takes. None: the recorded replicas in turn, in
        the first step.

    Raises
    ------
    InputError
        A group of operations that this cannot translate.

    Examples
    --------
    >>> from noisebook_training import published_job, what_if
    >>> schedule = step_schedule(what_if(published_job("ST")), 16)
    >>> schedule.ranks
    64
    """
    job = result.job
    replicas = replicas or job.replicas
    if seconds is None:
        seconds = result.net_s[:, 0, np.arange(replicas) % job.replicas]
    return _tiled(_template(result, replicas), seconds, f"{job.name} on {replicas} replicas")


def _template(result: WhatIf, replicas: int) -> list[_Rank]:
    """The ranks of one replica."""
    graph, job = result.graph, result.job
    ranks = [_Rank() for _ in range(job.stages)]
    for group in range(len(graph.joint)):
        members = graph.members[graph.members_start[group] : graph.members_start[group + 1]]
        needs = set(graph.needs[graph.needs_start[group] : graph.needs_start[group + 1]].tolist())
        for operation in members.tolist():
            stage = int(job.stage[operation])
            rank = ranks[stage]
            before = sorted(rank.last[need] for need in needs if job.stage[need] == stage)
            cpu = STREAMS.get(str(job.kind[operation]), 0)
            others = [int(s) for s in job.stage[members] if s != stage]
            if graph.joint[group]:
                before = _meeting(rank, before, group, cpu, len(members), job.stages, replicas)
            elif len(members) == 2:
                before = _exchange(rank, before, group, cpu, others[0] - stage)
            elif len(members) > 2:
                raise InputError(
                    f"{len(members)} stages that wait for each other within a replica",
                    where=f"{job.name}: {job.kind[operation]}",
                )
            rank.last[operation] = rank.add(CALC, before, cpu=cpu, operation=operation)
    return ranks


def _exchange(rank: _Rank, before: list[int], tag: int, cpu: int, further: int) -> list[int]:
    """A byte to the partner and one from it."""
    places = {"around": further, "tag": tag << 6, "cpu": cpu}
    return [rank.add(SEND, before, **places), rank.add(RECV, [], **places), *before]


def _meeting(
    rank: _Rank, before: list[int], tag: int, cpu: int, members: int, stages: int, replicas: int
) -> list[int]:
    """Rounds of dissemination among the replicas, or among all ranks if all stages meet."""
    if members not in (1, stages):
        raise InputError(f"a collective of {members} of {stages} stages in all replicas")
    everybody = members > 1 or stages == 1
    size = replicas * stages if everybody else replicas
    distance, number = 1, 0
    while distance < size:
        step = {"around": distance} if everybody else {"away": distance}
        back = {"around": -distance} if everybody else {"away": -distance}
        places = {"tag": (tag << 6) + number, "cpu": cpu}
        send = rank.add(SEND, before, **step, **places)
        receive = rank.add(RECV, [], **back, **places)
        before = [send, receive]
        distance, number = 2 * distance, number + 1
    return before


def _tiled(ranks: list[_Rank], seconds: np.ndarray, name: str) -> Schedule:
    """The ranks of one replica for each replica, each with its times."""
    stages, replicas = len(ranks), seconds.shape[1]
    counts = np.array([len(rank.kind) for rank in ranks])
    each = {
        key: np.array([value for rank in ranks for value in getattr(rank, key)])
        for key in ("kind", "away", "around", "tag", "cpu", "operation")
    }
    stage = np.repeat(np.arange(stages), counts)
    replica = np.repeat(np.arange(replicas), counts.sum())
    total, place = stages * replicas, replica * stages + np.tile(stage, replicas)
    peer = (place + np.tile(each["around"] + stages * each["away"], replicas)) % total
    times = np.where(each["operation"][:, None] >= 0, seconds[each["operation"]], 0)
    ns = np.rint(np.clip(times.T.ravel(), 0, None) * 1e9).astype(np.int64)
    kind = np.tile(each["kind"], replicas)
    first = np.concatenate([[0], np.cumsum(counts)[:-1]])
    needs = np.array(
        [(a + f, b + f) for rank, f in zip(ranks, first) for a, b in rank.needs], np.int64
    ).reshape(-1, 2)
    shift = np.arange(replicas)[:, None] * counts.sum()
    return Schedule.from_arrays(
        np.tile(counts, replicas),
        kind,
        peer,
        np.where(kind == CALC, ns, 1),
        tag=np.tile(each["tag"], replicas),
        cpu=np.tile(each["cpu"], replicas),
        requires=((needs[:, 0] + shift).ravel(), (needs[:, 1] + shift).ravel()),
        name=name,
    )
