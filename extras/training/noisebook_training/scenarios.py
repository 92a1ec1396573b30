"""What a training job would take without some of its stragglers.

Owns the ideal durations, the scenarios, and the slow-downs that follow from replaying them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd

from nbhelpers.errors import check_choice

from .dependencies import CLIP, EMBEDDING, GATHER, MESSAGES, SCATTER, step_graph
from .step_graph import StepGraph
from .trace import COMPUTING, TrainingJob

MEDIAN_KINDS = {*MESSAGES, GATHER, SCATTER, CLIP, EMBEDDING, "layernorm-grads-all-reduce"}
CLOCK_ERROR_S = 0.01  # clocks of two workers differ by less
PARTS = ("replica", "stage", "worker", "operation", "step")


@dataclass(frozen=True, eq=False, repr=False)
class WhatIf:
    """A job, replayed with other durations (Lin et al., OSDI 2025, section 3).

    The slow-down is the job's time over that of the same job without stragglers. There every
    operation takes its kind's ideal duration over all workers and steps: the mean of computations,
    the median of communication. Gaps that the host leaves between operations are in neither.

    Parameters
    ----------
    job
        The job as it was recorded.
    graph
        What waits for what in a step.
    net_s
        float64 [O, S, R]; the duration of a computation, the transfer time of communication.
    ideal_s
        float64 [O].

    Examples
    --------
    >>> from noisebook_training import published_job, what_if
    >>> round(what_if(published_job("ST")).slowdown, 3)
    1.179
    """

    job: TrainingJob
    graph: StepGraph
    net_s: np.ndarray
    ideal_s: np.ndarray

    @cached_property
    def replayed_s(self) -> np.ndarray:
        """How long each step takes with its own durations, float64 [S]."""
        return self.graph.step_seconds(self.net_s)

    @cached_property
    def ideal_step_s(self) -> float:
        """How long a step takes without stragglers."""
        return float(self.graph.step_seconds(self.ideal_s[:, None, None])[0])

    @property
    def slowdown(self) -> float:
        """The job over the same job without stragglers (equation 1 of the paper)."""
        return float(self.replayed_s.mean() / self.ideal_step_s)

    @property
    def host_slowdown(self) -> float:
        """The job as measured over its replay, which leaves out the host's gaps."""
        return float(self.job.step_s.mean() / self.replayed_s.mean())

    def by(self, part: str) -> pd.DataFrame:
        """Slow-downs by each replica, stage, worker, operation or step.

        Returns
        -------
        pandas.DataFrame
            One row a part: its name (for workers `replica` and `stage`), `only` (slow-down of the
            job where all others are ideal, equation 2), `without` (slow-down where this part alone
            is ideal), `share` (how much of the excess time goes with it; may sum to more or less
            than 1).
        """
        check_choice("part", part, PARTS)
        if part == "step":
            return self._by_step()
        return self.replayed(*self._parts(part))

    def workers(self, workers: Sequence[tuple[int, int]]) -> pd.DataFrame:
        """The rows of `by("worker")` for the given workers, (replica, stage) each."""
        replica, stage = np.array(workers, int).reshape(-1, 2).T
        return self.replayed(
            {"replica": replica, "stage": stage},
            stage[:, None] == self.job.stage,
            replica[:, None] == np.arange(self.job.replicas),
        )

    def replayed(
        self, names: dict[str, np.ndarray], operations: np.ndarray, replicas: np.ndarray
    ) -> pd.DataFrame:
        """Names with `only`, `without` and `share` of parts: bool [K, O] and bool [K, R]."""
        ideal, means = self.ideal_s[:, None, None], []
        for rows, lanes in zip(operations, replicas):
            part = rows[:, None, None] & lanes
            both = np.where(part, self.net_s, ideal), np.where(part, ideal, self.net_s)
            means.append([self.graph.step_seconds(lasts).mean() for lasts in both])
        only, without = np.array(means).reshape(-1, 2).T / self.ideal_step_s
        share = (self.slowdown - without) / (self.slowdown - 1)
        return pd.DataFrame({**names, "only": only, "without": without, "share": share})

    def _by_step(self) -> pd.DataFrame:
        """A step waits for no other, so its own slow-down is that of all its stragglers."""
        total = self.replayed_s.sum()
        excess = self.replayed_s - self.ideal_step_s
        without = (total - excess) / len(self.job.steps) / self.ideal_step_s
        return pd.DataFrame(
            {
                "step": self.job.steps,
                "only": self.replayed_s / self.ideal_step_s,
                "without": without,
                "share": excess / excess.sum(),
            }
        )

    def _parts(self, part: str) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
        """Names, bool [K, O] and bool [K, R]: the parts' operations and replicas."""
        replicas, stages = np.arange(self.job.replicas), np.arange(self.job.stages)
        each_replica, on_stage = (
            np.eye(len(replicas), dtype=bool),
            stages[:, None] == self.job.stage,
        )
        if part == "replica":
            every = np.ones((len(replicas), len(self.job.kind)), bool)
            return {"replica": replicas}, every, each_replica
        if part == "worker":
            names = {
                "replica": np.repeat(replicas, len(stages)),
                "stage": np.tile(stages, len(replicas)),
            }
            return names, on_stage[names["stage"]], each_replica[names["replica"]]
        if part == "stage":
            return {"stage": stages}, on_stage, np.ones((len(stages), len(replicas)), bool)
        kind = _kinds(self.job.kind)
        kinds = np.unique(kind)
        every = np.ones((len(kinds), len(replicas)), bool)
        return {"operation": kinds}, kinds[:, None] == kind, every

    def __repr__(self) -> str:
        return f"WhatIf({self.job.name}: slow-down {self.slowdown:.3f})"


