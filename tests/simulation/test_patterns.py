"""Patterns deliver what they promise on any number of ranks: proven by a symbolic execution that
trusts nothing but dependencies.
"""

import re
from collections import Counter
from math import prod

import numpy as np
import pytest

from nbhelpers.errors import InputError
from nbhelpers.simulation import patterns
from nbhelpers.simulation.engine import simulate
from nbhelpers.simulation.goal import read_goal
from nbhelpers.simulation.loggops import LogGOPS
from nbhelpers.simulation.schedule import CALC, RECV, SEND, Schedule

from .cases import reference_folder
from .comparison import same
from .dataflow import Flow, knowledge

RANKS = range(1, 34)


def messages(schedule):
    """(from, to, bytes) of every message."""
    sends = np.flatnonzero(schedule.kind == SEND)
    return list(
        zip(
            schedule.rank_of(sends).tolist(),
            schedule.peer[sends].tolist(),
            schedule.column("size")[sends].tolist(),
            strict=True,
        )
    )


def traffic(schedule):
    return len(messages(schedule)), sum(size for *_, size in messages(schedule))


def core_of(ranks):
    """2^k, and those ranks that hand their data to the next one."""
    size = 2 ** (ranks.bit_length() - 1)
    return size, set(range(0, 2 * (ranks - size), 2))


# --- what the reference generates -----------------------------------------------------------------


def stencil(shape, bytes, steps, ns, periodic):
    """Computation and halo `steps` times, then a calculation that waits for all."""
    halo, none = patterns.halo(shape, bytes, periodic=periodic), np.zeros(0, int)
    end = Schedule.from_arrays(np.zeros(prod(shape), int), none, none, none)
    return patterns.compose([halo] * steps + [end], [ns] * steps + [0])


REFERENCE = {
    "dissemination_8_1B": lambda: patterns.dissemination(8, 1),
    "dissemination_64_1048576B": lambda: patterns.dissemination(64, 2**20),
    "dissemination_1024_1B": lambda: patterns.dissemination(1024, 1),
    "binomialtreebcast_64_1024B": lambda: patterns.binomial_bcast(64, 1024),
    "binomialtreebcast_8_1024B_root3": lambda: patterns.binomial_bcast(8, 1024, root=3),
    "binomialtreereduce_13_1024B": lambda: patterns.binomial_reduce(13, 1024),
    "binomialtreereduce_1024_1024B": lambda: patterns.binomial_reduce(1024, 1024),
    "scatter_17_1B": lambda: patterns.scatter(17, 1),
    "gather_8_65536B": lambda: patterns.gather(8, 65536),
    "stencil3d_2x2x2": lambda: stencil((2, 2, 2), 1024, 5, 20_000, True),
    "stencil3d_4x4x4_open": lambda: stencil((4, 4, 4), 4096, 3, 100_000, False),
}


@pytest.mark.parametrize("name", REFERENCE)
def test_the_reference_generates_the_same(name):
    ours, theirs = REFERENCE[name](), read_goal(reference_folder() / "goal" / f"{name}.goal")
    same(ours, theirs)


# --- whose data come to whom, in how many messages and bytes --------------------------------------


def rounds(ranks):
    return (ranks - 1).bit_length()


def everybody(ranks):
    return [set(range(ranks))] * ranks


def core_traffic(ranks, bytes_of_core):
    """Messages and bytes of 2^k ranks in k rounds, of so many bytes in all, and of the others."""
    size, guests = core_of(ranks)
    return size * (size.bit_length() - 1), bytes_of_core(size), 2 * len(guests)


def doubling(ranks):
    count, total, more = core_traffic(ranks, lambda size: 8 * size * (size.bit_length() - 1))
    return count + more, total + 8 * more


def rabenseifner(ranks):
    count, total, more = core_traffic(ranks, lambda size: 2 * 1001 * (size - 1))
    return 2 * count + more, total + 1001 * more


def distances(ranks):
    """Bits of all distances: how often the blocks of a rank travel after Bruck."""
    return sum(map(int.bit_count, range(ranks)))


