"""The problem size is found one time and cached; runs are read back without their campaign."""

import pytest

from nbhelpers.errors import InputError
from nbhelpers.measurement import calibrate, calibration, recorded_runs
from nbhelpers.reading import read_json
from nbhelpers.records import append_record
from nbhelpers.workloads import nbody, program


@pytest.fixture(autouse=True)
def _close_together(monkeypatch):
    """The runs of a check follow each other closely: here it does not matter how right it is."""
    monkeypatch.setattr(calibration, "SPREAD_S", 0.1)


def test_a_size_is_calibrated_once_and_kept(tmp_path, binaries):
    path = tmp_path / "calibration.json"
    first = calibrate(nbody, file=path, target_seconds=0.01, size=500)
    before = path.read_bytes()
    assert calibrate(nbody, file=path) == first
    assert calibrate(nbody, file=path, target_seconds=0.01, recorded_only=True) == first
    assert path.read_bytes() == before


def test_a_size_that_takes_minutes_is_no_obstacle(monkeypatch):
    """As beside other load: the run ends, and a tenth of the size is tried."""
    monkeypatch.setattr(calibration, "QUICK_S", 0.5)
    found = calibrate(lambda ms: program(f"sleep {ms / 1e3}"), 90_000, 0.05, 1.0)
    assert 20 < int(1e3 * float(found.command[1])) < 80


def asides(path) -> list[str]:
    return sorted(found.name for found in path.parent.glob("aside/*/*.json"))


@pytest.mark.long
def test_for_another_target_the_size_is_found_anew_and_the_old_one_put_aside(tmp_path, binaries):
    path = tmp_path / "calibration.json"
    first = calibrate(nbody, file=path, target_seconds=0.01, size=500)
    assert calibrate(nbody, file=path, target_seconds=0.03) != first
    (note,) = read_json(path)["notes"]
    assert "calibrated for 0.01 s" in note and asides(path) == ["calibration.json"]
    with pytest.raises(InputError, match="calibrated for 0.03 s") as caught:
        calibrate(nbody, file=path, target_seconds=0.01, recorded_only=True)
    assert "mv " not in str(caught.value)


@pytest.mark.long
def test_a_damaged_calibration_is_put_aside_or_named_where_nothing_may_be_measured(
    tmp_path, binaries
):
    path = tmp_path / "calibration.json"
    for content in ("[]", "{}", "{", "null"):
        path.write_text(content)
        with pytest.raises(InputError, match="calibration.json|not the size"):
            calibrate(nbody, file=path)
        assert path.read_text() == content
    calibrate(nbody, file=path, target_seconds=0.01, size=500)
    assert asides(path) == ["calibration.json"]


def test_without_permission_to_measure_a_missing_calibration_is_an_error(tmp_path):
    with pytest.raises(InputError, match="problem size was not measured"):
        calibrate(nbody, file=tmp_path / "calibration.json", target_seconds=0.1, recorded_only=True)


def test_recorded_runs_are_read_back_failed_ones_too(tmp_path):
    for number, status in enumerate(("ok", "timeout")):
        append_record(tmp_path / "runs.jsonl", {"run": number, "status": status, "seconds": 1.0})
    assert recorded_runs(tmp_path)["status"].tolist() == ["ok", "timeout"]
    with pytest.raises(InputError, match="no runs"):
        recorded_runs(tmp_path / "elsewhere")
