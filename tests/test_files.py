"""Files survive a crash: whole or not at all."""

import gzip
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbhelpers.errors import InputError
from nbhelpers.files import digest, write_atomically, write_json, written
from nbhelpers.machine.guardian import Journal
from nbhelpers.reading import read_json
from nbhelpers.records import append_record


def test_a_file_is_replaced_whole_and_no_temporary_stays(tmp_path):
    write_atomically(tmp_path / "a", "old")
    with pytest.raises(TypeError):
        write_atomically(tmp_path / "a", 3)
    write_atomically(tmp_path / "a", "new")
    assert (tmp_path / "a").read_text() == "new" and os.listdir(tmp_path) == ["a"]


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[" * 100_000, b"{'a': 1}"])
def test_bad_json_is_an_error_that_names_the_file(tmp_path, content):
    (tmp_path / "bad.json").write_bytes(content)
    with pytest.raises(InputError, match="bad.json"):
        read_json(tmp_path / "bad.json")


def test_json_is_packed_where_the_name_says_so_and_the_same_bytes_each_time(tmp_path):
    value = {"b": [1, 2.5, None], "a": "µs"}
    plain = write_json(tmp_path / "a.json", value)
    packed = write_json(tmp_path / "a.json.gz", value)
    assert (
        read_json(plain) == read_json(packed) == value
        and gzip.decompress(packed.read_bytes()) == plain.read_bytes()
    )
    before = packed.read_bytes()
    assert write_json(packed, dict(reversed(value.items()))).read_bytes() == before


@pytest.mark.parametrize(
    "damage", [lambda content: b"", lambda content: content[:-9], lambda content: b"{}" + content]
)
def test_damaged_packed_json_is_an_error_that_names_the_file(tmp_path, damage):
    path = write_json(tmp_path / "a.json.gz", list(range(1000)))
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(InputError, match="a.json.gz"):
        read_json(path)


@given(st.lists(st.binary(max_size=8), max_size=4), st.lists(st.binary(max_size=8), max_size=4))
def test_digests_tell_part_boundaries_apart(one, other):
    assert (digest(*one) == digest(*other)) == (one == other)


# ---- root follows no link of a user's ------------------------------------------------------------

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be led astray")
NOBODY = 65534


def of_a_user(path):
    os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
    return path


@pytest.fixture
def secret(tmp_path):
    """A file of root's that only root may read."""
    path = tmp_path / "root" / "secret"
    path.parent.mkdir()
    path.write_text("nobody else reads this\n")
    path.chmod(0o600)
    return path


def unchanged(secret) -> bool:
    mode = secret.stat().st_mode & 0o777
    return secret.read_text() == "nobody else reads this\n" and mode == 0o600


@pytest.fixture
def theirs(tmp_path):
    """A folder of a user's, in which root writes."""
    folder = tmp_path / "build"
    folder.mkdir()
    return of_a_user(folder)


@needs_root
def test_a_temporary_file_that_a_user_swaps_for_a_link_makes_nothing_readable(theirs, secret):
    with written(theirs / "table.csv") as file:
        file.write(b"a\n")
        [temporary] = theirs.iterdir()
        temporary.unlink()
        temporary.symlink_to(secret)
        of_a_user(temporary)
    assert unchanged(secret)


@needs_root
@pytest.mark.parametrize("write", [write_json, append_record])
def test_root_writes_through_no_folder_that_a_user_linked(theirs, secret, write):
    (theirs / "data").symlink_to(secret.parent)
    of_a_user(theirs / "data")
    with pytest.raises(InputError) as refused:
        write(theirs / "data" / "runs.jsonl", {"run": 1})
    assert "sudo make privileged" in str(refused.value)
    assert os.listdir(secret.parent) == ["secret"]


@needs_root
def test_root_appends_to_no_file_that_a_user_linked(theirs, secret):
    secret.write_text("nobody else reads this\nnor this")
    (theirs / "runs.jsonl").symlink_to(secret)
    of_a_user(theirs / "runs.jsonl")
    with pytest.raises(InputError):
        append_record(theirs / "runs.jsonl", {"run": 1})
    assert secret.read_text() == "nobody else reads this\nnor this"


def test_links_of_ones_own_are_followed(tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "build").symlink_to("disk")
    (tmp_path / "disk" / "runs.jsonl").symlink_to(tmp_path / "elsewhere.jsonl")
    append_record(tmp_path / "build" / "runs.jsonl", {"run": 1})
    write_json(tmp_path / "build" / "new" / "a.json", {})
    assert (tmp_path / "elsewhere.jsonl").read_text().startswith('{"run": 1')
    assert os.listdir(tmp_path / "disk" / "new") == ["a.json"]


def test_a_circle_of_links_is_an_error_that_names_the_file(tmp_path):
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with pytest.raises(OSError, match="symbolic links.*/a"):
        write_json(tmp_path / "a" / "x.json", {})


@needs_root
def test_a_journal_that_is_swapped_for_a_link_makes_nothing_readable(theirs, secret, monkeypatch):
    def swapped(handle):
        [temporary] = theirs.iterdir()
        temporary.unlink()
        temporary.symlink_to(secret)

    monkeypatch.setattr(os, "fsync", swapped)
    Journal(theirs / "x.journal", {}, [{"kind": "write", "path": "/x"}]).save()
    assert unchanged(secret)
