"""A small real campaign: traced, the worst picked, injected, and everything read again without
measuring.
"""

import os

import pandas as pd
import pytest

from nbhelpers.errors import InputError
from nbhelpers.files import to_json, write_atomically
from nbhelpers.machine import doctor
from nbhelpers.measurement import recorded_runs
from nbhelpers.noise import NoiseConfig
from nbhelpers.studies.design import cached_design, placement_table
from nbhelpers.studies.persson import (
    baseline_campaign,
    injected_campaign,
    label_length_runs,
    label_runs,
    length_campaign,
    planted_traces,
    replay_table,
    slowdown_table,
    worst_traces,
)
from nbhelpers.studies.persson.fairness import repeat_config
from nbhelpers.workloads import binary_folder

needs = pytest.mark.skipif(
    os.geteuid() != 0
    or doctor().capabilities.tracer == "detours"
    or not (binary_folder() / "nbody").exists(),
    reason="needs root, a kernel tracer and the programs",
)


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    write_atomically(
        folder / "nbody.json", to_json({"size": 1600, "target_seconds": 0.03, "threads": 0})
    )  # a calibration beside other tests may end anywhere
    design = cached_design(folder, ["Rm", "TP"], 0.03, programs=("nbody",), models=("omp",))
    runs = label_runs(baseline_campaign(folder / "baseline", design, runs=3).run())
    return folder, design, runs


@needs
def test_the_worst_trace_is_replayed_beside_every_configuration(study):
    folder, design, baseline = study
    worst = worst_traces(folder / "baseline", baseline)
    traced = baseline[baseline["trace"] == "traced"]
    excess = traced["seconds"] / traced.groupby("config")["seconds"].transform("mean")
    assert (
        len(worst) == 1
        and worst[0].seconds in set(traced["seconds"])
        and worst[0].run in set(traced["run"])
    )
    assert excess.max() >= 1 and set(worst[0].configs) == {"improved", "pessimistic"}
    campaign = injected_campaign(folder / "injected", design, worst, runs=2)
    injected = label_runs(campaign.run())
    assert len(injected) == 2 * (2 + 2 + 2), (
        "undisturbed, improved, and two more modes where the trace came from"
    )
    assert len(slowdown_table(injected)) == 2 and len(replay_table(injected, worst)) == 3
    assert (placement_table(injected)["placed"] == placement_table(injected)["runs"]).all()
    again = injected_campaign(
        folder / "injected",
        cached_design(
            folder, ["Rm", "TP"], 0.03, programs=("nbody",), models=("omp",), recorded_only=True
        ),
        worst_traces(folder / "baseline", baseline),
        runs=2,
        recorded_only=True,
    )
    assert label_runs(again.run())["seconds"].tolist() == injected["seconds"].tolist()


@needs
def test_without_traces_a_given_config_is_replayed(study, tmp_path):
    folder, design, baseline = study
    config = next(iter(worst_traces(folder / "baseline", baseline)[0].configs.values()))
    config.write(tmp_path / "noise-config.json")
    untraced = baseline.drop(columns="trace_events")
    found = worst_traces(folder / "baseline", untraced, fallback=tmp_path / "noise-config.json")
    assert (
        found[0].run == -1
        and found[0].configs["improved"].digest
        == NoiseConfig.read(tmp_path / "noise-config.json").digest
    )
    with pytest.raises(InputError, match="no trace to replay"):
        worst_traces(folder / "baseline", untraced)


@needs
def test_a_planted_disturbance_is_traced_and_replayed_as_long_as_a_program_of_twice_the_length_runs(
    study,
):
    folder, design, baseline = study
    arguments = folder / "planted", design, baseline, folder / "baseline" / "traces", ("nbody",)
    planted = planted_traces(*arguments)
    again = planted_traces(*arguments, recorded_only=True)
    assert [trace.label for trace in planted] == ["planted-omp"] and planted[0].configs[
        "improved"
    ].digest == again[0].configs["improved"].digest
    events = planted[0].configs["improved"].events()
    planned_ns = recorded_runs(folder / "planted")["hog_planned_ns"].iloc[0]
    assert 0.1 < events[events["source"] == "hog"]["duration_ns"].sum() / planned_ns < 1.1, (
        "what of the hogs' blocks lies in the run"
    )
    injected = label_runs(
        injected_campaign(folder / "planted-injected", design, planted, runs=2).run()
    )
    assert (
        set(injected["trace"]) == {"undisturbed", "planted-omp"}
        and len(replay_table(injected, planted)) == 3
    )
    runs = label_length_runs(
        length_campaign(folder / "lengths", design, planted, runs=1).run()
    ).set_index(["length", "noise_kind"])
    assert (
        1.9
        < (runs.loc[("x2", "undisturbed"), "bodies"] / runs.loc[("x1", "undisturbed"), "bodies"])
        ** 2
        < 2.1
    ), "the work of N-body grows with its square"
    assert (
        runs.loc["x1", "noise"].to_dict() == runs.loc["x2", "noise"].to_dict()
        and runs["noise"].nunique() == 3
    )
    assert (
        runs.loc[
            [("x1", "fixed"), ("x2", "fixed"), ("x1", "scaled"), ("x2", "scaled")],
            "injected_events",
        ]
        > 0
    ).all()
    assert (
        length_campaign(folder / "lengths", design, [], runs=1) is None
        and planted_traces(*arguments[:4], ()) == []
    )


@needs
def test_repeated_noise_is_as_much_a_second(study):
    folder, _, baseline = study
    config = worst_traces(folder / "baseline", baseline)[0].configs["improved"]
    assert repeat_config(config, 1).digest == config.digest
    thrice = repeat_config(config, 3)
    assert (
        thrice.window_ns == 3 * config.window_ns
        and thrice.events()["duration_ns"].sum() == 3 * config.events()["duration_ns"].sum()
    )


@needs
def test_a_design_follows_what_is_asked_for_and_what_the_machine_has(study):
    folder, design, _ = study
    fewer = cached_design(folder, ["Rm"], 0.03, programs=("nbody",), models=("omp",))
    assert fewer.chosen == ("Rm",) and fewer.workloads == {
        ("nbody", "omp"): design.workloads["nbody", "omp"]
    }, "in the size that was found"
    again = cached_design(folder, list(design.chosen), 0.03, programs=("nbody",), models=("omp",))
    assert (
        again.chosen == design.chosen
        and cached_design(folder, [], 0.03, programs=("nbody",), recorded_only=True).chosen
        == design.chosen
    )
    with pytest.raises(InputError, match="not recorded"):
        cached_design(folder / "elsewhere", ["Rm"], 0.03, recorded_only=True)


def test_the_device_and_driver_of_sycl_runs_stand_beside_their_places():
    rows = [
        ("omp", None, None),
        ("sycl", "AMD_EPYC", "2026.22.10"),
        ("sycl", "AMD_EPYC", "2026.23.1"),
    ]
    runs = pd.DataFrame(rows, columns=["model", "device", "driver"]).assign(
        run=range(3), config="Rm", placement_ok=True, placement="0,1*2"
    )
    table = placement_table(runs).set_index("model")
    assert table.loc["omp", "device"] == "" and list(table["placed"]) == [1, 2]
    assert (
        table.loc["sycl", "device"] == "AMD EPYC, driver 2026.22.10 or AMD EPYC, driver 2026.23.1"
    )
    assert "device" not in placement_table(runs[runs["model"] == "omp"])
