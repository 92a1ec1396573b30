"""Two threads against one: the same result, bit by bit, for all that two can carry out."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbhelpers.errors import InputError
from nbhelpers.simulation import LogGOPS, Noise, patterns, periodic, poisson, read_goal, simulate
from nbhelpers.simulation.engine import Deadlock
from nbhelpers.simulation.noise import Detours
from nbhelpers.simulation.schedule import Schedule
from nbhelpers.simulation.spread import MessageSpread
from nbhelpers.simulation.topology import FatTree

from .cases import reference_cases, reference_folder
from .programs import random_program, to_schedule

EAGER = 2**40
NETWORKS = [
    LogGOPS(L=2500, o=1500, g=1000, G=6, S=EAGER),
    LogGOPS(L=1000, o=700, g=3000, G=1, O=2, S=EAGER),
    LogGOPS(L=0, o=10, g=0, G=0, S=EAGER),
    LogGOPS(L=20, o=0, g=5, G=1, S=EAGER),
    LogGOPS(L=1300.5, o=150, g=1500, G=0.0865, O=0.013, S=EAGER),
    LogGOPS(L=100_000, o=10, g=0, G=0, S=EAGER),
]
NOISES = [None, periodic(1000, 100), periodic(33_333, 3), poisson(20_000, 5, 1)]


def outcome(schedule: Schedule, *args, threads: int, **options) -> tuple:
    """The ends and the noise of all ranks, or the error's words."""
    try:
        result = simulate(schedule, *args, threads=threads, **options)
    except (Deadlock, InputError) as error:
        return type(error), str(error)
    assert result.threads == threads
    return result.finish_ns.tolist(), result.noise_ns.tolist()


def compare(schedule: Schedule, *args, **options) -> None:
    one, two = (outcome(schedule, *args, threads=threads, **options) for threads in (1, 2))
    assert one == two


@settings(max_examples=400, deadline=None)
@given(
    st.integers(0, 10**9),
    st.sampled_from(NETWORKS),
    st.sampled_from(NOISES),
    st.sampled_from([(2, 10), (3, 25), (5, 14), (9, 80)]),
)
def test_random_schedules(seed: int, network: LogGOPS, noise: Detours | None, numbers: tuple):
    """Ties, wildcards, messages before their receives, operations that wait for the CPU; some of
    the schedules get stuck.
    """
    ranks, messages = numbers
    program = random_program(
        seed, ranks, messages, sizes=(0, 1, 2, 8, 100, 5000), lonely=seed % 7 == 0
    )
    compare(to_schedule(program), network, noise, seed=seed % 100)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**9), st.sampled_from(NETWORKS), st.sampled_from(NOISES))
def test_many_messages_between_few_ranks(seed: int, network: LogGOPS, noise: Detours | None):
    """Lists become indexes, and waiting operations outlast many windows."""
    compare(to_schedule(random_program(seed, 3, 250, sizes=(1, 8, 100))), network, noise)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**9), st.sampled_from(NOISES))
def test_drawn_latencies(seed: int, noise: Detours | None):
    """The windows are as long as the least L lets them."""
    spread = MessageSpread(L=[40, 3000.5, 900], G=[0.1, 7], seed=seed)
    schedule = to_schedule(random_program(seed, sizes=(1, 100)))
    compare(schedule, NETWORKS[0], noise, spread=spread)


REGULAR = [
    patterns.binary_bcast,
    patterns.binomial_bcast,
    patterns.binomial_gather,
    patterns.binomial_reduce,
    patterns.binomial_scatter,
    patterns.bruck_allgather,
    patterns.bruck_alltoall,
    patterns.dissemination,
    patterns.double_ring,
    patterns.gather,
    patterns.linear_alltoall,
    patterns.linear_scan,
    patterns.pairwise_alltoall,
    patterns.rabenseifner_allreduce,
    patterns.recursive_doubling_allreduce,
    patterns.ring_allgather,
    patterns.ring_allreduce,
    patterns.ring_reduce_scatter,
    patterns.scan,
    patterns.scatter,
]


