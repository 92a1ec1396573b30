"""What waits for what in a step of pipeline and data parallel training.

Owns the rules by which the recorded order of one replica's first step becomes a graph.
"""

from collections.abc import Callable, Iterator

import numpy as np

from nbhelpers.errors import InputError

from .step_graph import StepGraph
from .trace import COMPUTING, TrainingJob

MESSAGES = ("forward-send", "forward-recv", "backward-send", "backward-recv")
GATHER, SCATTER, CLIP = "params-all-gather", "grads-reduce-scatter", "optimizer-clip-main-grad"
ACROSS_REPLICAS = (GATHER, SCATTER, CLIP)
EMBEDDING = "embedding-grads-all-reduce"
AFTERWARDS = ("gc", "layernorm-grads-all-reduce", EMBEDDING, SCATTER, CLIP, "optimizer")
KNOWN = {*COMPUTING[:2], *MESSAGES, *AFTERWARDS, GATHER}

Lanes = dict[tuple[int, str], list[int]]
"""Operations of one kind on one stage, in the order in which they began."""


def step_graph(job: TrainingJob) -> StepGraph:
    """The graph of a step (Lin et al., OSDI 2025, section 3: streams, messages and collectives).

    * Computations of a worker follow each other, so do the messages of each of four kinds, and the
      collectives.
    * A message is received before the computation that needs it, and after the one before. It is
      sent after its computation. Sender and receiver begin together.
    * Parameters are gathered before the first forward computation. After the last computation come
      the collectives of the gradients, clipping and the optimizer.
    * Gathering, scattering and clipping wait for all replicas, clipping for all stages.

    Raises
    ------
    InputError
        Operations that these rules do not know, or messages without a partner.
    """
    lanes = _lanes(job)
    stages = range(job.stages)
    needs = [pair for stage in stages for pair in _stage_needs(lanes, job, stage)]
    messages = [pair for stage in stages[:-1] for pair in _messages(lanes, job, stage)]
    joint = [op for (_, kind), ops in lanes.items() if kind in ACROSS_REPLICAS for op in ops]
    return StepGraph.of_groups(
        len(job.kind), needs, [*messages, *_across_stages(lanes, job)], joint
    )


def _lanes(job: TrainingJob) -> Lanes:
    kinds, stages = job.kind.tolist(), job.stage.tolist()
    unknown = set(kinds) - KNOWN
    if unknown:
        raise InputError(
            f"operations that are not known: {', '.join(sorted(unknown))}",
            where=job.name,
            why=f"what waits for them is not known; known are {', '.join(sorted(KNOWN))}",
        )
    lanes: Lanes = {}
    for op in np.lexsort([job.number, job.start_s[:, 0, 0]]).tolist():
        lanes.setdefault((stages[op], kinds[op]), []).append(op)
    return lanes


def _chain(operations: list[int]) -> Iterator[tuple[int, int]]:
    return zip(operations[1:], operations[:-1])


def _stage_needs(lanes: Lanes, job: TrainingJob, stage: int) -> Iterator[tuple[int, int]]:
    """(operation, needed) of one worker."""

    def of(kind: str) -> list[int]:
        return lanes.get((stage, kind), [])

    computing = _by_start(job, of(COMPUTING[0]) + of(COMPUTING[1]))
    yield from _chain(computing)
    for kind in MESSAGES:
        yield from _chain(of(kind))
        direction, way = kind.split("-")
        partners = of(f"{direction}-compute")
        for number, (message, computation) in enumerate(zip(of(kind), partners)):
            if way == "send":
                yield message, computation
            else:
                yield computation, message
                if number:
                    yield message, partners[number - 1]
    yield from _first_backward(of, computing)
    yield from _chain(_by_start(job, of(GATHER) + of(SCATTER)))
    if of(GATHER) and of(COMPUTING[0]):
        yield of(COMPUTING[0])[0], of(GATHER)[-1]
    yield from _chain([*computing[-1:], *(op for kind in AFTERWARDS for op in of(kind))])


def _first_backward(
    of: Callable[[str], list[int]], computing: list[int]
) -> Iterator[tuple[int, int]]:
    """The first backward messages wait for the computation two before the first backward one."""
    backward = of(COMPUTING[1])
    place = computing.index(backward[0]) if backward else 0
    if place >= 2:
        for kind in MESSAGES[2:]:
            for message in of(kind)[:1]:
                yield message, computing[place - 2]


def _by_start(job: TrainingJob, operations: list[int]) -> list[int]:
    """In the order of the recorded begins, then the numbers, then the kinds."""
    some = np.array(operations, int)
    order = np.lexsort([job.kind[some], job.number[some], job.start_s[some, 0, 0]])
    return some[order].tolist()


def _messages(lanes: Lanes, job: TrainingJob, stage: int) -> Iterator[tuple[int, int]]:
    """Sends and receives between a stage and the next, pair by pair."""
    for kind, here, there in (
        ("forward", "send", "recv"),
        ("backward", "recv", "send"),
    ):
        near = lanes.get((stage, f"{kind}-{here}"), [])
        far = lanes.get((stage + 1, f"{kind}-{there}"), [])
        computed = lanes.get((stage, f"{kind}-compute"), [])
        if not len(near) == len(far) == len(computed):
            raise InputError(
                f"{len(near)} times {kind}-{here} for {len(far)} times {kind}-{there}"
                f" and {len(computed)} times {kind}-compute",
                where=f"{job.name}: between stage {stage} and {stage + 1}",
                why="each computation hands on one message",
            )
        yield from zip(near, far)


def _across_stages(lanes: Lanes, job: TrainingJob) -> list[list[int]]:
    """The collectives of several stages: clipping of all, the embedding's of the first and last."""
    last = job.stages - 1
    clipping = [op for stage in range(job.stages) for op in lanes.get((stage, CLIP), [])]
    embedding = [op for stage in {0, last} for op in lanes.get((stage, EMBEDDING), [])]
    return [group for group in (clipping, embedding) if group]
