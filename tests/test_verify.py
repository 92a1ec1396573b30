"""`noisebook verify`: what is whole passes, and each damage is named."""

import json
import os
import random
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from nbhelpers.errors import InputError
from nbhelpers.files import write_atomically
from nbhelpers.measurement import Attachment, Campaign, Cell, measure
from nbhelpers.reading import read_json
from nbhelpers.stages import MANIFEST, STUDY, _changed_files, _promise, whole_digests
from nbhelpers.verify import DAMAGED, WHOLE, examine, report
from nbhelpers.workloads import program

STAGE = "90-paper"  # whose files are the paper's, too
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
    findings = examine(RECORDED)
    assert [finding for finding in findings if finding.state != WHOLE] == []
    assert any("before records had checks" in finding.found for finding in findings)


@pytest.fixture
def study(measured: Path, tmp_path: Path) -> Path:
    """A study of one stage, with every kind of file."""
    study = tmp_path / "study"
    shutil.copytree(measured.parents[2], study)
    (study / "data/10-stage").rename(study / "data" / STAGE)
    places = "results/{0}/a.csv paper/a.html notebooks/{0}.ipynb pages/{0}.html provenance/{0}.json"
    places += " stamps/{0}.wanted stamps/{0}.made data/{0}/.calls/calls.0 profile.yml"
    for name in places.format(STAGE).split():
        write_atomically(study / name, "some text")
    _promise(study, {name: whole_digests(study, name) for name in (STAGE, STUDY)})
    return study


def wrong(study: Path) -> dict[tuple[str, str], str]:
    return {(one.what, one.state): one.found for one in examine(study) if one.state != WHOLE}


@pytest.mark.parametrize("lone", [False, True])
def test_any_changed_bit_of_any_file_is_found(study: Path, campaign: Path, lone: bool) -> None:
    """Of a study by its manifest; of a lone campaign by its seal, which has a check of its own."""
    draw, folder = random.Random(1), campaign if lone else study
    assert not wrong(folder)
    for path in (one for one in folder.rglob("*") if one.is_file() and one.stat().st_size):
        before = path.read_bytes()
        for _ in range(2):
            changed = bytearray(before)
            changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
            path.write_bytes(changed)
            assert wrong(folder), path
        path.write_bytes(before)


def test_what_is_damaged_missing_added_and_newer_is_told_apart(study: Path) -> None:
    damaged, newer = study / f"results/{STAGE}/a.csv", study / "paper/a.html"
    times = damaged.stat()
    damaged.write_text("same text")
    os.utime(damaged, ns=(times.st_atime_ns, times.st_mtime_ns))  # as a failing disk leaves it
    newer.write_text("more text")
    (study / f"pages/{STAGE}.html").unlink()
    (study / "paper/more.html").touch()
    (study / f"data/{STAGE}/.calls/calls.1").touch()
    said = {
        "damaged": damaged,
        "newer": newer,
        "missing": study / f"pages/{STAGE}.html",
        "added": study / "paper/more.html",
    }
    assert wrong(study) == {
        (f"stage {STAGE}", state): path.relative_to(study).as_posix()
        for state, path in said.items()
    }
    assert "4 of 5 are not whole" in report(examine(study))


def test_of_a_study_only_what_its_manifest_lacks_is_read_line_by_line(study: Path) -> None:
    runs = study / f"data/{STAGE}/runs/runs.jsonl"
    runs.write_bytes(runs.read_bytes().replace(b'"run": 2', b'"run": 7'))
    name = runs.relative_to(study).as_posix()
    assert wrong(study) == {(f"stage {STAGE}", "newer"): name}
    _promise(study, {STAGE: {}})  # it runs, or was stopped
    found = wrong(study)[Path(name).parent.as_posix(), DAMAGED]
    assert "line 3: changed after it was written (run 7)" in found
    (study / MANIFEST).write_text("{")
    assert {what for what, _ in wrong(study)} == {MANIFEST, Path(name).parent.as_posix()}
    assert "manifest.json was put aside" in _changed_files(study, [STAGE])
    assert read_json(study / MANIFEST) == {STUDY: whole_digests(study, STUDY)}


def test_a_stage_that_is_to_be_made_anew_is_promised_with_its_new_stamp(study: Path) -> None:
    (study / f"stamps/{STAGE}.wanted").write_text("other text")
    assert wrong(study)
    _changed_files(study, [STAGE])
    assert not wrong(study)


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


def test_who_does_not_read_the_answer_gets_no_traceback(campaign: Path) -> None:
    verify = shlex.join([sys.executable, "-m", "nbhelpers", "verify", str(campaign)])
    command = f"{verify} | true"
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    done = subprocess.run(command, shell=True, capture_output=True, text=True, env=buffered)
    assert not done.stderr
