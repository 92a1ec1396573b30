"""Messages that share links: closed forms, and random cases against flows in fractions."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbhelpers.errors import InputError
from nbhelpers.simulation import LogGOPS, patterns, simulate
from nbhelpers.simulation.noise import Noise, periodic
from nbhelpers.simulation.schedule import Schedule
from nbhelpers.simulation.spread import MessageSpread
from nbhelpers.simulation.topology import Dragonfly, FatTree, Links
from nbhelpers.simulation.traffic import messages, permutation

from .flows import ends

FAST = LogGOPS(L=1000, o=0, g=0, G=0.1, S=2**40)
REAL = LogGOPS(L=1900, o=230, g=5, G=0.079, S=2**40)


class Given:
    """A topology of given links, for tests."""

    def __init__(self, network: LogGOPS, capacity: list[float], paths: dict[int, list[int]]):
        self.network, self.capacity, self.paths = network, np.array(capacity, float), paths

    def links(self, schedule: Schedule) -> Links:
        sends = np.flatnonzero(schedule.kind == 1)
        route = np.full(len(schedule), -1, np.int32)
        route[sends] = np.arange(len(sends))
        hops = max(map(len, self.paths.values()))
        path = np.full((len(sends), hops), -1, np.int32)
        for i, op in enumerate(sends):
            rank = int(schedule.rank_of(np.array(op)))
            path[i, : len(self.paths[rank])] = self.paths[rank]
        return Links(self.capacity, path, route)


def test_incast_fills_the_last_link():
    """n messages at once to one rank: the last link needs n (s − 1) G for them."""
    for n in (1, 2, 7, 31):
        took = simulate(patterns.gather(n + 1, 100_001), FatTree(network=FAST)).makespan_ns
        assert took == pytest.approx(n * 10_000 + 1000, abs=0.01 * n)


def test_incast_with_overhead_ends_with_one_reception_after_the_last_byte():
    """All messages end together; each then costs the receiver o."""
    n, network = 8, REAL.with_(g=0)
    took = simulate(patterns.gather(n + 1, 100_001), FatTree(network=network)).makespan_ns
    assert took == pytest.approx(230 + n * 7900 + 1900 + n * 230, abs=1)


def test_with_streams_the_plain_model_knows_no_incast():
    """Each message has a CPU and NIC of its own: all at once; but the node's link is one."""
    n, network = 8, LogGOPS(L=1000, o=0, g=0, G=0.1, S=2**40)
    schedule = messages(n + 1, np.arange(1, n + 1), np.zeros(n, int), 100_001, apart=True)
    assert schedule.cpus == schedule.nics == n
    assert simulate(schedule, network).makespan_ns == 11_000
    assert simulate(schedule, FatTree(network=network)).makespan_ns == n * 10_000 + 1000


def test_a_shared_link_halves_the_rate():
    pairs = messages(4, [0, 1], [2, 3], 100_001)
    alone = simulate(messages(4, [0], [2], 100_001), FatTree(network=FAST)).makespan_ns
    halved = FatTree(network=FAST, nodes_per_leaf=2, oversubscription=2)
    assert alone == 11_000
    assert simulate(pairs, FAST).makespan_ns == alone
    assert simulate(pairs, FatTree(network=FAST, nodes_per_leaf=2)).makespan_ns == alone
    assert simulate(pairs, halved).makespan_ns == 21_000
    both = simulate(messages(4, [0, 1], [2, 3], [100_001, 50_001]), halved)
    assert both.finish_ns[2:].tolist() == [16_000, 11_000], "alone again after 10 µs"


@pytest.mark.parametrize("network", [FAST, REAL])
@pytest.mark.parametrize("levels", [None, 2])
def test_a_permutation_without_conflict_is_the_plain_model(network: LogGOPS, levels: int | None):
    schedule = permutation(24, 300_000, seed=3)
    tree = FatTree(network=network, nodes_per_leaf=4, leaves_per_pod=levels)
    plain, shared = simulate(schedule, network), simulate(schedule, tree)
    np.testing.assert_allclose(shared.finish_ns, plain.finish_ns, atol=0.002)


