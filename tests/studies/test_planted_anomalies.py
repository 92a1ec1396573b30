"""The study of planted anomalies: its schedules, its table, its words, and one real case through
the whole chain.
"""

import numpy as np
import pandas as pd
import pytest

from nbhelpers.machine import doctor
from nbhelpers.measurement import Campaign, Cell, finished, recorded_runs
from nbhelpers.noise import average_noise
from nbhelpers.studies.planted_anomalies import (
    describe_configs,
    describe_schedules,
    median_run,
    narrow_means,
    planted_campaign,
    planted_schedules,
    planted_sentences,
    planted_table,
    traced_configs,
)
from nbhelpers.tracing import Tracer, read_traces
from nbhelpers.workloads import nbody


@pytest.mark.parametrize("cpus", [2, 8, 128])
def test_schedules_take_from_a_fifth_to_the_whole_of_a_run(cpus):
    table = describe_schedules(planted_schedules(10, 0.4, cpus, seed=1), 0.4)
    assert np.allclose(table["share"], np.linspace(0.2, 1.0, 10), atol=1e-6)
    assert table["longest_ms"].max() <= 60
    assert (table["share"] / table["cpus"].str.split().str.len()).max() <= 0.9


def test_schedules_depend_on_the_seed_only():
    assert (
        planted_schedules(3, 0.4, 2, seed=5)
        == planted_schedules(3, 0.4, 2, seed=5)
        != planted_schedules(3, 0.4, 2, seed=6)
    )


def runs_of(**cells: tuple[float, float]) -> pd.DataFrame:
    random = np.random.default_rng(0)
    return pd.concat(
        [
            pd.DataFrame({"cell": name.replace("_", " "), "seconds": random.normal(mean, sd, 200)})
            for name, (mean, sd) in cells.items()
        ]
    )


def test_the_table_tells_a_good_replay_from_a_bad_one():
    runs = runs_of(
        undisturbed=(0.4, 0.01),
        disturbed_1=(0.5, 0.01),
        replayed_1=(0.505, 0.01),
        disturbed_2=(0.401, 0.02),
        replayed_2=(0.5, 0.02),
    )
    table = planted_table(runs).set_index("case")
    assert (
        table.loc[1, "ratio"] == pytest.approx(1.01, abs=0.005)
        and table.loc[1, "ratio_low"] < table.loc[1, "ratio"] < table.loc[1, "ratio_high"]
    )
    assert table["baseline_outside"].tolist() == [True, False]
    assert table.loc[2, "ratio_low"] > 1
    told = " ".join(planted_sentences(table.reset_index()))
    assert "2 planted anomalies" in told and "in 1 of 2 cases" in told and "In 0 of 2" in told


@pytest.mark.parametrize(
    ("seconds", "chosen"),
    [
        ([0.5], 0),
        ([0.5, 0.9], 0),
        ([0.9, 0.5, 0.6], 2),
        ([0.6, 3.0, 0.5, 0.61, 0.62], 3),
        ([0.5, 0.5, 0.5], 1),
    ],
)
def test_the_run_of_median_run_time_is_not_moved_by_one_that_was_disturbed(seconds, chosen):
    runs = pd.DataFrame({"run": range(len(seconds)), "seconds": seconds}).sample(
        frac=1, random_state=1
    )
    assert median_run(runs)["run"].tolist() == [chosen]


@pytest.mark.skipif(
    doctor().capabilities.tracer == "detours",
    reason="this machine cannot trace (no tracefs, or not root)",
)
def test_a_planted_case_goes_through_the_whole_chain(tmp_path, binaries):
    workload = nbody(2000, 20, threads=2)
    tracer = Tracer(tmp_path / "baseline/traces")
    baseline = finished(
        Campaign(
            tmp_path / "baseline", [Cell("traced", workload, attachments=[tracer])], runs=3
        ).run()
    )
    average = average_noise(read_traces(tmp_path / "baseline/traces", baseline), baseline)
    schedules = planted_schedules(1, float(baseline["seconds"].mean()), 2, seed=3)
    configs = traced_configs(tmp_path / "traced", workload, schedules, average, traces=3)
    traced = finished(recorded_runs(tmp_path / "traced")).sort_values("seconds")
    assert (
        configs[0].provenance["run"] == traced["run"].iloc[1]
        and configs[0].provenance["seconds_of_all"] == traced["seconds"].tolist()
    )
    assert (
        describe_configs(configs).loc[0, ["fastest", "seconds", "slowest"]].tolist()
        == traced["seconds"].tolist()
    )
    first = traced[traced["round"] == 0]
    alone = traced_configs(
        tmp_path / "traced", workload, schedules, average, recorded_only=True, traces=1
    )[0]
    assert alone.provenance["run"] == first["run"].iloc[0], (
        "a recording of one traced run a case is enough"
    )
    planned_ms = describe_schedules(schedules, 1.0)["total_ms"][0]
    traced_ms = describe_configs(configs)["realtime_ms"][0]
    assert 0.3 * planned_ms < traced_ms < 1.3 * planned_ms, (
        "what the hog took is in the config (blocks after the run's end are not)"
    )
    runs = finished(
        planted_campaign(tmp_path / "replayed", workload, schedules, configs, runs=3).run()
    )
    table = planted_table(runs)
    assert table["runs"].tolist() == [3] and table["ratio"].between(0.2, 5).all()
    again = planted_campaign(
        tmp_path / "replayed",
        workload,
        schedules,
        traced_configs(tmp_path / "traced", workload, schedules, average, recorded_only=True),
        runs=3,
        recorded_only=True,
    )
    assert len(finished(again.run())) == len(runs), (
        "recorded data are enough to make the table again"
    )


def test_means_are_narrow_when_every_disturbed_case_is():
    def table(**cells):
        return pd.concat(
            [
                pd.DataFrame({"cell": cell.replace("_", " "), "seconds": seconds})
                for cell, seconds in cells.items()
            ]
        )

    assert narrow_means(
        table(
            disturbed_1=[1, 1.01, 0.99, 1],
            disturbed_2=[2, 2.01, 1.99, 2],
            undisturbed=[1, 2],
            replayed_1=[1, 3],
        )
    )
    assert not narrow_means(table(disturbed_1=[1, 1.01, 0.99, 1], disturbed_2=[2, 2.2, 1.8, 2]))
