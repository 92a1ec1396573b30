"""The studies: against the engine, closed forms and plain arithmetic; nothing here depends on
chance, every seed is given.
"""

import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from nbhelpers.code_state import tables_of_other_code
from nbhelpers.errors import InputError
from nbhelpers.report import published_results, published_table
from nbhelpers.simulation import Detours, LogGOPS, Noise, patterns, periodic, poisson, simulate
from nbhelpers.simulation.machines import at_scale
from nbhelpers.simulation.replicates import seeds_of
from nbhelpers.studies.scale import (
    applications_on,
    bottleneck,
    closed_forms,
    extrapolation,
    pipelining,
    point_to_point,
    published_signatures,
    sensitivity,
    this_machine_at_scale,
    this_machine_sentence,
    traces_of_runs,
)
from nbhelpers.studies.scale.applications import (
    application_slowdown,
    communication_kinds,
    extrapolated_sweep3d,
    injected_codes,
    overlap_potential,
    talked_of,
    traced_sweep,
)
from nbhelpers.studies.scale.cache import Cache, cache_key, read_table
from nbhelpers.studies.scale.collectives import overhead_and_slowdown, rank_correlation, scaling
from nbhelpers.studies.scale.results import (
    application_results,
    collective_results,
    injected_results,
)
from nbhelpers.studies.scale.signatures import (
    QUANTILES,
    published_noise,
    published_signature,
    system_networks,
    system_noises,
)
from nbhelpers.studies.scale.this_machine import this_machine_recordings

REPOSITORY = Path(__file__).resolve().parents[2]
RECORDED = REPOSITORY / "data" / "recorded" / "80-noise-at-scale"
HOURLY = {"10 Hz x 2500 us": periodic(10, 2500), "1000 Hz x 25 us": periodic(1000, 25)}


class TestScaling:
    def test_is_the_median_of_the_engines_runs_with_the_same_seeds(self):
        table = scaling(periodic(1000, 100), [8], seeds=5, seed=3)
        schedule, noise = patterns.dissemination(8, 1), Noise.on_ranks([periodic(1000, 100)], 8, 3)
        took = [
            simulate(schedule, noise=noise.with_seed(int(seed))).makespan_ns
            for seed in seeds_of(5, 3)
        ]
        ideal = simulate(schedule).makespan_ns
        row = table.iloc[0]
        assert row["median"] == pytest.approx(np.median(took) / ideal, rel=1e-12)
        assert (row["least"], row["most"]) == (min(took) / ideal, max(took) / ideal)
        assert (
            row["least"] <= row["low"] <= row["median"] <= row["high"] <= row["most"]
            and row["seeds"] == 5
        )
        assert row["ideal_us"] == ideal / 1e3 and row["overhead_share"] == pytest.approx(0.1)

    def test_a_row_for_every_noise_number_of_ranks_size_and_way(self):
        table = scaling(HOURLY, [2, 4], bytes=[1, 64], cosched=[False, True], seeds=2)
        assert (
            len(table) == 2 * 2 * 2 * 2
            and not table.duplicated(["noise", "ranks", "bytes", "cosched"]).any()
        )

    def test_struck_together_ranks_lose_less_than_struck_at_random(self):
        table = scaling(periodic(1000, 100), 64, cosched=[False, True], seeds=12).set_index(
            "cosched"
        )["median"]
        assert table[True] < table[False] / 2

    def test_noises_and_networks_of_the_same_names_go_together(self):
        networks = {name: LogGOPS(L=length) for name, length in zip(HOURLY, (1000, 9000))}
        table = scaling(HOURLY, 4, networks=networks, seeds=2)
        assert table["network"].tolist() == table["noise"].tolist() == list(HOURLY)
        assert table["ideal_us"].tolist() == [2 * (2 * 1.5 + 1), 2 * (2 * 1.5 + 9)]

    def test_gain_of_a_faster_network_is_time_saved_against_the_slower_one(self):
        table = bottleneck(periodic(1000, 100), 64, seeds=5)
        ideal = [6 * (3000 + 2500 / speed) / 1e3 for speed in (0.1, 1, 10)]
        assert table["ideal_us"].tolist() == pytest.approx(ideal)
        assert table["gain_share"].tolist()[1:] == pytest.approx(
            (1 - table["noisy_us"] / table["noisy_us"].shift())[1:]
        )


