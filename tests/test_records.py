"""Files of records: what a crash tears costs only itself, and no change of a byte is accepted."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import zlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbhelpers.errors import InputError
from nbhelpers.measurement import measure
from nbhelpers.records import append_record, read, read_records, with_new_checks, write_records

from .record import pack

pytestmark = pytest.mark.filterwarnings("ignore:.*damaged records were left out:RuntimeWarning")


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


@given(cut=st.integers(min_value=1, max_value=90))
@settings(deadline=None)
def test_a_torn_last_record_costs_only_itself(tmp_path_factory, cut):
    path = tmp_path_factory.mktemp("torn") / "runs.jsonl"
    append_record(path, {"run": 0})
    whole = path.stat().st_size
    append_record(path, {"run": 1, "message": "x" * 90})
    os.truncate(path, path.stat().st_size - cut)
    append_record(path, {"run": 2})
    runs = [record["run"] for record in read_records(path)]
    assert runs in ([0, 2], [0, 1, 2]) and path.stat().st_size > whole
    assert cut > 1 or runs == [0, 1, 2], "only the newline was lost: the record is whole"


def test_a_damaged_record_of_a_file_without_checks_is_named_and_left_out(tmp_path):
    path = tmp_path / "runs.jsonl"
    path.write_text('{"run": 0}\n{"run": oops}\n{"run": 2}\n')
    with pytest.warns(RuntimeWarning, match="line 2"):
        assert [row["run"] for row in read_records(path)] == [0, 2]


def test_sigkill_while_appending_loses_no_finished_record(tmp_path):
    path = tmp_path / "runs.jsonl"
    code = (
        "from nbhelpers.records import append_record\nfor n in range(10**6):"
        f" append_record({str(path)!r}, {{'run': n}}); print(n, flush=True)"
    )
    writer = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    told = [int(writer.stdout.readline()) for _ in range(20)]
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    assert {record["run"] for record in read_records(path)} >= set(told)


# ---- damage --------------------------------------------------------------------------------------

ROWS = [{"run": number, "seconds": 0.5 + number / 7, "status": "ok"} for number in range(6)]


def written(path: Path) -> bytes:
    for row in ROWS:
        append_record(path, row)
    return path.read_bytes()


@pytest.mark.long
def test_every_changed_bit_is_found_and_all_other_records_stay(tmp_path: Path) -> None:
    """Each bit of the file in turn: never is a record accepted that was not written so."""
    path = tmp_path / "runs.jsonl"
    content = written(path)
    for bit in range(len(content) * 8):
        changed = bytearray(content)
        changed[bit // 8] ^= 1 << bit % 8
        path.write_bytes(changed)
        found = read(path)
        assert found.damage, bit
        assert all(row in ROWS for row in found.rows), bit
        assert len(found.rows) >= len(ROWS) - 2, bit  # a line feed holds two records apart


def test_the_damaged_run_is_named(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    content = written(path)
    path.write_bytes(content.replace(b'"seconds": 0.7857', b'"seconds": 0.6857'))
    [damage] = read(path).damage
    assert damage.line == 3 and "(run 2)" in damage.what
    with pytest.warns(RuntimeWarning, match=r"line 3: changed after it was written \(run 2\)"):
        assert [row["run"] for row in read_records(path)] == [0, 1, 3, 4, 5]


@pytest.mark.parametrize(
    ("lines", "left"),
    [
        ([0, 1, 3, 4, 5], [0, 1, 4, 5]),  # one is missing
        ([0, 1, 2, 2, 3, 4, 5], [0, 1, 2, 3, 4, 5]),  # one is doubled
        ([0, 2, 1, 3, 4, 5], [0, 4, 5]),  # two are exchanged
        ([1, 2, 3, 4, 5], [2, 3, 4, 5]),  # the first is missing
    ],
)
def test_missing_doubled_and_exchanged_lines_are_found(
    tmp_path: Path, lines: list[int], left: list[int]
) -> None:
    path = tmp_path / "runs.jsonl"
    whole = written(path).splitlines(keepends=True)
    path.write_bytes(b"".join(whole[at] for at in lines))
    found = read(path)
    assert found.damage and [row["run"] for row in found.rows] == left


def test_a_line_that_was_cut_in_the_middle_of_the_file_is_found(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    whole = written(path).splitlines(keepends=True)
    for length in range(1, len(whole[2]) - 1):
        path.write_bytes(b"".join([*whole[:2], whole[2][:length] + b"\n", *whole[3:]]))
        found = read(path)
        assert found.damage and [row["run"] for row in found.rows] == [0, 1, 3, 4, 5]


def test_a_value_that_was_changed_with_its_crc_is_found_by_the_chain(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    lines = written(path).splitlines()
    body = re.sub(rb', "crc".*', b"}", lines[2]).replace(b'"ok"', b'"no"')
    chain = re.search(rb'"chain": "(\w+)"', lines[2])
    assert chain
    lines[2] = body[:-1] + b', "crc": "%08x", "chain": "%s"}' % (zlib.crc32(body), chain[1])
    path.write_bytes(b"\n".join(lines) + b"\n")
    found = read(path)
    assert found.damage and {row["status"] for row in found.rows} == {"ok"}


def test_what_a_crash_tore_goes(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    content = written(path)
    path.write_bytes(content[:-20])
    append_record(path, {"run": 6})
    assert [row["run"] for row in read(path).rows] == [0, 1, 2, 3, 4, 6]
    assert not read(path).damage


def test_a_file_of_before_there_were_checks_gets_them_when_somebody_appends(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    old = "".join(json.dumps(row) + "\n" for row in ROWS)
    path.write_text(old)
    assert read_records(path) == ROWS and not read(path).checked
    append_record(path, {"run": 6})
    found = read(path)
    assert found.checked and not found.damage and found.rows == [*ROWS, {"run": 6}]
    [before] = tmp_path.glob("aside/*/runs.jsonl.before")
    assert before.read_text() == old


def test_records_that_are_changed_on_purpose_get_new_checks(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    content = written(path)
    assert with_new_checks(content, lambda body: body) == content
    path.write_bytes(with_new_checks(content, lambda body: body.replace(b'"ok"', b'"fine"')))
    found = read(path)
    assert not found.damage and found.rows == [row | {"status": "fine"} for row in ROWS]
    damaged = content.replace(b"0.7857", b"0.6857")
    path.write_bytes(with_new_checks(damaged, lambda body: body.replace(b'"ok"', b'"fine"')))
    assert [row["run"] for row in read(path).rows] == [0, 1, 3, 4, 5]


def test_writing_all_records_gives_the_same_bytes_as_appending_them(tmp_path: Path) -> None:
    content = written(tmp_path / "runs.jsonl")
    assert write_records(tmp_path / "other.jsonl", ROWS).read_bytes() == content


TRACED = """
import os, sys
from nbhelpers.records import append_record
calls = []
real = os.fsync
def fsync(handle):
    calls.append(os.readlink(f"/proc/self/fd/{handle}"))
    return real(handle)
