"""Skeletons of applications: the published counts are in them, and they run whatever the messages
wait for.
"""

from collections import Counter

import numpy as np
import pytest

from nbhelpers.errors import InputError
from nbhelpers.simulation import LogGOPS, Noise, applications, patterns, simulate
from nbhelpers.simulation.schedule import CALC, SEND

from . import trace_of
from .cases import reference_cases


def collectives(schedule, ranks):
    """How often each collective occurs: every part has tags of its own, and each collective a
    number of messages of its own.
    """
    sends = schedule.kind == SEND
    by_tag = Counter(schedule.column("tag")[sends].tolist())
    known = {
        patterns.binomial_bcast(ranks, 1).messages: "bcast",
        patterns.barrier(ranks).messages: "barrier",
        patterns.recursive_doubling_allreduce(ranks, 8).messages: "allreduce",
    }
    assert len(known) == 3
    return Counter(known[count] for count in by_tag.values() if count in known)


def test_pop_has_the_published_collectives():
    schedule = applications.pop((3, 2), halos=0)  # 5, 18 and 12 messages: all different
    assert collectives(schedule, 6) == {"bcast": 703, "barrier": 575, "allreduce": 608}
    assert applications.POP_COLLECTIVES == {"bcast": 703, "barrier": 575, "allreduce": 608}
    assert schedule.messages == 703 * 5 + 575 * 18 + 608 * 12


def test_two_phases_of_pop_compute_as_much_and_reduce_as_often():
    one, two = (applications.pop((3, 2), 0.1, reductions=most) for most in (1, 10))
    assert two.messages == one.messages and two.events == one.events
    works = [each.column("size")[each.kind == CALC].astype(float) for each in (one, two)]
    assert works[1].sum() == pytest.approx(works[0].sum(), rel=1e-6)  # 61 reductions, 6 ranks
    baroclinic = works[1][works[1] > 5_000]
    assert len(baroclinic) == 6 * 6 and baroclinic.min() > 3_000_000
    assert (works[1][works[1] > 0] >= 5_000).all() and (works[0][works[0] > 0] == 330_000).all()


def test_sweep3d_has_the_published_collectives():
    schedule = applications.sweep3d((3, 2), blocks=2)
    sweeps = 12 * 8 * 2 * (3 + 4)  # iterations, octants, blocks, neighbours
    assert schedule.messages == 4 * 5 + 3 * 18 + 32 * 12 + sweeps
    assert np.count_nonzero(schedule.column("size")[schedule.kind == SEND] == 36_000) == sweeps
    assert (
        np.count_nonzero((schedule.kind == CALC) & (schedule.column("size") == 27_100_000))
        == 12 * 8 * 2 * 6
    )


def test_sweep3d_takes_as_long_and_communicates_as_its_trace():
    """Against the trace itself: time, messages, and the share of the run that is no computation."""
    traced, skeleton = applications.traced_sweep3d(), applications.sweep3d((2, 2))
    took = [simulate(schedule).makespan_ns for schedule in (traced, skeleton)]
    assert took[1] == pytest.approx(took[0], rel=0.05)
    assert abs(skeleton.messages - traced.messages) <= 20  # of 6000: other barriers and trees
    idle = [
        1 - schedule.column("size")[schedule.kind == CALC].sum() / 4 / ns
        for schedule, ns in zip((traced, skeleton), took, strict=True)
    ]
    assert idle[1] == pytest.approx(idle[0], rel=0.2)


def test_the_trace_ends_when_the_reference_simulator_says():
    case = next(case for case in reference_cases() if "Sweep3D" in case["kind"])
    schedule = applications.traced_sweep3d()
    found = simulate(schedule, LogGOPS(**case["params"]), mode="compat")
    assert found.finish_ns.tolist() == case["finish"]
    assert schedule.events == case["events"]


def test_the_trace_under_noise_is_slowed_down_as_by_the_reference():
    """1000 Hz x 100 us: 46.66 s for 42.44 s (1.099), from runs of the reference simulator."""
    count = 100_000
    trace = trace_of(np.arange(count) * 1e6, np.full(count, 1e5), count * 1e6)
    schedule = applications.traced_sweep3d()
    plain = simulate(schedule, mode="compat").makespan_ns
    noises = [Noise.on_ranks(trace, 4, seed) for seed in range(5)]
    slow = [simulate(schedule, noise=one, mode="compat").makespan_ns / plain for one in noises]
    assert slow == pytest.approx([1.0993] * 5, abs=5e-4)


def test_an_imbalance_keeps_the_mean_and_its_limits():
    schedule = applications.sage((4, 4, 4), 5, compute_ns=1000, imbalance=0.3)
    work = schedule.column("size")[schedule.kind == CALC]
    work = work[work > 0]
    assert len(work) == 5 * 64 and 700 <= work.min() < 750 and 1250 < work.max() <= 1300
    assert work.mean() == pytest.approx(1000, rel=0.05)
    with pytest.raises(InputError, match="imbalance"):
        applications.cth((2, 2, 2), 1, imbalance=2)