@pytest.mark.parametrize(
    "pattern, size, known, traffic_of",
    [
        (patterns.barrier, None, everybody, lambda n: (n * rounds(n), n * rounds(n))),
        (
            patterns.scan,
            4,
            lambda n: [set(range(rank + 1)) for rank in range(n)],
            lambda n: (
                n * rounds(n) - 2 ** rounds(n) + 1,
                4 * (n * rounds(n) - 2 ** rounds(n) + 1),
            ),
        ),
        (patterns.recursive_doubling_allreduce, 8, everybody, doubling),
        (patterns.rabenseifner_allreduce, 1001, everybody, rabenseifner),
        (patterns.ring_allgather, 5, everybody, lambda n: (n * (n - 1), 5 * n * (n - 1))),
        (patterns.bruck_allgather, 5, everybody, lambda n: (n * rounds(n), 5 * n * (n - 1))),
        (patterns.bruck_alltoall, 6, everybody, lambda n: (n * rounds(n), 6 * n * distances(n))),
        (patterns.pairwise_alltoall, 6, everybody, lambda n: (n * (n - 1), 6 * n * (n - 1))),
    ],
)
def test_patterns_without_a_root(pattern, size, known, traffic_of):
    for ranks in RANKS:
        schedule = pattern(*([ranks] if size is None else [ranks, size])).validate()
        assert knowledge(schedule) == known(ranks)
        assert traffic(schedule) == traffic_of(ranks)


