"""The main job, as the README has it: `make paper`, with a handful of runs, and from the recorded
campaign.
"""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from nbhelpers.measurement import calibrate, finished, recorded_runs
from nbhelpers.noise import NoiseConfig, average_noise, delta_noise
from nbhelpers.page import outside_loads
from nbhelpers.studies.planted_anomalies import (
    describe_configs,
    planted_schedules,
    planted_table,
    traced_configs,
)
from nbhelpers.tracing import read_traces
from nbhelpers.workloads import nbody

REPOSITORY = Path(__file__).resolve().parent.parent
RECORDED = REPOSITORY / "data" / "recorded"


def make_paper(profile: str) -> list[str]:
    command = ["make", "-j2", "paper", f"PROFILE={profile}", f"PY={sys.executable}"]
    outside = {
        name: value for name, value in os.environ.items() if not name.startswith("MAKE")
    }  # `make test` may be what runs us
    result = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, env=outside)
    assert result.returncode == 0, result.stdout + result.stderr
    *made, last = result.stdout.splitlines()
    assert last.endswith(f". Open build/{profile}/paper.html")
    return [line.split()[0] for line in made if line.endswith(".html")]


def results(profile: str) -> dict[str, str]:
    folder = REPOSITORY / "build" / profile / "results"
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.mark.long
@pytest.mark.timeout(900)
def test_the_whole_pipeline_runs_here_and_a_second_time_does_nothing():
    """From nothing: data of an older library are kept aside, since its configs may have been
    others.
    """
    subprocess.run(
        [sys.executable, "-m", "nbhelpers.stages", "measure-again", "--profile", "smoke"],
        cwd=REPOSITORY,
        check=True,
        capture_output=True,
    )
    make_paper("smoke")
    for page in (REPOSITORY / "build/smoke/pages").glob("*.html"):
        assert not outside_loads(page.read_text()), page
    paper = (REPOSITORY / "build/smoke/paper.html").read_text()
    assert (
        "No conclusion can be drawn" in paper
        and "Persson et al. 2025" in paper
        and "Figure 1" in paper
    )
    assert make_paper("smoke") == []


@pytest.mark.long
@pytest.mark.timeout(900)
def test_the_recorded_campaign_gives_the_same_bytes_every_time():
    make_paper("recorded")
    before = results("recorded")
    for stage in ("20-delta-config", "50-attribution"):
        subprocess.run(
            [sys.executable, "-m", "nbhelpers.stages", "run", stage, "--profile", "recorded"],
            cwd=REPOSITORY,
            check=True,
            capture_output=True,
        )
    assert results("recorded") == before and len(before) > 40
    assert (
        "Nothing on this page was measured on this machine"
        in (REPOSITORY / "build/recorded/paper.html").read_text()
    )


@pytest.fixture(scope="module")
def traced():
    runs = finished(recorded_runs(RECORDED / "10-trace-collection/baseline"))
    return runs[runs["cell"] == "traced"]


@pytest.fixture(scope="module")
def events(traced):
    return read_traces(RECORDED / "10-trace-collection/baseline/traces", traced)


def test_the_recorded_traces_still_give_the_config_that_was_injected(traced, events):
    """Who changes trace, average, delta or merge sees here that the recorded replay was of
    something else: record anew, or fix.
    """
    config = NoiseConfig.from_events(delta_noise(events, average_noise(events, traced), traced))
    assert (RECORDED / "30-injection" / config.digest / "runs.jsonl.gz").exists()


def test_the_recorded_planted_anomalies_still_give_their_configs(traced, events):
    undisturbed = finished(recorded_runs(RECORDED / "10-trace-collection/baseline"))
    seconds = undisturbed[undisturbed["cell"] == "untraced"]["seconds"].mean()
    workload = calibrate(
        nbody, file=RECORDED / "10-trace-collection/calibration.json", recorded_only=True
    )
    configs = traced_configs(
        RECORDED / "35-planted-anomaly/traced",
        workload,
        planted_schedules(10, seconds, cpus=2, seed=3),
        average_noise(events, traced),
        seed=3,
        recorded_only=True,
    )
    replayed = finished(recorded_runs(RECORDED / "35-planted-anomaly/replayed"))
    injected = replayed[replayed["cell"].str.startswith("replayed")]
    assert set(injected["noise"]) == {config.digest for config in configs}
    assert (
        describe_configs(configs)["realtime_ms"].gt(0).all() and len(planted_table(replayed)) == 10
    )