os.fsync = fsync
append_record(sys.argv[1], {"run": 0})
print("|".join(calls))
"""


def test_a_record_and_its_name_are_on_disk_when_it_is_acknowledged(tmp_path: Path) -> None:
    """By the calls of a real process: the file is forced to disk, and for a new one its folder."""
    path = tmp_path / "runs.jsonl"
    done = subprocess.run(
        [sys.executable, "-c", TRACED, path], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip().split("|") == [str(path), str(tmp_path)]


# ---- a campaign ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("campaign")
    measure("true", runs=6, folder=folder)
    return folder


def test_a_campaign_leaves_damaged_runs_out_says_so_and_measures_them_again(
    campaign: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "campaign"
    shutil.copytree(campaign, folder)
    path = folder / "runs.jsonl"
    before = path.read_bytes()
    path.write_bytes(before.replace(b'"status": "ok"', b'"status": "OK"', 1))
    runs = measure("true", runs=6, folder=folder)
    assert len(runs) == 6 and (runs["status"] == "ok").all()
    assert 0 not in set(runs["run"]) and runs["run"].is_unique
    notes = json.loads((folder / "campaign.json").read_text())["notes"]
    assert any("1 damaged record of runs.jsonl" in note for note in notes), notes
    [kept] = folder.glob("aside/*/runs.jsonl.damaged")
    assert b'"OK"' in kept.read_bytes()
    assert not read(path).damage


def test_the_number_of_a_damaged_last_run_is_not_used_again(campaign: Path, tmp_path: Path) -> None:
    folder = tmp_path / "campaign"
    shutil.copytree(campaign, folder)
    path = folder / "runs.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    lines[-1] = lines[-1].replace(b'"run": 5', b'"run": 4')
    path.write_bytes(b"".join(lines))
    runs = measure("true", runs=6, folder=folder)
    assert sorted(runs["run"]) == [0, 1, 2, 3, 4, 6]
