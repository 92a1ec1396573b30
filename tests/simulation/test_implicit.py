"""Implicit evaluation against the engine on random cases, to the picosecond, and against closed
forms up to 2^20 ranks.
"""

import math
from inspect import signature

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nbhelpers.errors import InputError
from nbhelpers.simulation import Detours, LogGOPS, Noise, patterns, periodic, poisson, simulate
from nbhelpers.simulation import implicit as implicit_module
from nbhelpers.simulation.implicit import PATTERNS, evaluate

ROOTED = [name for name in PATTERNS if "root" in signature(getattr(patterns, name)).parameters]
EAGER = 2**40


def schedule(pattern, ranks, bytes, shape, periodic, options):
    build = getattr(patterns, pattern)
    if pattern == "halo":
        return build(shape, bytes, periodic=periodic)
    return build(ranks) if pattern == "barrier" else build(ranks, bytes, **options)


@st.composite
def networks(draw):
    """Half of them of coarse numbers, so that events fall on the same moment."""
    coarse = draw(st.booleans())
    number = (
        st.integers(0, 3).map(lambda n: n * 500.0) if coarse else st.integers(0, 3000).map(float)
    )
    per_byte = (
        st.sampled_from([0.0, 0.0, 1.0, 2.0])
        if coarse
        else st.floats(0, 3).map(lambda x: round(x, 3))
    )
    network = LogGOPS(
        L=draw(number), o=draw(number), g=draw(number), G=draw(per_byte), O=draw(per_byte), S=EAGER
    )
    return network if network.L + network.o > 0 else network.with_(L=500)


@st.composite
def noises(draw, ranks):
    kind = draw(st.sampled_from(["none", "none", "regular", "random", "cosched", "coarse"]))
    seed = draw(st.integers(0, 2**20))
    if kind == "regular":
        return Noise.on_ranks(
            Detours(
                np.zeros(1), np.array([draw(st.integers(1, 3000))]), draw(st.integers(4000, 20000))
            ),
            ranks,
            seed=seed,
        )
    if kind in ("random", "cosched"):
        return Noise.on_ranks(
            poisson(50000, 2, 0.001, seed), ranks, seed=seed, cosched=kind == "cosched"
        )
    if kind == "coarse":  # whole half microseconds: ties
        starts = (
            np.sort(np.random.default_rng(seed).integers(0, 40, draw(st.integers(1, 15)))) * 500.0
        )
        phases = np.random.default_rng(seed + 1).integers(0, 6, ranks) * 500
        return Noise.on_ranks(
            Detours(starts, np.full(len(starts), 500.0), 25000.0), ranks, phases_ns=phases
        )
    return None


@st.composite
def cases(draw, pattern=st.sampled_from(PATTERNS)):
    pattern, shape, periodic = draw(pattern), None, draw(st.booleans())
    ranks = draw(st.one_of(st.integers(1, 20), st.integers(1, 70)))
    if pattern == "halo":
        shape = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
        ranks = math.prod(shape)
    bytes = draw(st.sampled_from([0, 1, 7, 8, 1000, 4096]))
    options = {"root": draw(st.integers(0, ranks - 1))} if pattern in ROOTED else {}
    options |= {"radix": draw(st.integers(2, 5))} if pattern.startswith("knomial") else {}
    repetitions = draw(st.integers(1, 4))
    compute = draw(st.sampled_from([None, "one", "each", "all"]))
    if compute:
        size = {"one": (), "each": (ranks,), "all": (repetitions, ranks)}[compute]
        compute = np.random.default_rng(draw(st.integers(0, 99))).integers(0, 5, size) * draw(
            st.sampled_from([1000, 777])
        )
    rotate = pattern in ROOTED and compute is None and draw(st.booleans())
    return (
        pattern,
        ranks,
        draw(networks()),
        draw(noises(ranks)),
        bytes,
        repetitions,
        compute,
        shape,
        periodic,
        options,
        rotate,
    )


