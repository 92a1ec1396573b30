"""What `make paper` says at its start: campaigns counted as they are measured, times and sizes from
them, what is done left out.
"""

import datetime
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nbhelpers import estimate
from nbhelpers.estimate import Estimate, Machine, campaigns, sentence, this_machine
from nbhelpers.machine import topology
from nbhelpers.places import shipped
from nbhelpers.profiles import default_parameters
from nbhelpers.reading import read_json
from nbhelpers.records import read_records
from nbhelpers.stages import parameters_of
from nbhelpers.study import Study
from nbhelpers.workloads import Configuration, configurations

RECORDED = shipped() / "data" / "recorded"
STAGES = (
    next(
        line
        for line in (shipped() / "Makefile").read_text().splitlines()
        if line.startswith("STAGES ")
    )
    .split(":=")[1]
    .split()
)
CAUSES = (
    "cache-eviction",
    "cpu-hog",
    "cpu-quota",
    "disk-contention",
    "dropped-cache",
    "fifo-bursts",
    "forced-migrations",
    "interrupt-storm",
    "memory-bandwidth",
    "returned-memory",
    "slow-path",
    "small-pages",
    "timer-storm",
)


def asked(profile: str) -> dict[str, dict]:
    return {stage: default_parameters(stage) | parameters_of(stage, profile) for stage in STAGES}


def recorded_machine() -> Machine:
    """The two CPUs that data/recorded was measured on, by its designs."""
    found = {}
    for stage in ("40-mitigations", "60-openmp-variability"):
        for record in read_json(RECORDED / stage / "design.json")["configurations"]:
            found[record["name"]] = Configuration(
                **{
                    name: tuple(value) if isinstance(value, list) else value
                    for name, value in record.items()
                }
            )
    return Machine(
        2,
        tuple(found.values()),
        ("omp", "sycl"),
        ("gcc", "clang"),
        ("jemalloc", "tcmalloc", "mimalloc"),
        CAUSES,
    )


def server(tmp_path: Path) -> Machine:
    """Two sockets of eight cores with SMT."""
    for cpu in range(32):
        core, socket = cpu % 8, cpu // 8 % 2
        folder = tmp_path / f"sys/devices/system/cpu/cpu{cpu}/topology"
        folder.mkdir(parents=True, exist_ok=True)
        mates = f"{cpu % 16},{cpu % 16 + 16}"
        for name, text in {
            "core_id": core,
            "physical_package_id": socket,
            "core_cpus_list": mates,
        }.items():
            (folder / name).write_text(f"{text}\n")
    (tmp_path / "sys/devices/system/cpu/online").write_text("0-31\n")
    for node, cpus in ((0, "0-7,16-23"), (1, "8-15,24-31")):
        folder = tmp_path / f"sys/devices/system/node/node{node}"
        folder.mkdir(parents=True)
        (folder / "cpulist").write_text(f"{cpus}\n")
    root = tmp_path
    return Machine(
        32,
        configurations(topology(root), range(32)),
        ("omp", "sycl"),
        ("gcc", "clang"),
        ("jemalloc", "tcmalloc", "mimalloc"),
        CAUSES,
    )


def total_s(machine: Machine, profile: str) -> float:
    parameters = asked(profile)
    return sum(
        estimate.analysis_seconds(stage, parameters, machine)
        + sum(own.seconds(machine.cpus) for own in campaigns(stage, parameters, machine))
        for stage in STAGES
    )


def recorded(stage: str, folder: str) -> Path:
    """The recorded campaign behind a planned one."""
    found = [path.parent for path in (RECORDED / stage).glob(f"{folder}/campaign.json")]
    return next(path for path in found if path.name != "loop" or folder == "loop")


EXACT = {
    "10-trace-collection": ["baseline"],
    "30-injection": ["*", "*/retraced"],
    "37-worst-runs": ["loop"],
    "40-mitigations": ["baseline", "planted", "injected/*", "lengths/*"],
    "52-known-causes": list(CAUSES),
    "55-mitigate-and-compare": ["matrix-product"],
    "60-openmp-variability": ["runs"],
    "70-noise-signatures": ["loops", "programs"],
}


