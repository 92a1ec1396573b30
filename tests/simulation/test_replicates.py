"""Replicates: the same numbers whoever computes them, intervals that are those of the table, and
the way from a recording to a scale.
"""

import functools
import os

import numpy as np
import pandas as pd
import pytest

from nbhelpers.errors import InputError
from nbhelpers.simulation import Detours, LogGOPS, Noise, patterns, periodic, simulate
from nbhelpers.simulation.implicit import evaluate
from nbhelpers.simulation.machines import at_scale, spread_over, traces_of
from nbhelpers.simulation.replicates import replicate, seeds_of
from nbhelpers.statistics import bootstrap_interval
from nbhelpers.workloads import binary_folder

NOISE = Noise.on_ranks(periodic(1000, 100), 256)


def call(noise):
    return evaluate("dissemination", 256, noise=noise)


class TestReplicate:
    def test_the_workers_change_nothing(self):
        one, many = (
            replicate(call, NOISE, 12, seed=7, workers=workers, keep_finish=True)
            for workers in (1, 5)
        )
        pd.testing.assert_frame_equal(one.table, many.table)
        np.testing.assert_array_equal(one.finish_ns, many.finish_ns)
        assert not one.table.equals(replicate(call, NOISE, 12, seed=8).table)

    def test_each_row_is_one_simulation(self):
        found = replicate(call, NOISE, 5, seed=3, keep_finish=True)
        for row in found.table.itertuples():
            alone = simulate(patterns.dissemination(256, 1), LogGOPS(), NOISE.with_seed(row.seed))
            assert (
                row.makespan_ns == alone.makespan_ns
                and row.slowdown == alone.slowdown
                and row.amplification == pytest.approx(alone.amplification)
            )
            np.testing.assert_array_equal(found.finish_ns[row.replicate], alone.finish_ns)
        assert (
            found.ideal_ns == evaluate("dissemination", 256).makespan_ns
            and len(set(found.table["seed"])) == 5
        )

    def test_more_replicates_begin_with_the_same(self):
        assert (
            seeds_of(40, 1)[:10].tolist() == seeds_of(10, 1).tolist()
            and seeds_of(3, 1).tolist() != seeds_of(3, 2).tolist()
        )

    def test_with_the_engine(self):
        schedule = patterns.dissemination(64, 8)
        noise = Noise.on_ranks(periodic(1000, 50), 64)
        by_engine = replicate(lambda own: simulate(schedule, LogGOPS(), own), noise, 8).table
        by_pattern = replicate(
            lambda own: evaluate("dissemination", 64, LogGOPS(), own, bytes=8), noise, 8
        ).table
        pd.testing.assert_frame_equal(by_engine, by_pattern)

    def test_intervals_are_bootstraps_of_the_table(self):
        found = replicate(call, NOISE, 20)
        table = found.intervals(["slowdown", "noise_ns"], "mean")
        assert (
            table.loc["slowdown", "mean"] == found.table["slowdown"].mean()
            and table.loc["slowdown", "n"] == 20
        )
        assert (table.loc["slowdown", "low"], table.loc["slowdown", "high"]) == bootstrap_interval(
            found.table["slowdown"], "mean"
        )
        assert (table["low"] <= table["mean"]).all() and (table["mean"] <= table["high"]).all()

    def test_an_error_of_one_is_that_of_all(self):
        with pytest.raises(InputError, match="above S"):
            replicate(
                lambda noise: evaluate(
                    "dissemination", 256, noise=noise, bytes=100_000 if noise else 1
                ),
                NOISE,
                3,
            )

    @pytest.mark.parametrize(
        "arguments, message",
        [((NOISE, 0), "n = 0"), ((NOISE, 1.5), "n = 1.5"), ((periodic(10, 1), 3), "phases")],
    )
    def test_bad_arguments(self, arguments, message):
        with pytest.raises(InputError, match=message):
            replicate(call, *arguments)

    def test_by_dask_it_is_the_same(self):
        distributed = pytest.importorskip(
            "distributed", reason="dask is no part of Noisebook: pip install distributed"
        )
        import dask

        with (
            dask.config.set({"distributed.worker.daemon": False}),
            distributed.Client(
                processes=False, n_workers=1, threads_per_worker=2, dashboard_address=None
            ) as client,
        ):
            remote = replicate(
                functools.partial(evaluate, "dissemination", 256, LogGOPS()),
                NOISE,
                7,
                seed=2,
                client=client,
                keep_finish=True,
            )
        local = replicate(call, NOISE, 7, seed=2, keep_finish=True)
        pd.testing.assert_frame_equal(remote.table, local.table)
        np.testing.assert_array_equal(remote.finish_ns, local.finish_ns)


