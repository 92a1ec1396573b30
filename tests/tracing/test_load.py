"""Detours of the quiet and the loaded machine: recorded here, read again, and the load that makes
the difference.
"""

import os
import resource

import pandas as pd
import pytest

from nbhelpers.errors import InputError, RunError
from nbhelpers.tracing.load import THRESHOLD_NS, cpu_load, quiet_and_loaded
from nbhelpers.workloads import binary_folder

built = pytest.mark.skipif(
    not all((binary_folder() / name).exists() for name in ("detours", "stream")),
    reason="the programs are not built: make build",
)


@built
def test_both_states_are_recorded_once_and_read_as_they_were(tmp_path):
    path = tmp_path / "states.json.gz"
    states = quiet_and_loaded(path, 0.1)
    assert list(states) == ["quiet", "loaded"]
    for detours in states.values():
        assert detours.attrs["threshold_ns"] == THRESHOLD_NS
        assert detours.attrs["seconds"] == pytest.approx(0.1, rel=0.5)
        assert (detours["duration_ns"] >= THRESHOLD_NS).all()
        assert set(detours["cpu"]) <= os.sched_getaffinity(0)
    for state, detours in quiet_and_loaded(path, 5.0, recorded_only=True).items():
        pd.testing.assert_frame_equal(detours, states[state])
        assert detours.attrs == states[state].attrs


def test_nothing_recorded(tmp_path):
    with pytest.raises(InputError, match="not measured yet"):
        quiet_and_loaded(tmp_path / "states.json.gz", recorded_only=True)


@built
class TestLoad:
    def test_takes_cpu_time_and_leaves_nothing_behind(self):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        with cpu_load(1):
            pass
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert after.ru_utime + after.ru_stime > before.ru_utime + before.ru_stime + 0.02

    def test_that_ends_too_soon_is_an_error(self):
        with pytest.raises(RunError, match="ended before"), cpu_load(1, longest_s=0.05):
            pass