def test_patterns_without_conflict_are_as_in_the_plain_model():
    """Small messages in trees and rounds: nothing is shared for longer than it takes alone."""
    network = REAL.with_(g=0)
    for schedule in (
        patterns.dissemination(64, 8),
        patterns.binomial_bcast(64, 4096),
        patterns.ring_allreduce(16, 65536),
    ):
        plain = simulate(schedule, network).finish_ns
        shared = simulate(schedule, FatTree(network=network, nodes_per_leaf=8)).finish_ns
        np.testing.assert_allclose(shared, plain, rtol=1e-9)


def test_hashed_ways_collide_and_spread_ones_do_not():
    schedule = permutation(64, 1_000_000)
    spread = simulate(schedule, FatTree(network=FAST, nodes_per_leaf=8)).makespan_ns
    hashed = simulate(schedule, FatTree(network=FAST, nodes_per_leaf=8, routing="hash"))
    assert spread == pytest.approx(simulate(schedule, FAST).makespan_ns)
    assert 2 <= (hashed.makespan_ns - 1000) / (spread - 1000) <= 8


def test_an_oversubscribed_leaf_gives_each_node_its_part():
    """Eight nodes of one leaf send to eight of another, through links for two."""
    tree = FatTree(network=FAST, nodes_per_leaf=8, oversubscription=4)
    schedule = messages(16, np.arange(8), np.arange(8, 16), 100_001)
    assert simulate(schedule, tree).finish_ns[8:].tolist() == [41_000] * 8


def test_ranks_of_a_node_share_its_link_and_nothing_among_themselves():
    tree = FatTree(network=FAST, ranks_per_node=2)
    apart = messages(4, [0, 1], [2, 3], 100_001)
    assert simulate(apart, tree).makespan_ns == 21_000
    assert simulate(messages(4, [0, 2], [1, 3], 100_001), tree).makespan_ns == 11_000


def test_messages_of_a_nic_go_in_turn_or_together():
    """Two messages of one sender: 10 µs each, the second after the first; or 20 µs both."""
    outcast = messages(3, [0, 0], [1, 2], 100_001)
    in_turn, together = FatTree(network=FAST), FatTree(network=FAST, nic="together")
    assert simulate(outcast, in_turn).finish_ns.tolist() == [10_000, 11_000, 21_000]
    both = simulate(outcast, together, critical_path=True)
    assert both.finish_ns.tolist() == [0, 21_000, 21_000]
    assert both.path()["noise_ns"].abs().max() == 0


def test_beside_a_busy_sender_a_free_one_gets_what_is_left():
    """Rank 0 receives from 1, and from 2 and 3, which send to nine others, too: a tenth of each of
    them, so eight tenths for rank 1. The packet simulator's case `outcast_incast`.
    """
    source = [1, *[2] * 10, *[3] * 10]
    target = [0, 0, *range(4, 13), 0, *range(13, 22)]
    tree = FatTree(network=FAST, nodes_per_leaf=4, leaves_per_pod=4, nic="together")
    result = simulate(messages(128, source, target, 100_001), tree, critical_path=True)
    arrived = result.record.arrival[result.schedule.kind == 1] / 1000
    assert arrived[0] == pytest.approx(10_000 / 0.8 + 1000, abs=0.01)
    assert arrived[1:].max() <= 10 * 10_000 + 1000 + 0.1


def test_a_resolution_delays_by_no_more_than_itself():
    """Each message begins and ends at most once that much later, and never earlier."""
    schedule = patterns.gather(33, 100_001)
    exact = simulate(schedule, FatTree(network=REAL)).makespan_ns
    for resolution in (10, 1000):
        coarse = FatTree(network=REAL, resolution_ns=resolution)
        assert exact - 0.1 <= simulate(schedule, coarse).makespan_ns <= exact + 2 * resolution
    many = patterns.linear_alltoall(24, 5000)
    tree = FatTree(network=REAL, nodes_per_leaf=4, oversubscription=2)
    exact = simulate(many, tree).makespan_ns
    coarse = simulate(many, replace(tree, resolution_ns=500)).makespan_ns
    assert coarse == pytest.approx(exact, rel=0.1)


