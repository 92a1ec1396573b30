"""Files survive a crash: whole or not at all."""

import gzip
import os
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbhelpers.errors import InputError
from nbhelpers.files import digest, digest_files, write_atomically, write_json
from nbhelpers.reading import read_json


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


def test_the_digest_of_files_knows_names_and_contents(tmp_path):
    (tmp_path / "a").write_text("1")
    (tmp_path / "b").write_text("2")
    before = digest_files([tmp_path / "a", tmp_path / "b"], tmp_path)
    assert before == digest_files([tmp_path / "b", tmp_path / "a"], tmp_path)
    time.sleep(0.01)
    os.utime(tmp_path / "a")
    assert before == digest_files([tmp_path / "a", tmp_path / "b"], tmp_path)
    (tmp_path / "a").rename(tmp_path / "c")
    assert before != digest_files([tmp_path / "c", tmp_path / "b"], tmp_path)
