"""Recording packs runs, and names nothing of the machine that measured."""

import gzip
import json

from . import record


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
