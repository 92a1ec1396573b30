"""The doctor says what is absent and what each stage will lack; nothing is measured.

One part is taken away at a time (`tests/absent.py`), then some of them together.
"""

import os
import shutil
from pathlib import Path

import pytest

from .promised import STAGES, asked, some_parts

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can take parts of the machine away"),
    pytest.mark.skipif(shutil.which("unshare") is None, reason="needs Linux with mount namespaces"),
]


def of(made: list[dict], stage: str) -> set[str]:
    return {one["part"] for one in made if one["stage"] == stage and one["part"]}


EXPECTED = {
    "tracefs": lambda can, made: (
        can["tracer"] == "detours" and "time of the hypervisor" in of(made, "37-worst-runs")
    ),
    "realtime": lambda can, made: (
        not can["fifo"] and {"real-time scheduling"} <= of(made, "30-injection")
    ),
    "root": lambda can, made: (
        can["tracer"] == "detours" and "kernel tracer" in of(made, "10-trace-collection")
    ),
    "perf": lambda can, made: (
        not can["perf_hardware"]
        and not can["perf_software"]
        and "hardware counters" in of(made, "50-attribution")
    ),
    "second-cpu": lambda can, made: "configurations" in of(made, "40-mitigations"),
    "allocators": lambda can, made: (
        {"jemalloc", "tcmalloc", "mimalloc"} <= of(made, "55-mitigate-and-compare")
    ),
    "sycl": lambda can, made: "sycl" in of(made, "40-mitigations"),
}


@pytest.mark.parametrize("part", EXPECTED)
def test_a_part_that_is_absent_is_found_absent_and_said_so(part, tmp_path):
    can, made, _ = asked([part], tmp_path)
    assert len({one["stage"] for one in made}) == len(STAGES) and all(
        one["sentence"] for one in made
    )
    assert EXPECTED[part](can, made), (can, made)


@pytest.mark.parametrize("seed", range(2))
def test_any_set_of_absent_parts_has_a_promise_for_every_stage(seed, tmp_path):
    parts = some_parts(seed)
    can, made, _ = asked(parts, tmp_path)
    assert len({one["stage"] for one in made}) == len(STAGES)
    for part in parts:
        assert EXPECTED.get(part, lambda *_: True)(can, made), part


def test_what_is_taken_away_is_there_again_afterwards(tmp_path):
    before = Path("/proc/self/mounts").read_text()
    asked(["tracefs", "allocators", "sycl", "pressure", "root"], tmp_path)
    assert Path("/proc/self/mounts").read_text() == before
