"""Tables of traces that are cached: the same as from the traces, and never of another trace."""

import gzip
import os
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from nbhelpers.errors import InputError
from nbhelpers.measurement import finished, recorded_runs
from nbhelpers.noise import average_noise, delta_noise
from nbhelpers.outcomes import worst_first
from nbhelpers.tracing import (
    campaign,
    each_trace,
    read_osnoise,
    read_tracepoints,
    read_traces,
    stolen_times,
)
from nbhelpers.tracing.hypervisor import stolen_time
from nbhelpers.tracing.tracepoints import read_recording

from .conftest import osnoise_file

BASELINE = Path(__file__).parents[2] / "data/recorded/10-trace-collection/baseline"
RUNS = pd.DataFrame({"run": [0, 3], "seconds": [1.0, 2.0], "status": "ok"})


def assert_same(one, other):
    pd.testing.assert_frame_equal(one, other, check_exact=True, check_column_type=True)
    assert one.attrs == other.attrs
    for name in ("kind", "source", "policy", "interrupted"):
        pd.testing.assert_index_equal(one[name].cat.categories, other[name].cat.categories)


@pytest.fixture
def traces(data, tmp_path):
    """A campaign's folder of two osnoise traces."""
    for run in RUNS["run"]:
        text = gzip.decompress((data / f"osnoise-run-{run:03d}.trace.gz").read_bytes())
        about = {"clock": "mono", "start_ns": 5 * 10**9, "end_ns": 50 * 10**9}
        content = osnoise_file(text, workload_pids=[103], **about)
        (tmp_path / f"run-{run:06d}.osnoise.gz").write_bytes(gzip.compress(content))
    return tmp_path


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    """A folder of results of this test alone."""
    monkeypatch.setattr(campaign, "results", lambda: tmp_path / "build")


def test_the_second_reading_is_of_the_kept_file(traces, monkeypatch):
    first = read_traces(traces, RUNS)
    assert len(first) > 500
    plain = [read_osnoise(traces / f"run-{run:06d}.osnoise.gz", run=run) for run in RUNS["run"]]
    monkeypatch.setattr(campaign, "_READERS", dict.fromkeys(campaign._READERS))  # reads nothing
    assert_same(read_traces(traces, RUNS), first)
    for kept_events, events in zip(each_trace(traces, RUNS), plain, strict=True):
        assert_same(kept_events, events)


def test_another_trace_of_the_same_name_is_read(traces, data):
    read_traces(traces, RUNS)
    shutil.copy(traces / "run-000003.osnoise.gz", traces / "run-000000.osnoise.gz")
    events = read_traces(traces, RUNS)
    again = events[events["run"] == 3].assign(run=0).reset_index(drop=True)
    pd.testing.assert_frame_equal(events[events["run"] == 0].reset_index(drop=True), again)


def test_a_damaged_trace_is_refused_though_its_events_were_kept(traces):
    read_traces(traces, RUNS)
    path = traces / "run-000003.osnoise.gz"
    path.write_bytes(path.read_bytes()[:-50])
    with pytest.raises(InputError, match="run-000003.osnoise.gz"):
        read_traces(traces, RUNS)


def test_nothing_is_cached_beside_data_nor_read_from_a_folder_of_others(traces, monkeypatch):
    """A pickle can run code: it is never read from where others may have put one."""
    before = sorted(path.name for path in traces.glob("*"))
    read_traces(traces, RUNS)
    assert sorted(path.name for path in traces.glob("*")) == sorted([*before, "build"])
    assert campaign._cache().location
    uid = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: uid + 1)
    assert campaign._cache().location is None


@pytest.mark.parametrize("events_first", [True, False])
def test_a_recording_is_decoded_one_time_for_both_of_its_tables(
    tmp_path, monkeypatch, events_first
):
    runs = finished(recorded_runs(BASELINE)).query("cell == 'traced'").head(3)
    folder = BASELINE / "traces"
    (read_traces if events_first else stolen_times)(folder, runs)
    monkeypatch.setattr(campaign, "_READERS", dict.fromkeys(campaign._READERS))  # reads nothing
    events, stolen = read_traces(folder, runs), stolen_times(folder, runs)
    assert stolen["run"].nunique() > 1 and stolen["slack_ns"].dtype == np.int64
    for run in runs["run"]:
        path = folder / f"run-{run:06d}.tracepoints.gz"
        plain = stolen_time(*read_recording(path), path)
        assert_rows_of(run, events, read_tracepoints(path))
        assert_rows_of(run, stolen, plain)
        one = stolen_times(folder, runs[runs["run"] == run])
        assert one.attrs.items() >= plain.attrs.items()


def assert_rows_of(run, table, plain):
    rows = table[table["run"] == run].reset_index(drop=True)
    texts = {"source": str}  # other runs have other sources, too
    pd.testing.assert_frame_equal(rows.astype(texts), plain.astype(texts), check_exact=True)


@pytest.mark.long
def test_run_by_run_the_average_and_the_delta_are_the_same(tmp_path, monkeypatch):
    """Exactly: what a config is made of must not depend on how much fits into memory."""
    runs = finished(recorded_runs(BASELINE)).query("cell == 'traced'").head(6)
    folder = BASELINE / "traces"
    events = read_traces(folder, runs)
    whole = average_noise(events, runs)
    by_run = average_noise(each_trace(folder, runs), runs)
    parts = np.array_split(np.random.default_rng(0).permutation(len(events)), 5)
    in_parts = average_noise((events.iloc[part] for part in parts), runs)
    for average in (by_run, in_parts):
        pd.testing.assert_frame_equal(average, whole, check_exact=True)
        assert average.attrs == whole.attrs
    slowest = worst_first(runs).head(1)
    delta = delta_noise(read_traces(folder, slowest), by_run, runs)
    pd.testing.assert_frame_equal(
        delta.astype({"source": str}),
        delta_noise(events, whole, runs).astype({"source": str}),
        check_exact=True,
    )