def test_overhead_and_slowdown_can_have_opposite_orders():
    systems = {
        "rare": Detours(np.array([0.0]), np.array([2e6]), 2e9),
        "often": Detours(np.array([0.0]), np.array([1e3]), 1e5),
        "never": Detours(np.array([0.0]), np.array([10.0]), 1e9),
    }
    table = overhead_and_slowdown(
        systems, 4096, seeds=3, networks=dict.fromkeys(systems, LogGOPS())
    )
    assert table["noise"].tolist() == ["often", "rare", "never"] and table[
        "overhead_rank"
    ].tolist() == [1, 2, 3]
    assert table.set_index("noise")["slowdown_rank"].to_dict() == {
        "rare": 1,
        "often": 2,
        "never": 3,
    }
    assert rank_correlation(table)[0] == pytest.approx(0.5)
    assert np.isnan(rank_correlation(table.assign(median=1.0))).all()
    with pytest.raises(InputError, match="2 systems"):
        rank_correlation(table.head(2))


class TestBenchmarkLoops:
    def test_the_error_of_a_tree_grows_with_the_ranks_and_rotation_does_not_end_it(self):
        table = pipelining([8, 64, 512], times=50, patterns=("binomial_bcast",))
        assert table.groupby("ranks")["single_us"].first().tolist() == [3 * 5.5, 6 * 5.5, 9 * 5.5]
        for _, own in table.groupby("loop"):
            assert own["error_us"].is_monotonic_increasing and (own["error_share"] > 0.2).all()

    def test_one_call_is_no_loop(self):
        assert pipelining([16], times=1)["error_us"].abs().max() == 0


class TestClosedForms:
    @pytest.mark.parametrize(
        "network",
        [LogGOPS(), LogGOPS(L=1900, o=230, g=500, G=0.08), LogGOPS(O=2, G=6, o=5000)],
        ids=repr,
    )
    def test_hold_exactly(self, network):
        table = closed_forms([2, 4, 64, 1024], [1, 8, 300], network)
        assert len(table) == 4 * 4 * 3 and table["difference_ns"].abs().max() == 0

    def test_refuse_where_they_do_not_hold(self):
        with pytest.raises(InputError, match="does not hold on 6 ranks"):
            closed_forms([6], patterns=["binomial_bcast"])
        with pytest.raises(InputError, match="does not hold"):
            closed_forms([8], network=LogGOPS(g=10_000))


class TestSignatures:
    def test_have_the_published_figures(self):
        made = published_signatures(seconds=100)
        for row in published_noise().to_dict("records"):
            trace = made[row["system"]]
            assert len(trace) == pytest.approx(row["detours_per_s"] * 100, rel=0.001)
            assert trace.overhead == pytest.approx(row["overhead_percent"] / 100, rel=0.15), row[
                "system"
            ]
            for column in ("median_us", "p99_us", "max_us"):
                found = (
                    np.quantile(trace.duration_ns, QUANTILES[column], method="inverted_cdf") / 1e3
                )
                assert found == pytest.approx(row[column], rel=0.02), (row["system"], column)

    def test_are_the_same_for_the_same_seed_only(self):
        once, again, other = (
            published_signature({0.5: 1, 0.99: 5, 1: 100}, 100, 2e-4, 10, seed)
            for seed in (1, 1, 2)
        )
        assert np.array_equal(once.start_ns, again.start_ns) and not np.array_equal(
            once.start_ns, other.start_ns
        )
        assert np.array_equal(np.sort(once.duration_ns), np.sort(other.duration_ns))

    @pytest.mark.parametrize(
        "quantiles, overhead",
        [({0.5: 1, 1: 5}, 0.01), ({0.5: 5, 0.99: 2, 1: 9}, 0.01), ({0.5: 1, 0.99: 2, 1: 3}, 0.9)],
    )
    def test_that_no_noise_has_are_refused(self, quantiles, overhead):
        with pytest.raises(InputError):
            published_signature(quantiles, 100, overhead)

    def test_every_system_has_a_network_whose_messages_noise_can_strike(self):
        assert (
            set(system_networks()) == set(published_noise()["system"])
            and min(net.o for net in system_networks().values()) > 0
        )


