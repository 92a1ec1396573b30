"""A small real campaign: traced, the worst picked, injected, and everything read again without measuring."""

import os

import pytest

from nbhelpers.errors import InputError
from nbhelpers.machine import doctor
from nbhelpers.noise import NoiseConfig
from nbhelpers.studies import baseline_campaign, injected_campaign, kept_design, labelled, placement_table, replay_table, slowdown_table, worst_traces
from nbhelpers.workloads import binary_folder

needs = pytest.mark.skipif(os.geteuid() != 0 or doctor().capabilities.tracer == "detours" or not (binary_folder() / "nbody").exists(),
                           reason="needs root, a kernel tracer and the programs")


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    design = kept_design(folder, ["Rm", "TP"], 0.03, programs=("nbody",), models=("omp",))
    runs = labelled(baseline_campaign(folder / "baseline", design, runs=3).run())
    return folder, design, runs


@needs
def test_the_worst_trace_is_replayed_beside_every_configuration(study):
    folder, design, baseline = study
    worst = worst_traces(folder / "baseline", baseline)
    traced = baseline[baseline["trace"] == "traced"]
    excess = traced["seconds"] / traced.groupby("config")["seconds"].transform("mean")
    assert len(worst) == 1 and worst[0].seconds in set(traced["seconds"]) and worst[0].run in set(traced["run"])
    assert excess.max() >= 1 and set(worst[0].configs) == {"improved", "pessimistic"}
    campaign = injected_campaign(folder / "injected", design, worst, runs=2)
    injected = labelled(campaign.run())
    assert len(injected) == 2 * (2 + 2 + 2), "undisturbed, improved, and two more modes where the trace came from"
    assert len(slowdown_table(injected)) == 2 and len(replay_table(injected, worst)) == 3
    assert (placement_table(injected)["placed"] == placement_table(injected)["runs"]).all()
    again = injected_campaign(folder / "injected", kept_design(folder, ["Rm", "TP"], 0.03, programs=("nbody",), models=("omp",), measure=False),
                              worst_traces(folder / "baseline", baseline), runs=2, frozen=True)
    assert labelled(again.run())["seconds"].tolist() == injected["seconds"].tolist()


@needs
def test_without_traces_a_given_config_is_replayed(study, tmp_path):
    folder, design, baseline = study
    config = next(iter(worst_traces(folder / "baseline", baseline)[0].configs.values()))
    config.write(tmp_path / "noise-config.json")
    untraced = baseline.drop(columns="trace_events")
    found = worst_traces(folder / "baseline", untraced, fallback=tmp_path / "noise-config.json")
    assert found[0].run == -1 and found[0].configs["improved"].digest == NoiseConfig.read(tmp_path / "noise-config.json").digest
    with pytest.raises(InputError, match="no trace to replay"):
        worst_traces(folder / "baseline", untraced)


@needs
def test_a_design_stays_what_it_was(study):
    folder, design, _ = study
    with pytest.raises(InputError, match="begun with Rm, TP and omp, not Rm and omp"):
        kept_design(folder, ["Rm"], 0.03, programs=("nbody",), models=("omp",))
    with pytest.raises(InputError, match="not recorded"):
        kept_design(folder / "elsewhere", ["Rm"], 0.03, measure=False)
