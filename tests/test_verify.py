"""`noisebook verify`: what is whole passes, and each damage is named."""

import json
import random
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from nbhelpers.errors import InputError
from nbhelpers.files import write_atomically, write_json
from nbhelpers.measurement import Attachment, Campaign, Cell, measure
from nbhelpers.reading import read_json
from nbhelpers.records import write_records
from nbhelpers.stages import MANIFEST, STUDY, _changed_files, _promise, whole_digests
from nbhelpers.verify import DAMAGED, WHOLE, examine, report
from nbhelpers.workloads import program

RECORDED = Path(__file__).parents[1] / "data/recorded"


class Keeps(Attachment):
    """Writes a file a run, as tracers and injectors do."""

    def __init__(self, folder: Path):
        self.folder = folder

    def after(self, run: dict) -> dict:
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / f"run-{run['run']:06d}.txt").write_text(f"of run {run['run']}")
        return {}


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("study") / "data/10-stage/runs"
    cell = Cell("a", program(["true"]), attachments=(Keeps(folder / "traces"),))
    Campaign(folder, [cell], 4).run()
    return folder


@pytest.fixture
def campaign(measured: Path, tmp_path: Path) -> Path:
    shutil.copytree(measured, tmp_path / "campaign")
    return tmp_path / "campaign"


def only(path: Path) -> tuple[str, str]:
    [finding] = examine(path)
    return finding.state, finding.found


def changed(campaign: Path) -> None:
    path = campaign / "runs.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"run": 2', b'"run": 7'))


def without_the_last(campaign: Path) -> None:
    path = campaign / "runs.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:3]))


def without_files(campaign: Path) -> None:
    (campaign / "traces/run-000001.txt").unlink()
    (campaign / "traces/run-000002.txt").write_text("of run 9")


def of_other_words(campaign: Path) -> None:
    path = campaign / "campaign.json"
    path.write_text(path.read_text().replace("true", "tree"))


def of_another(campaign: Path) -> None:
    measure("true", runs=4, folder=campaign.parent / "other")
    shutil.copy(campaign.parent / "other/runs.jsonl", campaign / "runs.jsonl")


@pytest.mark.parametrize(
    "damage, found",
    [
        (changed, "line 3: changed after it was written (run 7)"),
        (without_the_last, "runs.jsonl has 3 records, and had 4"),
        (lambda campaign: (campaign / "runs.jsonl").write_text(""), "has 0 records, and had 4"),
        (without_files, "run-000001.txt is missing; traces/run-000002.txt was changed"),
        (of_other_words, "campaign.json was changed"),
        (lambda campaign: (campaign / "seal.json").write_text("{"), "its seal cannot be read"),
        (of_another, "runs.jsonl is not what was sealed"),
    ],
)
def test_each_damage_is_named(campaign: Path, damage, found: str) -> None:
    assert only(campaign) == (WHOLE, "4 runs, 4 of them ok; sealed")
    damage(campaign)
    state, said = only(campaign)
    assert state == DAMAGED and found in said


def test_a_campaign_that_was_stopped_is_whole_but_not_sealed(campaign: Path) -> None:
    (campaign / "seal.json").unlink()
    assert only(campaign) == (WHOLE, "4 runs, 4 of them ok; not sealed: measuring goes on")


def test_a_campaign_that_grows_is_sealed_again(tmp_path: Path) -> None:
    measure("true", runs=2, folder=tmp_path)
    before = json.loads((tmp_path / "seal.json").read_text())
    measure("true", runs=3, folder=tmp_path)
    after = json.loads((tmp_path / "seal.json").read_text())
    assert before["records"]["runs.jsonl"][0] == 2 and after["records"]["runs.jsonl"][0] == 3
    assert only(tmp_path) == (WHOLE, "3 runs, 3 of them ok; sealed")


class Stops(Attachment):
    """As Ctrl-C does, before the first run of its cell."""

    def before(self, workload) -> None:
        raise KeyboardInterrupt


def test_a_sealed_campaign_that_was_stopped_while_it_grew_is_whole(campaign: Path) -> None:
    assert "campaign.json" in json.loads((campaign / "seal.json").read_text())["files"]
    cells = [Cell(name, program(["true"]), attachments=(Stops(),)) for name in "ab"]
    with pytest.raises(KeyboardInterrupt):
        Campaign(campaign, cells, 4).run()
    assert "b" in json.loads((campaign / "campaign.json").read_text())["cells"]
    assert only(campaign)[0] == WHOLE


