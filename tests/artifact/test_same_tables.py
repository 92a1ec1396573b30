"""Who measured and who reads the data later see the same tables, to the order of the columns."""

import pandas as pd

from nbhelpers.study import Study
from nbhelpers.tracing import cached_detours

from .small import live_in


def test_the_machine_has_the_same_rows_before_and_after_it_is_written(tmp_path, monkeypatch):
    live_in(tmp_path, monkeypatch)
    study = Study("00-machine", "quick")
    study.save_machine()
    written = Study("00-machine", "quick")
    vars(written)["shared"] = {"profile": "quick"}
    assert written.recorded_only
    assert [*written.machine["machine"].items()] == [*study.machine["machine"].items()]


def test_detours_have_the_same_columns_when_they_are_read_again(tmp_path, monkeypatch):
    monkeypatch.setenv("NOISEBOOK_STATE", str(tmp_path))  # 10 ms for columns need not wait
    first = cached_detours(tmp_path / "detours.json", 0.01)
    again = cached_detours(tmp_path / "detours.json", 0.01, recorded_only=True)
    pd.testing.assert_frame_equal(again, first)
    assert list(first) == ["cpu", "start_ns", "duration_ns", "end_ns"] and len(first)