def detours(**attrs):
    table = pd.DataFrame(
        {"cpu": [0, 0, 1], "start_ns": [100, 9000, 50], "duration_ns": [500, 300, 700]}
    )
    table.attrs = attrs
    return table


class TestRecordings:
    def test_a_trace_a_cpu_as_long_as_the_recording(self):
        first, second = traces_of(detours(seconds=0.01))
        assert (
            first.period_ns == second.period_ns == 1e7
            and first.start_ns.tolist() == [100, 9000]
            and second.duration_ns.tolist() == [700]
        )
        assert first.name == "cpu 0" and first.overhead == pytest.approx(800 / 1e7)

    def test_noise_events_of_several_runs(self):
        events = pd.concat(
            [detours().assign(run=run, source="timer") for run in (3, 4)], ignore_index=True
        )
        events.attrs["seconds"] = 0.02
        traces = traces_of(events)
        assert [trace.name for trace in traces] == [
            "run 3 cpu 0",
            "run 3 cpu 1",
            "run 4 cpu 0",
            "run 4 cpu 1",
        ]
        assert {trace.period_ns for trace in traces} == {2e7} and traces[0].sources == ("timer",)

    def test_a_detour_that_outlasts_the_recording(self):
        """A loaded machine took the CPU for 0.3 s, of a recording of 0.2 s."""
        taken = pd.DataFrame({"cpu": 0, "start_ns": [5e7], "duration_ns": [3e8]})
        taken.attrs["seconds"] = 0.2
        (trace,) = traces_of(taken)
        assert trace.period_ns == 3.5e8 and trace.overhead == pytest.approx(6 / 7)

    def test_files(self, tmp_path):
        (tmp_path / "d.txt").write_text(
            "# selfish\n0\t233\n5000\t700\n# Measurement period: 0.001 s\n"
        )
        (trace,) = traces_of(tmp_path / "d.txt")
        assert trace.period_ns == 1e6 and trace.start_ns.tolist() == [0, 5000]
        kept = os.path.join(
            os.path.dirname(__file__), "..", "..", "data", "recorded", "00-machine", "detours.json"
        )
        assert [len(trace) > 100 for trace in traces_of(kept)] == [True, True]

    def test_nothing_recorded(self):
        for bad in ([], detours().iloc[:0], detours().drop(columns="cpu"), [1, 2]):
            with pytest.raises(InputError):
                traces_of(bad)

    def test_ranks_draw_their_traces(self):
        traces = traces_of(detours(seconds=0.01))
        noise = spread_over(traces, 1000, seed=4)
        assert 400 < (noise.rank_trace == 0).sum() < 600 and len(np.unique(noise.phase_ns)) > 900
        assert len(np.unique(spread_over(traces, 1000, cosched=True).phase_ns)) == 1


class TestAtScale:
    def test_its_row_is_that_of_the_replicates(self):
        trace = Detours(np.arange(20) * 1e6, np.full(20, 50_000.0), 2e7)
        table = at_scale(trace, [4, 64], LogGOPS(), "dissemination", n=9, seed=3, bytes=8)
        noise = spread_over([trace], 64, 3)
        found = replicate(
            lambda own: evaluate("dissemination", 64, LogGOPS(), own, bytes=8), noise, 9, 3
        )
        assert table.loc[64, "median_us"] == pytest.approx(
            found.table["makespan_ns"].median() / 1e3
        )
        assert (
            table.loc[64, "ideal_us"] == pytest.approx(found.ideal_ns / 1e3)
            and table.loc[64, "n"] == 9
        )
        assert (
            table.loc[64, "slowdown_low"]
            <= table.loc[64, "slowdown"]
            <= table.loc[64, "slowdown_high"]
        )
        assert table.index.tolist() == [4, 64] and table.attrs["overhead"] == pytest.approx(0.05)

    def test_more_ranks_meet_more_noise(self):
        trace = Detours(np.arange(10) * 1e7, np.full(10, 200_000.0), 1e8)
        slowdown = at_scale(trace, [2, 4096], n=9)["slowdown"]
        assert slowdown[2] < slowdown[4096]

    @pytest.mark.skipif(
        not (binary_folder() / "detours").exists(), reason="workloads are not built: make env"
    )
    def test_this_machine_on_a_hundred_thousand(self):
        table = at_scale(None, 100_000, seconds=0.2, n=2)
        assert (
            table.loc[100_000, "slowdown"] >= 1
            and 0 < table.attrs["overhead"] < 1
            and table.attrs["traces"] >= 1
        )

    def test_an_unknown_network(self):
        with pytest.raises(InputError, match="no network"):
            at_scale(periodic(10, 1), 4, "no-such-network")
