"""How sure a slow-down is: against replicates made by hand, and recordings whose tail is known."""

from functools import partial

import numpy as np
import pandas as pd
import pytest

from nbhelpers.errors import InputError
from nbhelpers.simulation import Detours, Noise, evaluate
from nbhelpers.simulation.extremes import (
    ALL,
    deciding_detours,
    detours_table,
    exposure_s,
    held_out,
    pieces,
    recorded_levels,
    return_curve,
    return_periods,
    source_tails,
    spreads,
    tail_of,
    tails_of,
)
from nbhelpers.simulation.replicates import seeds_of

RANKS = 256


def call(noise: Noise | None):
    return evaluate("recursive_doubling_allreduce", RANKS, noise=noise)


def recording(runs: int = 60, daemon_ms: float = 2.0, seed: int = 0) -> list[Detours]:
    """Two CPUs a run, 0.1 s each: a timer everywhere, a daemon in one run of three on CPU 0."""
    rng = np.random.default_rng(seed)
    made = []
    for run in range(runs):
        for cpu in (0, 1):
            start = np.arange(25) * 4e6
            lasts = rng.normal(3000, 200, 25)
            source = np.zeros(25, np.int32)
            if cpu == 0 and run % 3 == 0:
                start = np.append(start, 50e6 + 1e6)
                lasts = np.append(lasts, daemon_ms * 1e6 * rng.exponential(1))
                source = np.append(source, np.int32(1))
            name = f"run {run}, CPU {cpu}"
            made.append(Detours(start, lasts, 1e8, source, ("timer", "daemon"), name))
    return made


def runs_of(traces: list[Detours]) -> list[str]:
    return [trace.name.partition(",")[0] for trace in traces]


class TestSpreads:
    def test_phases_alone_are_replicates_on_the_recording_as_it_is(self):
        traces = recording(6)
        found = spreads(traces, runs_of(traces), call, RANKS, seeds=5, resamples=2, phases=1)
        ideal = call(None).makespan_ns
        slow = []
        for seed in seeds_of(5, 0):
            which = np.random.default_rng(int(seed)).choice(len(traces), RANKS)
            noise = Noise.on_ranks(traces, RANKS, seed=int(seed), which=which)
            slow.append(call(noise).makespan_ns / ideal)
        assert found.median == pytest.approx(np.median(slow))
        assert min(slow) <= found.phases_low <= found.phases_high <= max(slow)
        assert (found.units, found.seeds, found.resamples) == (6, 5, 2)

    def test_where_one_run_decides_the_recording_spreads_and_phases_do_not(self):
        quiet = [
            Detours(np.zeros(1), np.full(1, 1e3), 1e8, name=f"run {run}, CPU 0") for run in range(8)
        ]
        loud = Detours(np.arange(50) * 2e6, np.full(50, 1.5e6), 1e8, name="run 8, CPU 0")
        traces = [*quiet, loud]
        found = spreads(traces, runs_of(traces), call, RANKS, seeds=10, resamples=40)
        assert found.phases_low > 10, "each recording as it is has the loud run"
        assert found.recording_low < 1.5, "drawn anew, (8/9)^9 = 35 % have not"
        assert found.recording_high >= found.median

    def test_too_few_units_are_refused(self):
        traces = recording(1)
        with pytest.raises(InputError, match="1 units"):
            spreads(traces, runs_of(traces), call, RANKS)
        with pytest.raises(InputError, match="1 units for 2 traces"):
            spreads(traces, ["run 0"], call, RANKS)


class TestPieces:
    def test_hold_every_detour_once_and_all_the_time(self):
        traces = recording(2)
        cut = pieces(traces, 5)
        assert sum(map(len, cut)) == sum(map(len, traces))
        assert exposure_s(cut) == pytest.approx(exposure_s(traces))
        first = detours_table(traces)["duration_ns"].to_numpy()
        assert detours_table(cut)["duration_ns"].to_numpy() == pytest.approx(first)

    def test_end_behind_a_detour_that_is_longer_than_a_piece(self):
        """A CPU that another program had for 4.5 of 10 ms."""
        start, lasted = np.array([0.5e6, 2.2e6, 2.5e6, 8.1e6]), np.array([1e5, 1e5, 4.5e6, 1e5])
        cut = pieces([Detours(start, lasted, 1e7, name="CPU 0")], 5)
        assert [piece.start_ns.tolist() for piece in cut] == [[0.5e6], [0.2e6, 0.5e6], [0.1e6]]
        assert [piece.period_ns for piece in cut] == [2e6, 5e6, 2e6]
        assert [piece.overhead for piece in cut] == pytest.approx([0.05, 0.92, 0.05])

    def test_without_a_detour_are_left_out(self):
        trace = Detours(np.array([9e6]), np.array([10.0]), 1e7, name="CPU 0")
        [only] = pieces([trace], 10)
        assert (only.start_ns.tolist(), only.period_ns, only.name) == ([0], 1e6, "CPU 0, piece 9")


