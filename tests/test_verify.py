"""`noisebook verify`: what is whole passes, and each damage is named."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from nbhelpers.errors import InputError
from nbhelpers.measurement import Attachment, Campaign, Cell, measure
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


def test_recorded_campaigns_of_before_there_were_checks_are_read(tmp_path: Path) -> None:
    findings = examine(RECORDED / "10-trace-collection")
    assert {finding.state for finding in findings} == {WHOLE}
    assert all("before records had checks" in finding.found for finding in findings)


def test_the_tables_of_a_stage_are_those_that_its_data_gave(measured: Path) -> None:
    from nbhelpers.stages import whole_digests

    study = measured.parents[2]
    results = study / "results/10-stage"
    results.mkdir(parents=True)
    (results / "table.csv").write_text("a\n1\n")
    (study / "stamps").mkdir()
    (study / "stamps/10-stage.whole").write_text(json.dumps(whole_digests(study, "10-stage")))
    assert {finding.state for finding in examine(study)} == {WHOLE}
    (results / "table.csv").write_text("a\n2\n")
    [wrong] = [finding for finding in examine(study) if finding.state == DAMAGED]
    assert (wrong.what, wrong.found) == (
        "stage 10-stage",
        "its results are not those of its last execution",
    )
    assert "1 of 2 are damaged" in report(examine(study))


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