def what_if(job: TrainingJob) -> WhatIf:
    """Prepare a job's replays: its graph, transfer times and ideal durations."""
    graph = job.graph or step_graph(job)
    net = _net_seconds(job, graph)
    return WhatIf(job, graph, net, _ideal_seconds(job, net))


def _kinds(kinds: np.ndarray) -> np.ndarray:
    """The kinds as the paper decomposes them: sends and receives of one direction are one kind."""
    messages = {kind: f"{kind.split('-')[0]}-pp-comm" for kind in MESSAGES}
    return np.array([messages.get(kind, kind) for kind in kinds.tolist()])


def _net_seconds(job: TrainingJob, graph: StepGraph) -> np.ndarray:
    """Durations without the waiting for partners: from the last begin in the group to the end."""
    members, size = graph.members, np.diff(graph.members_start)
    waits = np.repeat((size > 1) | (graph.joint > 0), size)
    start = job.start_s[members]
    last = np.maximum.reduceat(start, graph.members_start[:-1], axis=0)
    joint = graph.joint > 0
    last[joint] = last[joint].max(2, keepdims=True)
    net = job.duration_s.copy()
    shared = net[members[waits]] + (start - np.repeat(last, size, 0))[waits]
    net[members[waits]] = np.where(shared <= -CLOCK_ERROR_S, 0, shared)
    return net


def _ideal_seconds(job: TrainingJob, net: np.ndarray) -> np.ndarray:
    """One duration a kind: the mean of computations, the median of communication.

    Where operations are alike by place, one a place; all stages then compute equally long.
    """
    if job.graph is not None:
        computes = np.isin(job.kind, COMPUTING)
        ideal = np.where(computes, net.mean((1, 2)), np.median(net, (1, 2)))
        seconds = np.maximum(np.bincount(job.stage[computes], ideal[computes]), 1e-12)
        ideal[computes] *= (seconds.mean() / seconds)[job.stage[computes]]
        return ideal
    kinds = job.kind
    ideal = np.empty(len(kinds))
    for kind in set(kinds.tolist()):
        rows = kinds == kind
        typical: Callable = np.median if kind in MEDIAN_KINDS else np.mean
        ideal[rows] = typical(net[rows])
    return ideal


def played(result: WhatIf, net_s: np.ndarray, late_s: np.ndarray | float = 0.0) -> TrainingJob:
    """The job as it would have been recorded with other durations, and other delays of its hosts.

    Parameters
    ----------
    net_s
        float64 [O, S, R]; as `WhatIf.net_s`.
    late_s
        Likewise; how long after all that it needs on its worker an operation begins.
    """
    job, graph = result.job, result.graph
    late_s = np.broadcast_to(late_s, net_s.shape)
    start, end = np.empty_like(net_s), np.empty_like(net_s)
    for needs, members, joint in graph.groups():
        for operation in members:
            own = needs[job.stage[needs] == job.stage[operation]]
            start[operation] = end[own].max(axis=0, initial=0) + late_s[operation]
        begin = start[members].max(axis=0)
        if joint:
            begin = begin.max(axis=1, keepdims=True)
        end[members] = begin + net_s[members]
    return replace(job, start_s=start, duration_s=end - start)


def late_seconds(result: WhatIf) -> np.ndarray:
    """How long each operation began after all that it needs on its worker, float64 [O, S, R]: its
    host was late.
    """
    job, ends = result.job, result.job.start_s + result.job.duration_s
    late = np.empty_like(ends)
    for needs, members, _ in result.graph.groups():
        for operation in members:
            own = needs[job.stage[needs] == job.stage[operation]]
            late[operation] = job.start_s[operation] - ends[own].max(axis=0, initial=0)
    return np.clip(late, 0, None)


def worker_steps(result: WhatIf) -> pd.DataFrame:
    """What each worker did in each step.

    Returns
    -------
    pandas.DataFrame
        `step`, `replica`, `stage`, `rank` (where the trace says it); `compute_ms`, `transfer_ms`
        (communication, beside the computation or not) and `wait_ms` (for partners in it).
    """
    job, net_s = result.job, np.clip(result.net_s, 0, None)
    computes = np.isin(job.kind, COMPUTING)
    spent = {
        "compute_ms": (computes, job.duration_s),
        "transfer_ms": (~computes, net_s),
        "wait_ms": (~computes, np.clip(job.duration_s - net_s, 0, None)),
    }
    axes = np.indices((job.stages, len(job.steps), job.replicas))
    stage, step, replica = (axis.ravel() for axis in axes)
    table = pd.DataFrame({"step": job.steps[step], "replica": replica, "stage": stage})
    if job.ranks is not None:
        table["rank"] = job.ranks[replica, stage]
    on_stage = np.arange(job.stages)[:, None] == job.stage
    for name, (rows, seconds) in spent.items():
        table[name] = 1e3 * ((on_stage & rows) @ seconds.reshape(len(rows), -1)).ravel()
    return table.sort_values(["step", "replica", "stage"], ignore_index=True)
