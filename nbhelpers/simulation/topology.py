"""What messages share on their way: fat trees and dragonflies.

Owns the topologies, their links and their routes; how flows share links is
simulator_c/contention.c.
"""

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..errors import InputError
from .loggops import LogGOPS
from .schedule import SEND, Schedule
from .spread import message_bits


@dataclass(frozen=True, eq=False)
class Links:
    """Links and the routes over them.

    Parameters
    ----------
    capacity
        float64[links]; 1: as fast as a NIC, which sends a byte every G.
    path
        int32[routes, hops]; the links of a route in order, −1 after the last.
    route
        int32[n]; which route each of n messages takes, −1: it shares nothing.
    together
        Messages of a NIC share it; else it sends one after another.
    resolution_ns
        Rates are worked out anew at most that often.
    """

    capacity: np.ndarray
    path: np.ndarray
    route: np.ndarray
    together: bool = False
    resolution_ns: float = 0.0


@dataclass(frozen=True, kw_only=True)
class _Topology:
    """What fat trees and dragonflies have in common."""

    network: LogGOPS = field(default_factory=LogGOPS)
    ranks_per_node: int = 1
    nic: str = "in turn"
    resolution_ns: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if name in ("seed", "resolution_ns") or not isinstance(value, (int, float)):
                continue
            if not (math.isfinite(value) and value > 0):
                raise InputError(f"{name} = {value}, but it must be above 0", where=self._name)
        if not 0 <= self.resolution_ns <= 1e12:
            raise InputError(
                f"resolution_ns = {self.resolution_ns}", where=self._name, why="0 to 1e12"
            )
        if not 0 <= self.seed < 2**63:
            raise InputError(f"seed = {self.seed} is out of range", where=self._name)
        self._one_of(self.nic, ("in turn", "together"), "way of a NIC")

    @property
    def _name(self) -> str:
        return type(self).__name__

    def _one_of(self, word: str, known: tuple[str, ...], what: str = "routing") -> None:
        if word not in known:
            raise InputError(
                f"there is no {what} {word!r}",
                where=self._name,
                fix="one of: " + ", ".join(known),
            )

    def at(self, network: LogGOPS) -> Any:
        """The same topology with another network's parameters."""
        return replace(self, network=network)

    def nodes(self, ranks: int) -> int:
        """How many nodes so many ranks occupy, in the order of their numbers."""
        return -(-ranks // self.ranks_per_node)

    def links(self, schedule: Schedule) -> Links:
        """The links of a schedule's ranks, and the route of each operation (−1 but for sends)."""
        nodes = self.nodes(schedule.ranks)
        sends = np.flatnonzero(schedule.kind == SEND)
        source = schedule.rank_of(sends) // self.ranks_per_node
        target = schedule.peer[sends].astype(np.int64) // self.ranks_per_node
        pairs, which = np.unique(source * nodes + target, return_inverse=True)
        capacity, path = self.paths(pairs // nodes, pairs % nodes, nodes)
        route = np.full(len(schedule), -1, np.int32)
        route[sends] = np.where(source == target, -1, which)
        path = np.ascontiguousarray(path, np.int32)
        return Links(capacity, path, route, self.nic == "together", float(self.resolution_ns))

    def paths(
        self, source: np.ndarray, target: np.ndarray, nodes: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Capacities of all links, float64[links], and the route of each pair of nodes."""
        raise NotImplementedError

    def _choice(self, source: np.ndarray, target: np.ndarray, which: int, count: int) -> np.ndarray:
        """One of `count` for each pair, by a hash of the pair and the seed."""
        pair = source.astype(np.uint64) << np.uint64(32) | target.astype(np.uint64)
        bits = message_bits(self.seed + which, pair)
        return (bits % np.uint64(count)).astype(np.int64)


class _Numbers:
    """Gives links their numbers, a block at a time."""

    def __init__(self) -> None:
        self.blocks: list[np.ndarray] = []
        self.count = 0

    def block(self, count: int, capacity: float) -> int:
        """The first number of `count` links of one capacity."""
        first, self.count = self.count, self.count + count
        self.blocks.append(np.full(count, float(capacity)))
        return first

    def capacity(self) -> np.ndarray:
        return np.concatenate(self.blocks)


@dataclass(frozen=True, kw_only=True)
class FatTree(_Topology):
    """A fat tree of two or three levels: nodes on leaf switches, leaves (in pods) below a core.

    Parameters
    ----------
    network
        LogGOPS parameters; a node's link to its leaf carries a byte every G.
    nodes_per_leaf
        Nodes on a leaf switch.
    leaves_per_pod
        None: two levels, each leaf is connected with each spine. A number: three levels.
    oversubscription
        How many times the nodes of a leaf could fill its links upwards.
    pod_oversubscription
        The same for the leaves of a pod; three levels only.
    routing
        "spread": packets are spread evenly over all ways, so the links upwards of a leaf are one
        large one. "hash": all messages of two nodes take one way, drawn (as by ECMP).
    ranks_per_node
        Ranks on a node, which share its link; messages between them share nothing.
    nic
        "in turn": a rank sends one message after another, as in the plain model. "together": those
        begun earlier and later share its link, as with several connections at a time.
    resolution_ns
        Rates are worked out anew at most that often: 0, at each change. A message then begins and
        ends up to that much later, and many messages at a time cost far less.
    seed
        Of the ways of "hash".

    Raises
    ------
    InputError
        Numbers below 1, or an unknown routing.

    Notes
    -----
    Leiserson: Fat-Trees: Universal Networks for Hardware-Efficient Supercomputing, IEEE Trans.
    Computers 1985; Al-Fares, Loukissas, Vahdat, SIGCOMM 2008.

    Examples
    --------
    Four nodes send to one at the same time: its link has to carry all of it.

    >>> from nbhelpers.simulation import patterns, simulate
    >>> tree = FatTree(network=LogGOPS(L=1000, o=0, g=0, G=1), nodes_per_leaf=8)
    >>> simulate(patterns.gather(5, 10_001), tree).makespan_ns
    41000.0
    """

    nodes_per_leaf: int = 16
    leaves_per_pod: int | None = None
    oversubscription: float = 1.0
    pod_oversubscription: float = 1.0
    routing: str = "spread"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._one_of(self.routing, ("spread", "hash"))

    def paths(
        self, source: np.ndarray, target: np.ndarray, nodes: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Capacities of all links, float64[links], and the route of each pair, int64[pairs, 6]: in,
        leaf up, pod up, pod down, leaf down, out; −1 after the last.
        """
        leaves = -(-nodes // self.nodes_per_leaf)
        pods = -(-leaves // (self.leaves_per_pod or leaves))
        (ups, up), (cores, core) = self._upwards(leaves)
        numbers = _Numbers()
        enter, out = numbers.block(nodes, 1), numbers.block(nodes, 1)
        leaf_up, leaf_down = numbers.block(leaves * ups, up), numbers.block(leaves * ups, up)
        pod_up = numbers.block(pods * ups * cores, core)
        pod_down = numbers.block(pods * ups * cores, core)
        way, far = self._choice(source, target, 0, ups), self._choice(source, target, 1, cores)
        from_leaf, to_leaf = source // self.nodes_per_leaf, target // self.nodes_per_leaf
        from_pod, to_pod = (
            leaf // (self.leaves_per_pod or leaves) for leaf in (from_leaf, to_leaf)
        )
        outside, far_away = from_leaf != to_leaf, from_pod != to_pod
        return numbers.capacity(), _in_order(
            (enter + source, True),
            (leaf_up + from_leaf * ups + way, outside),
            (pod_up + (from_pod * ups + way) * cores + far, far_away),
            (pod_down + (to_pod * ups + way) * cores + far, far_away),
            (leaf_down + to_leaf * ups + way, outside),
            (out + target, True),
        )

    def _upwards(self, leaves: int) -> tuple[tuple[int, float], tuple[int, float]]:
        """How many links go up from a leaf, and from each switch in a pod, with their capacity."""
        up = self.nodes_per_leaf / self.oversubscription
        ups = 1 if self.routing == "spread" else max(1, round(up))
        core = up / ups * (self.leaves_per_pod or leaves) / self.pod_oversubscription
        cores = 1 if self.routing == "spread" else max(1, round(core * ups / up))
        return (ups, up / ups), (cores, core / cores)


@dataclass(frozen=True, kw_only=True)
class Dragonfly(_Topology):
    """A dragonfly: groups of routers that are all connected with each other, and groups likewise.

    Parameters
    ----------
    network
        LogGOPS parameters; a node's link carries a byte every G.
    groups, routers_per_group, nodes_per_router
        How many.
    global_links
        Links of a router to other groups; together they must reach all of them.
    local_rate, global_rate
        How fast a link within a group, and between two, is: times a node's.
    routing
        "minimal": at most one link between groups. "valiant": by way of a third group, drawn.
    ranks_per_node, nic, resolution_ns
        As in `FatTree`.
    seed
        Of what is drawn: the third group, and which of several links between two groups.

    Raises
    ------
    InputError
        Numbers below 1, too few links between groups, or an unknown routing.

    Notes
    -----
    Kim, Dally, Scott, Abts: Technology-Driven, Highly-Scalable Dragonfly Topology, ISCA 2008.

    Examples
    --------
    >>> fly = Dragonfly(groups=9, routers_per_group=4, nodes_per_router=2, global_links=2)
    >>> capacity, path = fly.paths(np.array([0]), np.array([71]), 72)
    >>> len(capacity), int((path >= 0).sum())
    (369, 5)
    """

    groups: int = 9
    routers_per_group: int = 4
    nodes_per_router: int = 2
    global_links: int = 2
    local_rate: float = 1.0
    global_rate: float = 1.0
    routing: str = "minimal"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._one_of(self.routing, ("minimal", "valiant"))
        if self.groups > 1 and not self._parallel:
            raise InputError(
                f"{self.routers_per_group * self.global_links} links of a group don't reach the"
                f" {self.groups - 1} others",
                where="Dragonfly",
                fix="more global_links or routers_per_group, or fewer groups",
            )
        if self.routing == "valiant" and self.groups < 3:
            raise InputError("valiant needs a third group", where="Dragonfly")

    @property
    def _parallel(self) -> int:
        """How many links each pair of groups has."""
        return self.routers_per_group * self.global_links // max(1, self.groups - 1)

    def paths(
        self, source: np.ndarray, target: np.ndarray, nodes: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Capacities of all links, float64[links], and the route of each pair, int64[pairs, 7]: in,
        then local and global links in turn, out; −1 after the last.
        """
        room = self.groups * self.routers_per_group * self.nodes_per_router
        if nodes > room:
            raise InputError(f"{nodes} nodes, but there is room for {room}", where="Dragonfly")
        a, parallel = self.routers_per_group, max(1, self._parallel)
        numbers = _Numbers()
        enter, out = numbers.block(nodes, 1), numbers.block(nodes, 1)
        local = numbers.block(self.groups * a * a, self.local_rate)
        between = numbers.block(self.groups * self.groups * parallel, self.global_rate)
        at, goal = source // self.nodes_per_router, target // self.nodes_per_router
        steps: list[tuple[np.ndarray, Any]] = [(enter + source, True)]
        for leg, group in enumerate(self._stations(source, target, at // a, goal // a)):
            link = self._choice(source, target, 2 + leg, parallel)
            gate, lands = self._gates(at // a, group, link)
            crosses = at // a != group
            steps += [
                (local + at * a + gate, crosses & (at % a != gate)),
                (between + (at // a * self.groups + group) * parallel + link, crosses),
            ]
            at = np.where(crosses, group * a + lands, at)
        steps += [(local + at * a + goal % a, at != goal), (out + target, True)]
        return numbers.capacity(), _in_order(*steps)

    def _stations(
        self, source: np.ndarray, target: np.ndarray, start: np.ndarray, goal: np.ndarray
    ) -> list[np.ndarray]:
        """The groups that a message passes, after its own."""
        if self.routing == "minimal":
            return [goal]
        low, high = np.minimum(start, goal), np.maximum(start, goal)
        third = self._choice(source, target, 4, self.groups - 2)
        third += third >= low
        third += third >= high
        return [np.where(start == goal, goal, third), goal]

    def _gates(
        self, here: np.ndarray, there: np.ndarray, link: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Which router of a group has a link to another, and at which it ends there."""
        offset = (there - here) % self.groups
        back = (here - there) % self.groups
        ports = [((way - 1) * self._parallel + link) // self.global_links for way in (offset, back)]
        return ports[0] % self.routers_per_group, ports[1] % self.routers_per_group


def _in_order(*steps: tuple[np.ndarray, Any]) -> np.ndarray:
    """Links with whether they are used, as routes: those used first, −1 after the last."""
    links = np.stack([np.where(used, link, -1) for link, used in steps], axis=1)
    order = np.argsort(links < 0, axis=1, kind="stable")
    return np.take_along_axis(links, order, axis=1)
