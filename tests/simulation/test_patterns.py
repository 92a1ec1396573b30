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


def stencil(shape, bytes, steps, ns, periodic):
    """Computation and halo `steps` times, then a calculation that waits for all."""
    halo, none = patterns.halo(shape, bytes, periodic=periodic), np.zeros(0, int)
    end = Schedule.from_arrays(np.zeros(prod(shape), int), none, none, none)
    return patterns.compose([halo] * steps + [end], [ns] * steps + [0])


REFERENCE = {
    "dissemination_2_1B": lambda: patterns.dissemination(2, 1),
    "dissemination_8_1B": lambda: patterns.dissemination(8, 1),
    "dissemination_100_1B": lambda: patterns.dissemination(100, 1),
    "dissemination_64_1048576B": lambda: patterns.dissemination(64, 2**20),
    "dissemination_1024_1B": lambda: patterns.dissemination(1024, 1),
    "binomialtreebcast_2_1B": lambda: patterns.binomial_bcast(2, 1),
    "binomialtreebcast_64_1024B": lambda: patterns.binomial_bcast(64, 1024),
    "binomialtreebcast_8_1024B_root3": lambda: patterns.binomial_bcast(8, 1024, root=3),
    "binomialtreereduce_8_1024B": lambda: patterns.binomial_reduce(8, 1024),
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


# --- one root -------------------------------------------------------------------------------------


def test_broadcasts_reach_everybody_once():
    for ranks in RANKS:
        for root in {0, ranks // 2, ranks - 1}:
            schedule = patterns.binomial_bcast(ranks, 7, root=root).validate()
            assert all(root in known for known in knowledge(schedule))
            assert traffic(schedule) == (ranks - 1, 7 * (ranks - 1))


def test_reductions_count_everybody_once():
    for ranks in RANKS:
        for root in {0, ranks // 2, ranks - 1}:
            schedule = patterns.binomial_reduce(ranks, 10, root=root).validate()
            final = Flow(schedule).run(
                lambda rank: Counter([rank]),
                lambda rank, state, *_: state,
                lambda rank, state, message, _: state + message,
            )
            assert final[root] == once(ranks)
            assert traffic(schedule) == (ranks - 1, 10 * (ranks - 1))


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
        schedule = patterns.barrier(ranks).validate()
        assert all(known == set(range(ranks)) for known in knowledge(schedule))


def test_the_references_dissemination_lets_a_round_overtake_another():
    """Its sends wait for one receive only, so a slow message of an early round is not waited for:
    documented, and why `barrier` is ordered.
    """
    assert any(known != set(range(16)) for known in knowledge(patterns.dissemination(16, 1)))
    assert all(
        known == set(range(16)) for known in knowledge(patterns.dissemination(16, 1, ordered=True))
    )


# --- everybody ------------------------------------------------------------------------------------


def test_scans_are_prefixes():
    for ranks in RANKS:
        schedule = patterns.scan(ranks, 4).validate()
        final = Flow(schedule).run(
            lambda rank: Counter([rank]),
            lambda rank, state, *_: state,
            lambda rank, state, message, _: state + message,
        )
        assert final == [once(rank + 1) for rank in range(ranks)]
    k = (33 - 1).bit_length()
    assert len(messages(patterns.scan(33, 4))) == 33 * k - 2**k + 1


def test_recursive_doubling_allreduce():
    for ranks in RANKS:
        schedule = patterns.recursive_doubling_allreduce(ranks, 8).validate()
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


def halving(ranks):
    """For each rank of the core and round: the partner, the chunks that go and those that stay, by
    the definition of recursive halving.
    """
    size, guests = core_of(ranks)
    core = [rank for rank in range(ranks) if rank not in guests]
    mine, rounds = {place: list(range(size)) for place in range(size)}, []
    for mask in (1 << k for k in range(size.bit_length() - 1)):
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


@pytest.mark.parametrize("total", [1 << 12, 1001, 3])
def test_rabenseifner_allreduce(total):
    for ranks in (*range(1, 20), 32, 33):
        core, guests, rounds = halving(ranks)
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


def test_allgathers_carry_no_more_than_their_size():
    def ring(rank, state, number, to, size, ranks):
        return {(rank - number) % ranks}

    def bruck(rank, state, number, to, size, ranks):
        assert to == (rank - 2**number) % ranks
        return {(rank + block) % ranks for block in range(min(2**number, ranks - 2**number))}

    for ranks in RANKS:
        for pattern, choose in (
            (patterns.ring_allgather, ring),
            (patterns.bruck_allgather, bruck),
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


def test_pairwise_alltoall():
    for ranks in RANKS:
        schedule = patterns.pairwise_alltoall(ranks, 6).validate()
        Flow(schedule)
        assert Counter(messages(schedule)) == Counter(
            (i, j, 6) for i in range(ranks) for j in range(ranks) if i != j
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
            if (
                not step.any()
                or (star and abs(step).sum() > 1)
                or any(side == 1 and move for side, move in zip(shape, step, strict=True))
            ):
                continue
            if periodic or all(0 <= x < side for x, side in zip(there, shape, strict=True)):
                size = [10, 20, 30][int(np.flatnonzero(step)[0])] if abs(step).sum() == 1 else 8
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
        patterns.compute(3, 10), middle, patterns.compute(3, [1, 2, 3])
    ).validate()
    before = happens_before(Flow(schedule))
    low, high = schedule.rank_start[1:3]
    assert all(before[i] >> j & 1 for i in range(low, high) for j in range(low, i))
    assert schedule.column("size")[low:high].tolist() == [10, 0, 0, 2]


def test_loops_take_the_computations_they_are_given():
    grain = np.arange(12).reshape(3, 4) * 10
    schedule = patterns.loop(patterns.barrier(4), 3, grain)
    assert schedule.column("size")[schedule.kind == CALC].reshape(4, 3).T.tolist() == grain.tolist()
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

    def end(schedule):
        return simulate(schedule, LogGOPS(**parameters, S=10**9)).finish_ns.max()

    for k in (1, 3, 6):
        ranks = 2**k
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
        (lambda: patterns.binomial_scatter(4, -1), "negative size"),
        (lambda: patterns.binomial_bcast(4, 1, root=4), "root 4"),
        (lambda: patterns.halo((2, 2), 8, points=7), "stencil of 7 points"),
        (lambda: patterns.halo((2, 2, 2, 2), 8), "4 dimensions"),
        (lambda: patterns.sequence(), "nothing to compose"),
        (lambda: patterns.sequence(patterns.barrier(2), patterns.barrier(3)), "numbers of ranks"),
        (lambda: patterns.loop(patterns.barrier(2), 3, -1), "negative size"),
        (lambda: patterns.embed(patterns.barrier(3), np.array([0, 1]), 5), "3 ascending ranks"),
        (lambda: patterns.calls(patterns.scan, 2, times=0), "nothing to compose"),
        (lambda: patterns.loop(patterns.barrier(2), 3, np.ones(3, int)), "wrong shape"),
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
    shift = np.where(schedule.kind == SEND, 1, -1) * np.tile(
        np.repeat(1 << np.arange(18), 2), ranks
    )
    assert np.array_equal(schedule.peer, (np.repeat(np.arange(ranks), 36) + shift) % ranks)
    assert patterns.binomial_bcast(ranks, 8).messages == ranks - 1
    assert isinstance(schedule, Schedule)
