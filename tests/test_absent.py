"""Any subset of the optional parts of a machine gives complete pages, and the doctor said before
what they would lack.

The parts are really absent (`tests/absent.py`). What the doctor says is tested in
`test_absent_promises.py`; here stages run.
"""

import os
import shutil
import sys
from pathlib import Path

import pytest

from .absent import PARTS, run_without
from .ci import not_in_ci
from .happened import CHECKED, faults, replaced_or_left_out, says
from .promised import STAGES, asked, some_parts

TO_REPLAY = STAGES[:5]
# part: the stages that use it, with those that they need; the others are in the sets below
USED_BY = {
    "tracefs": [*STAGES[:7], "40-mitigations", "42-fairness", "82-this-machine-at-scale"],
    "realtime": TO_REPLAY,
    "perf": [*STAGES[:2], "35-planted-anomaly", "50-attribution"],
    "second-cpu": [
        *TO_REPLAY,
        "40-mitigations",
        "60-openmp-variability",
        "82-this-machine-at-scale",
    ],
    "allocators": ["55-mitigate-and-compare"],
    "clang": ["60-openmp-variability"],
    "sycl": [*STAGES[:4], "40-mitigations", "42-fairness"],
}
SEEDS = (1, 2, 3)
whole_study = not_in_ci("several minutes each")
# in CI together, by the stages whose data tell what was absent, and those that they need
SHOWN_IN_CI = ["tracefs", "realtime", "sycl"]

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can take parts of the machine away"),
    pytest.mark.skipif(shutil.which("unshare") is None, reason="needs Linux with mount namespaces"),
]

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
    [pytest.param(part, marks=[] if part == "allocators" else whole_study) for part in USED_BY],
)
def test_the_stages_that_use_a_part_end_without_it(part, tmp_path):
    check_pages([part], USED_BY[part], tmp_path)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_the_stages_that_use_some_parts_end_without_all_of_them(tmp_path):
    check_pages(SHOWN_IN_CI, [*TO_REPLAY, "37-worst-runs", "40-mitigations"], tmp_path)


@whole_study
@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", SEEDS)
def test_any_set_of_absent_parts_gives_complete_pages(seed, tmp_path):
    check_pages(some_parts(seed), STAGES, tmp_path)


@whole_study
@pytest.mark.long
@pytest.mark.timeout(3600)
def test_without_anything_the_doctor_keeps_its_promises(tmp_path):
    """An ordinary user with all other parts: `tests/bare/all`."""
    check_pages(list(PARTS), STAGES, tmp_path)