class TestOwnNoise:
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
        whole = self.EVENTS.assign(
            start_ns=self.EVENTS["start_ns"].where(self.EVENTS["cpu"] == 0, 0),
            end_ns=self.EVENTS["end_ns"].where(self.EVENTS["cpu"] == 0, 1000),
        )
        assert [trace.name for trace in traces_of_runs(whole, self.RUNS)] == [
            "run 1, CPU 0",
            "run 2, CPU 0",
        ]

    def test_without_events_only_the_loop_is_brought_to_scale(self):
        loop = traces_of_runs(self.EVENTS, self.RUNS)[0]
        assert list(this_machine_recordings(loop, self.EVENTS.head(0), self.RUNS)) == [
            "detours of a loop"
        ]
        table = this_machine_at_scale(
            this_machine_recordings(loop, self.EVENTS, self.RUNS), [2, 8], seeds=2
        )
        assert "events of the traced runs" in this_machine_sentence(table)
        assert "no event was recorded" in this_machine_sentence(
            table[table["recording"] == "detours of a loop"]
        )

    def test_at_scale_is_at_scale_recording_by_recording(self):
        traces = traces_of_runs(self.EVENTS, self.RUNS)
        table = this_machine_at_scale({"events": traces, "one": traces[0]}, [2, 64], seeds=3)
        alone = at_scale(traces[0], [2, 64], n=3)
        assert table["recording"].tolist() == ["events"] * 2 + ["one"] * 2
        assert (
            table.loc[table["recording"] == "one", "median"].tolist() == alone["slowdown"].tolist()
        )


class TestApplications:
    def test_feel_what_is_theirs_without_communication_and_more_with_it(self):
        found = point_to_point(
            {"1000 Hz x 25 us": HOURLY["1000 Hz x 25 us"]}, 16, steps=100, seeds=3
        ).set_index("application")["propagated"]
        assert found["nothing"] == pytest.approx(1, abs=0.06)
        assert found["nothing"] < found["halo"] < found["all-reduce"]

    def test_kinds_of_communication_compute_the_same(self):
        for kind in communication_kinds(16, 5, 1000).values():
            calculated = np.where(kind.kind == 3, kind.column("size"), 0)
            assert np.add.reduceat(calculated, kind.rank_start[:-1]).tolist() == [5000] * 16

    def test_a_delay_of_what_a_lone_rank_loses_is_propagated_once(self):
        lone = application_slowdown(
            {"lone": patterns.compute(1, 10_000_000)}, {"n": periodic(1000, 100)}, seeds=2
        ).iloc[0]
        assert lone["propagated"] == pytest.approx(1, abs=0.11) and lone["ideal_ms"] == 10

    def test_rows_are_applications_times_noises(self):
        table = application_slowdown(applications_on(4, 0.02), HOURLY, seeds=2)
        assert (
            table.groupby("application").size().to_dict() == {"Sweep3D": 2, "POP": 2, "AMG": 2}
            and (table["median"] >= 0.99).all()
        )

    def test_each_noise_has_its_own_network(self):
        slow, fast = LogGOPS(L=1e6), LogGOPS(L=0)
        noises = {"far": periodic(10, 1), "near": periodic(10, 1)}
        table = application_slowdown(
            injected_codes(4, 0.02), noises, seeds=2, network={"far": slow, "near": fast}
        )
        ideal = table.pivot(index="application", columns="noise", values="ideal_ms")
        assert (ideal["far"] > ideal["near"] + 2).all()

    def test_overlap_is_worth_something_and_the_same_network_nothing(self):
        programs = applications_on(4, 0.02)
        overlap = overlap_potential(programs, shares=(0, 1))
        sensitive = sensitivity(programs, factors=(1, 4))
        assert (overlap.loc[overlap["share"] == 0, "ratio"] == 1).all() and (
            overlap.loc[overlap["share"] == 1, "ratio"] > 1
        ).all()
        assert (sensitive.loc[sensitive["factor"] == 1, "ratio"] == 1).all() and (
            sensitive.loc[sensitive["factor"] == 4, "ratio"] > 1
        ).all()

    def test_extrapolation_copies_messages_and_makes_collectives_anew(self):
        small, grown = extrapolated_sweep3d((2, 2), 1, 2), extrapolated_sweep3d((2, 2), 4, 2)
        reductions = {4: 2 * 8, 16: 2 * 64}
        assert grown.ranks == 16 and grown.messages - reductions[16] == 4 * (
            small.messages - reductions[4]
        )
        table = extrapolation((2, 2), (1, 4), iterations=1)
        assert table["error_share"].tolist()[:3] == [0, 0, 0] and table["error_share"].iloc[3] < 0


