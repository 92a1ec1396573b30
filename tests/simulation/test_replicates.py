"""Replicates are single simulations; the way from a recording to traces on ranks."""

import numpy as np
import pandas as pd
import pytest

from nbhelpers.errors import InputError
from nbhelpers.places import shipped
from nbhelpers.simulation import Detours, Noise, patterns, periodic, simulate
from nbhelpers.simulation.machines import (
    pieces,
    spread_over,
    traces_of,
    traces_of_runs,
    without,
)
from nbhelpers.simulation.replicates import replicate

from . import trace_of

NOISE = Noise.on_ranks(periodic(1000, 100), 256)
SCHEDULE = patterns.dissemination(256)


def call(noise):
    return simulate(SCHEDULE, noise=noise)


class TestReplicate:
    def test_each_is_one_simulation_and_more_begin_with_the_same(self):
        took = replicate(call, NOISE, 12, seed=7)
        seeds = np.random.SeedSequence(7).generate_state(5).tolist()
        alone = [simulate(SCHEDULE, noise=NOISE.with_seed(seed)).makespan_ns for seed in seeds]
        assert took[:5].tolist() == replicate(call, NOISE, 5, seed=7).tolist() == alone
        assert len(set(seeds)) == 5 and took.tolist() != replicate(call, NOISE, 12, seed=8).tolist()

    def test_an_error_of_one_is_that_of_all(self):
        other = Noise.on_ranks(periodic(1000, 100), 64)
        with pytest.raises(InputError, match=r"on_ranks\(trace, 256\)"):
            replicate(call, other, 3)

    @pytest.mark.parametrize("n", [0, 1.5])
    def test_bad_numbers(self, n):
        with pytest.raises(InputError, match=f"n = {n}"):
            replicate(call, NOISE, n)


def detours(**attrs):
    table = pd.DataFrame(
        {"cpu": [0, 0, 1], "start_ns": [100, 9000, 50], "duration_ns": [500, 300, 700]}
    )
    table.attrs = attrs
    return table


class TestRecordings:
    def test_a_trace_a_cpu_as_long_as_the_recording(self):
        first, second = traces_of(detours(seconds=0.01))
        assert first.period_ns == second.period_ns == 1e7
        assert first.start_ns.tolist() == [100, 9000] and second.duration_ns.tolist() == [700]
        assert first.name == "cpu 0" and first.overhead == pytest.approx(800 / 1e7)

    def test_noise_events_of_several_runs(self):
        events = pd.concat([detours().assign(run=run, source="timer") for run in (3, 4)])
        events.attrs["seconds"] = 0.02
        traces = traces_of(events)
        names = [f"run {run} cpu {cpu}" for run in (3, 4) for cpu in (0, 1)]
        assert [trace.name for trace in traces] == names
        assert {trace.period_ns for trace in traces} == {2e7} and traces[0].sources == ("timer",)

    def test_a_detour_that_outlasts_the_recording(self):
        """A loaded machine took the CPU for 0.3 s, of a recording of 0.2 s."""
        taken = pd.DataFrame({"cpu": 0, "start_ns": [5e7], "duration_ns": [3e8]})
        taken.attrs["seconds"] = 0.2
        (trace,) = traces_of(taken)
        assert trace.period_ns == 3.5e8 and trace.overhead == pytest.approx(6 / 7)

    def test_files(self, tmp_path):
        text = "# selfish\n0\t233\n5000\t700\n# Measurement period: 0.001 s\n"
        (tmp_path / "d.txt").write_text(text)
        (trace,) = traces_of(tmp_path / "d.txt")
        assert trace.period_ns == 1e6 and trace.start_ns.tolist() == [0, 5000]
        kept = traces_of(shipped() / "data/recorded/00-machine/detours.json")
        assert [len(trace) > 100 for trace in kept] == [True, True]

    def test_nothing_recorded(self):
        for bad in (detours(), detours().iloc[:0], detours().drop(columns="cpu")):
            with pytest.raises(InputError):
                traces_of(bad)

    def test_ranks_draw_their_traces(self):
        traces = traces_of(detours(seconds=0.01))
        noise = spread_over(traces, 1000, seed=4)
        assert 400 < (noise.rank_trace == 0).sum() < 600 and len(np.unique(noise.phase_ns)) > 900
        assert len(np.unique(spread_over(traces, 1000, cosched=True).phase_ns)) == 1


