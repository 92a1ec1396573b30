"""A small real campaign: traced, the worst picked, injected, and everything read again without
measuring.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from nbhelpers.errors import InputError
from nbhelpers.files import write_json
from nbhelpers.machine import doctor
from nbhelpers.measurement import recorded_runs
from nbhelpers.studies.design import Design, cached_design, placement_table
from nbhelpers.studies.persson.campaigns import WorstTrace, attachments, label_runs
from nbhelpers.studies.replays import replayed_runs
from nbhelpers.workloads import binary_folder

from ..cells import run_cells
from ..shown import Shown

needs = pytest.mark.skipif(
    os.geteuid() != 0
    or doctor().capabilities.tracer == "detours"
    or not (binary_folder() / "nbody").exists(),
    reason="needs root, a kernel tracer and the programs",
)


@dataclass
class Folders:
    """Stands for the study of the page."""

    data: Path

    def of(self, stage: str) -> "Folders":
        return self

    def handed_on(self, name: str) -> Path:
        return self.data / name


def page(folder: Path, design: Design, tag: str, **more: Any) -> dict[str, Any]:
    """The cells of page 40 that have a tag, with data in a folder."""
    known = {"study": Folders(folder), "design": design, "recorded_only": False, "seed": 0}
    known |= {"baseline_runs": 3, "runs": 2, "length_runs": 1, "traces": 1, "each_model": False}
    known["raised"] = True
    return run_cells("40-mitigations", tag, **(known | {"beside": ()} | more))


def worst_of(folder: Path, design: Design, baseline: pd.DataFrame) -> list[WorstTrace]:
    return page(folder, design, "worst", baseline=baseline)["natural"]


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    # a calibration beside other tests may end anywhere
    write_json(folder / "nbody.json", {"size": 1600, "target_seconds": 0.03, "threads": 0})
    design = cached_design(folder, ["Rm", "TP"], 0.03, programs=("nbody",), models=("omp",))
    return folder, design, page(folder, design, "baseline")["baseline"]


@pytest.mark.long
@needs
def test_the_worst_trace_is_replayed_beside_every_configuration(study):
    folder, design, baseline = study
    worst = worst_of(folder, design, baseline)
    traced = baseline[baseline["trace"] == "traced"]
    excess = traced["seconds"] / traced.groupby("config")["seconds"].transform("mean")
    assert len(worst) == 1 and worst[0].run == traced.loc[excess.idxmax(), "run"]
    assert set(worst[0].configs) == {"improved", "pessimistic", "raised", "slices"}
    beside = attachments(folder / "injected")[1]
    campaign = page(folder, design, "injected", worst=worst, beside=beside)["campaign"]
    injected = label_runs(campaign.run())
    # undisturbed, improved, and four more modes where the trace came from
    assert len(injected) == 2 * (2 + 2 + 4)
    given = {"worst": worst, "study": Shown()}
    found = run_cells("40-mitigations", "described", **given)["described"]
    shown = run_cells("42-fairness", "accuracy", injected=injected, worst=found, study=Shown())
    assert len(shown["replays"]) == 5
    assert (placement_table(injected)["placed"] == placement_table(injected)["runs"]).all()
    known = {"programs": ("nbody",), "models": ("omp",), "recorded_only": True}
    same = cached_design(folder, ["Rm", "TP"], 0.03, **known)
    again = worst_of(folder, same, baseline)
    read = page(folder, same, "injected", worst=again, recorded_only=True)["campaign"]
    assert label_runs(read.run())["seconds"].tolist() == injected["seconds"].tolist()


@pytest.mark.long
@needs
def test_a_planted_disturbance_is_traced_and_replayed_at_twice_the_length(study):
    folder, design, baseline = study
    known = {"baseline": baseline, "planted": "nbody", "natural": []}
    planted = page(folder, design, "planted", **known)["hogged"]
    again = page(folder, design, "planted", **known, recorded_only=True)["hogged"]
    assert [trace.label for trace in planted] == ["planted-omp"]
    config = planted[0].configs["improved"]
    assert config.digest == again[0].configs["improved"].digest
    events = config.events()
    planned_ns = recorded_runs(folder / "planted")["hog_planned_ns"].iloc[0]
    hogs = events[events["source"] == "hog"]
    assert 0.1 < hogs["duration_ns"].sum() / planned_ns < 1.1  # their blocks within the run
    known = page(folder, design, "injected", worst=planted, runs=2)
    assert set(label_runs(known["campaign"].run())["trace"]) == {"undisturbed", "planted-omp"}
    lengths = page(folder, design, "lengths", hogged=planted, injector=known["injector"])
    runs = run_cells("42-fairness", "lengths", before=Folders(folder))["lengths"]
    runs = runs.set_index(["length", "noise_kind"])
    longer = runs.loc["x2", "bodies"] / runs.loc["x1", "bodies"]
    assert ((longer**2).between(1.9, 2.1)).all(), "the work of N-body grows with its square"
    assert runs.loc["x1", "noise"].to_dict() == runs.loc["x2", "noise"].to_dict()
    assert runs["noise"].nunique() == 3
    noises = lengths["noises"]["nbody"].values()
    once_ns, again_ns = (noise.events()["duration_ns"].sum() for noise in noises)
    assert again_ns == 8 * once_ns
    assert (runs.drop("undisturbed", level="noise_kind")["injected_events"] > 0).all()
    none = {"baseline": baseline, "planted": "", "natural": []}
    assert page(folder, design, "planted", **none)["hogged"] == []
    page(folder / "none", design, "lengths", hogged=[], injector=known["injector"])
    assert replayed_runs(folder / "none/lengths").empty


@needs
def test_a_design_follows_what_is_asked_for_and_what_the_machine_has(study):
    folder, design, _ = study
    known = {"programs": ("nbody",), "models": ("omp",)}
    fewer = cached_design(folder, ["Rm"], 0.03, **known)
    same = {("nbody", "omp"): design.workloads["nbody", "omp"]}
    assert fewer.chosen == ("Rm",) and fewer.workloads == same  # in the size that was found
    again = cached_design(folder, list(design.chosen), 0.03, **known)
    recorded = cached_design(folder, [], 0.03, programs=("nbody",), recorded_only=True)
    assert again.chosen == design.chosen == recorded.chosen
    with pytest.raises(InputError, match="not recorded"):
        cached_design(folder / "elsewhere", ["Rm"], 0.03, recorded_only=True)