def both(
    pattern, ranks, network, noise, bytes, repetitions, compute, shape, periodic, options, rotate
):
    """(engine, implicit) of one case."""
    once = schedule(pattern, ranks, bytes, shape, periodic, options)
    if rotate:
        options = {name: value for name, value in options.items() if name != "root"}
        whole = patterns.rotate_root(
            getattr(patterns, pattern), ranks, bytes, repetitions, **options
        )
    elif compute is not None:
        whole = patterns.loop(once, repetitions, compute)
    else:
        whole = patterns.repeat(once, repetitions) if repetitions > 1 else once
    options |= dict(
        bytes=bytes,
        repetitions=repetitions,
        compute_ns=compute,
        shape=shape,
        periodic=periodic,
        rotate_root=rotate,
    )
    implicit = evaluate(pattern, ranks, network, noise, **options)
    if noise is not None:
        for other in other_ways(pattern, ranks, network, noise, **options):
            assert_alike(implicit, other)
    return simulate(whole, network, noise), implicit


def other_ways(*arguments, **options):
    """What is tried first depends on how much noise is expected; the result must not: with a
    history of all events from the start, without one at first, and round by round where possible.
    """
    for history_above, by_rounds_below in ((-1, 0), (math.inf, 0), (math.inf, math.inf)):
        with pytest.MonkeyPatch.context() as changed:
            changed.setattr(implicit_module, "HISTORY_ABOVE", history_above)
            changed.setattr(implicit_module, "BY_ROUNDS_BELOW", by_rounds_below)
            yield evaluate(*arguments, **options)


def assert_alike(one, two):
    np.testing.assert_array_equal(one.finish_ns, two.finish_ns)
    np.testing.assert_array_equal(one.noise_ns, two.noise_ns)
    assert one.messages == two.messages


def assert_equal(engine, implicit):
    np.testing.assert_array_equal(engine.finish_ns, implicit.finish_ns)
    np.testing.assert_array_equal(engine.noise_ns, implicit.noise_ns)
    assert implicit.messages == engine.schedule.messages


quick = dict(deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)


@settings(max_examples=1500, **quick)
@given(cases())
def test_equal_to_the_engine(case):
    assert_equal(*both(*case))


@settings(max_examples=500, **quick)
@given(
    cases(
        st.sampled_from(
            ["dissemination", "barrier", "pairwise_alltoall", "recursive_doubling_allreduce"]
        )
    )
)
def test_equal_to_the_engine_where_messages_overtake_each_other(case):
    assert_equal(*both(*case))


@pytest.mark.parametrize("order", ["history", "hashes"])
@pytest.mark.parametrize(
    "pattern", ["dissemination", "barrier", "recursive_doubling_allreduce", "binomial_bcast"]
)
def test_two_threads_come_to_the_same(pattern, order, monkeypatch):
    """On ranks that are no whole number of groups; coarse noise makes events of the same moment."""
    monkeypatch.setattr(implicit_module, "HISTORY_ABOVE", -1 if order == "history" else math.inf)
    ranks = 2 * 16_384 + 777
    starts = np.arange(40) * 2500.0
    noise = Noise.on_ranks(Detours(starts, np.full(40, 500.0), 2e5), ranks, seed=3)
    one, two = (
        evaluate(pattern, ranks, LogGOPS(G=1.0), noise, bytes=9, threads=threads)
        for threads in (1, 2)
    )
    assert_alike(one, two)
    assert one.ties == two.ties


def test_two_threads_come_to_the_same_as_the_engine():
    """A halo along three axes, with computation between two of them."""
    ranks = 2 * 16_384
    noise = Noise.on_ranks(poisson(20_000, 8, 0.01, 1), ranks, seed=2)
    once = patterns.halo((32, 32, 32), 100)
    engine = simulate(patterns.loop(once, 2, 3000), LogGOPS(), noise)
    shape = dict(bytes=100, shape=(32, 32, 32), repetitions=2, compute_ns=3000)
    found = evaluate("halo", ranks, noise=noise, **shape, threads=2)
    assert_equal(engine, found)


@pytest.mark.parametrize("threads", [0, 3, True, 1.5])
def test_other_numbers_of_threads_are_refused(threads):
    with pytest.raises(InputError, match="threads"):
        evaluate("dissemination", 4, threads=threads)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_schedules_have_the_defaults_of_evaluate(pattern):
    shape = (4, 3) if pattern == "halo" else None
    build = getattr(patterns, pattern)
    assert_equal(simulate(build(shape or 12)), evaluate(pattern, 12, shape=shape))