class TestRuns:
    EVENTS = pd.DataFrame(
        {
            "run": [1, 1, 1, 2],
            "cpu": [0, 0, 1, 0],
            "kind": "irq",
            "source": ["timer", "kworker", "timer", "timer"],
            "start_ns": [100, 400, 0, 700],
            "duration_ns": [50, 200, 10, 5],
            "end_ns": [150, 700, 10, 705],
        }
    )
    RUNS = pd.DataFrame({"run": [1, 2], "seconds": [1e-6, 2e-6]})

    def test_is_a_trace_for_every_cpu_and_run_as_long_as_the_run(self):
        traces = traces_of_runs(self.EVENTS, self.RUNS)
        assert [trace.name for trace in traces] == ["run 1, CPU 0", "run 1, CPU 1", "run 2, CPU 0"]
        assert [trace.period_ns for trace in traces] == [1000, 1000, 2000]
        assert [trace.overhead for trace in traces] == pytest.approx([0.35, 0.01, 0.0025])
        assert traces[0].sources == ("kworker", "timer")

    def test_of_an_unknown_run_or_of_nothing_is_refused(self):
        with pytest.raises(InputError, match="run 2 is not"):
            traces_of_runs(self.EVENTS, self.RUNS.head(1))
        with pytest.raises(InputError, match="no noise"):
            traces_of_runs(self.EVENTS.head(0), self.RUNS)

    def test_a_cpu_that_others_had_for_the_whole_run_is_no_place_of_the_program(self):
        whole = self.EVENTS.copy()
        whole.loc[whole["cpu"] == 1, ["start_ns", "end_ns"]] = (0, 1000)
        names = [trace.name for trace in traces_of_runs(whole, self.RUNS)]
        assert names == ["run 1, CPU 0", "run 2, CPU 0"]


class TestPieces:
    def test_hold_every_detour_once_and_all_the_time(self):
        traces = [trace_of(np.arange(50) * 4e6 + cpu, [3e3] * 50, 2e8) for cpu in (0, 1)]
        cut = pieces(traces, 5)
        assert sum(map(len, cut)) == 100
        assert sum(piece.period_ns for piece in cut) == 4e8

    def test_end_behind_a_detour_that_is_longer_than_a_piece(self):
        """A CPU that another program had for 4.5 of 10 ms."""
        start, lasted = np.array([0.5e6, 2.2e6, 2.5e6, 8.1e6]), np.array([1e5, 1e5, 4.5e6, 1e5])
        cut = pieces([Detours(start, lasted, 1e7, name="CPU 0")], 5)
        assert [piece.start_ns.tolist() for piece in cut] == [[0.5e6], [0.2e6, 0.5e6], [0.1e6]]
        assert [piece.period_ns for piece in cut] == [2e6, 5e6, 2e6]
        assert [piece.overhead for piece in cut] == pytest.approx([0.05, 0.92, 0.05])

    def test_are_fewer_where_one_would_be_lost_whole(self):
        start, lasted = np.array([0.5e6, 7e6, 8.05e6]), np.array([1e5, 1.05e6, 1.95e6])
        cut = pieces([Detours(start, lasted, 1e7, name="CPU 0")], 5)
        assert [piece.overhead for piece in cut] == pytest.approx([0.03, 0.9])

    def test_without_a_detour_are_left_out(self):
        trace = Detours(np.array([9e6]), np.array([10.0]), 1e7, name="CPU 0")
        [only] = pieces([trace], 10)
        assert (only.start_ns.tolist(), only.period_ns, only.name) == ([0], 1e6, "CPU 0, piece 9")


class TestWithout:
    TRACES = [
        trace_of(
            [0, 1e6, 2e6, 3e6],
            [10 + cpu, 5e5 + cpu, 20 + cpu, 30 + cpu],
            4e6,
            sources=["timer", "daemon", "timer 2", "timer 3"],
        )
        for cpu in (0, 1)
    ]

    def test_a_source_or_the_longest_last_no_longer(self):
        calm, fewer = without(self.TRACES, "daemon"), without(self.TRACES, longest=3)
        assert [trace.duration_ns.tolist() for trace in calm] == [[10, 0, 20, 30], [11, 0, 21, 31]]
        assert [trace.duration_ns.tolist() for trace in fewer] == [[10, 0, 20, 30], [11, 0, 21, 0]]

    def test_a_trace_without_anything_left_disturbs_nobody(self):
        schedule = patterns.recursive_doubling_allreduce(64)
        empty = without(self.TRACES, longest=8)
        noise = spread_over(empty, 64, seed=3)
        assert simulate(schedule, noise=noise).makespan_ns == simulate(schedule).makespan_ns