@pytest.mark.parametrize("noise", range(len(NOISES)))
@pytest.mark.parametrize("pattern", REGULAR, ids=lambda pattern: pattern.__name__)
def test_patterns(pattern: Callable, noise: int):
    for ranks in (2, 13, 32):
        compare(pattern(ranks, 64), NETWORKS[0], NOISES[noise])


@pytest.mark.parametrize("noise", range(len(NOISES)))
def test_patterns_in_loops(noise: int):
    halo = patterns.loop(patterns.halo((4, 3, 2), 1024), 5, 20_000, join=True)
    sweep = patterns.sweep((4, 4), 64, 5, 5_000)
    repeated = patterns.repeat(patterns.barrier(11), 20)
    for schedule in (halo, sweep, repeated):
        compare(schedule, NETWORKS[0], NOISES[noise])


@pytest.mark.parametrize("noise", range(len(NOISES)))
def test_thousands_of_ranks(noise: int):
    """Enough events at a time for every way through the queue."""
    compare(patterns.dissemination(5000, 8), NETWORKS[0], NOISES[noise])


def test_noise_of_its_own_on_each_rank():
    rng = np.random.default_rng(1)
    noise = Noise.on_ranks([periodic(f, 20) for f in rng.integers(100, 9000, 700)], 700, seed=3)
    compare(patterns.dissemination(700, 8), NETWORKS[0], noise)


def test_reference_cases():
    """With their parameters; without rendezvous where they have one."""
    for case in reference_cases():
        schedule = read_goal(reference_folder() / case["goal"])
        if schedule.ranks > 1 and schedule.cpus == schedule.nics == 1:
            network = LogGOPS(**case["params"]).with_(S=EAGER)
            for noise in (None, periodic(1000, 100)):
                compare(schedule, network, noise)


# --- where two cannot ----------------------------------------------------------------------------


PAIR = Schedule.from_arrays([1, 1], kind=[1, 2], peer=[1, 0], size=8)


@pytest.mark.parametrize(
    "schedule, network, options",
    [
        (PAIR, LogGOPS(), {"mode": "compat"}),
        (PAIR, LogGOPS(), {"critical_path": True}),
        (PAIR, LogGOPS(S=7), {}),
        (PAIR, LogGOPS(L=0, o=0), {}),
        (PAIR, FatTree(nodes_per_leaf=2), {}),
        (patterns.compute(1, 5), LogGOPS(), {}),
        (Schedule.from_arrays([2], [3, 3], [-1, -1], 5, cpu=[0, 1]), LogGOPS(), {}),
    ],
    ids=["compat", "critical path", "rendezvous", "no time ahead", "links", "one rank", "two CPUs"],
)
def test_one_thread_where_two_cannot(schedule: Schedule, network, options: dict):
    result = simulate(schedule, network, threads=2, **options)
    assert result.threads == 1
    assert np.array_equal(result.finish_ns, simulate(schedule, network, **options).finish_ns)


def test_handshakes_leave_no_rendezvous():
    compare(PAIR, LogGOPS(S=7), handshakes=True)


def test_time_that_leaves_64_bits():
    """The error names the operation that one thread would have named."""
    long = 2**62 // 1000 - 1
    calcs = [3, 3] * 4
    schedule = Schedule.from_arrays(
        [2] * 4, calcs, [-1] * 8, long, requires=([1, 3, 5, 7], [0, 2, 4, 6])
    )
    kind, words = outcome(schedule, NETWORKS[0], threads=2)
    assert kind is InputError and "64 bits" in words
    compare(schedule, NETWORKS[0])


@pytest.mark.parametrize("threads", [0, 3, True, None, "2"])
def test_other_numbers_of_threads_are_refused(threads: object):
    with pytest.raises(InputError, match="threads"):
        simulate(PAIR, threads=threads)