def test_a_dragonfly_has_one_link_between_two_groups():
    """Four nodes of a group send to four of the next one: the only link is shared."""
    fly = Dragonfly(network=FAST, groups=9, routers_per_group=4, nodes_per_router=2, global_links=2)
    schedule = messages(72, np.arange(4), np.arange(8, 12), 100_001)
    assert simulate(schedule, fly).makespan_ns == 41_000
    wide = Dragonfly(network=FAST, global_rate=4.0, local_rate=4.0)
    assert simulate(schedule, wide).makespan_ns == 11_000
    detour = Dragonfly(network=FAST, routing="valiant", seed=1)
    assert simulate(schedule, detour).makespan_ns < 41_000


@pytest.mark.parametrize("seed", range(20))
def test_routes_of_a_dragonfly_are_walks(seed: int):
    """Each route enters at its source and leaves at its target, over links that follow each other:
    checked by names of links, built here from the definition.
    """
    rng = np.random.default_rng(seed)
    a, p, h = (int(n) for n in rng.integers(1, 5, 3))
    groups = int(rng.integers(1, a * h + 2))
    routing = "valiant" if groups > 2 and rng.random() < 0.5 else "minimal"
    fly = Dragonfly(
        groups=groups, routers_per_group=a, nodes_per_router=p, global_links=h, routing=routing
    )
    nodes = groups * a * p
    source, target = rng.integers(0, nodes, 50), rng.integers(0, nodes, 50)
    capacity, path = fly.paths(source, target, nodes)
    parallel = max(1, a * h // max(1, groups - 1))
    locals_, globals_ = 2 * nodes, 2 * nodes + groups * a * a
    assert len(capacity) == globals_ + groups * groups * parallel
    for s, t, route in zip(source, target, path):
        route = route[route >= 0]
        assert route[0] == s and route[-1] == nodes + t
        router, crossed = s // p, 0
        for link in route[1:-1]:
            if link < globals_:
                assert (link - locals_) // a == router
                router = router // a * a + (link - locals_) % a
                continue
            pair, which = divmod(int(link) - globals_, parallel)
            here, there = divmod(pair, groups)
            assert here == router // a and there != here
            port = ((there - here) % groups - 1) * parallel + which
            assert port // h == router % a, "the link starts at this router"
            router = there * a + (((here - there) % groups - 1) * parallel + which) // h
            crossed += 1
        assert router == t // p
        far = s // p // a != t // p // a
        assert crossed == (far if routing == "minimal" else 2 * far)


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10**9))
def test_random_flows_against_fractions(seed: int):
    rng = np.random.default_rng(seed)
    flows, links = int(rng.integers(1, 9)), int(rng.integers(1, 6))
    capacity = [Fraction(int(rng.integers(1, 9)), 4) for _ in range(links)]
    paths = [
        rng.choice(links, rng.integers(1, links + 1), replace=False).tolist() for _ in range(flows)
    ]
    size = rng.choice([11, 1001, 5001, 20_001], flows)
    wait = rng.choice([0, 0, 100, 777, 5000], flows)
    network = LogGOPS(L=50, o=0, g=0, G=1, S=2**40)
    schedule = Schedule.from_arrays(
        [2] * flows + [1] * flows,
        kind=[3, 1] * flows + [2] * flows,
        peer=sum(([-1, flows + i] for i in range(flows)), []) + list(range(flows)),
        size=sum(([int(w), int(s)] for w, s in zip(wait, size)), []) + size.tolist(),
        requires=(2 * np.arange(flows) + 1, 2 * np.arange(flows)),
    )
    topology = Given(network, [float(c) for c in capacity], dict(enumerate(paths)))
    found = simulate(schedule, topology).finish_ns[flows:]
    begins, work = (wait * 1000).tolist(), ((size - 1) * 1000).tolist()
    wanted = [float(end) / 1000 + 50 for end in ends(begins, work, paths, capacity)]
    np.testing.assert_allclose(found, wanted, atol=1e-3 * (flows + 1), rtol=1e-9)


