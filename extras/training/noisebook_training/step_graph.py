"""What has to wait for what in one step of a training job, carried out with any durations.

Owns the order of the groups and their replay: the longest path through a graph without circles.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

import numpy as np

from nbhelpers.errors import InputError


@dataclass(frozen=True, eq=False, repr=False)
class StepGraph:
    """Groups of operations in an order in which they can be carried out; build with `of_groups`.

    The members of a group begin together, when the last of all that they need is over. Each ends
    after its own duration. A joint group also waits for itself in the other replicas.

    Parameters
    ----------
    needs_start, needs
        int32 [G + 1], [E]; group g needs the operations needs[needs_start[g]:needs_start[g + 1]].
    members_start, members
        int32 [G + 1], [O]; its operations.
    joint
        uint8 [G].
    last
        int32; the operations that nothing needs: when they are over, the step is.

    Examples
    --------
    Two operations, one after the other, in two steps of one replica:

    >>> graph = StepGraph.of_groups(2, needs=[(1, 0)])
    >>> graph.step_seconds(np.array([[[1.0], [2.0]], [[5.0], [5.0]]])).tolist()
    [6.0, 7.0]
    """

    needs_start: np.ndarray
    needs: np.ndarray
    members_start: np.ndarray
    members: np.ndarray
    joint: np.ndarray
    last: np.ndarray

    @classmethod
    def of_groups(
        cls,
        operations: int,
        needs: Sequence[tuple[int, int]],
        together: Sequence[Sequence[int]] = (),
        joint: Sequence[int] = (),
    ) -> "StepGraph":
        """Order the groups.

        Parameters
        ----------
        operations
            O; those that no group of `together` has are groups of their own.
        needs
            (operation, needed) pairs.
        together
            Operations that begin together: a message's send and receive, a collective.
        joint
            Operations whose groups wait for all replicas.

        Raises
        ------
        InputError
            Groups that wait for each other in a circle.
        """
        group_of, groups = _grouped(operations, together)
        needed: list[list[int]] = [[] for _ in groups]
        for operation, before in needs:
            needed[group_of[operation]].append(before)
        order = _in_order(group_of, groups, needed)
        waits = {group_of[operation] for operation in joint}
        return cls(
            *_packed([needed[g] for g in order]),
            *_packed([groups[g] for g in order]),
            np.array([g in waits for g in order], np.uint8),
            np.array(sorted(set(range(operations)) - {before for _, before in needs}), np.int32),
        )

    @property
    def operations(self) -> int:
        """Number of operations, O."""
        return len(self.members)

    def step_seconds(self, lasts: np.ndarray) -> np.ndarray:
        """How long each step takes, float64 [S], if operations last so long, float64 [O, S, R]."""
        return self.ends_seconds(lasts)[self.last].max(axis=(0, 2), initial=0)

    def ends_seconds(self, lasts: np.ndarray) -> np.ndarray:
        """When each operation is over, float64 [O, S, R], from the begin of its step."""
        if len(lasts) != self.operations:
            raise InputError(f"durations of {len(lasts)} operations for {self.operations}")
        ends = np.empty(np.shape(lasts))
        for before, group, joint in self.groups():
            begin = ends[before].max(axis=0, initial=0)
            if joint:
                begin = begin.max(axis=1, keepdims=True)
            ends[group] = begin + lasts[group]
        return ends

    def groups(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.uint8]]:
        """Of each group what it needs, its operations, and whether it waits for all replicas."""
        needs = np.split(self.needs, self.needs_start[1:-1])
        return zip(needs, np.split(self.members, self.members_start[1:-1]), self.joint)

    def __repr__(self) -> str:
        return (
            f"StepGraph({self.operations} operations, {len(self.needs)} needs,"
            f" {int(self.joint.sum())} groups across replicas)"
        )


def _grouped(
    operations: int, together: Sequence[Sequence[int]]
) -> tuple[list[int], list[list[int]]]:
    """The group of each operation, and the operations of each group."""
    group_of = [-1] * operations
    groups = [list(group) for group in together]
    for number, group in enumerate(groups):
        for operation in group:
            group_of[operation] = number
    for operation in range(operations):
        if group_of[operation] < 0:
            group_of[operation] = len(groups)
            groups.append([operation])
    return group_of, groups


def _in_order(group_of: list[int], groups: list[list[int]], needed: list[list[int]]) -> list[int]:
    """The groups, each after all that it needs."""
    before = {group: {group_of[one] for one in needs} for group, needs in enumerate(needed)}
    try:
        return list(TopologicalSorter(before).static_order())
    except CycleError as error:
        raise InputError(
            "operations of a step wait for each other in a circle",
            where=f"operations {groups[error.args[1][0]]} are among them",
            why="their recorded order is no order in which they can be carried out",
        ) from None


def _packed(lists: Sequence[Sequence[int]]) -> tuple[np.ndarray, np.ndarray]:
    start = np.zeros(len(lists) + 1, np.int32)
    np.cumsum([len(each) for each in lists], out=start[1:])
    return start, np.array([one for each in lists for one in each], np.int32)