def test_recorded_campaigns_of_before_there_were_checks_are_read(tmp_path: Path) -> None:
    findings = examine(RECORDED / "70-noise-signatures")
    assert {finding.state for finding in findings} == {WHOLE}
    assert all("before records had checks" in finding.found for finding in findings)


def test_any_changed_bit_of_any_file_of_a_study_is_found(measured: Path, tmp_path: Path) -> None:
    study, draw = tmp_path / "study", random.Random(1)
    shutil.copytree(measured.parents[2], study)
    stage = "90-paper"  # whose files are the paper's, too
    (study / "data/10-stage").rename(study / "data" / stage)
    places = "results/{0}/a.csv paper/a.html notebooks/{0}.ipynb pages/{0}.html provenance/{0}.json"
    for name in f"{places} data/{{0}}/.calls/calls.0 profile.yml".format(stage).split():
        write_atomically(study / name, "some text")
    write_records(study / f"stamps/{stage}.wanted", [{"code": {}}])
    for name in (stage, STUDY):
        _promise(study, name, whole_digests(study, name))
    assert {finding.state for finding in examine(study)} == {WHOLE}
    for path in (one for one in study.rglob("*") if one.is_file() and one.stat().st_size):
        before = path.read_bytes()
        for _ in range(2):
            changed = bytearray(before)
            changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
            path.write_bytes(changed)
            assert DAMAGED in {finding.state for finding in examine(study)}, path
        path.write_bytes(before)
    stamp = study / f"stamps/{stage}.wanted"
    before = stamp.read_bytes()
    for content in b"", 2 * before:
        stamp.write_bytes(content)
        [wrong] = [finding for finding in examine(study) if finding.state == DAMAGED]
        assert (wrong.what, wrong.found) == ("stamps", f"{stamp.name} is damaged")
    stamp.write_bytes(before)
    (study / "paper/more.html").write_text("")
    assert "1 of 4 are damaged" in report(examine(study))
    assert "paper/more.html was added" in report(examine(study))


def test_a_study_of_before_there_was_one_manifest_is_read(measured: Path, tmp_path: Path) -> None:
    study, stage = tmp_path / "study", "10-stage"
    shutil.copytree(measured.parents[2], study)
    write_json(study / f"stamps/{stage}.whole", whole_digests(study, stage))
    assert {finding.state for finding in examine(study)} == {WHOLE}
    _promise(study, STUDY, whole_digests(study, STUDY))
    (study / "data" / stage / "more").touch()
    [wrong] = [finding for finding in examine(study) if finding.state == DAMAGED]
    assert (wrong.what, wrong.found) == (f"stage {stage}", f"data/{stage}/more was added")
    (study / MANIFEST).write_text("{")
    assert "manifest.json was put aside" in _changed_files(study)
    assert read_json(study / MANIFEST) == {STUDY: whole_digests(study, STUDY)}


@pytest.mark.skipif(not shutil.which("ssh-keygen"), reason="no OpenSSH here")
def test_who_signed_a_shared_study_is_said(tmp_path: Path, monkeypatch) -> None:
    path, key, signers = (tmp_path / name for name in ("study.zip", "key", "signers"))
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("ro-crate-metadata.json", '{"@graph": []}')
    assert only(path)[1].endswith("; not signed")
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    subprocess.run(
        ["ssh-keygen", "-q", "-Y", "sign", "-n", "noisebook", "-f", key, path], check=True
    )
    monkeypatch.setenv("NOISEBOOK_SIGNERS", str(signers))
    assert "; signed by somebody unknown, key SHA256:" in only(path)[1]
    signers.write_text(f"ann@lab {key.with_suffix('.pub').read_text()}")
    assert "; signed by ann@lab, key SHA256:" in only(path)[1]
    with zipfile.ZipFile(path, "a") as archive:
        archive.comment = b"one more word"
    assert only(path) == (DAMAGED, "study.zip.sig is no signature of it")


def test_a_folder_without_anything_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nothing to verify"):
        examine(tmp_path)


def noisebook(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "nbhelpers", *map(str, words)], capture_output=True, text=True
    )


def test_the_command_says_it_by_its_status(campaign: Path) -> None:
    done = noisebook("verify", campaign)
    assert (done.returncode, done.stderr) == (0, "") and "All 1 are whole." in done.stdout
    path = campaign / "runs.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"ok"', b'"OK"', 1))
    done = noisebook("verify", campaign)
    assert done.returncode == 4 and "measures those runs again" in done.stdout
    assert json.loads(noisebook("verify", campaign, "--json").stdout)[0]["state"] == DAMAGED
