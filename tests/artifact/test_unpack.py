"""A shared study becomes the data of a study here; one that is cut, changed, incomplete, or names a
file outside is refused and leaves nothing behind.
"""

import hashlib
import json
import stat
import zipfile
from pathlib import Path
from urllib.parse import quote

import pytest

from nbhelpers.artifact.crate import pack_study
from nbhelpers.artifact.names import names_here
from nbhelpers.artifact.unpack import adopt
from nbhelpers.errors import InputError
from nbhelpers.study import Header, Study, profile_file

from .small import PROFILE, lay_out, live_in

NAME = "shared-quick"


@pytest.fixture
def archive(tmp_path, monkeypatch) -> Path:
    """A zip from elsewhere; results go to the folder `here` from now on."""
    live_in(tmp_path / "there", monkeypatch)
    lay_out(tmp_path / "there")
    packed = pack_study(PROFILE, names_here()).rename(tmp_path / "noisebook-quick.zip")
    live_in(tmp_path / "here", monkeypatch)
    return packed


def changed(archive: Path, drop: str = "", **contents: bytes) -> Path:
    """The same zip without a file, or with other contents of some."""
    target = archive.with_name("changed.zip")
    with zipfile.ZipFile(archive) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            if name != drop:
                new.writestr(name, contents.get(name, old.read(name)))
    return target


def refused(path: Path, message: str) -> None:
    with pytest.raises(InputError, match=message) as error:
        adopt(path, NAME)
    assert "what to do:" in str(error.value)
    data = path.parent / "here" / NAME / "data"
    assert not data.exists() and not list(path.parent.rglob("escaped*"))


def test_its_data_and_profile_are_those_of_a_study_that_measures_nothing(archive, tmp_path):
    assert "profile quick, measured elsewhere" in adopt(archive, NAME)
    study = Study("00-machine", NAME)
    assert study.recorded_only and study.machine == {"machine": {"cpus": [0]}, "replaced": []}
    assert study.shared["profile"] == "quick" and study.shared["commits"] == ["c0ffee"]
    assert profile_file(NAME).read_text() == profile_file("quick").read_text()
    there, here = tmp_path / "there/quick/data", tmp_path / "here/shared-quick/data"
    names = {path.relative_to(here).as_posix() for path in here.rglob("*") if path.is_file()}
    campaign = {"daemon, wöchentlich/campaign.json", "runs.jsonl.gz"}
    expected = {f"10-trace-collection/{name}" for name in campaign}
    assert names == expected | {"00-machine/machine.json"}
    same = "00-machine/machine.json"
    assert (here / same).read_bytes() == (there / same).read_bytes()


def test_its_pages_say_whose_data_they_show(archive, tmp_path):
    adopt(archive, NAME)
    record = {"machine": {"cpus": [0], "cpu_model": "X", "kernel": "6", "virtualisation": "no"}}
    machine = tmp_path / "here" / NAME / "data/00-machine/machine.json"
    machine.write_text(json.dumps(record | {"replaced": []}))
    page = Header(Study("00-machine", NAME))._repr_html_()
    assert "regenerated from a shared study (profile quick, Noisebook" in page
    assert "data/recorded" not in page


def test_the_same_study_again_is_nothing_to_do(archive):
    adopt(archive, NAME)
    assert adopt(archive, NAME) == ""


def test_an_interrupted_unpacking_is_done_again(archive, tmp_path):
    adopt(archive, NAME)
    data = tmp_path / "here" / NAME / "data"
    data.rename(data.with_name("data.unpacking"))
    (data.with_name("data.unpacking") / "00-machine/machine.json").unlink()
    adopt(archive, NAME)
    assert (data / "00-machine/machine.json").exists()


def test_another_study_of_the_same_name_is_refused(archive, tmp_path, monkeypatch):
    adopt(archive, NAME)
    (tmp_path / "there/quick/data/00-machine/machine.json").write_text("{}")
    live_in(tmp_path / "there", monkeypatch)
    other = pack_study(PROFILE, names_here())
    live_in(tmp_path / "here", monkeypatch)
    with pytest.raises(InputError, match="other data have the name shared-quick already"):
        adopt(other, NAME)


@pytest.mark.parametrize("share", [0.0, 0.2, 0.9, 0.999])
def test_a_zip_that_was_cut_is_refused(archive, share):
    content = archive.read_bytes()
    archive.write_bytes(content[: int(len(content) * share)])
    refused(archive, "cannot read it as a whole zip")


def test_a_flipped_bit_is_found(archive):
    content = bytearray(archive.read_bytes())
    place = content.index(b"data/10-trace-collection/runs.jsonl.gz") + 60
    content[place] ^= 1
    archive.write_bytes(content)
    refused(archive, "runs.jsonl.gz in it is damaged")