def test_a_thousand_random_schedules_of_every_pattern():
    """The same with NumPy's generator instead of Hypothesis', which prefers small cases."""
    rng = np.random.default_rng(5)
    for i in range(1000):
        pattern = PATTERNS[i % len(PATTERNS)]
        shape = tuple(int(n) for n in rng.integers(1, 5, 3)) if pattern == "halo" else None
        ranks = math.prod(shape) if shape else int(rng.integers(2, 60))
        network = LogGOPS(
            *(float(n) for n in rng.integers(1, 2500, 3)), round(rng.random(), 3), 0.0, EAGER
        )
        noise = Noise.on_ranks(poisson(20000, 8, 0.01, i), ranks, seed=i)
        options = {"root": int(rng.integers(ranks))} if pattern in ROOTED else {}
        assert_equal(
            *both(
                pattern,
                ranks,
                network,
                noise,
                int(rng.integers(0, 300)),
                2,
                None,
                shape,
                True,
                options,
                False,
            )
        )


class TestRoundByRound:
    """Without noise exchanges round the ring are two passes a round; noise that could strike, but
    nobody, takes the windows, which all other patterns take.
    """

    def both_ways(self, pattern, ranks, network, **options):
        nowhere = Noise.on_ranks(poisson(1000, 1), ranks, noisy=[])
        by_rounds, *others = (
            evaluate(pattern, ranks, network, **options),
            *other_ways(pattern, ranks, network, nowhere, **options),
        )
        for other in others:
            assert_alike(by_rounds, other)
        return by_rounds

    @pytest.mark.parametrize(
        "pattern", ["dissemination", "barrier", "bruck_allgather", "bruck_alltoall"]
    )
    @pytest.mark.parametrize("ranks", [2, 1023, 4096])
    def test_as_by_windows(self, pattern, ranks):
        compute = np.random.default_rng(1).integers(0, 100_000, (3, ranks))
        network = LogGOPS(G=0.3, O=0.1, S=EAGER)
        assert self.both_ways(pattern, ranks, network).ties == 0
        self.both_ways(pattern, ranks, network, repetitions=3, compute_ns=compute)

    @pytest.mark.parametrize("pattern", ["ring_allreduce", "ring_allgather", "pairwise_alltoall"])
    def test_of_many_rounds(self, pattern):
        self.both_ways(pattern, 101, LogGOPS(S=EAGER), bytes=101)

    def test_messages_that_come_before_their_receivers_send(self):
        """One rank computes for longer than all rounds of the others take, so that its messages
        wait for it.
        """
        compute = np.zeros(64, int)
        compute[7] = 1_000_000
        found = self.both_ways("dissemination", 64, LogGOPS(S=EAGER), compute_ns=compute)
        assert found.makespan_ns > 1_000_000
        assert_equal(
            *both("dissemination", 64, LogGOPS(S=EAGER), None, 1, 1, compute, None, True, {}, False)
        )

    @pytest.mark.parametrize("cosched", [True, False])
    def test_noise_that_keeps_the_order(self, cosched):
        """All are struck at once; or each by a detour that is shorter than a message takes."""
        for seed in range(8):
            noise = (
                Noise.on_ranks(periodic(1000, 100), 512, seed, cosched=True)
                if cosched
                else Noise.on_ranks(periodic(1000, 1), 512, seed)
            )
            assert_equal(
                *both(
                    "dissemination", 512, LogGOPS(S=EAGER), noise, 1, 1, None, None, True, {}, False
                )
            )


class TestTies:
    def test_a_history_is_kept_where_the_order_of_equal_events_decides_and_only_there(self):
        """Coarse times, so that lines of events with different pasts meet in the same moment; the
        engine numbers all events.
        """
        starts = np.sort(np.random.default_rng(3).integers(0, 400, 60)) * 500.0
        phases = np.random.default_rng(4).integers(0, 400, 1024) * 500
        noise = Noise.on_ranks(
            Detours(starts, np.full(60, 1500.0), 200_000.0), 1024, phases_ns=phases
        )
        network, needed = LogGOPS(S=EAGER), 0
        for pattern in (
            "dissemination",
            "barrier",
            "ring_allgather",
            "recursive_doubling_allreduce",
        ):
            ranks = 64 if pattern == "ring_allgather" else 1024
            own = (
                noise
                if ranks == 1024
                else Noise.on_ranks(noise.traces[0], ranks, phases_ns=phases[:ranks])
            )
            engine, implicit = both(pattern, ranks, network, own, 8, 1, None, None, True, {}, False)
            assert_equal(engine, implicit)
            needed += implicit.ties
        assert needed > 0 and evaluate("dissemination", 4096).ties == 0

    def test_many_ranks_with_whole_nanoseconds(self):
        noise = Noise.on_ranks(
            Detours(
                np.arange(500) * 10_000.0,
                np.random.default_rng(1).integers(200, 9000, 500).astype(float),
                5e6,
            ),
            8192,
            seed=3,
        )
        assert_equal(
            *both("dissemination", 8192, LogGOPS(S=EAGER), noise, 1, 1, None, None, True, {}, False)
        )


