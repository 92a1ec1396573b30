"""ARTIFACT.md, the container, Binder, conda and the data card say what is so."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

import nbhelpers
from nbhelpers.artifact.card import datacite, recorded_counts, write_card

REPOSITORY = Path(__file__).resolve().parents[2]
RECORDED = REPOSITORY / "data" / "recorded"
APPENDIX = (REPOSITORY / "ARTIFACT.md").read_text()
MAKEFILE = (REPOSITORY / "Makefile").read_text()
CITATION = yaml.safe_load((REPOSITORY / "CITATION.cff").read_text())
PROJECT = (REPOSITORY / "pyproject.toml").read_text()
PACKAGES = re.search(r"`apt-get install ([^`]+)`", (REPOSITORY / "README.md").read_text())[
    1
].split()
COMMANDS = sorted(set(re.findall(r"`(make [^`]+)`", APPENDIX)) - {"make paper DATA=that.zip"})
OUTPUTS = sorted(set(re.findall(r"`build/recorded/results/([^`]+)`", APPENDIX)))
# The rows `make TARGET` and `PROFILE=NAME` of the map in the Makefile, with their times.
TIMES = dict(re.findall(r"^#: +((?:make|PROFILE=)\S*(?: \S+)?)  +([\d-]+ \w+)  ", MAKEFILE, re.M))


def read(name: str) -> str:
    return (REPOSITORY / name).read_text()


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_of_the_appendix_is_known_to_make(command):
    words = command.split()[1:]
    done = subprocess.run(
        ["make", "-n", *words], cwd=REPOSITORY, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr


def test_its_times_are_those_of_the_map():
    rows = re.findall(r"\| `(make [^`]+)` \| ([\d-]+ \w+) \|", APPENDIX)
    checked = 0
    for command, time in rows:
        profile = re.search(r"PROFILE=(\w+)", command)
        row = f"PROFILE={profile[1]}" if profile else command
        if row in TIMES and "/stamps/" not in command:
            assert time == TIMES[row], command
            checked += 1
    assert checked >= 6
    whole = re.search(r"make paper PROFILE=recorded +# ([\d-]+ \w+) on two cores", APPENDIX)
    assert whole[1] == TIMES["PROFILE=recorded"]


@pytest.mark.parametrize("output", OUTPUTS)
def test_each_expected_output_is_a_table_of_its_notebook(output):
    stage, name = output.split("/")
    assert f'\\"{name.removesuffix(".csv")}\\"' in read(f"notebooks/{stage}.ipynb"), output


def test_each_claim_has_a_command_of_the_same_stage_and_a_publication():
    claims = re.findall(r"^\| C\d: .*$", APPENDIX, re.M)
    years = {str(reference["year"]) for reference in CITATION["references"]}
    assert len(claims) >= 5
    for claim in claims:
        stage = re.search(r"stamps/([\w-]+)\.done PROFILE=recorded`", claim)[1]
        outputs = re.findall(r"`build/recorded/results/([\w-]+)/", claim)
        assert outputs and set(outputs) == {stage}, claim
        assert re.search(r"et al\. (\d{4})", claim)[1] in years, claim


@pytest.mark.parametrize("page", ["ARTIFACT.md", "data/recorded/CARD.md"])
def test_what_they_link_to_is_there(page):
    folder = (REPOSITORY / page).parent
    links = re.findall(r"\]\(([^)#:]+)\)", read(page))
    assert links and all((folder / link).exists() for link in links)


# --- container, Binder, conda ---------------------------------------------------------------------


def test_every_place_has_the_packages_of_the_readme_and_no_other():
    container = re.search(r"apt-get install -y ([^\\]+)\\", read("Containerfile"))[1].split()
    assert container == PACKAGES == read(".binder/apt.txt").split()
    assert f"apt-get install {' '.join(PACKAGES)}" in APPENDIX


def test_every_place_takes_its_wheels_from_the_one_lock():
    assert "--require-hashes -r requirements.lock" in read(".binder/postBuild")
    assert "-r requirements.lock" in read("environment.yml")
    assert "make env" in read("Containerfile") and "make env" in read(".binder/postBuild")
    for name in ("Containerfile", ".binder/postBuild", ".binder/apt.txt", "environment.yml"):
        assert not re.search(r"[a-z]==\d", read(name)), f"{name} has versions of its own"
    assert not list((REPOSITORY / ".binder").glob("requirements*"))


def test_every_place_has_a_python_that_the_project_takes():
    least = re.search(r'requires-python = ">=3\.(\d+)"', PROJECT)[1]
    binder = re.fullmatch(r"python-3\.(\d+)\n", read(".binder/runtime.txt"))[1]
    conda = re.search(r"python>=3\.(\d+),<3\.(\d+)", read("environment.yml")).groups()
    assert conda[0] == least and int(least) <= int(binder) < int(conda[1])
    assert f"Python 3.{least} to 3.{int(conda[1]) - 1}" in " ".join(APPENDIX.split())


def test_the_container_runs_the_recorded_study_and_takes_nothing_built_here():
    command = re.search(r"^CMD (.*)$", read("Containerfile"), re.M)[1]
    assert json.loads(command) == ["make", "paper", "PROFILE=recorded"]
    assert {".venv", "build"} <= set(read(".dockerignore").split())


# --- the recorded campaigns -----------------------------------------------------------------------


def test_the_card_counts_what_lies_beside_it():
    """After a new recording: python -m nbhelpers.artifact card."""
    card = read("data/recorded/CARD.md")
    rows = re.findall(r"^\| (\d\d-[\w-]+) \| (\d+) \| (\d+) \|$", card, re.M)
    stages = sorted(path.name for path in RECORDED.iterdir() if path.is_dir())
    assert [stage for stage, _, _ in rows] == stages
    for stage, campaigns, runs in rows:
        found = "find . -name 'runs.jsonl*'"
        packed = subprocess.run(
            f"{found} -exec gzip -cdf {{}} + | wc -l; {found} | wc -l",
            shell=True,
            cwd=RECORDED / stage,
            capture_output=True,
            text=True,
        ).stdout.split()
        assert [runs, campaigns] == packed, stage
    machine = json.loads((RECORDED / "00-machine/machine.json").read_text())["machine"]
    for fact in (machine["cpu_model"], machine["kernel"], machine["compiler"]):
        assert fact in card


def test_writing_the_card_again_changes_nothing(tmp_path):
    copy = tmp_path / "recorded"
    shutil.copytree(RECORDED, copy)
    for name in ("CARD.md", "datacite.json"):
        text = (copy / name).read_text()
        (copy / name).write_text(re.sub(r"\d{3,} runs|\d+ \|$", "?", text, flags=re.M))
    write_card(copy)
    for name in ("CARD.md", "datacite.json"):
        assert (copy / name).read_bytes() == (RECORDED / name).read_bytes(), name


def test_the_metadata_lack_only_the_doi():
    found = json.loads((RECORDED / "datacite.json").read_text())
    assert found == datacite(RECORDED, recorded_counts(RECORDED))
    required = {"creators", "titles", "publisher", "publicationYear", "types", "schemaVersion"}
    assert all(found[name] for name in required) and "identifiers" not in found
    assert found["types"]["resourceTypeGeneral"] == "Dataset"
    assert found["version"] == nbhelpers.__version__
    assert [one["name"] for one in found["creators"]] == [
        one["name"] for one in CITATION["authors"]
    ]
    assert found["rightsList"][0]["rightsIdentifier"] == CITATION["license"]


def test_zenodo_and_the_citation_agree():
    zenodo = json.loads(read(".zenodo.json"))
    assert zenodo["title"] == CITATION["title"] and zenodo["license"] == CITATION["license"]
    assert zenodo["upload_type"] == CITATION["type"]
    assert [one["name"] for one in zenodo["creators"]] == [
        one["name"] for one in CITATION["authors"]
    ]
    dois = {reference["doi"] for reference in CITATION["references"] if "doi" in reference}
    assert {one["identifier"] for one in zenodo["related_identifiers"]} == dois
