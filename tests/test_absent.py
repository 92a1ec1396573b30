"""Any subset of the optional parts of a machine gives complete pages, and the doctor said before
what they would lack.

The parts are really absent (`tests/absent.py`). The short tests take one part away at a time and
ask the doctor; the long ones run stages.
"""

import json
import os
import random
import shutil
import sys
from pathlib import Path

import pytest

from .absent import PARTS, run_without
from .happened import CHECKED, faults, replaced_or_left_out, says

STAGES = [
    "00-machine",
    "10-trace-collection",
    "15-account",
    "20-delta-config",
    "30-injection",
    "35-planted-anomaly",
    "37-worst-runs",
    "40-mitigations",
    "50-attribution",
    "52-known-causes",
    "55-mitigate-and-compare",
    "60-openmp-variability",
    "80-noise-at-scale",
    "90-paper",
]
TO_REPLAY = STAGES[:5]
# part: the stages that use it, with those that they need; the others are in the sets below
USED_BY = {
    "tracefs": [*STAGES[:7], "40-mitigations", "80-noise-at-scale"],
    "realtime": TO_REPLAY,
    "perf": [*STAGES[:2], "35-planted-anomaly", "50-attribution"],
    "second-cpu": [*TO_REPLAY, "40-mitigations", "60-openmp-variability", "80-noise-at-scale"],
    "cgroups": ["52-known-causes"],
    "allocators": ["52-known-causes", "55-mitigate-and-compare"],
    "clang": ["60-openmp-variability"],
    "sycl": [*STAGES[:4], "40-mitigations"],
}
SEEDS = (1, 2, 3)
# whole studies, several minutes each: too long for CI beside the bare systems
not_in_ci = pytest.mark.skipif(
    os.environ.get("CI") == "true",
    reason="whole studies without some parts take too long for CI: make test-all",
)
SHOWN_IN_CI = ("tracefs", "realtime", "cgroups", "allocators", "sycl")

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can take parts of the machine away"),
    pytest.mark.skipif(shutil.which("unshare") is None, reason="needs Linux with mount namespaces"),
]

ASK = """
import dataclasses, json
from nbhelpers.machine import doctor
from nbhelpers.promise import promises
found = doctor()
made = [
    [dataclasses.asdict(one) for one in promises(name, found=found)] for name in ("full", "smoke")
]
print(json.dumps([dataclasses.asdict(found.capabilities), *made]))
"""
RUN = """
import sys
from nbhelpers.errors import NoisebookError
from nbhelpers.stages import run_stage
for stage in sys.argv[1:]:
    try:
        print(run_stage(stage, "smoke"), flush=True)
    except NoisebookError as error:
        sys.exit(f"{stage}: {error}")
"""


def asked(parts: list[str], folder: Path) -> tuple[dict, list[dict], list[dict]]:
    """The doctor's capabilities and its promises for the profiles full and smoke, without some
    parts.
    """
    done = run_without(parts, [sys.executable, "-c", ASK], folder)
    if done.returncode == 77:
        pytest.skip(done.stdout.strip())
    assert done.returncode == 0, done.stdout
    return tuple(json.loads(done.stdout.splitlines()[-1]))


def of(made: list[dict], stage: str) -> set[str]:
    return {one["part"] for one in made if one["stage"] == stage and one["part"]}


EXPECTED = {
    "tracefs": lambda can, made: (
        can["tracer"] == "detours" and "time of the hypervisor" in of(made, "37-worst-runs")
    ),
    "realtime": lambda can, made: (
        not can["fifo"]
        and {"real-time scheduling"} <= of(made, "30-injection")
        and "fifo-bursts" in of(made, "52-known-causes")
    ),
    "root": lambda can, made: (
        can["tracer"] == "detours" and "kernel tracer" in of(made, "10-trace-collection")
    ),
    "perf": lambda can, made: (
        not can["perf_hardware"]
        and not can["perf_software"]
        and "hardware counters" in of(made, "50-attribution")
    ),
    "second-cpu": lambda can, made: (
        "configurations" in of(made, "40-mitigations")
        and "interrupt-storm" in of(made, "52-known-causes")
    ),
    "cgroups": lambda can, made: "cpu-quota" in of(made, "52-known-causes"),
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


def some_parts(seed: int) -> list[str]:
    """A random set, the same for the same seed."""
    chance = random.Random(seed)
    return [part for part in PARTS if chance.random() < 0.5]


def check_pages(parts: list[str], stages: list[str], folder: Path) -> None:
    """Run stages without some parts; the pages are complete, and lack just what the doctor said."""
    _, _, made = asked(parts, folder)
    done = run_without(parts, [sys.executable, "-c", RUN, *stages], folder, timeout_s=3000)
    assert done.returncode == 0, done.stdout
    profile = folder / "smoke"
    assert faults(profile, stages) == []
    for stage in stages:
        own = [one for one in made if one["stage"] == stage and one["part"]]
        assert all(says(profile, stage, one["sentence"]) for one in own), (stage, own)
        promised = {one["part"] for one in own} & CHECKED.get(stage, set())
        assert promised == replaced_or_left_out(profile, stage), stage


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    "part",
    [pytest.param(part, marks=[] if part in SHOWN_IN_CI else [not_in_ci]) for part in USED_BY],
)
def test_the_stages_that_use_a_part_end_without_it(part, tmp_path):
    check_pages([part], USED_BY[part], tmp_path)


@not_in_ci
@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", SEEDS)
def test_any_set_of_absent_parts_gives_complete_pages(seed, tmp_path):
    check_pages(some_parts(seed), STAGES, tmp_path)


@not_in_ci
@pytest.mark.long
@pytest.mark.timeout(3600)
def test_without_anything_the_doctor_keeps_its_promises(tmp_path):
    """An ordinary user with all other parts: `tests/bare/all`."""
    check_pages(list(PARTS), STAGES, tmp_path)