@pytest.mark.parametrize(
    "pattern, down, subtrees",
    [
        (patterns.binomial_bcast, True, False),
        (patterns.binomial_reduce, False, False),
        (patterns.binomial_scatter, True, True),
        (patterns.binomial_gather, False, True),
        (patterns.scatter, True, False),
        (patterns.gather, False, False),
    ],
)
def test_trees_reach_everybody_once(pattern, down, subtrees):
    """P - 1 messages, each with one rank's data or with those of its whole subtree."""
    for ranks, root in [(n, root) for n in RANKS for root in {0, n // 2, n - 1}]:
        schedule = pattern(ranks, 3, root=root).validate()
        ends = [(to, source) if down else (source, to) for source, to, _ in messages(schedule)]
        parent = dict(ends)
        assert len(parent) == len(ends) == ranks - 1 and root not in parent
        below = Counter()
        for rank in range(ranks):
            while rank != root:
                below[rank] += 1
                rank = parent[rank]
        carried = [3 * (below[child] if subtrees else 1) for child, _ in ends]
        assert [size for *_, size in messages(schedule)] == carried
        known = knowledge(schedule)
        assert all(root in each for each in known) if down else known[root] == set(range(ranks))


@pytest.mark.parametrize(
    "pattern, has",
    [
        (patterns.scan, lambda rank, ranks: rank + 1),
        (patterns.recursive_doubling_allreduce, lambda rank, ranks: ranks),
    ],
)
def test_reductions_count_each_rank_once(pattern, has):
    for ranks in RANKS:
        guests = () if pattern is patterns.scan else core_of(ranks)[1]
        final = Flow(pattern(ranks, 8)).run(
            lambda rank: Counter([rank]),
            lambda rank, state, *_: state,
            lambda rank, state, message, _, guests=guests: (
                message if rank in guests else state + message
            ),
        )
        assert final == [Counter(range(has(rank, ranks))) for rank in range(ranks)]


def test_the_references_dissemination_lets_a_round_overtake_another():
    """Its sends wait for one receive only, so a slow message of an early round is not waited for:
    documented, and why `barrier` is ordered.
    """
    assert knowledge(patterns.dissemination(16, 1)) != everybody(16)
    assert knowledge(patterns.dissemination(16, 1, ordered=True)) == everybody(16)


def test_pairwise_alltoall_has_one_partner_at_a_time():
    for ranks in (8, 7):
        schedule = patterns.pairwise_alltoall(ranks, 6)
        pairs = [(i, j, 6) for i in range(ranks) for j in range(ranks) if i != j]
        assert sorted(messages(schedule)) == pairs
        flow = Flow(schedule)
        for i in range(len(flow.kind)):
            place = (i % (2 * ranks - 2)) // 2
            assert sorted(flow.needs[i]) == ([i - i % 2 - 2, i - i % 2 - 1] if place else [])


def test_bruck_alltoall_carries_each_block_where_it_belongs():
    for ranks in RANKS:

        def outgoing(rank, state, number, to, size, ranks=ranks):
            """Blocks (from, to) that have travelled the lower bits of their distance, and have the
            bit of this round to go.
            """
            hop = 1 << number
            starts = [(rank - d % hop, d) for d in range(ranks) if d & hop]
            blocks = {(start % ranks, (start + d) % ranks) for start, d in starts}
            assert blocks <= state and to == (rank + hop) % ranks and size == 6 * len(blocks)
            return blocks

        final = Flow(patterns.bruck_alltoall(ranks, 6)).run(
            lambda rank, ranks=ranks: {(rank, to) for to in range(ranks)},
            outgoing,
            lambda rank, state, message, _: state | message,
        )
        assert all({(one, rank) for one in range(ranks)} <= final[rank] for rank in range(ranks))


# --- grids ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize(
    "shape, points",
    [
        ((5,), None),
        ((4, 3), 5),
        ((3, 4), 9),
        ((2, 3, 4), 7),
        ((3, 3, 3), 27),
        ((1, 4), 9),
        ((2, 2), 9),
        ((1, 1, 1), 27),
    ],
)
def test_halos(shape, points, periodic):
    schedule = patterns.halo(shape, [10, 20, 30][: len(shape)], points, periodic).validate()
    Flow(schedule)
    expected = Counter()
    star = points in (None, 2 * len(shape) + 1)
    for rank in range(prod(shape)):
        here = np.unravel_index(rank, shape, order="F")
        for offset in np.ndindex(*[3] * len(shape)):
            step = np.array(offset) - 1
            there = here + step
            corner = abs(step).sum() > 1
            if not step.any() or (star and corner) or (step[np.array(shape) == 1] != 0).any():
                continue
            if periodic or all(0 <= x < side for x, side in zip(there, shape, strict=True)):
                size = 8 if corner else [10, 20, 30][int(np.flatnonzero(step)[0])]
                to = np.ravel_multi_index(there, shape, mode="wrap", order="F")
                expected[rank, int(to), size] += 1
    assert Counter(messages(schedule)) == expected


def test_a_halo_brings_each_message_to_its_own_side():
    """On two ranks that are each other's left and right neighbour, tags keep both apart."""
    flow = Flow(patterns.halo((2,), 8))
    pairs = {(flow.tag[receive], flow.tag[send]) for receive, send in flow.source.items()}
    assert pairs == {(0, 0), (1, 1)}


@pytest.mark.parametrize("shape", [(4,), (3, 4), (2, 3, 2)])
def test_sweeps(shape):
    ranks, blocks = prod(shape), 3
    schedule = patterns.sweep(shape, 8, blocks, 100, corners=[(0,) * len(shape)]).validate()
    known = knowledge(schedule)
    for rank in range(ranks):
        here = np.unravel_index(rank, shape, order="F")
        upstream = {
            other
            for other in range(ranks)
            if (np.array(np.unravel_index(other, shape, order="F")) <= np.array(here)).all()
        }
        assert known[rank] == upstream
    assert len(messages(schedule)) == blocks * sum(ranks * (side - 1) // side for side in shape)
    everywhere = patterns.sweep(shape, 8, blocks, 100).validate()
    assert all(each == set(range(ranks)) for each in knowledge(everywhere))
    assert np.count_nonzero(everywhere.kind == CALC) == ranks * blocks * 2 * 2 ** len(shape)


def test_a_sweep_takes_one_step_a_rank_and_block():
    waves = patterns.sweep((4, 5), 8, 6, 100, corners=[(0, 0)])
    free = LogGOPS(L=0, o=0, g=0, G=0, O=0)
    assert simulate(waves, free).makespan_ns == 100 * (3 + 4 + 6)


def test_grids():
    assert (patterns.grid(48, 3), patterns.grid(7, 2)) == ((4, 4, 3), (7, 1))
    for ranks in range(1, 200):
        for dimensions in (1, 2, 3):
            assert prod(patterns.grid(ranks, dimensions)) == ranks


# --- composition ----------------------------------------------------------------------------------


def happens_before(flow):
    """All operations that certainly end before each begins, as bit masks."""
    before = {}
    for i in flow.order:
        before[i] = 0
        for needed in flow.needs[i]:
            before[i] |= before[needed] | 1 << needed
    return before


def test_parts_of_a_sequence_do_not_mix():
    a, b, c = patterns.halo((3, 3), 8), patterns.barrier(9), patterns.binomial_bcast(9, 5, root=4)
    schedule = patterns.sequence(a, b, a, c).validate()
    flow, counts = Flow(schedule), [np.diff(part.rank_start) for part in (a, b, a, c)]
    before = happens_before(flow)
    for rank in range(9):
        at, parts = int(schedule.rank_start[rank]), []
        for number, count in enumerate(counts):
            at += number > 0
            parts.append(range(at, at + int(count[rank])))
            at += int(count[rank])
        for earlier, later in zip(parts, parts[1:], strict=False):
            assert all(before[i] >> j & 1 for i in later for j in earlier)
    for receive, send in flow.source.items():
        assert flow.tag[receive] == flow.tag[send]
    assert len(schedule) == 3 * 9 + sum(map(len, (a, b, a, c)))


def test_ranks_that_do_nothing_pass_the_order_on():
    middle = patterns.embed(patterns.barrier(2), np.array([0, 2]), 3)
    schedule = patterns.sequence(
        patterns.compute(3, 10), middle, patterns.compute(3, [1, 2, 3])
    ).validate()
    before = happens_before(Flow(schedule))
    low, high = schedule.rank_start[1:3]
    assert all(before[i] >> j & 1 for i in range(low, high) for j in range(low, i))
    assert schedule.column("size")[low:high].tolist() == [10, 0, 0, 2]


def test_loops_take_the_computations_they_are_given():
    schedule = patterns.loop(patterns.barrier(4), 3, np.arange(4))
    work = schedule.column("size")[schedule.kind == CALC]
    assert work.reshape(4, 3).T.tolist() == [[0, 1, 2, 3]] * 3
    assert all(known == set(range(4)) for known in knowledge(schedule.validate()))


def test_roots_rotate():
    schedule = patterns.calls(patterns.binomial_bcast, 5, 8, 12, rotated=True)
    flow = Flow(schedule.validate())
    roots = {}
    for i, kind in enumerate(flow.kind):
        if kind == RECV:
            roots.setdefault(flow.tag[i], set()).add(flow.rank[i])
    assert [set(range(5)) - receivers for _, receivers in sorted(roots.items())] == [
        {i % 5} for i in range(12)
    ]


def test_schedules_beside_each_other():
    both = patterns.side_by_side(patterns.barrier(3), patterns.binomial_bcast(4, 9)).validate()
    known = knowledge(both)
    assert known[:3] == [{0, 1, 2}] * 3 and all(3 in each and min(each) == 3 for each in known[3:])


# --- arguments and size ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call, said",
    [
        (lambda: patterns.dissemination(0, 8), "0 ranks"),
        (lambda: patterns.binomial_scatter(4, -1), "negative size"),
        (lambda: patterns.binomial_bcast(4, 1, root=4), "root 4"),
        (lambda: patterns.halo((2, 2), 8, points=7), "stencil of 7 points"),
        (lambda: patterns.sequence(patterns.barrier(2), patterns.barrier(3)), "numbers of ranks"),
        (lambda: patterns.embed(patterns.barrier(3), np.array([0, 1]), 5), "3 ascending ranks"),
        (lambda: patterns.calls(patterns.scan, 2, times=0), "nothing to compose"),
        (lambda: patterns.loop(patterns.barrier(2), 3, np.ones(3, int)), "wrong shape"),
    ],
)
def test_impossible_arguments(call, said):
    with pytest.raises(InputError, match=re.escape(said)):
        call()


@pytest.mark.long
def test_a_quarter_of_a_million_ranks():
    """Closed forms hold at size, and a schedule takes no more than its operations need."""
    ranks = 1 << 18
    schedule = patterns.dissemination(ranks, 8).validate()
    assert (len(schedule), schedule.messages) == (2 * 18 * ranks, 18 * ranks)
    shift = np.where(schedule.kind == SEND, 1, -1) * np.tile(
        np.repeat(1 << np.arange(18), 2), ranks
    )
    assert np.array_equal(schedule.peer, (np.repeat(np.arange(ranks), 36) + shift) % ranks)
    assert patterns.binomial_bcast(ranks, 8).messages == ranks - 1
    assert isinstance(schedule, Schedule)