def test_every_result_finds_its_place_beside_the_published_ones():
    regular = scaling(periodic(1000, 100), [4, 8], cosched=[False, True], seeds=2)
    injected = {
        f"{hz} Hz x {us} us": periodic(hz, us)
        for hz in (1000, 100, 10)
        for us in (16, 50, 100, 200)
    }
    systems = overhead_and_slowdown(
        published_signatures(20), 1024, seeds=2, networks=system_networks()
    )
    messages = scaling(
        {"poisson": poisson(1000, 50, 1)}, [8], bytes=[1, 2**20], networks=LogGOPS(S=2**40), seeds=2
    )
    long = {"10 Hz x 2500 us": periodic(10, 2500)}
    loops = {
        "allreduce": scaling(HOURLY, 8, seeds=2),
        "allreduce-{ranks}": scaling(long, [8, 32], seeds=2),
        "bcast": scaling(HOURLY, 8, pattern="binomial_bcast", seeds=2),
        "cosched": scaling(long, 8, cosched=True, seeds=2),
    }
    ours = collective_results(
        regular,
        scaling(injected, 8, seeds=2),
        systems,
        bottleneck(poisson(1000, 50, 1), 8, seeds=2),
        messages,
        pipelining([128], times=5),
        scaling(poisson(1000, 50, 1), 8, seeds=2, cosched=True),
    )
    ours |= injected_results(loops, application_slowdown(injected_codes(4, 0.02), HOURLY, seeds=2))
    applications = application_slowdown(talked_of(4, 0.02), HOURLY, seeds=2)
    ours |= application_results(applications, traced_sweep(seeds=2))
    table = published_results(ours)
    assert set(table.loc[table["ours"].isna(), "result"]) == {
        f"regular-{ranks}" for ranks in (2, 32, 128, 512, 2048, 32768)
    }, "ranks that were not simulated"
    assert len(table) == sum(
        len(published_table(name))
        for name in ("hoefler2010-slides1", "beckman2006-text1", "ferreira2008-text1")
    )
    assert (
        ours["regular-8192"]["case"]
        == ours["regular-8"]["case"]
        == ours["regular-largest"]["case"]
        == "8 ranks"
        and ours["beckman-32k"]["median"] == ours["1000 Hz x 200 us"]["median"]
    )


