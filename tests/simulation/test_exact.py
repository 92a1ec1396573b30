"""The engine against the slow implementation on random programs, and `exact` against what it
promises.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbhelpers.errors import InputError
from nbhelpers.simulation.detours import periodic
from nbhelpers.simulation.engine import Deadlock, simulate
from nbhelpers.simulation.loggops import LogGOPS, Piece, Piecewise
from nbhelpers.simulation.noise import Noise
from nbhelpers.simulation.schedule import Schedule

from . import trace_of
from .programs import random_fan_in, random_program, to_schedule
from .reference import Op, Reference, Stuck, finish_exact

NETWORKS = [
    (2500, 1500, 1000, 6, 0, 65535),
    (1000, 700, 3000, 1, 2, 65535),
    (500, 100, 50, 3, 1, 50),
    (0, 10, 0, 0, 0, 65535),
    (100, 2000, 10, 1, 1, 0),
]
TODAY = [
    (1900, 230.25, 0, 0.079, 0, 4096),
    (1300.5, 150, 1500, 0.0865, 0.013, 99),
    (0, 0, 0, 0.04, 0, 65535),
]
PIECES = Piecewise(
    (
        Piece(1, 600, 300, 450, 200, 0.5, 0.25),
        Piece(100, 0, 700.5, 100, 900, 0, 0),
        Piece(5000, 2100, 300, 300, 1800, 0.079, 0.1),
    ),
    S=4999,
)


def random_trace(
    rng: np.random.Generator, overlapping: bool = True
) -> tuple[list[int], list[int], int]:
    """Whole-ns starts, durations and period; detours overlap, and may reach over the end."""
    start = np.sort(rng.integers(0, 60_000, rng.integers(1, 12)))
    duration = rng.integers(0, 9_000 if overlapping else 300, len(start))
    return start.tolist(), duration.tolist(), int(start[-1]) + int(rng.integers(50_000, 150_000))


def compare(
    program: list[list[Op]], network: tuple | Piecewise, mode: str, noise_seed: int | None
) -> None:
    schedule = to_schedule(program)
    ours = LogGOPS(*network) if isinstance(network, tuple) else network
    traces = phases = noise = None
    if noise_seed is not None:
        rng = np.random.default_rng(noise_seed)
        raw = [random_trace(rng) for _ in program]
        phases = rng.integers(0, 200_000, len(program))
        noise = Noise.on_ranks([trace_of(*one) for one in raw], len(program), phases_ns=phases)
        scale = 1000 if mode == "exact" else 1
        traces = [([v * scale for v in s], [v * scale for v in d], p * scale) for s, d, p in raw]
        phases = [int(phase) * scale for phase in phases]
    try:
        finish, injected = Reference(program, network, traces, phases, mode).run()
    except Stuck:
        with pytest.raises(Deadlock):
            simulate(schedule, ours, noise, mode=mode)
        return
    for record in (False, True):
        result = simulate(schedule, ours, noise, mode=mode, critical_path=record)
        np.testing.assert_allclose(result.finish_ns, finish, rtol=1e-15)
        np.testing.assert_allclose(result.noise_ns, injected, rtol=1e-15)
    if mode == "exact":
        check_path(result)


def check_path(result) -> None:
    """The critical path of each rank goes from 0 to its end without a gap, and consists of costs
    and noise only.
    """
    for rank in range(result.schedule.ranks):
        path = result.path(rank)
        if not len(path):
            assert result.finish_ns[rank] == 0
            continue
        assert path["begin_ns"].iloc[0] == 0
        np.testing.assert_allclose(path["end_ns"].iloc[-1], result.finish_ns[rank])
        np.testing.assert_allclose(path["begin_ns"].to_numpy()[1:], path["end_ns"].to_numpy()[:-1])
        np.testing.assert_allclose(
            (path["clean_ns"] + path["noise_ns"]).sum(), result.finish_ns[rank], rtol=1e-12
        )
        assert (path["noise_ns"] >= -1e-9).all() and (
            result.noise is not None or (path["noise_ns"] == 0).all()
        )


SEEDS = st.integers(0, 10**9)
MAYBE_NOISE = st.one_of(st.none(), st.integers(0, 10**6))


@settings(max_examples=600, deadline=None)
@given(SEEDS, st.sampled_from(NETWORKS), MAYBE_NOISE, st.sampled_from(["exact", "compat"]))
def test_one_cpu(seed: int, network: tuple, noise: int | None, mode: str):
    sizes = (1, 2, 8, 100, 700) if mode == "compat" and noise else (0, 1, 2, 8, 100, 70000, 200000)
    compare(random_program(seed, sizes=sizes), network, mode, noise)


COUNTS = st.integers(1, 3)


@settings(max_examples=300, deadline=None)
@given(SEEDS, st.sampled_from(NETWORKS + TODAY + [PIECES]), MAYBE_NOISE, COUNTS, COUNTS)
def test_several_cpus_and_nics(seed: int, network, noise: int | None, cpus: int, nics: int):
    program = random_program(seed, cpus=cpus, nics=nics, sizes=(0, 1, 2, 100, 5000, 1_000_003))
    compare(program, network, "exact", noise)


@settings(max_examples=150, deadline=None)
@given(SEEDS, st.sampled_from(NETWORKS), MAYBE_NOISE, COUNTS, COUNTS)
def test_several_cpus_and_nics_as_the_reference_has_them(
    seed: int, network: tuple, noise: int | None, cpus: int, nics: int
):
    """Its events may lie in the past; the order is (time, number) all the same."""
    program = random_program(seed, cpus=cpus, nics=nics, sizes=(1, 2, 100, 5000))
    compare(program, network, "compat", noise)


TIES = [
    (10, 10, 0, 1, 0, 2**40),
    (0, 0, 0, 1, 0, 2**40),
    (20, 10, 5, 0, 1, 3),
    (5, 0, 10, 1, 0, 50),
]


@pytest.mark.long
@settings(max_examples=400, deadline=None)
@given(SEEDS, st.sampled_from(NETWORKS + TODAY + TIES), MAYBE_NOISE)
def test_fan_in_on_several_cpus_and_nics(seed: int, network: tuple, noise: int | None):
    """The engine moves waiting messages together; the slow implementation tries each again and
    again.
    """
    compare(random_fan_in(seed), network, "exact", noise)


@pytest.mark.long
@settings(max_examples=15, deadline=None)
@given(SEEDS, st.sampled_from(NETWORKS), MAYBE_NOISE)
def test_crowds(seed: int, network: tuple, noise: int | None):
    """Long lists: hundreds of messages between few ranks, so that lists become indexes and many
    wait for one CPU.
    """
    program = random_program(seed, ranks=3, messages=250, sizes=(1, 8, 100))
    compare(program, network, "exact", noise)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10**9))
def test_a_receive_too_many_is_noticed(seed: int):
    program = random_program(seed, lonely=True)
    with pytest.raises(Deadlock, match="left over"):
        simulate(to_schedule(program))


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10**9))
def test_exact_equals_compat_where_there_is_nothing_to_mend(seed: int):
    """One CPU, whole ns, no empty message, no noise; no large ones, because compat looks at the
    size of the receive, not of the message.
    """
    schedule = to_schedule(random_program(seed, sizes=(1, 2, 8, 100)))
    try:
        exact = simulate(schedule)
    except Deadlock:
        return
    assert exact.finish_ns.tolist() == simulate(schedule, mode="compat").finish_ns.tolist()


# --- noise ----------------------------------------------------------------------------------------


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 10**9), st.integers(0, 400_000), st.integers(0, 500_000))
def test_a_calculation_ends_when_it_has_had_its_time(seed: int, phase: int, work: int):
    rng = np.random.default_rng(seed)
    start, duration, period = random_trace(rng)
    trace = trace_of(start, duration, period)
    calc = Schedule.from_arrays(
        [3], [3, 3, 3], [-1] * 3, [work, 1, work // 3], requires=([1, 2], [0, 1])
    )
    scaled = ([1000 * v for v in start], [1000 * v for v in duration], 1000 * period)
    end = 0
    for part in (work, 1, work // 3):
        end = finish_exact(scaled, phase * 1000, end, part * 1000)
    result = simulate(calc, noise=Noise.on_ranks(trace, 1, phases_ns=phase))
    assert round(result.finish_ns[0] * 1000) == end
    assert round(result.noise_ns[0] * 1000) == end - 1000 * (work + 1 + work // 3)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10**9), st.integers(1, 3), st.booleans())
def test_look_ups_that_go_on_back_and_round(seed: int, cpus: int, crowded: bool):
    """Chains of calculations on each CPU of a rank: what one CPU has looked up far ahead, another
    looks up again from before; short work between detours, and work of many periods.
    """
    rng = np.random.default_rng(seed)
    start, duration, period = random_trace(rng)
    if not crowded:
        start, duration, period = start[:1], [min(duration[0], 50)], 10 * period
    phase, each = int(rng.integers(0, 3 * period)), 12
    work = rng.choice([0, 1, 30, 400, 5000, 70_000, 900_000, 8 * period], (cpus, each))
    count, number = cpus * each, np.arange(cpus * each).reshape(cpus, each)
    chains = Schedule.from_arrays(
        [count],
        [3] * count,
        [-1] * count,
        work.ravel(),
        cpu=np.repeat(np.arange(cpus), each),
        requires=(number[:, 1:].ravel(), number[:, :-1].ravel()),
    )
    trace = trace_of(start, duration, period)
    scaled = ([1000 * v for v in start], [1000 * v for v in duration], 1000 * period)
    ends = [0] * cpus
    for cpu in range(cpus):
        for part in work[cpu]:
            ends[cpu] = finish_exact(scaled, phase * 1000, ends[cpu], int(part) * 1000)
    result = simulate(chains, noise=Noise.on_ranks(trace, 1, phases_ns=phase))
    assert round(result.finish_ns[0] * 1000) == max(ends)
    assert round(result.noise_ns[0] * 1000) == sum(ends) - 1000 * int(work.sum())


def test_an_operation_longer_than_its_trace():
    """The reference ends with a segmentation fault; the long-run average is work / (1 − share)."""
    calc = Schedule.from_arrays([2], [3, 3], [-1, -1], 1_500_000_000, requires=([1], [0]))
    result = simulate(calc, noise=Noise.on_ranks(periodic(1000, 100), 1, phases_ns=0))
    assert result.finish_ns[0] == pytest.approx(3e9 / 0.9, abs=100_000)


def test_compat_knows_long_operations_as_long_as_the_reference_does():
    """Begun before the trace's last detour: the rest of the one that runs, and all later ones;
    after it, the reference reads beyond its trace.
    """
    trace = trace_of([100, 5000, 9000], [50, 30, 7], 9000)
    calc = Schedule.from_arrays([1], [3], [-1], 20_000)
    for phase, lost in ((0, 30 + 7), (120, 30 + 30 + 7), (9000, 7)):
        noise = Noise.on_ranks(trace, 1, phases_ns=phase)
        assert simulate(calc, noise=noise, mode="compat").finish_ns.tolist() == [20_000 + lost]
    with pytest.raises(InputError, match="beyond its trace"):
        simulate(calc, noise=Noise.on_ranks(trace, 1, phases_ns=9001), mode="compat")


# --- what else exact fixes ------------------------------------------------------------------------