class TestClosedForms:
    """L, o, g, G in ns; h = 2 o + L + (s - 1) G; the formulas of the generators' documentation."""

    network = LogGOPS(L=1900, o=230, g=150, G=0.079, O=0, S=EAGER)

    @pytest.mark.parametrize("exponent", [1, 2, 5, 10, 17, 20])
    def test_logarithmic_patterns(self, exponent):
        ranks, size = 2**exponent, 8
        hop = 2 * 230 + 1900 + round(7 * 0.079, 3)
        for pattern in ("dissemination", "binomial_bcast", "binomial_reduce"):
            assert evaluate(pattern, ranks, self.network, bytes=size).makespan_ns == pytest.approx(
                exponent * hop, abs=1e-6
            ), pattern

    @pytest.mark.parametrize("ranks", [2, 3, 16, 1000, 2**17])
    def test_stars(self, ranks):
        network = LogGOPS(L=2500, o=1500, g=1000, G=6, S=EAGER)
        assert evaluate("scatter", ranks, network, bytes=1).makespan_ns == (ranks - 2) * 1500 + 5500
        assert (
            evaluate("gather", ranks, network, bytes=1).makespan_ns
            == 4000 + (ranks - 2) * 1500 + 1500
        )

    def test_the_reference_is_wrong_where_the_root_has_seventeen_sends_we_are_not(self):
        assert (
            evaluate("binomial_bcast", 2**17).makespan_ns == 93_500
            and evaluate("binomial_bcast", 2**20).makespan_ns == 110_000
        )

    def test_one_rank_has_nothing_to_do_but_its_computation(self):
        for pattern in PATTERNS:
            found = evaluate(
                pattern, 1, compute_ns=5, repetitions=3, shape=(1,) if pattern == "halo" else None
            )
            assert found.finish_ns.tolist() == [15.0] and found.messages == 0, pattern


class TestBadInput:
    @pytest.mark.parametrize(
        "arguments, message",
        [
            (("nothing", 4), "no implicit pattern"),
            (("dissemination", 0), "ranks"),
            (("dissemination", 2.5), "ranks"),
            (("halo", 4), "shape"),
            (("barrier", 4, LogGOPS(L=0, o=0)), "o \\+ L is 0"),
            (("ring_allreduce", 4, LogGOPS(S=1)), "above S"),
        ],
    )
    def test_positional(self, arguments, message):
        with pytest.raises(InputError, match=message):
            evaluate(*arguments, **({"bytes": 100} if "S" in message else {}))

    @pytest.mark.parametrize(
        "options, message",
        [
            ({"bytes": -1}, "bytes"),
            ({"bytes": 1.5}, "bytes"),
            ({"repetitions": 0}, "repetitions"),
            ({"root": 1}, "no root"),
            ({"radix": 3}, "no radix"),
            ({"shape": (2, 2)}, "no shape"),
            ({"compute_ns": -1}, "whole ns"),
            ({"compute_ns": 0.5}, "whole ns"),
            ({"compute_ns": [1, 2]}, "shape"),
            ({"compute_ns": float("nan")}, "whole ns"),
            ({"noise": Noise.on_ranks(poisson(1, 1), 5)}, "noise on 5 ranks"),
        ],
    )
    def test_options(self, options, message):
        with pytest.raises(InputError, match=message):
            evaluate("dissemination", 4, **options)

    def test_a_grid_that_is_not_one_of_the_ranks(self):
        for shape in ((3, 2), (4, 1, 1, 1), (0, 4)):
            with pytest.raises(InputError, match="shape"):
                evaluate("halo", 4, shape=shape)

    def test_times_beyond_64_bits(self):
        with pytest.raises(InputError, match="64 bits"):
            evaluate("dissemination", 4, compute_ns=10**15, repetitions=10)
