"""Detours of the quiet and the loaded machine: recorded here, read again, and the load that makes
the difference.
"""

import os
import resource

import numpy as np
import pandas as pd
import pytest

from nbhelpers.errors import InputError, RunError
from nbhelpers.report import published_table
from nbhelpers.studies.scale import detours_with_published, quiet_and_loaded
from nbhelpers.studies.scale.applications import pop_alone
from nbhelpers.studies.scale.load import THRESHOLD_NS, cpu_load
from nbhelpers.workloads import binary_folder

built = pytest.mark.skipif(
    not all((binary_folder() / name).exists() for name in ("detours", "stream")),
    reason="the programs are not built: make build",
)


@built
def test_both_states_are_recorded_once_and_read_as_they_were(tmp_path):
    path = tmp_path / "states.json.gz"
    states = quiet_and_loaded(path, 0.1)
    assert list(states) == ["quiet", "loaded"] and path.stat().st_size < 200_000
    for detours in states.values():
        assert detours.attrs["threshold_ns"] == THRESHOLD_NS and detours.attrs[
            "seconds"
        ] == pytest.approx(0.1, rel=0.5)
        assert (detours["duration_ns"] >= THRESHOLD_NS).all() and set(
            detours["cpu"]
        ) <= os.sched_getaffinity(0)
        assert (detours["end_ns"] - detours["start_ns"] == detours["duration_ns"]).all()
    content = path.read_bytes()
    for state, detours in quiet_and_loaded(path, 5.0, recorded_only=True).items():
        pd.testing.assert_frame_equal(detours, states[state])
        assert detours.attrs == states[state].attrs
    assert path.read_bytes() == content


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


def test_figures_beside_the_published_ones():
    detours = pd.DataFrame(
        {"cpu": [0, 0, 1], "start_ns": [0, 10_000, 5000], "duration_ns": [2000, 4000, 6000]}
    )
    detours["end_ns"] = detours["start_ns"] + detours["duration_ns"]
    detours.attrs = {"seconds": 0.001, "cpus": [0, 1], "resolution_ns": 10.0, "threshold_ns": 1000}
    table = detours_with_published({"quiet": detours})
    ours = table.iloc[0]
    assert (ours["system"], ours["from"]) == ("quiet", "this machine")
    assert ours["overhead_percent"] == pytest.approx(100 * 12_000 / 2e6) and ours[
        "detours_per_s"
    ] == pytest.approx(3 / 0.002)
    assert (ours["median_us"], ours["max_us"], ours["resolution_ns"]) == (4.0, 6.0, 10.0) and ours[
        "p99_us"
    ] == pytest.approx(np.quantile([2, 4, 6], 0.99))
    for source, name in (
        ("Hoefler et al. 2010", "hoefler2010-noise1"),
        ("De Sensi et al. 2022", "desensi2022-noise1"),
    ):
        theirs, printed = (
            table[table["from"] == source].reset_index(drop=True),
            published_table(name),
        )
        columns = [
            column
            for column in ("system", "resolution_ns", "overhead_percent", "max_us")
            if column in printed
        ]
        pd.testing.assert_frame_equal(theirs[columns], printed[columns], check_dtype=False)


def test_pop_alone_is_that_of_the_injected_codes():
    from nbhelpers.simulation import simulate
    from nbhelpers.studies.scale.applications import injected_codes

    alone, among = pop_alone(36, 0.01), injected_codes(36, 0.01)
    assert list(alone) == ["POP"]
    np.testing.assert_array_equal(
        simulate(alone["POP"]).finish_ns, simulate(among["POP"]).finish_ns
    )
