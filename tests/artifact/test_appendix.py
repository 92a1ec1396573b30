"""ARTIFACT.md, the container, Binder, conda and the data card say what is so."""

import json
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from nbhelpers.reading import read_bytes

REPOSITORY = Path(__file__).resolve().parents[2]
RECORDED = REPOSITORY / "data" / "recorded"
APPENDIX = (REPOSITORY / "ARTIFACT.md").read_text()
CITATION = yaml.safe_load((REPOSITORY / "CITATION.cff").read_text())
PROJECT = (REPOSITORY / "pyproject.toml").read_text()
README = (REPOSITORY / "README.md").read_text()
PACKAGES = re.search(r"`apt-get install ([^`]+)`", README)[1].split()
COMMANDS = sorted(set(re.findall(r"`(make [^`]+)`", APPENDIX)) - {"make paper DATA=that.zip"})
OUTPUTS = sorted(set(re.findall(r"`build/recorded/results/([^`]+)`", APPENDIX)))


def read(name: str) -> str:
    return (REPOSITORY / name).read_text()


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_of_the_appendix_is_known_to_make(command):
    words, how = command.split()[1:], {"capture_output": True, "text": True, "timeout": 120}
    done = subprocess.run(["make", "-n", *words], cwd=REPOSITORY, **how)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("output", OUTPUTS)
def test_each_expected_output_is_a_table_of_its_notebook(output):
    stage, name = output.split("/")
    assert f'\\"{name.removesuffix(".csv")}\\"' in read(f"notebooks/{stage}.ipynb"), output


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


# --- the recorded campaigns -----------------------------------------------------------------------


def test_the_card_counts_what_lies_beside_it():
    card = read("data/recorded/CARD.md")
    rows = re.findall(r"^\| (\d\d-[\w-]+) \| (\d+) \| (\d+) \|$", card, re.M)
    stages = sorted(path.name for path in RECORDED.iterdir() if path.is_dir())
    assert [stage for stage, _, _ in rows] == stages
    for stage, campaigns, runs in rows:
        files = list((RECORDED / stage).rglob("runs.jsonl*"))
        recorded = sum(read_bytes(path).count(b"\n") for path in files)
        assert [int(campaigns), int(runs)] == [len(files), recorded], stage
    machine = json.loads((RECORDED / "00-machine/machine.json").read_text())["machine"]
    for fact in (machine["cpu_model"], machine["kernel"], machine["compiler"]):
        assert fact in card
