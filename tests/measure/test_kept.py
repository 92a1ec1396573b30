"""The problem size is found once and kept; runs are read back without knowing the campaign."""

import pytest

from nbhelpers.errors import InputError
from nbhelpers.files import append_record
from nbhelpers.measure import calibrated, recorded_runs
from nbhelpers.workloads import nbody


def test_a_size_is_calibrated_once_and_kept(tmp_path, binaries):
    path = tmp_path / "calibration.json"
    first = calibrated(nbody, path, target_seconds=0.01, size=500)
    before = path.read_bytes()
    assert calibrated(nbody, path) == first
    assert calibrated(nbody, path, target_seconds=0.01, measure=False) == first
    assert path.read_bytes() == before


def test_another_target_is_refused_and_nothing_is_overwritten(tmp_path, binaries):
    path = tmp_path / "calibration.json"
    calibrated(nbody, path, target_seconds=0.01, size=500)
    before = path.read_bytes()
    with pytest.raises(InputError, match="measure-again"):
        calibrated(nbody, path, target_seconds=0.02)
    assert path.read_bytes() == before


@pytest.mark.parametrize("content", ["[]", "{}", "{", "null"])
def test_a_damaged_calibration_is_an_error_that_names_the_file(tmp_path, content):
    (tmp_path / "calibration.json").write_text(content)
    with pytest.raises(InputError, match="calibration.json"):
        calibrated(nbody, tmp_path / "calibration.json")


def test_without_permission_to_measure_a_missing_calibration_is_an_error(tmp_path):
    with pytest.raises(InputError, match="problem size was not measured"):
        calibrated(nbody, tmp_path / "calibration.json", target_seconds=0.1, measure=False)


def test_recorded_runs_are_read_back_failed_ones_too(tmp_path):
    for number, status in enumerate(("ok", "timeout")):
        append_record(tmp_path / "runs.jsonl", {"run": number, "status": status, "seconds": 1.0})
    assert recorded_runs(tmp_path)["status"].tolist() == ["ok", "timeout"]
    with pytest.raises(InputError, match="no runs"):
        recorded_runs(tmp_path / "elsewhere")