class TestDeciding:
    def test_the_planted_daemon_decides(self):
        traces = recording(30)
        table = deciding_detours(traces, call, RANKS, seeds=6).set_index("without")
        daemon, timer = table.loc["daemon"], table.loc["timer"]
        assert daemon["removed_share"] > 0.9 > 0.2 > abs(timer["removed_share"])
        assert daemon["detours"] == 10
        assert table.loc["nothing", "removed_share"] == 0

    def test_the_longest_detour_is_named(self):
        traces = recording(30)
        top = max(traces, key=lambda trace: trace.duration_ns.max())
        table = deciding_detours(traces, call, RANKS, seeds=2, longest=(1,))
        assert table["without"].iloc[-1] == f"the longest detour (daemon, {top.name})"

    def test_of_loops_only_the_longest_detours_are_taken_away(self):
        loop = [Detours(np.arange(20) * 1e6, np.arange(1, 21) * 1e3, 1e8, name="CPU 0")]
        table = deciding_detours(loop, call, RANKS, seeds=2, longest=(1, 5))
        assert table["kind"].tolist() == ["nothing", "detours", "detours"]
        assert table["longest_ms"].iloc[1] == pytest.approx(0.02)

    def test_without_all_of_its_detours_nothing_is_slowed_down(self):
        loop = [Detours(np.arange(3) * 1e6, np.full(3, 1e5), 3e6, name="CPU 0")]
        table = deciding_detours(loop, call, RANKS, seeds=2, longest=(3, 5))
        assert table["median"].iloc[0] > 1
        assert table[["median", "low", "high"]].iloc[1:].eq(1).all(axis=None)
        assert table["removed_share"].iloc[1:].eq(1).all()


class TestTails:
    def test_one_detour_a_unit_counts(self):
        table = pd.DataFrame(
            {"unit": np.repeat(np.arange(90), 2), "duration_ns": np.tile([1e3, 2e3], 90)}
        )
        table["duration_ns"] += np.repeat(np.arange(90), 2)
        tail = tail_of(table, 9.0, 90)
        assert tail is not None
        assert tail.exceedances == 30, "a third of the units at most"
        assert tail_of(table.head(10), 9.0, 90) is None

    def test_the_daemon_is_named_with_the_longest_in_an_interval_that_holds_it(self):
        traces = recording(90)
        tails = tails_of(traces, runs_of(traces))
        assert tails.seconds == pytest.approx(18)
        table = return_periods(tails, [18.0, 180.0])
        assert table["decides"].tolist() == ["daemon", "daemon"]
        assert (table["decides_share"] > 0.95).all()
        # 300 daemons of exponential length, mean 2 ms: the longest is 2 × (log 300 + 0.58)
        expected_ms = 2 * (np.log(300) + 0.58)
        last = table.iloc[-1]
        assert last["by_source_low_ms"] < expected_ms < last["by_source_high_ms"]
        assert last["pooled_low_ms"] < expected_ms < last["pooled_high_ms"]

    def test_sources_have_rows_with_the_recorded_longest(self):
        traces = recording(90)
        tails = tails_of(traces, runs_of(traces))
        rows = source_tails(tails).set_index("source")
        longest_ms = detours_table(traces)["duration_ns"].max() / 1e6
        assert rows.loc["daemon", "longest_ms"] == rows.loc[ALL, "longest_ms"] == longest_ms
        assert rows.loc["daemon", "detours"] == 30

    def test_recorded_points_and_curve_meet_at_the_recorded_time(self):
        traces = recording(90)
        tails = tails_of(traces, runs_of(traces))
        points = recorded_levels(tails)
        assert points["cpu_seconds"].iloc[0] == pytest.approx(18)
        assert points["longest_ms"].is_monotonic_decreasing
        curve = return_curve(tails, [18.0, 1800.0])
        at = curve.iloc[0]
        assert at["low_ms"] < points["longest_ms"].iloc[0] < at["high_ms"]
        assert curve["median_ms"].is_monotonic_increasing

    def test_of_few_runs_no_tail_is_fitted(self):
        traces = recording(6)
        with pytest.raises(InputError, match="6 units"):
            tails_of(traces, runs_of(traces))


class TestHeldOut:
    def test_halves_of_one_distribution_foretell_each_other(self):
        traces = recording(120)
        table = held_out(traces, runs_of(traces), splits=6)
        assert set(table["source"]) == {ALL, "daemon", "timer"}
        assert set(table["split"]) == set(range(7))
        assert table["inside"].mean() >= 0.7

    def test_a_daemon_that_came_with_time_was_not_foretold_by_what_was_before(self):
        before, after = recording(60, daemon_ms=0.05), recording(60, daemon_ms=50, seed=1)
        runs = [f"run {run}" for run in np.repeat(np.arange(120), 2)]
        table = held_out([*before, *after], runs, splits=2)
        in_time = table[(table["split"] == 0) & (table["source"] == "daemon")].iloc[0]
        assert not in_time["inside"]
        assert in_time["longest_ms"] > in_time["high_ms"]

    def test_too_few_units_give_no_rows(self):
        traces = recording(4)
        table = held_out(traces, runs_of(traces), splits=2)
        assert table.empty
        assert "inside" in table


def test_call_may_be_partial():
    traces = recording(4)
    found = spreads(traces, runs_of(traces), partial(call), RANKS, seeds=2, resamples=2, phases=1)
    assert found.median >= 1