@pytest.mark.parametrize("stage", EXACT)
def test_a_profiles_campaigns_are_counted_as_they_were_measured(stage):
    """data/recorded is what its own profile made: every campaign has as many finished runs as the
    estimate says.
    """
    planned = {
        own.folder: own.runs for own in campaigns(stage, asked("record"), recorded_machine())
    }
    assert set(EXACT[stage]) <= set(planned)
    for folder in EXACT[stage]:
        assert planned[folder] == sum(
            row["status"] == "ok" for row in read_records(recorded(stage, folder) / "runs.jsonl")
        ), folder


@pytest.mark.parametrize("stage", EXACT)
def test_the_time_of_recorded_campaigns_is_met_within_a_third(stage):
    """Seconds that data/recorded itself took, by its own clock: an independent sum."""
    expected_s = took_s = 0.0
    for own in campaigns(stage, asked("record"), recorded_machine()):
        if own.folder in EXACT[stage]:
            expected_s += own.seconds(2)
            took_s += sum(
                row["elapsed_seconds"]
                for row in read_records(recorded(stage, own.folder) / "runs.jsonl")
            )
    assert expected_s == pytest.approx(took_s, rel=0.35)


def test_the_papers_counts_take_days_on_a_node_and_hours_on_two_cpus(tmp_path):
    assert 1.5 < total_s(server(tmp_path), "full") / 86_400 < 5
    assert 2 < total_s(recorded_machine(), "smoke") / 60 < 7  # 70, 75 and 85 are among the stages
    assert (
        total_s(recorded_machine(), "smoke")
        < total_s(recorded_machine(), "quick")
        < total_s(recorded_machine(), "full")
    )


def test_the_papers_sizes_take_days_and_a_large_disk_on_32_cpus(tmp_path):
    """By hand: 6 × 13 × 1000 baseline runs of 1.1 s or more are 26 h of timed regions alone."""
    machine, parameters = server(tmp_path), asked("paper")
    assert 2 < total_s(machine, "paper") / 86_400 < 6
    planned = {own.folder: own for own in campaigns("40-mitigations", parameters, machine)}
    assert planned["baseline"].runs == 6 * 13 * 1000
    assert planned["baseline"].runs * planned["baseline"].run_s > 26 * 3600
    disk_b = sum(
        own.bytes(machine.cpus) for stage in STAGES for own in campaigns(stage, parameters, machine)
    )
    assert 60e9 < disk_b < 250e9


def test_a_requested_number_of_threads_is_counted():
    parameters = asked("quick")
    parameters["60-openmp-variability"]["configs"] = "TP-ST1 TP-ST77"
    assert "TP-ST77" in estimate._requested(parameters)
    listed = this_machine(estimate._requested(parameters)).configurations
    assert "TP-ST77" in {one.name for one in listed}


@pytest.mark.parametrize("profile", ["smoke", "quick", "record", "recorded", "full", "paper"])
def test_every_profile_has_an_estimate_of_every_stage_here(profile, tmp_path, monkeypatch):
    machine, parameters = this_machine(), asked(profile)
    monkeypatch.setattr(Study, "build", property(lambda self: tmp_path / self.profile))
    estimates = [
        estimate.stage_estimate(stage, parameters, machine, Study(stage, profile))
        for stage in STAGES
    ]
    assert all(
        own.seconds >= estimate.STAGE_S
        and own.seconds_left == pytest.approx(own.seconds)
        and own.bytes > 0
        for own in estimates
    )
    assert (sum(own.runs for own in estimates) > 0) == (profile != "recorded")