def test_noise_delays_the_flow_it_strikes():
    """The sender's detour of 20 µs: its message leaves, and arrives, as much later."""
    schedule = messages(2, [0], [1], 100_001)
    noise = Noise.on_ranks(periodic(10, 20), 2, phases_ns=0, noisy=[0])
    quiet = simulate(schedule, FatTree(network=REAL))
    noisy = simulate(schedule, FatTree(network=REAL), noise)
    assert noisy.finish_ns[1] - quiet.finish_ns[1] == pytest.approx(20_000)
    assert noisy.ideal.finish_ns.tolist() == quiet.finish_ns.tolist()


@pytest.mark.parametrize("routing", ["spread", "hash"])
def test_the_critical_path_is_complete(routing: str):
    tree = FatTree(network=REAL, nodes_per_leaf=4, oversubscription=4, routing=routing)
    schedule = patterns.loop(patterns.pairwise_alltoall(16, 20_000), 2, compute_ns=1000)
    noise = Noise.on_ranks(periodic(1000, 10), 16, seed=1)
    result = simulate(schedule, tree, noise, critical_path=True)
    assert result.finish_ns.tolist() == simulate(schedule, tree, noise).finish_ns.tolist()
    for rank in range(16):
        path = result.path(rank)
        assert path["begin_ns"].iloc[0] == 0
        np.testing.assert_allclose(path["begin_ns"].to_numpy()[1:], path["end_ns"].to_numpy()[:-1])
        assert path["end_ns"].iloc[-1] == pytest.approx(result.finish_ns[rank])
        assert (path["noise_ns"] >= -1e-6).all()


def test_the_order_of_unrelated_work_changes_nothing():
    """The same flows beside many others that share nothing with them."""
    tree = FatTree(network=FAST, nodes_per_leaf=4, oversubscription=2)
    alone = simulate(messages(16, [0, 1, 2], [4, 5, 6], 77_777), tree).finish_ns[4:7]
    source = [8, 0, 9, 1, 10, 2]
    beside = simulate(messages(16, source, [12, 4, 13, 5, 14, 6], 77_777), tree).finish_ns[4:7]
    np.testing.assert_allclose(beside, alone, atol=0.002)


def test_empty_messages_and_unfinished_schedules():
    tree = FatTree(network=REAL)
    assert simulate(messages(2, [0], [1], 0), tree).makespan_ns == 230 + 1900 + 230
    with pytest.raises(InputError, match="never received"):
        simulate(Schedule.from_arrays([1, 0], [1], [1], 1000), tree)


@pytest.mark.parametrize(
    "make, match",
    [
        (lambda: FatTree(nodes_per_leaf=0), "nodes_per_leaf"),
        (lambda: FatTree(oversubscription=0.0), "oversubscription"),
        (lambda: FatTree(routing="luck"), "routing"),
        (lambda: FatTree(seed=-1), "seed"),
        (lambda: FatTree(nic="both"), "NIC"),
        (lambda: Dragonfly(groups=10), "don't reach"),
        (lambda: Dragonfly(groups=2, routing="valiant"), "third"),
        (lambda: simulate(permutation(80, 8), Dragonfly()), "room for 72"),
        (lambda: simulate(permutation(4, 8), FatTree(), mode="compat"), "exact"),
        (lambda: simulate(permutation(4, 8), spread=MessageSpread(), mode="compat"), "exact"),
        (lambda: messages(2, [0], [2], 1), "beyond"),
        (lambda: messages(2, [0, 1], [1], 1), "sources"),
        (lambda: permutation(1, 1), "2 or more"),
        (lambda: messages(2, [1] * 257, [0] * 257, 1, apart=True), "apart"),
    ],
)
def test_wrong_numbers_are_refused(make, match: str):
    with pytest.raises(InputError, match=match):
        make()
