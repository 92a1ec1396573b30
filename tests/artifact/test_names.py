"""Names of hosts, users and folders are replaced in every kind of file, and nothing else is."""

import gzip
import json
import socket
from pathlib import Path, PurePosixPath

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbhelpers.artifact.names import Names, names_here, without_names
from nbhelpers.errors import InputError
from nbhelpers.injection.log import OUTCOMES
from nbhelpers.injection.rules import KIND_CODES, POLICY_NAMES
from nbhelpers.noise._vocabulary import KINDS
from nbhelpers.places import shipped

NAMES = Names(
    folders=(("/u/jürgen/my work", "/noisebook"), ("/u/jürgen", "/home-1")),
    words=(("jürgen", "user-1"), ("lab-pc7.example.org", "host-1"), ("lab-pc7", "host-1")),
)
TEXT = (
    "jürgen ran /u/jürgen/my work/build/bin/nbody and /u/jürgen/other on lab-pc7"
    " (lab-pc7.example.org); jürgens, lab-pc77 and /u/jürgen2 are others"
)
CLEAN = (
    "user-1 ran /noisebook/build/bin/nbody and /home-1/other on host-1"
    " (host-1); jürgens, lab-pc77 and /u/jürgen2 are others"
)


def clean(content: bytes, name: str) -> bytes:
    return without_names(content, PurePosixPath(name), NAMES)


def test_whole_names_are_replaced_and_parts_of_longer_ones_are_not():
    assert clean(TEXT.encode(), "log.txt").decode() == CLEAN


def test_names_in_the_escapes_of_json_are_found():
    assert json.loads(clean(json.dumps({"a": TEXT}).encode(), "a.json")) == {"a": CLEAN}


def test_packed_texts_are_rewritten_the_same_each_time_and_left_alone_without_names():
    packed = gzip.compress(TEXT.encode())
    once = clean(packed, "runs.jsonl.gz")
    assert gzip.decompress(once).decode() == CLEAN and once == clean(packed, "runs.jsonl.gz")
    untouched = gzip.compress(b"nothing of anybody", mtime=12345)
    assert clean(untouched, "a.gz") == untouched


def test_the_machines_boot_is_not_told_and_two_boots_stay_two():
    one, two = "ae1821d2-a4bb-49d8-b5d7-bbcb1bbe8121", "11e93a4b-93a4-4e5f-9f0a-a4bb49d8b5d7"
    header = {"boot_id": one, "again": {"boot_id": one, "boot": two}, "other": two}
    recording = json.dumps(header).encode() + b"\n\0 pages of the kernel"
    once = clean(gzip.compress(recording), "run-000001.tracepoints.gz")
    found = json.loads(gzip.decompress(once).splitlines()[0])
    assert found["boot_id"] == found["again"]["boot_id"] != found["again"]["boot"]
    assert not {one, two} & {found["boot_id"], found["again"]["boot"]} and found["other"] == two
    assert clean(once, "run-000001.tracepoints.gz") == once
    assert Names().replaced(one.encode()) == one.encode()


def test_the_folder_of_an_older_checkout_is_not_told():
    """A study may have been measured before its checkout was moved."""
    before = (
        '"/srv/a.b/old/build/quick/data/10", /srv/x/nbhelpers/a.py, https://git.org/x/nbhelpers/'
    )
    after = (
        '"/noisebook/build/quick/data/10", /noisebook/nbhelpers/a.py, https://git.org/x/nbhelpers/'
    )
    assert clean(before.encode(), "log.txt").decode() == after
    assert clean(after.encode(), "log.txt").decode() == after


def test_a_damaged_packed_file_is_an_error_that_names_it():
    with pytest.raises(InputError, match="damaged packed file"):
        clean(gzip.compress(TEXT.encode())[:-9], "runs.jsonl.gz")


def test_the_tables_of_a_study_hold_numbers_and_words_of_ours_alone():
    """So Parquet, in whose packed columns no name is found, needs no rewriting."""
    known = {*OUTCOMES, *POLICY_NAMES.values(), *KIND_CODES, *KINDS, ""}
    logs = sorted((shipped() / "data/recorded").rglob("*.parquet"))
    assert logs and {path.name[:10] for path in logs} == {"injection-"}
    for path in logs[::10]:
        table = pd.read_parquet(path)
        texts = table.select_dtypes(exclude="number")
        assert {word for name in texts for word in texts[name].unique()} <= known, path


def test_a_picture_that_holds_a_name_is_refused():
    with pytest.raises(InputError, match=r"holds the name 'lab-pc7.example.org'(?s:.*)NAMES=keep"):
        clean(b"\x89PNG\0 lab-pc7.example.org \0", "figure.png")
    assert clean(b"\x89PNG\0 abc", "figure.png") == b"\x89PNG\0 abc"


def test_an_ordinary_word_is_replaced_in_addresses_only():
    words = (("node", "host-1"), ("data", "user-1"))
    names = Names(words=words, ordinary=frozenset(dict(words)))
    text = b"data@node: the data of a node, metadata@nodes"
    assert names.replaced(text) == b"user-1@host-1: the data of a node, metadata@nodes"


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=40), st.text(max_size=40))
def test_no_path_of_the_project_survives_and_nothing_is_replaced_twice(before, after):
    names = Names(folders=(("/srv/secret", "/noisebook"),))
    text = f"{before} /srv/secret/x {after}".encode()
    found = names.replaced(text)
    assert b"/srv/secret/" not in found and names.replaced(found) == found
    assert found == text.replace(b"/srv/secret/", b"/noisebook/")


def test_the_names_of_this_machine_are_known(monkeypatch):
    monkeypatch.setenv("SUDO_USER", "zacharias")
    names = names_here(["node-0017"])
    text = f"zacharias@node-0017 {Path.home()}/a {Path(__file__).parents[2]}/b"
    replaced = names.replaced(text.encode()).decode()
    assert replaced.startswith("user-1@name-1") and replaced.endswith("/a /noisebook/b")
    assert str(Path.home()) not in replaced
    assert socket.gethostname() in dict(names.words)
    common = names_here(["noise", "table"])
    assert {"noise", "table"} <= common.ordinary, "to replace these would spoil every table"