@pytest.mark.parametrize(
    "name", ["../escaped.txt", "/tmp/escaped.txt", "data/../../escaped", "a\\b"]
)
def test_a_path_outside_is_refused(archive, name):
    with zipfile.ZipFile(archive, "a") as packed:
        packed.writestr(name, "x")
    refused(archive, "holds a file that would lie outside")


def test_a_link_is_refused(archive):
    link = zipfile.ZipInfo("data/escaped")
    link.create_system, link.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(archive, "a") as packed:
        packed.writestr(link, "/etc/passwd")
    refused(archive, "holds a file that would lie outside: data/escaped")


@pytest.mark.parametrize(
    "name",
    ["data/00-machine/machine.json", "profile.yml", "ro-crate-metadata.json", "artifact.json"],
)
def test_a_missing_file_is_refused(archive, name):
    refused(changed(archive, drop=name), f"{name} is listed and missing|there is no {name} in it")


def test_a_changed_file_is_refused(archive):
    other = changed(archive, **{"data/00-machine/machine.json": b"{}"})
    refused(other, "machine.json was changed since the study was packed")


def test_a_file_that_is_not_listed_is_refused(archive):
    with zipfile.ZipFile(archive, "a") as packed:
        packed.writestr("data/00-machine/more.json", "{}")
    refused(archive, "data/00-machine/more.json is not listed")


def test_a_zip_that_would_fill_the_disk_is_refused(archive):
    """Its files are listed, with the right digests."""
    metadata = json.loads(zipfile.ZipFile(archive).read("ro-crate-metadata.json"))
    zeros, names = bytes(20 << 20), [f"data/10-trace-collection/{n}" for n in range(4)]
    digest = hashlib.sha256(zeros).hexdigest()
    metadata["@graph"] += [{"@id": name, "sha256": digest} for name in names]
    large = changed(archive, **{"ro-crate-metadata.json": json.dumps(metadata).encode()})
    with zipfile.ZipFile(large, "a", zipfile.ZIP_DEFLATED) as packed:
        for name in names:
            packed.writestr(name, zeros)
    assert large.stat().st_size < 600_000
    refused(large, "its files would have more than 67,108,864 bytes")


def test_another_zip_and_another_folder_are_refused(tmp_path, monkeypatch):
    live_in(tmp_path / "here", monkeypatch)
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as packed:
        packed.writestr("a.txt", "a")
    refused(tmp_path / "a.zip", "there is no ro-crate-metadata.json in it")
    refused(tmp_path, "no regular file")
    refused(tmp_path / "none.zip", "cannot read it as a whole zip: No such file")
    (tmp_path / "text.zip").write_text("<html>not found</html>")
    refused(tmp_path / "text.zip", "cannot read it as a whole zip")


EVIL = (
    *("nbhelpers/__init__.py", "notebooks/00-machine.ipynb", "sitecustomize.py", "conftest.py"),
    *("evil.pth", "programs/evil.yml", "knowledge/mitigations/evil.yml", "Makefile"),
    *("a`touch pwned`.py", "$(touch pwned).py", "a';touch pwned;'.py"),
)


def test_code_and_knowledge_of_an_attacker_are_not_taken_over(archive, tmp_path):
    """Listed as they should be, with their digests: all that is copied lies among the data."""
    code = b"open('pwned', 'w')"
    target = tmp_path / "evil.zip"
    with zipfile.ZipFile(archive) as old, zipfile.ZipFile(target, "w") as new:
        crate = json.loads(old.read("ro-crate-metadata.json"))
        for name in EVIL:
            _list(crate, name, code)
            new.writestr(name, code)
        for name in set(old.namelist()) - {*EVIL, "ro-crate-metadata.json"}:
            new.writestr(name, old.read(name))
        new.writestr("ro-crate-metadata.json", json.dumps(crate))
    adopt(target, NAME)
    here = tmp_path / "here" / NAME
    assert (here / "data/00-machine/machine.json").exists()
    assert not [path for path in here.rglob("*") if path.is_file() and path.read_bytes() == code]
    assert not list(tmp_path.rglob("pwned"))


def _list(crate: dict, name: str, content: bytes) -> None:
    digest = {"contentSize": str(len(content)), "sha256": hashlib.sha256(content).hexdigest()}
    entity = {"@id": quote(name), "@type": "File"} | digest
    known = {one["@id"]: one for one in crate["@graph"]}
    known[entity["@id"]] = entity
    parts = known["./"]["hasPart"]
    parts += [] if {"@id": entity["@id"]} in parts else [{"@id": entity["@id"]}]
    crate["@graph"] = list(known.values())
