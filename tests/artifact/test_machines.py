"""Studies of machines beside each other: what is opened, and what page 95 makes of them."""

import hashlib
import json
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from statsmodels.stats.weightstats import CompareMeans, DescrStatsW

from nbhelpers.artifact import machines
from nbhelpers.artifact.machines import open_studies, open_study
from nbhelpers.errors import InputError
from nbhelpers.places import shipped
from nbhelpers.study import Study

from ..cells import run_cells

RECORDED = shipped() / "data" / "recorded"
INTEL = RECORDED / "95-machines" / "intel-quick"
UNDER_NOISE = "40-mitigations/injected"


def zipped(target: Path, **changed: bytes) -> Path:
    """The shipped study as a zip; what is changed is not what its metadata list."""
    files = {path.relative_to(INTEL).as_posix(): path for path in INTEL.rglob("*.*")}
    files = {name: path.read_bytes() for name, path in files.items() if path.is_file()}
    files["pages/large.html"] = b"not read"
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    graph = [{"@id": name, "sha256": digest} for name, digest in digests.items()]
    files["ro-crate-metadata.json"] = json.dumps({"@graph": graph}).encode()
    with zipfile.ZipFile(target, "w") as archive:
        for name, content in (files | changed).items():
            archive.writestr(name, content)
    return target


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    monkeypatch.setattr(machines, "results", lambda: tmp_path / "build")
    return tmp_path


def test_a_zip_has_the_runs_and_the_origin_of_the_folder_that_was_packed(here):
    folder, packed = open_study(INTEL), open_study(zipped(here / "noisebook-there.zip"))
    assert packed.name == "Intel Xeon, there" and packed.facts == folder.facts
    assert packed.facts["commit"] == "d91b1020" and len(packed.runs(UNDER_NOISE)) == 203
    for read in ("runs", "series"):
        tables = [getattr(one, read)("60-openmp-variability/runs") for one in (folder, packed)]
        plain = [table.drop(columns="machine") for table in tables]
        pd.testing.assert_frame_equal(*plain)
    assert not list(here.rglob("large.html")), "what is not compared is not unpacked"


def test_what_is_damaged_or_no_study_or_there_twice_is_refused(here):
    damaged = zipped(here / "a.zip", **{"data/00-machine/machine.json": b"{}"})
    with pytest.raises(InputError, match="was changed since"):
        open_study(damaged)
    with pytest.raises(InputError, match="no study: it has no"):
        open_study(here)
    (here / "data/00-machine").mkdir(parents=True)
    (here / "data/00-machine/machine.json").write_text("[]")
    with pytest.raises(InputError, match="no study of a known format"):
        open_study(here)
    with pytest.raises(InputError, match="called Intel Xeon, intel-quick"):
        open_studies([INTEL, zipped(here / "intel-quick.zip")])


@pytest.fixture(scope="module")
def compared() -> dict:
    return run_cells("95-machines", "compared", study=Study("95-machines", "recorded"), studies=[])


@pytest.mark.long
def test_verdicts_on_the_recorded_machine_are_those_of_its_own_pages(compared):
    answers = {one["stage"]: one for one in json.loads((RECORDED / "answers.json").read_text())}
    here = compared["verdicts"]["AMD EPYC, recorded"]
    said = answers["40-mitigations"]["answer"]["sentence"]
    for name, claim in {"housekeeping": 0, "pinning": 1, "SYCL": 3}.items():
        assert f"{name}: {here.iloc[claim]}" in said
    assert here.filter(like="more threads vary more (CV").item() == "reproduced"
    holds = compared["verdicts"]["holds_on"]
    assert holds.filter(like="more threads vary more (CV").item() == "AMD EPYC, recorded"


def test_a_difference_is_that_of_welch_over_rounds(compared):
    logs = []
    for one in (open_study(INTEL), open_study(RECORDED)):
        runs = one.runs(UNDER_NOISE)
        seconds = [
            runs[runs["cell"] == f"stream omp {config} undisturbed"].set_index("round")["seconds"]
            for config in ("RmHK", "Rm")
        ]
        logs.append(DescrStatsW(np.log(seconds[0] / seconds[1])))
    low, high = CompareMeans(*logs).tconfint_diff(usevar="unequal")
    row = compared["apart"].query("comparison.str.contains('memory-bound')").iloc[0]
    np.testing.assert_allclose(np.log1p(row["low_percent"] / 100), low)
    np.testing.assert_allclose(np.log1p(row["high_percent"] / 100), high)
    assert row["differs"] == "yes"


def test_a_study_beside_itself_differs_in_nothing(here):
    paths = [INTEL, zipped(here / "twin.zip")]
    study = Study("95-machines", "recorded")
    found = run_cells("95-machines", "compared", study=study, studies=paths)
    apart = found["apart"]
    assert len(apart) > 18 and set(apart["differs"]) == {"cannot tell"}
    np.testing.assert_allclose(apart["percent"], 0, atol=1e-9)
    times = apart["comparison"].str.startswith("time, ")
    assert times.any(), "times of the same command lines are compared"
    assert set(found["verdicts"]["holds_on"]) == {"cannot tell"}
    assert "omp natural" in " ".join(apart["comparison"]) and not len(found["opposed"])


def test_a_study_without_stage_60_stands_beside_one_that_has_it(here):
    part = shutil.copytree(INTEL, here / "part", ignore=shutil.ignore_patterns("60-*"))
    study = Study("95-machines", "recorded")
    found = run_cells("95-machines", "compared", study=study, studies=[part, INTEL])
    verdicts = found["verdicts"]
    claim = verdicts.filter(like="more threads vary more (CV", axis=0)
    assert claim["Intel Xeon, part"].item() != claim["Intel Xeon, intel-quick"].item()
