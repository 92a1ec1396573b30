"""The doctor says what is absent and what each stage will lack; nothing is measured.

Parts that no stage needs for the same thing are taken away together (`tests/absent.py`), then some
by chance.
"""

import os
import shutil
from pathlib import Path

import pytest

from .promised import STAGES, asked, some_parts

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can take parts of the machine away"),
    pytest.mark.skipif(shutil.which("unshare") is None, reason="needs Linux with mount namespaces"),
]
NO_COUNTERS = {"perf_hardware": False, "perf_software": False}
EXPECTED = {  # part -> a stage, what it is said to lack, what the machine cannot do
    "tracefs": ("37-worst-runs", {"time of the hypervisor"}, {"tracer": "detours"}),
    "realtime": ("30-injection", {"real-time scheduling"}, {"fifo": False}),
    "root": ("10-trace-collection", {"kernel tracer"}, {"tracer": "detours"}),
    "perf": ("50-attribution", {"hardware counters"}, NO_COUNTERS),
    "second-cpu": ("40-mitigations", {"configurations"}, {}),
    "allocators": ("55-mitigate-and-compare", {"jemalloc", "tcmalloc", "mimalloc"}, {}),
    "sycl": ("40-mitigations", {"sycl"}, {}),
}


APART = (["tracefs", "allocators"], ["realtime", "perf"], ["second-cpu", "sycl"], ["root"])


@pytest.mark.parametrize("parts", [*APART, some_parts(0)])
def test_what_is_absent_is_found_absent_and_said_of_every_stage(parts, tmp_path):
    can, made, _ = asked(parts, tmp_path)
    assert {one["stage"] for one in made} == set(STAGES) and all(one["sentence"] for one in made)
    for part in EXPECTED.keys() & set(parts):
        stage, lacking, cannot = EXPECTED[part]
        assert lacking <= {one["part"] for one in made if one["stage"] == stage}, made
        assert cannot.items() <= can.items()


def test_what_is_taken_away_is_there_again_afterwards(tmp_path):
    before = Path("/proc/self/mounts").read_text()
    asked(["tracefs", "allocators", "sycl", "pressure", "root"], tmp_path)
    assert Path("/proc/self/mounts").read_text() == before
