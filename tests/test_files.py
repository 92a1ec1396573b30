"""Files survive a crash: whole or not at all, and a torn record costs only itself."""

import gzip
import os
import signal
import subprocess
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbhelpers.errors import InputError
from nbhelpers.files import (
    append_record,
    digest,
    digest_files,
    pack,
    read_json,
    read_records,
    write_atomically,
    write_json,
)


def test_records_come_back_in_order(tmp_path):
    for number in range(3):
        append_record(tmp_path / "runs.jsonl", {"run": number})
    assert [record["run"] for record in read_records(tmp_path / "runs.jsonl")] == [0, 1, 2]


def test_packed_records_are_read_and_gone_on_with(tmp_path):
    append_record(tmp_path / "own.jsonl", {"run": 0})
    pack(tmp_path / "own.jsonl", tmp_path / "runs.jsonl")
    assert not (tmp_path / "runs.jsonl").exists() and read_records(tmp_path / "runs.jsonl") == [
        {"run": 0}
    ]
    append_record(tmp_path / "runs.jsonl", {"run": 1})
    assert read_records(tmp_path / "runs.jsonl") == [{"run": 0}, {"run": 1}]
    (tmp_path / "bad.jsonl.gz").write_bytes((tmp_path / "runs.jsonl.gz").read_bytes()[:-9])
    with pytest.raises(InputError, match="damaged packed file"):
        read_records(tmp_path / "bad.jsonl")


@given(cut=st.integers(min_value=1, max_value=40))
def test_a_torn_last_record_costs_only_itself(tmp_path_factory, cut):
    path = tmp_path_factory.mktemp("torn") / "runs.jsonl"
    append_record(path, {"run": 0})
    whole = path.stat().st_size
    append_record(path, {"run": 1, "message": "x" * 40})
    os.truncate(path, path.stat().st_size - cut)
    append_record(path, {"run": 2})
    runs = [record["run"] for record in read_records(path)]
    assert runs in ([0, 2], [0, 1, 2]) and path.stat().st_size > whole
    assert cut > 1 or runs == [0, 1, 2], "only the newline was lost: the record is whole"


def test_a_damaged_record_in_the_middle_is_an_error_that_names_the_line(tmp_path):
    path = tmp_path / "runs.jsonl"
    path.write_text('{"run": 0}\n{"run": oops}\n{"run": 2}\n')
    with pytest.raises(InputError, match="line 2"):
        read_records(path)


def test_sigkill_while_appending_loses_no_finished_record(tmp_path):
    path = tmp_path / "runs.jsonl"
    code = (
        "from nbhelpers.files import append_record\nfor n in range(10**6):"
        f" append_record({str(path)!r}, {{'run': n}}); print(n, flush=True)"
    )
    writer = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    told = [int(writer.stdout.readline()) for _ in range(20)]
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    assert {record["run"] for record in read_records(path)} >= set(told)


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
