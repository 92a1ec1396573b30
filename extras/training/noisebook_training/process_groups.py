"""A training job from the profiler's traces of its ranks: which of them do the same work, and what
waits for what.

Ranks that send each other messages are a pipeline, its stages in the order of their numbers;
pipelines are replicas. Without messages every rank is a replica. A worker's computation is cut
where a collective or message begins, and where one ends for which it had waited.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from nbhelpers.errors import InputError

from .kineto import FIX, Operation, recorded_ranks
from .step_graph import StepGraph
from .trace import COMPUTE, TrainingJob

_NEVER = np.iinfo(np.int64).max


class Role(NamedTuple):
    """What a collective or message is: alike in all replicas and steps."""

    kind: str
    stages: tuple[int, ...]  # that take part
    joint: bool  # all replicas take part


class Step(NamedTuple):
    """A rank's K collectives and messages in a step: what they are, their times; and the times of
    N computations.
    """

    roles: tuple[Role, ...]
    talk_ns: np.ndarray  # int64 [K, 2], begins and ends
    work_ns: np.ndarray  # int64 [N, 2]


class Stage(NamedTuple):
    """The same of all steps and replicas of a stage."""

    roles: tuple[Role, ...]
    talk_ns: np.ndarray  # int64 [2, K, S, R]
    work_ns: dict[tuple[int, int], np.ndarray]  # by step and replica: int64 [N, 2]


def kineto_job(path: str | Path) -> TrainingJob:
    """The steps that PyTorch's profiler recorded, of every rank whose file is there.

    Clocks of ranks are set by the ends of what they do together. Steps in which a rank has other
    collectives than usual are left out. The job's `ranks` say which rank a worker is.

    Parameters
    ----------
    path
        A folder with a file a rank, JSON or packed by gzip. The program has to call the profiler's
        `step()`; three steps are enough, if they are alike.

    Raises
    ------
    InputError
        No steps; groups of ranks that are neither all replicas of some stages nor within one, such
        as those of tensors that several ranks share; stages with several chunks of the model.
    """
    path = Path(path)
    found, _ = recorded_ranks(path)
    ranks = _pipelines(found, path)
    place = {int(rank): at for at, rank in np.ndenumerate(ranks)}
    parts = {rank: _by_step(found[rank], place, rank) for rank in place}
    steps, usual = _usual(parts, ranks, path)
    stages = []
    for roles, own in zip(usual, ranks.T):
        talk = np.array([[parts[rank][step].talk_ns for rank in own] for step in steps])
        work = {
            (at, replica): parts[rank][step].work_ns
            for at, step in enumerate(steps)
            for replica, rank in enumerate(own)
        }
        stages.append(Stage(roles, talk.transpose(3, 2, 0, 1).copy(), work))
    _set_clocks(stages)
    return _job(path.name, stages, np.array(steps), ranks)


def _pipelines(found: Mapping[int, list[Operation]], path: Path) -> np.ndarray:
    """The rank of each replica and stage, int [R, P]."""
    together = {rank: {rank} for rank in found}
    for rank, operations in found.items():
        for peer in {one.peer for one in operations} - {-1}:
            if peer not in found:
                raise InputError(f"rank {peer} of a pipeline is missing", where=path, fix=FIX)
            both = together[rank] | together[peer]
            together |= dict.fromkeys(both, both)
    rows = sorted({tuple(sorted(one)) for one in together.values()})
    lengths = sorted({len(row) for row in rows})
    if len(lengths) > 1:
        raise InputError(f"pipelines of {lengths} ranks", where=path, why="replicas are alike")
    return np.array(rows)


def _by_step(
    operations: list[Operation], place: Mapping[int, tuple[int, ...]], rank: int
) -> dict[int, Step]:
    roles: dict[tuple, Role] = {}
    found: dict[int, tuple[list, list, list]] = {}
    for one in operations:
        if one.step < 0:
            continue
        had, talk, work = found.setdefault(one.step, ([], [], []))
        (talk if one.name else work).append(one[:2])
        if one.name:
            key = one.name, one.members, one.peer
            roles[key] = roles.get(key) or _role(one, place, rank)
            had.append(roles[key])
    return {
        step: Step(tuple(had), *(np.array(one, np.int64).reshape(-1, 2) for one in times))
        for step, (had, *times) in found.items()
    }


def _role(one: Operation, place: Mapping[int, tuple[int, ...]], rank: int) -> Role:
    stage = place[rank][1]
    if one.peer >= 0:
        further = place[one.peer][1] - stage
        if abs(further) != 1:
            raise InputError(
                f"a message from stage {stage} to {stage + further}",
                where=f"rank {rank}",
                why="stages have several chunks of the model each, whose order is not known here",
            )
        way = "forward" if (further > 0) == (one.name == "send") else "backward"
        return Role(f"{way}-{one.name}", tuple(sorted((stage, stage + further))), False)
    places = [place[member] for member in one.members if member in place]
    replicas, stages = ({at[axis] for at in places} for axis in (0, 1))
    everybody = len({replica for replica, _ in place.values()})
    if len(replicas) not in (1, everybody) or len(places) != len(replicas) * len(stages):
        raise InputError(
            f"a group of ranks {', '.join(map(str, one.members[:8]))} in a job of {len(place)}",
            where=f"rank {rank}: {one.name}",
            why="it is neither all replicas of some stages nor within one replica",
            fix="noisebook whatif takes any groups, but names no worker",
        )
    kind = f"{one.name} of {len(one.members)}"
    return Role(kind, tuple(sorted(stages)), len(replicas) == everybody)


def _usual(
    parts: Mapping[int, dict[int, Step]], ranks: np.ndarray, path: Path
) -> tuple[list[int], list[tuple[Role, ...]]]:
    """The steps in which every rank has what its stage usually has, and that of each stage."""
    counts = [Counter(one.roles for rank in own for one in parts[rank].values()) for own in ranks.T]
    usual = [count.most_common(1)[0][0] if count else () for count in counts]
    steps = [
        step
        for step in sorted(set.intersection(*(set(its) for its in parts.values())))
        if all(parts[rank][step].roles == its for own, its in zip(ranks.T, usual) for rank in own)
    ]
    if not steps or not all(usual):
        raise InputError(
            "no step in which all ranks have their usual collectives",
            where=path,
            why="workers are compared step by step",
            fix="call step() of torch.profiler after each step, and record three or more",
        )
    return steps, usual


def _meetings(roles: Sequence[Role]) -> Iterator[tuple]:
    """A key of each collective or message, the same on all ranks that meet in it."""
    seen: Counter = Counter()
    for kind, stages, joint in roles:
        key = kind.removesuffix("-send").removesuffix("-recv"), stages, joint
        yield *key, seen[key]
        seen[key] += 1


def _set_clocks(stages: Sequence[Stage]) -> None:
    """Moves the times of each rank, so that what ranks do together ends at the same time."""
    ends: dict[tuple[int, int], dict[tuple, np.ndarray]] = {}
    for number, stage in enumerate(stages):
        for replica in range(stage.talk_ns.shape[3]):
            keys = [(*key, key[2] or replica) for key in _meetings(stage.roles)]
            ends[number, replica] = dict(zip(keys, stage.talk_ns[1, :, :, replica]))
    late, waiting = {(0, 0): 0}, [(0, 0)]
    while waiting:
        one = waiting.pop()
        for other in ends.keys() - late.keys():
            shared = ends[one].keys() & ends[other].keys()
            if shared:
                apart = np.median([ends[other][key] - ends[one][key] for key in shared])
                late[other] = late[one] + round(apart)
                waiting.append(other)
    if len(late) < len(ends):
        raise InputError("ranks that do nothing together", why="no times of them can be compared")
    for (number, replica), ns in late.items():
        stages[number].talk_ns[..., replica] -= ns
        for at, work in stages[number].work_ns.items():
            if at[1] == replica:
                work -= ns


def _job(name: str, stages: Sequence[Stage], steps: np.ndarray, ranks: np.ndarray) -> TrainingJob:
    operations: list[tuple[str, int]] = []
    times: list[np.ndarray] = []
    needs: list[tuple[int, int]] = []
    joint: list[int] = []
    meetings: dict[tuple, list[int]] = {}
    for stage, (roles, talk_ns, work_ns) in enumerate(stages):
        first, computing = len(operations), len(operations) + len(roles)
        order = _cuts(talk_ns, work_ns)
        times.append(np.concatenate([talk_ns, _worked(talk_ns, work_ns, order)], axis=1))
        kinds = [role.kind for role in roles] + [COMPUTE] * (len(order) + 1)
        operations += [(kind, stage) for kind in kinds]
        needs += [(one + 1, one) for one in range(computing, len(operations) - 1)]
        for before, cut in enumerate(order.tolist(), computing):
            begins = cut < len(roles)
            needs.append(
                (first + cut, before) if begins else (before + 1, first + cut - len(roles))
            )
        latest: dict[Role, int] = {}
        for number, (role, key) in enumerate(zip(roles, _meetings(roles)), first):
            needs += [(number, latest[role])] if role in latest else []
            latest[role] = number
            meetings.setdefault(key, []).append(number)
            joint += [number] if role.joint else []
    start_s, end_s = np.concatenate(times, axis=1) / 1e9
    table = pd.DataFrame(operations, columns=["kind", "stage"])
    together = [group for group in meetings.values() if len(group) > 1]
    return TrainingJob(
        name,
        table["stage"].to_numpy(),
        table["kind"].to_numpy(str),
        table.groupby(["kind", "stage"]).cumcount().to_numpy(),
        steps,
        start_s - start_s.min((0, 2))[:, None],
        end_s - start_s,
        StepGraph.of_groups(len(operations), needs, together, joint),
        ranks,
    )


def _cuts(talk_ns: np.ndarray, work_ns: dict[tuple[int, int], np.ndarray]) -> np.ndarray:
    """Where a stage's computation is cut, in order: k, where collective k begins; K + k, where k
    ends, if it was waited for in half of a replica's steps at least.

    It was waited for where nothing was computed when it was over, and something before the next
    was.
    """
    waited = np.zeros(talk_ns.shape[1:], bool)
    for (step, replica), work in work_ns.items():
        over = talk_ns[1, :, step, replica]
        before = np.searchsorted(work[:, 0], over, "left")
        idle = np.append(np.maximum.accumulate(work[:, 1]), -_NEVER)[before - 1] <= over
        ends = np.sort(over)
        next_over = np.append(ends, _NEVER)[np.searchsorted(ends, over, "right")]
        waited[:, step, replica] = idle & (np.append(work[:, 0], _NEVER)[before] < next_over)
    waited_for = np.flatnonzero((waited.mean(1) >= 0.5).any(1))
    at = np.concatenate([talk_ns[0], talk_ns[1, waited_for]])
    cuts = np.concatenate([np.arange(len(waited)), len(waited) + waited_for])
    return cuts[np.argsort(np.median(at - at.min(0), (1, 2)), kind="stable")]


def _worked(
    talk_ns: np.ndarray, work_ns: dict[tuple[int, int], np.ndarray], order: np.ndarray
) -> np.ndarray:
    """Begin and end of what a stage computes between its C cuts, int64 [2, C + 1, S, R]; a piece
    has the gaps that its host leaves in it, not those before and after it.
    """
    cuts = np.maximum.accumulate(talk_ns.reshape(-1, *talk_ns.shape[2:])[order], axis=0)
    found = np.empty((2, len(order) + 1, *talk_ns.shape[2:]), np.int64)
    for (step, replica), work in work_ns.items():
        inner = cuts[:, step, replica]
        begins, until = work[:, 0], np.maximum.accumulate(work[:, 1])
        low = np.append(min([inner[0], *begins[:1]]), inner)
        high = np.append(inner, max([inner[-1], *until[-1:]]))
        start = np.append(begins, _NEVER)[np.searchsorted(until, low, "right")]
        end = np.append(until, -_NEVER)[np.searchsorted(begins, high, "left") - 1]
        start, end = np.maximum(low, start), np.minimum(high, end)
        found[:, :, step, replica] = np.where(start < end, [start, end], low)
    return found
