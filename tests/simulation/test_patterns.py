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


def chunks(total, parts):
    return [total // parts + (i < total % parts) for i in range(parts)]


def core_of(ranks):
    """2^k, and those ranks that hand their data to the next one."""
    size = 2 ** (ranks.bit_length() - 1)
    return size, set(range(0, 2 * (ranks - size), 2))


def once(ranks):
    """Each rank's data once."""
    return Counter(range(ranks))


# --- what the reference generates -----------------------------------------------------------------

REFERENCE = {
    "dissemination_2_1B": lambda: patterns.dissemination(2, 1),
    "dissemination_8_1B": lambda: patterns.dissemination(8, 1),
    "dissemination_100_1B": lambda: patterns.dissemination(100, 1),
    "dissemination_64_1048576B": lambda: patterns.dissemination(64, 2**20),
    "dissemination_1024_1B": lambda: patterns.dissemination(1024, 1),
    "binarytreebcast_7_512B": lambda: patterns.binary_bcast(7, 512),
    "binarytreebcast_16_512B": lambda: patterns.binary_bcast(16, 512),
    "binomialtreebcast_2_1B": lambda: patterns.binomial_bcast(2, 1),
    "binomialtreebcast_64_1024B": lambda: patterns.binomial_bcast(64, 1024),
    "binomialtreebcast_8_1024B_root3": lambda: patterns.binomial_bcast(8, 1024, root=3),
    "binomialtreereduce_8_1024B": lambda: patterns.binomial_reduce(8, 1024),
    "binomialtreereduce_13_1024B": lambda: patterns.binomial_reduce(13, 1024),
    "binomialtreereduce_1024_1024B": lambda: patterns.binomial_reduce(1024, 1024),
    "scatter_2_1B": lambda: patterns.scatter(2, 1),
    "scatter_17_1B": lambda: patterns.scatter(17, 1),
    "scatter_128_1B": lambda: patterns.scatter(128, 1),
    "gather_2_1B": lambda: patterns.gather(2, 1),
    "gather_64_1B": lambda: patterns.gather(64, 1),
    "gather_8_65536B": lambda: patterns.gather(8, 65536),
    "linbarrier_4": lambda: patterns.linear_barrier(4),
    "nwaydissemination2_27_64B": lambda: patterns.nway_dissemination(27, 64, 2),
    "pipelinedring_8_4096B_seg256": lambda: patterns.pipelined_ring(8, 4096, 256),
    "pipelinedringdep_8_4096B_seg256": lambda: patterns.pipelined_ring(8, 4096, 256, in_turn=True),
    "doublering_16_1024B": lambda: patterns.double_ring(16, 1024),
    "linear_alltoall_8_256B": lambda: patterns.linear_alltoall(8, 256),
    "linear_alltoall_17_256B": lambda: patterns.linear_alltoall(17, 256),
    "allreduce_recdoub_8_65536B": lambda: patterns.rabenseifner_allreduce(8, 65536, ordered=False),
    "allreduce_ring_8_1048576B": lambda: patterns.ring_allreduce(8, 2**20),
    "stencil3d_2x2x2": lambda: patterns.loop(patterns.halo((2, 2, 2), 1024), 5, 20_000, join=True),
    "stencil3d_4x4x4_open": lambda: patterns.loop(
        patterns.halo((4, 4, 4), 4096, periodic=False), 3, 100_000, join=True
    ),
}


@pytest.mark.parametrize("name", REFERENCE)
def test_the_reference_generates_the_same(name):
    ours, theirs = REFERENCE[name](), read_goal(reference_folder() / "goal" / f"{name}.goal")
    same(ours, theirs)


# --- one root -------------------------------------------------------------------------------------

BCASTS = {
    "binomial": patterns.binomial_bcast,
    "binary": patterns.binary_bcast,
    "3-ary": lambda *a, **k: patterns.kary_bcast(*a, arity=3, **k),
    "3-nomial": lambda *a, **k: patterns.knomial_bcast(*a, radix=3, **k),
    "5-nomial": lambda *a, **k: patterns.knomial_bcast(*a, radix=5, **k),
    "direct": patterns.scatter,
}
REDUCTIONS = {
    "binomial": patterns.binomial_reduce,
    "3-ary": lambda *a, **k: patterns.kary_reduce(*a, arity=3, **k),
    "4-nomial": lambda *a, **k: patterns.knomial_reduce(*a, radix=4, **k),
}


@pytest.mark.parametrize("name", BCASTS)
def test_broadcasts_reach_everybody_once(name):
    for ranks in RANKS:
        for root in {0, ranks // 2, ranks - 1}:
            schedule = BCASTS[name](ranks, 7, root=root).validate()
            assert all(root in known for known in knowledge(schedule))
            assert traffic(schedule) == (ranks - 1, 7 * (ranks - 1))


@pytest.mark.parametrize("ns_per_byte", [0, 0.5])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_count_everybody_once(name, ns_per_byte):
    for ranks in RANKS:
        for root in {0, ranks // 2, ranks - 1}:
            schedule = REDUCTIONS[name](ranks, 10, root=root, ns_per_byte=ns_per_byte).validate()
            final = Flow(schedule).run(
                lambda rank: Counter([rank]),
                lambda rank, state, *_: state,
                lambda rank, state, message, _: state + message,
            )
            assert final[root] == once(ranks)
            assert traffic(schedule) == (ranks - 1, 10 * (ranks - 1))
            assert np.count_nonzero(schedule.kind == CALC) == (ranks - 1 if ns_per_byte else 0)
            assert set(schedule.column("size")[schedule.kind == CALC].tolist()) <= {5}


def test_depth_of_trees():
    """The longest chain of messages: ceil(log_radix P) rounds for k-nomial trees, the depth of a
    complete tree for k-ary ones.
    """
    for ranks in (1, 2, 3, 8, 9, 26, 27, 28, 33):
        for radix in (2, 3, 5):
            depth = next(k for k in range(9) if radix**k >= ranks)
            assert longest_chain(patterns.knomial_bcast(ranks, 1, radix)) <= depth
            assert longest_chain(patterns.kary_bcast(ranks, 1, radix)) == next(
                k for k in range(9) if sum(radix**j for j in range(k + 1)) >= ranks
            )
    assert longest_chain(patterns.binomial_bcast(32, 1)) == 5


def longest_chain(schedule):
    lengths = Flow(schedule).run(
        lambda rank: 0,
        lambda rank, state, *_: state + 1,
        lambda rank, state, message, _: max(state, message),
    )
    return max(lengths)


@pytest.mark.parametrize(
    "pattern, down", [(patterns.binomial_scatter, True), (patterns.binomial_gather, False)]
)
def test_binomial_scatter_and_gather_carry_whole_subtrees(pattern, down):
    for ranks in RANKS:
        for root in {0, ranks - 1}:
            schedule = pattern(ranks, 3, root=root).validate()
            parent = (
                {to: (source, size) for source, to, size in messages(schedule)}
                if down
                else {source: (to, size) for source, to, size in messages(schedule)}
            )
            below = Counter()
            for rank in range(ranks):
                while True:
                    below[rank] += 1
                    if rank == root:
                        break
                    rank = parent[rank][0]
            assert below[root] == ranks
            assert all(size == 3 * below[rank] for rank, (_, size) in parent.items())
            known = knowledge(schedule)
            assert all(root in each for each in known) if down else known[root] == set(range(ranks))


def test_barriers_hold_everybody():
    for ranks in RANKS:
        for schedule in (patterns.barrier(ranks), patterns.linear_barrier(ranks)):
            schedule.validate()
            assert knowledge(schedule)[0] == set(range(ranks))
        assert all(known == set(range(ranks)) for known in knowledge(patterns.barrier(ranks)))
        assert all(
            known == set(range(ranks)) for known in knowledge(patterns.linear_barrier(ranks))
        )


def test_the_references_dissemination_lets_a_round_overtake_another():
    """Its sends wait for one receive only, so a slow message of an early round is not waited for:
    documented, and why `barrier` is ordered.
    """
    assert any(known != set(range(16)) for known in knowledge(patterns.dissemination(16, 1)))
    assert all(
        known == set(range(16)) for known in knowledge(patterns.dissemination(16, 1, ordered=True))
    )


def test_rings_and_chains():
    for ranks in RANKS[1:]:
        assert all(0 in known for known in knowledge(patterns.double_ring(ranks, 9).validate()))
        assert traffic(patterns.double_ring(ranks, 9)) == (2 * ranks, 18 * ranks)
        for in_turn in (False, True):
            schedule = patterns.pipelined_ring(ranks, 1000, 300, in_turn).validate()
            segments = Flow(schedule).run(
                lambda rank: tuple(range(4)) if rank == 0 else (),
                lambda rank, state, number, *_: number if number in state else None,
                lambda rank, state, message, _: (*state, message),
            )
            assert all(state == (0, 1, 2, 3) for state in segments)
            assert traffic(schedule) == (4 * (ranks - 1), 1000 * (ranks - 1))


# --- everybody ------------------------------------------------------------------------------------


@pytest.mark.parametrize("pattern", [patterns.scan, patterns.linear_scan])
def test_scans_are_prefixes(pattern):
    for ranks in RANKS:
        schedule = pattern(ranks, 4).validate()
        final = Flow(schedule).run(
            lambda rank: Counter([rank]),
            lambda rank, state, *_: state,
            lambda rank, state, message, _: state + message,
        )
        assert final == [once(rank + 1) for rank in range(ranks)]
    k = (33 - 1).bit_length()
    assert len(messages(patterns.scan(33, 4))) == 33 * k - 2**k + 1
    assert len(messages(patterns.linear_scan(33, 4))) == 32


def test_recursive_doubling_allreduce():
    for ranks in RANKS:
        for ns_per_byte in (0, 1):
            schedule = patterns.recursive_doubling_allreduce(ranks, 8, ns_per_byte).validate()
            size, guests = core_of(ranks)
            final = Flow(schedule).run(
                lambda rank: Counter([rank]),
                lambda rank, state, *_: state,
                lambda rank, state, message, _, guests=guests: (
                    message if rank in guests else state + message
                ),
            )
            assert final == [once(ranks)] * ranks
            count = size * (size.bit_length() - 1) + 2 * len(guests)
            assert traffic(schedule) == (count, 8 * count)


class Chunked:
    """State of a reduction of a vector in chunks: {chunk: Counter of contributions}."""

    def __init__(self, rank, count):
        self.chunks = {chunk: Counter([rank]) for chunk in range(count)}

    def some(self, wanted, replace):
        return replace, {chunk: self.chunks[chunk] for chunk in wanted}

    def merged(self, message):
        replace, chunks = message
        result = Chunked(0, 0)
        result.chunks = self.chunks | {
            chunk: value if replace else self.chunks[chunk] + value
            for chunk, value in chunks.items()
        }
        return result


@pytest.mark.parametrize("total", [33 * 4, 10, 0])
def test_ring_allreduce_and_reduce_scatter(total):
    for ranks in (*range(1, 10), 13, 16, 17):
        part = chunks(total, ranks)

        def outgoing(rank, state, number, to, size, first, ranks=ranks, part=part):
            chunk = (rank + first - number) % ranks
            assert to == (rank + 1) % ranks and size == part[chunk]
            return state.some([chunk], replace=number >= ranks - 1)

        for first, pattern in ((0, patterns.ring_allreduce), (-1, patterns.ring_reduce_scatter)):
            schedule = pattern(ranks, total).validate()
            final = Flow(schedule).run(
                lambda rank, ranks=ranks: Chunked(rank, ranks),
                lambda *a, first=first, out=outgoing: out(*a, first),
                lambda rank, state, message, _: state.merged(message),
            )
            for rank, state in enumerate(final):
                wanted = range(ranks) if pattern == patterns.ring_allreduce else [rank]
                assert all(state.chunks[chunk] == once(ranks) for chunk in wanted)
            rounds = (2 - (first < 0)) * (ranks - 1)
            assert traffic(schedule) == (ranks * rounds, total * rounds)


def halving(ranks, masks):
    """For each rank of the core and round: the partner, the chunks that go and those that stay, by
    the definition of recursive halving.
    """
    size, guests = core_of(ranks)
    core = [rank for rank in range(ranks) if rank not in guests]
    mine, rounds = {place: list(range(size)) for place in range(size)}, []
    for mask in masks(size):
        step = {}
        for place in range(size):
            half = len(mine[place]) // 2
            stay, go = (
                (mine[place][half:], mine[place][:half])
                if place & mask
                else (mine[place][:half], mine[place][half:])
            )
            step[core[place]] = core[place ^ mask], go, stay
            mine[place] = stay
        rounds.append(step)
    return core, guests, rounds


def ascending(size):
    return [1 << k for k in range(size.bit_length() - 1)]


@pytest.mark.parametrize("total", [1 << 12, 1001, 3])
def test_rabenseifner_allreduce(total):
    for ranks in (*range(1, 20), 32, 33):
        core, guests, rounds = halving(ranks, ascending)
        part = chunks(total, len(core))

        def outgoing(rank, state, number, to, size):
            if rank in guests:
                assert (to, size) == (rank + 1, total)
                return state.some(range(len(core)), replace=False)
            if number < len(rounds):
                partner, go, _ = rounds[number][rank]
                assert (to, size) == (partner, sum(part[chunk] for chunk in go))
                return state.some(go, replace=False)
            if number < 2 * len(rounds):
                partner, _, stay = rounds[2 * len(rounds) - 1 - number][rank]
                assert (to, size) == (partner, sum(part[chunk] for chunk in stay))
                return state.some(stay, replace=True)
            assert (to, size) == (rank - 1, total)
            return state.some(range(len(core)), replace=True)

        schedule = patterns.rabenseifner_allreduce(ranks, total).validate()
        final = Flow(schedule).run(
            lambda rank, core=core: Chunked(rank, len(core)),
            outgoing,
            lambda rank, state, message, _: state.merged(message),
        )
        assert all(value == once(ranks) for state in final for value in state.chunks.values())
        assert len(messages(schedule)) == 2 * len(core) * len(rounds) + 2 * len(guests)


@pytest.mark.parametrize("total", [4096, 1001])
def test_recursive_halving_reduce_scatter(total):
    for ranks in (*range(1, 20), 32, 33):
        core, guests, rounds = halving(ranks, lambda size: ascending(size)[::-1])
        part = chunks(total, ranks)
        shared = {
            place: [rank] if rank - 1 not in guests else [rank - 1, rank]
            for place, rank in enumerate(core)
        }

        def outgoing(rank, state, number, to, size):
            if rank in guests:
                assert (to, size) == (rank + 1, total)
                return state.some(range(ranks), replace=False)
            if number < len(rounds):
                go = [chunk for place in rounds[number][rank][1] for chunk in shared[place]]
                assert (to, size) == (rounds[number][rank][0], sum(part[chunk] for chunk in go))
                return state.some(go, replace=False)
            assert (to, size) == (rank - 1, part[rank - 1])
            return state.some([rank - 1], replace=True)

        schedule = patterns.recursive_halving_reduce_scatter(ranks, total).validate()
        final = Flow(schedule).run(
            lambda rank, ranks=ranks: Chunked(rank, ranks),
            outgoing,
            lambda rank, state, message, _: state.merged(message),
        )
        assert all(final[rank].chunks[rank] == once(ranks) for rank in range(ranks))


def test_allgathers_carry_no_more_than_their_size():
    def ring(rank, state, number, to, size, ranks):
        return {(rank - number) % ranks}

    def bruck(rank, state, number, to, size, ranks):
        assert to == (rank - 2**number) % ranks
        return {(rank + block) % ranks for block in range(min(2**number, ranks - 2**number))}

    def doubling(rank, state, number, to, size, ranks):
        return state if len(state) < ranks or to not in core_of(ranks)[1] else state - {to}

    for ranks in RANKS:
        for pattern, choose in (
            (patterns.ring_allgather, ring),
            (patterns.bruck_allgather, bruck),
            (patterns.recursive_doubling_allgather, doubling),
        ):

            def outgoing(rank, state, number, to, size, choose=choose, ranks=ranks):
                blocks = choose(rank, state, number, to, size, ranks)
                assert blocks <= state and size == 5 * len(blocks)
                return blocks

            schedule = pattern(ranks, 5).validate()
            final = Flow(schedule).run(
                lambda rank: {rank}, outgoing, lambda rank, state, message, _: state | message
            )
            assert all(state == set(range(ranks)) for state in final)
    assert traffic(patterns.ring_allgather(33, 5)) == (33 * 32, 5 * 33 * 32)
    assert traffic(patterns.bruck_allgather(33, 5)) == (33 * 6, 5 * 33 * 32)
    assert traffic(patterns.recursive_doubling_allgather(32, 5)) == (32 * 5, 5 * 32 * 31)


@pytest.mark.parametrize("pattern", [patterns.linear_alltoall, patterns.pairwise_alltoall])
def test_direct_alltoalls(pattern):
    for ranks in RANKS:
        schedule = pattern(ranks, 6).validate()
        Flow(schedule)
        assert Counter(messages(schedule)) == Counter(
            (i, j, 6) for i in range(ranks) for j in range(ranks) if i != j
        )
    sizes = np.arange(49).reshape(7, 7)
    schedule = patterns.linear_alltoallv(sizes).validate()
    Flow(schedule)
    assert Counter(messages(schedule)) == Counter(
        (i, j, int(sizes[i, j])) for i in range(7) for j in range(7) if i != j
    )


def test_pairwise_alltoall_has_one_partner_at_a_time():
    for ranks in (8, 7):
        flow = Flow(patterns.pairwise_alltoall(ranks, 1))
        for i in range(len(flow.kind)):
            place = (i % (2 * ranks - 2)) // 2
            assert sorted(flow.needs[i]) == ([i - i % 2 - 2, i - i % 2 - 1] if place else [])


def test_bruck_alltoall():
    for ranks in RANKS:

        def outgoing(rank, state, number, to, size, ranks=ranks):
            """Blocks (from, to) that have travelled the lower bits of their distance, and have the
            bit of this round to go.
            """
            hop = 1 << number
            blocks = {
                ((rank - distance % hop) % ranks, (rank - distance % hop + distance) % ranks)
                for distance in range(ranks)
                if distance & hop
            }
            assert blocks <= state and to == (rank + hop) % ranks and size == 6 * len(blocks)
            return blocks

        schedule = patterns.bruck_alltoall(ranks, 6).validate()
        final = Flow(schedule).run(
            lambda rank, ranks=ranks: {(rank, to) for to in range(ranks)},
            outgoing,
            lambda rank, state, message, _: state | message,
        )
        assert all(
            {(source, rank) for source in range(ranks)} <= state for rank, state in enumerate(final)
        )


def test_nway_dissemination_counts():
    for ways in (1, 2, 3, 5):
        for ranks in RANKS:
            schedule = patterns.nway_dissemination(ranks, 64, ways, ns_per_byte=0.25).validate()
            rounds = next(k for k in range(9) if (ways + 1) ** k >= ranks)
            assert len(messages(schedule)) == ranks * ways * rounds
            assert np.count_nonzero(schedule.kind == CALC) == ranks * ways * max(0, rounds - 1)
            Flow(schedule)


def test_random_bisection():
    for ranks in RANKS:
        for both in (False, True):
            schedule = patterns.random_bisection(ranks, 3, seed=7, both_ways=both).validate()
            Flow(schedule)
            pairs = {frozenset(message[:2]) for message in messages(schedule)}
            assert len(pairs) == ranks // 2 and len(set().union(*pairs)) == 2 * (ranks // 2)
            assert len(messages(schedule)) == ranks // 2 * (1 + both)
    one, other, again = (
        messages(patterns.random_bisection(32, 3, seed=seed)) for seed in (1, 2, 1)
    )
    assert one == again != other


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
    schedule = patterns.halo(
        shape, [10, 20, 30][: len(shape)], points, periodic, diagonal_bytes=1
    ).validate()
    Flow(schedule)
    expected = Counter()
    star = points in (None, 2 * len(shape) + 1)
    for rank in range(prod(shape)):
        here = np.unravel_index(rank, shape, order="F")
        for offset in np.ndindex(*[3] * len(shape)):
            step = np.array(offset) - 1
            there = here + step
            if (
                not step.any()
                or (star and abs(step).sum() > 1)
                or any(side == 1 and move for side, move in zip(shape, step, strict=True))
            ):
                continue
            if periodic or all(0 <= x < side for x, side in zip(there, shape, strict=True)):
                size = [10, 20, 30][int(np.flatnonzero(step)[0])] if abs(step).sum() == 1 else 1
                expected[
                    rank, int(np.ravel_multi_index(there, shape, mode="wrap", order="F")), size
                ] += 1
    assert Counter(messages(schedule)) == expected


def test_a_halo_brings_each_message_to_its_own_side():
    """On two ranks that are each other's left and right neighbour, tags keep both apart."""
    flow = Flow(patterns.halo((2,), 8))
    assert {(flow.tag[receive], flow.tag[send]) for receive, send in flow.source.items()} == {
        (0, 0),
        (1, 1),
    }


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
    steps = Flow(patterns.sweep((4, 5), 8, 6, 100, corners=[(0, 0)]))
    depth = {}
    for i in steps.order:
        depth[i] = max(
            [depth[n] for n in steps.needs[i]]
            + [depth[steps.source[i]] if i in steps.source else 0]
        ) + (steps.kind[i] == CALC)
    assert max(depth.values()) == 3 + 4 + 6


def test_grids():
    assert [
        patterns.grid(48, 3),
        patterns.grid(12, 2),
        patterns.grid(7, 2),
        patterns.grid(64, 3),
        patterns.grid(1, 3),
    ] == [(4, 4, 3), (4, 3), (7, 1), (4, 4, 4), (1, 1, 1)]
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
        patterns.compute(3, 10), middle, patterns.compute(3, [1, 2, 3]), gap_ns=5
    ).validate()
    before = happens_before(Flow(schedule))
    low, high = schedule.rank_start[1:3]
    assert all(before[i] >> j & 1 for i in range(low, high) for j in range(low, i))
    assert schedule.column("size")[low:high].tolist() == [10, 5, 5, 2]


def test_loops_take_the_computations_they_are_given():
    grain = np.arange(12).reshape(3, 4) * 10
    schedule = patterns.loop(patterns.barrier(4), 3, grain)
    assert schedule.column("size")[schedule.kind == CALC].reshape(4, 3).T.tolist() == grain.tolist()
    assert all(known == set(range(4)) for known in knowledge(schedule.validate()))
    early = patterns.loop(patterns.halo((4,), 8), 3, 100, early_receives=True).validate()
    assert len(early.begun_op) == 3 * np.count_nonzero(patterns.halo((4,), 8).kind == RECV)
    assert len(early) == len(patterns.loop(patterns.halo((4,), 8), 3, 100))
    Flow(early)


def test_repeating_is_a_sequence():
    one = patterns.repeat(patterns.barrier(5), 3, gap_ns=7)
    two = patterns.sequence(*[patterns.barrier(5)] * 3, gap_ns=7)
    same(one, two)


def test_roots_rotate():
    schedule = patterns.rotate_root(patterns.binomial_bcast, 5, 8, 12)
    flow = Flow(schedule.validate())
    roots = {}
    for i, kind in enumerate(flow.kind):
        if kind == RECV:
            roots.setdefault(flow.tag[i], set()).add(flow.rank[i])
    assert [set(range(5)) - receivers for _, receivers in sorted(roots.items())] == [
        {i % 5} for i in range(12)
    ]


def test_a_training_step_overlaps():
    buckets = [patterns.ring_allreduce(4, size) for size in (400, 800, 1200)]
    schedule = patterns.training_step(buckets, 1000, [10, 20, 30]).validate()
    before, flow = happens_before(Flow(schedule)), Flow(schedule)
    for rank in range(4):
        low, high = schedule.rank_start[rank], schedule.rank_start[rank + 1]
        calcs = [i for i in range(low, high) if flow.kind[i] == CALC]
        assert [flow.size[i] for i in calcs] == [1010, 20, 30, 0]
        assert before[calcs[2]] == 1 << calcs[0] | 1 << calcs[1], (
            "a computation waits for no message"
        )
        assert all(before[calcs[3]] >> i & 1 for i in range(low, high - 1)), "the end waits for all"


def test_chained_dissemination():
    schedule = patterns.chained_dissemination(8)
    assert traffic(schedule) == (5 * 8 * 3, 5 * 8 * 3 * 10_000)
    Flow(schedule)


def test_ranks_are_renumbered():
    schedule = patterns.sequence(patterns.scan(6, 8), patterns.gather(6, 3))
    new = np.array([3, 5, 0, 1, 4, 2])
    moved = patterns.renumber(schedule, new).validate()
    assert Counter(messages(moved)) == Counter(
        (int(new[a]), int(new[b]), size) for a, b, size in messages(schedule)
    )
    assert list(knowledge(moved)) == [
        {int(new[x]) for x in knowledge(schedule)[int(np.flatnonzero(new == r)[0])]}
        for r in range(6)
    ]
    back = patterns.renumber(moved, np.argsort(new))
    same(back, schedule)
    assert Counter(messages(patterns.shift_ranks(schedule, 2))) == Counter(
        ((a + 2) % 6, (b + 2) % 6, size) for a, b, size in messages(schedule)
    )


def test_schedules_beside_each_other():
    both = patterns.side_by_side(patterns.barrier(3), patterns.binomial_bcast(4, 9)).validate()
    known = knowledge(both)
    assert known[:3] == [{0, 1, 2}] * 3 and all(3 in each and min(each) == 3 for each in known[3:])


# --- in time --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "parameters",
    [
        {"L": 2500, "o": 1500, "g": 1000, "G": 6, "O": 0},
        {"L": 5000, "o": 500, "g": 3000, "G": 1, "O": 0},
        {"L": 2500, "o": 1500, "g": 1000, "G": 3, "O": 7},
    ],
)
@pytest.mark.parametrize("size", [1, 1000])
def test_the_closed_forms_in_the_docstrings(parameters, size):
    """The engine agrees with what the docstrings promise."""
    L, o, g, G, O = (parameters[name] for name in "LogGO")
    more = size - 1
    h = 2 * o + L + more * max(G, O)
    sp = max(o + more * O, g + more * G)
    rp = max(o + more * max(O, G), g + more * G)

    def end(schedule):
        return simulate(schedule, LogGOPS(**parameters, S=10**9)).finish_ns.max()

    for k in (1, 3, 6):
        ranks = 2**k
        assert end(patterns.scatter(ranks, size)) == max(
            (ranks - 2) * sp + h, (ranks - 2) * sp + o + more * O
        )
        assert end(patterns.gather(ranks, size)) == o + L + (ranks - 2) * rp + o + more * max(O, G)
        assert end(patterns.linear_scan(ranks, size)) == (ranks - 1) * h
        if h >= sp:
            assert end(patterns.binomial_bcast(ranks, size)) == k * h
        if h >= g + more * G and O <= G:
            assert (
                end(patterns.dissemination(ranks, size))
                == end(patterns.recursive_doubling_allreduce(ranks, size))
                == k * h
            )


# --- arguments and size ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call, said",
    [
        (lambda: patterns.dissemination(0, 8), "0 ranks"),
        (lambda: patterns.scatter(4, -1), "negative size"),
        (lambda: patterns.binomial_bcast(4, 1, root=4), "root 4"),
        (lambda: patterns.halo((2, 2), 8, points=7), "stencil of 7 points"),
        (lambda: patterns.halo((2, 2, 2, 2), 8), "4 dimensions"),
        (lambda: patterns.sequence(), "nothing to compose"),
        (lambda: patterns.sequence(patterns.barrier(2), patterns.barrier(3)), "numbers of ranks"),
        (lambda: patterns.loop(patterns.barrier(2), 3, -1), "negative length"),
        (lambda: patterns.renumber(patterns.barrier(3), np.array([0, 0, 1])), "permutation"),
        (lambda: patterns.embed(patterns.barrier(3), np.array([0, 1]), 5), "3 different ranks"),
        (lambda: patterns.linear_alltoallv(np.ones((2, 3))), "shape (2, 3)"),
        (lambda: patterns.double_ring(1, 8), "1 ranks"),
        (lambda: patterns.knomial_bcast(4, 8, radix=1), "radix = 1"),
        (lambda: patterns.kary_bcast(4, 8, arity=0), "arity = 0"),
        (lambda: patterns.nway_dissemination(4, 8, 0), "ways = 0"),
        (lambda: patterns.pipelined_ring(4, 8, 0), "segment = 0"),
        (lambda: patterns.rotate_root(patterns.scatter, 4, 8, 0), "times = 0"),
        (lambda: patterns.repeat(patterns.barrier(2), 0), "times = 0"),
        (lambda: patterns.loop(patterns.barrier(2), 3, np.ones(3, int)), "wrong shape"),
        (lambda: patterns.loop(patterns.barrier(2), 3, np.ones((2, 2), int)), "2 computations"),
        (lambda: patterns.training_step([patterns.barrier(2)], 1, [1, 2]), "2 computations"),
    ],
)
def test_impossible_arguments(call, said):
    with pytest.raises(InputError, match=re.escape(said)):
        call()


def test_every_pattern_is_exported_and_documented():
    for name in patterns.__all__:
        assert getattr(patterns, name).__doc__, name


def test_a_quarter_of_a_million_ranks():
    """Closed forms hold at size, and a schedule takes no more than its operations need."""
    ranks = 1 << 18
    schedule = patterns.dissemination(ranks, 8).validate()
    assert (len(schedule), schedule.messages) == (2 * 18 * ranks, 18 * ranks)
    assert schedule.nbytes / schedule.messages < 24
    shift = np.where(schedule.kind == SEND, 1, -1) * np.tile(
        np.repeat(1 << np.arange(18), 2), ranks
    )
    assert np.array_equal(schedule.peer, (np.repeat(np.arange(ranks), 36) + shift) % ranks)
    assert patterns.binomial_bcast(ranks, 8).messages == ranks - 1
    assert isinstance(schedule, Schedule)