def test_a_study_that_was_begun_counts_what_is_left(tmp_path, monkeypatch):
    monkeypatch.setattr(Study, "build", property(lambda self: tmp_path / self.profile))
    parameters = asked("quick")
    machine = recorded_machine()
    study = Study("10-trace-collection", "quick")
    whole = estimate.stage_estimate(study.stage, parameters, machine, study)
    folder = study.data / "baseline"
    folder.mkdir(parents=True)
    (folder / "campaign.json").write_text("{}")
    rows = [{"run": run, "status": "ok" if run % 10 else "timeout"} for run in range(50)]
    (folder / "runs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    begun = estimate.stage_estimate(study.stage, parameters, machine, study)
    assert (whole.runs_left, begun.runs, begun.runs_left) == (110, 110, 65)
    assert whole.seconds == begun.seconds and begun.seconds_left == pytest.approx(
        whole.seconds - 0.45 * campaigns(study.stage, parameters, machine)[0].seconds(2)
    )
    assert (
        estimate.stage_estimate(study.stage, parameters, machine, study, done=True).seconds_left
        == 0
    )


def test_the_sentence_names_time_range_end_runs_disk_and_what_is_done(tmp_path):
    estimates = [Estimate("a", 7200, 0.0, 100, 0, 2e9), Estimate("b", 3600, 1800.0, 300, 100, 1e9)]
    said = sentence(
        "full",
        estimates,
        Machine(32, ()),
        tmp_path,
        datetime.datetime.now().replace(hour=10, minute=0),
    )
    assert "about 30 min on these 32 CPUs (15 min to 60 min" in said and "until about 10:30" in said
    assert (
        "2 stages, 400 runs; 3.0 GB of disk" in said
        and "Done already: 1 stages and 300 runs; all of it would take 3.0 h" in said
    )
    assert "too small" in sentence(
        "full", [Estimate("a", 1, 1, 1, 1, 1e18)], Machine(32, ()), tmp_path
    )


def test_the_map_and_the_readme_say_what_the_estimate_says(tmp_path):
    """The words there are rounded by hand; they may not be off by more than the estimate itself."""
    text = (shipped() / "Makefile").read_text()
    two = recorded_machine()
    for profile, words in (
        ("smoke", r"PROFILE=smoke\s+(\d+) min"),
        ("quick", r"make paper\s+(\d+) min"),
        ("recorded", r"PROFILE=recorded\s+(\d+) min"),
    ):
        told_s = 60 * int(re.search(words, text)[1])
        expected_s = (
            total_s(two, profile)
            if profile != "recorded"
            else sum(estimate._shown_s(stage) for stage in STAGES)
        )
        assert (
            1 / estimate.UNCERTAIN
            <= told_s / (expected_s + estimate.ENVIRONMENT_S)
            <= estimate.UNCERTAIN
        ), profile
    for target in ("test", "sycl"):
        said = subprocess.run(
            ["make", "-n", target, f"PY={sys.executable}"],
            cwd=shipped(),
            capture_output=True,
            text=True,
            env={name: value for name, value in os.environ.items() if not name.startswith("MAKE")},
        ).stdout
        assert re.search(rf'"make {target}: about \d+ min', said), "said before it begins"
    assert (
        "days on 32 cores" in text
        and "days on 32 cores" in (shipped() / "docs/study.md").read_text()
    )


@pytest.mark.long
@pytest.mark.timeout(1500)
def test_a_smoke_run_takes_about_what_was_said(tmp_path):
    """Printed, not asserted: what else runs here decides. Asserted: the stages measured as many
    runs as was said.
    """
    parameters, machine = asked("smoke"), this_machine()
    began_s = time.monotonic()
    study = Study("10-trace-collection", "smoke")
    done = subprocess.run(
        [sys.executable, "-m", "nbhelpers.stages", "run", study.stage, "--profile", "smoke"],
        cwd=shipped(),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    said = estimate.stage_estimate(study.stage, parameters, machine, study)
    print(
        f"\n{study.stage}: {said.seconds:.0f} s were expected, {time.monotonic() - began_s:.0f} s"
        " it took"
    )
    assert said.runs_left == 0
