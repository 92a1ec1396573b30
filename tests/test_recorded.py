"""What was recorded is still of what the library computes: its traces give the configs that were
injected.
"""

import gzip
import json
from pathlib import Path

import pytest

from nbhelpers.measurement import calibrate, finished, recorded_runs
from nbhelpers.noise import NoiseConfig, average_noise, delta_noise
from nbhelpers.tracing import read_traces
from nbhelpers.workloads import nbody

from . import record
from .cells import run_cells
from .shown import Shown

RECORDED = Path(__file__).resolve().parent.parent / "data" / "recorded"


@pytest.mark.long
def test_the_recorded_traces_still_give_the_configs_that_were_injected(tmp_path):
    """Who changes trace, average, delta or merge sees here that the recorded replay was of
    something else: record anew, or fix. One test, since to read the traces takes long.
    """
    runs = finished(recorded_runs(RECORDED / "10-trace-collection/baseline"))
    traced = runs[runs["cell"] == "traced"]
    events = read_traces(RECORDED / "10-trace-collection/baseline/traces", traced)
    average = average_noise(events, traced)
    delta = delta_noise(events, average, traced)
    config = NoiseConfig.from_events(delta, provenance={"method": "paper"})
    assert (RECORDED / "30-injection" / config.digest / "runs.jsonl.gz").exists()
    handed_on = RECORDED / "20-delta-config/handed-on/noise-config.json"
    assert config.write(tmp_path / "config.json").read_bytes() == handed_on.read_bytes()
    seconds = runs[runs["cell"] == "untraced"]["seconds"].mean()
    the_planted_anomalies_still_give_their_configs(seconds, average)


def the_planted_anomalies_still_give_their_configs(seconds, average):
    kept = RECORDED / "10-trace-collection/calibration.json"
    workload = calibrate(nbody, file=kept, recorded_only=True)
    page, folder = "35-planted-anomaly", RECORDED / "35-planted-anomaly"
    drawn = run_cells(page, "schedules", cases=10, seconds=seconds, cpus=2, seed=3)
    stage10 = Shown(workload=workload, average=lambda method: average)
    known = {"study": Shown(data=folder), "stage10": stage10, "numbers": range(1, 11)}
    known |= {"schedules": drawn["schedules"], "seed": 3, "recorded_only": True, "traces": 5}
    configs = run_cells(page, "traced", **known, method="paper", threads="recorded")["configs"]
    replayed = finished(recorded_runs(folder / "replayed"))
    injected = replayed[replayed["cell"].str.startswith("replayed")]
    assert set(injected["noise"]) == {config.digest for config in configs}
    assert all((config.events()["policy"] == "SCHED_FIFO").any() for config in configs)


def test_record_packs_the_runs_and_names_no_folder_of_this_machine(tmp_path, monkeypatch):
    monkeypatch.setattr(record, "shipped", lambda: tmp_path)
    monkeypatch.setattr(record, "results", lambda: tmp_path / "build")
    measured = tmp_path / "build/record/data/75-mpi-at-scale/runs"
    measured.mkdir(parents=True)
    ours, theirs = f"{tmp_path}/build/bin/mpi/halo2d", f"/opt{tmp_path}/program"
    (measured / "campaign.json").write_text(json.dumps({"command": [ours, theirs]}))
    (measured / "runs.jsonl").write_text('{"run": 0}\n')
    (measured / ".lock").touch()
    old = tmp_path / "data/recorded/75-mpi-at-scale/old.csv"
    old.parent.mkdir(parents=True)
    old.touch()
    found = record.record() / "75-mpi-at-scale/runs"
    campaign = json.loads((found / "campaign.json").read_text())
    assert campaign == {"command": ["/noisebook/build/bin/mpi/halo2d", theirs]}
    assert gzip.decompress((found / "runs.jsonl.gz").read_bytes()) == b'{"run": 0}\n'
    assert sorted(path.name for path in found.iterdir()) == ["campaign.json", "runs.jsonl.gz"]
    assert not old.exists(), "what was recorded before is of other runs"
