"""The zip of a study: what is in it, a valid RO-Crate for rocrate, that
the same study gives the same bytes.
"""

import hashlib
import json
import os
import zipfile
from urllib.parse import unquote

import pytest
from rocrate.rocrate import ROCrate

from nbhelpers.artifact.crate import METADATA, pack_study
from nbhelpers.artifact.names import Names, names_here
from nbhelpers.errors import InputError

from .small import PROFILE, lay_out, live_in


@pytest.fixture
def archive(tmp_path, monkeypatch):
    live_in(tmp_path, monkeypatch)
    lay_out(tmp_path)
    return pack_study(PROFILE, names_here())


def test_everything_that_was_made_is_in_it_and_nothing_else(archive):
    assert archive.name == "noisebook-quick.zip"
    with zipfile.ZipFile(archive) as packed:
        assert packed.testzip() is None
        assert sorted(packed.namelist()) == [
            "LICENSE",
            "README.md",
            "artifact.json",
            "data/00-machine/machine.json",
            "data/10-trace-collection/daemon, wöchentlich/campaign.json",
            "data/10-trace-collection/runs.jsonl.gz",
            "notebooks/00-machine.ipynb",
            "pages/00-machine.html",
            "profile.yml",
            "provenance/00-machine.json",
            "provenance/90-paper.json",
            "requirements.lock",
            "results/00-machine/empty.csv",
            "results/00-machine/table.csv",
            "ro-crate-metadata.json",
        ]


def test_rocrate_reads_it_back_with_each_files_size_and_digest(archive):
    crate = ROCrate(archive)
    root = crate.root_dataset
    assert crate.metadata.version == "1.1" and crate.name == "Noisebook study, profile quick"
    assert root["datePublished"].startswith("2026-01-03")
    assert "Some CPU, 2 CPUs" in root["description"]
    assert root["license"]["name"] == "Apache License 2.0"
    assert root["mentions"]["@type"] == "SoftwareApplication"
    with zipfile.ZipFile(archive) as packed:
        files = set(packed.namelist()) - {METADATA}
        assert {unquote(part.id) for part in root["hasPart"]} == files
        for part in root["hasPart"]:
            content = packed.read(unquote(part.id))
            assert part["contentSize"] == str(len(content)) and part["encodingFormat"]
            assert part["sha256"] == hashlib.sha256(content).hexdigest()
            assert (crate.source / unquote(part.id)).read_bytes() == content


def test_the_folder_of_this_machine_is_told_nowhere_unless_asked(archive, tmp_path):
    name = "data/10-trace-collection/daemon, wöchentlich/campaign.json"
    with zipfile.ZipFile(archive) as packed:
        assert json.loads(packed.read(name)) == {"of": "/noisebook/build/quick/x"}
    with zipfile.ZipFile(pack_study(PROFILE, Names())) as packed:
        campaign = packed.read(name)
        assert json.loads(packed.read("artifact.json"))["names"] == "as they were"
    assert json.loads(campaign) == {"of": f"{tmp_path}/quick/x"}


def test_the_same_study_gives_the_same_bytes_in_another_folder_at_another_time(
    archive, tmp_path, monkeypatch
):
    elsewhere = tmp_path / "an other ü folder"
    lay_out(elsewhere)
    for path in elsewhere.rglob("*"):
        os.utime(path, (10**9, 10**9))
    live_in(elsewhere, monkeypatch)
    assert pack_study(PROFILE, names_here()).read_bytes() == archive.read_bytes()
    (elsewhere / "quick/results/00-machine/table.csv").write_text("a,b\n1,3\n")
    assert pack_study(PROFILE, names_here()).read_bytes() != archive.read_bytes()


def test_a_study_that_was_not_made_is_refused_with_the_command(tmp_path, monkeypatch):
    live_in(tmp_path, monkeypatch)
    with pytest.raises(InputError, match="nothing to share yet(?s:.*)make paper PROFILE=quick"):
        pack_study(PROFILE, Names())