class TestCache:
    def test_tables_come_back_to_the_last_bit(self, tmp_path):
        made = Cache(tmp_path).table(
            "regular", scaling, periodic(1000, 100), [2, 8], seeds=3, cosched=[False, True]
        )
        pd.testing.assert_frame_equal(
            made,
            scaling(periodic(1000, 100), [2, 8], seeds=3, cosched=[False, True]),
            check_exact=True,
        )

    def test_a_recorded_table_is_read_and_one_of_something_else_is_not(self, tmp_path):
        calls = []

        def study(value: int, noise: Detours | None = None) -> pd.DataFrame:
            calls.append(value)
            return pd.DataFrame({"value": [value + 0.25], "text": [""]})

        kept, recorded = Cache(tmp_path), Cache(tmp_path, recorded_only=True)
        kept.table("t", study, 1, noise=periodic(10, 5))
        before = (tmp_path / "t.csv").read_bytes()
        assert (
            recorded.table("t", study, 1, noise=periodic(10, 5))["value"].tolist() == [1.25]
            and len(calls) == 1
        )
        assert (
            recorded.table("t", study, 2, noise=periodic(10, 5))["value"].tolist() == [2.25]
            and len(calls) == 2
        )
        recorded.table("t", study, 1, noise=periodic(10, 6)), recorded.table("other", study, 1)
        assert (
            len(calls) == 4
            and [path.name for path in tmp_path.iterdir()] == ["t.csv"]
            and (tmp_path / "t.csv").read_bytes() == before
        )

    def test_a_recorded_table_of_other_code_is_read_and_named(self, tmp_path):
        """A recorded campaign is what was computed then: only the page says that code changed."""
        asked = (scaling, periodic(1000, 100), [2, 8])
        made = Cache(tmp_path).table("ours", *asked, seeds=3)
        key, code, *rows = (tmp_path / "ours.csv").read_text().split("\n")
        assert code.endswith(f" {scaling.__module__}") and "simulation.detours" in code
        assert tables_of_other_code(tmp_path) == []
        table = "\n".join([key, "# code: 0123456789abcdef " + scaling.__module__, *rows])
        (tmp_path / "ours.csv").write_text(table.replace(" us,,8,", " us,,7,"))
        (tmp_path / "older.csv").write_text("\n".join([key, *rows]))
        assert tables_of_other_code(tmp_path) == ["older", "ours"]
        recorded = Cache(tmp_path, recorded_only=True)
        pd.testing.assert_frame_equal(recorded.table("older", *asked, seeds=3), made)
        assert recorded.table("ours", *asked, seeds=3)["ranks"].to_list() == [2, 7]
        pd.testing.assert_frame_equal(Cache(tmp_path).table("ours", *asked, seeds=3), made)
        assert tables_of_other_code(tmp_path) == ["older"]

    def test_what_is_asked_for_does_not_depend_on_the_last_bits_of_a_trace_nor_on_where_a_file_lies(
        self,
    ):
        near = Detours(np.array([0.0]), np.array([1e5]) * (1 + 1e-15), 1e6, name="1000 Hz x 100 us")
        assert cache_key(scaling, {"a": near}, Path("/x/t.json"), seeds=np.int64(3)) == cache_key(
            scaling, {"a": periodic(1000, 100)}, Path("/y/t.json"), seeds=3
        )
        assert (
            cache_key(scaling, LogGOPS(), seeds=3)
            != cache_key(scaling, LogGOPS(L=1), seeds=3)
            != cache_key(bottleneck, LogGOPS(L=1), seeds=3)
        )


def test_systems_have_their_recorded_detours_where_these_are(tmp_path):
    with gzip.open(tmp_path / "trace_deep_est.txt.gz", "wt") as file:
        file.write("# start_ns\tduration_ns\n0\t500\n1000000\t700\n")
    made, figures = system_noises(tmp_path), published_signatures()
    assert list(made) == list(figures) and made["deep-est"].duration_ns.tolist() == [500, 700]
    assert all(
        np.array_equal(made[name].start_ns, figures[name].start_ns)
        for name in figures
        if name != "deep-est"
    )
    table = overhead_and_slowdown({name: made[name] for name in ("deep-est", "daint")}, 4, seeds=2)
    assert table.set_index("noise")["detours"].to_dict() == {
        "deep-est": "recorded",
        "daint": "synthetic",
    }


@pytest.mark.skipif(not RECORDED.exists(), reason="no simulations at full size were recorded")
class TestRecordedTables:
    """What PROFILE=recorded shows: of the profile's sizes, and what this library computes (the
    small rows again).
    """

    ASKED = yaml.safe_load((REPOSITORY / "notebooks/parameters/recorded.yml").read_text())[
        "80-noise-at-scale"
    ]

    def test_are_of_the_profiles_sizes(self):
        scales = [2**k for k in range(1, 17, 2)]
        asked = cache_key(
            scaling, periodic(1000, 100), scales, seeds=self.ASKED["seeds"], cosched=[False, True]
        )
        assert (RECORDED / "regular.csv").read_text().split("\n", 1)[0].split()[-1] == asked

    def test_are_what_this_library_computes(self):
        table = read_table(RECORDED / "regular.csv")
        small = table[table["ranks"] <= 512].reset_index(drop=True)
        again = scaling(
            periodic(1000, 100),
            sorted(set(small["ranks"])),
            seeds=self.ASKED["seeds"],
            cosched=[False, True],
        )
        assert (
            again["median"].to_numpy() == pytest.approx(small["median"].to_numpy(), rel=1e-12)
            and len(small) > 8
        )
