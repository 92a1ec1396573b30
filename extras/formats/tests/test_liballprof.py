"""Traces of liballprof: real ones and damaged ones, and the schedules that are made of them."""

import io
import json
import tarfile
from collections import Counter
from pathlib import Path

import noisebook_formats
import pytest
from noisebook_formats import read_liballprof
from noisebook_formats.liballprof import unpack

from nbhelpers.cli import main
from nbhelpers.errors import InputError
from nbhelpers.places import shipped
from nbhelpers.simulation import LogGOPS, known_network, patterns, read_goal, simulate, write_goal
from nbhelpers.simulation.schedule import CALC, SEND
from nbhelpers.simulation.traces import schedule_of_calls
from nbhelpers.simulation.traces.collectives import BY_SIZE

SAMPLE = Path(noisebook_formats.__file__).parent / "data" / "sweep3d-2x2.tar.xz"
GOAL = shipped() / "data" / "published" / "sweep3d-2x2.goal.xz"


@pytest.fixture
def sample(tmp_path):
    """The files of the sample trace, to be damaged."""
    unpack(SAMPLE, tmp_path)
    return tmp_path


def test_what_a_real_trace_holds():
    calls = read_liballprof(SAMPLE)
    counts = Counter(calls.table[calls.table["rank"] == 2]["call"])
    published = {"MPI_Bcast": 4, "MPI_Barrier": 3, "MPI_Allreduce": 32}  # SC 2010, its slide
    assert {name: counts[name] for name in published} == published
    sends = calls.table[calls.table["call"] == "MPI_Send"]
    assert set(sends["bytes"]) == {36_000} and len(sends) == 5760
    assert calls.comms == {0: (0, 1, 2, 3)}


@pytest.mark.parametrize("packed", [True, False])
def test_the_verb_reads_it(packed, sample, capsys):
    words = ["--network", "alps", "--noise", "none", "--json"]
    assert main(["whatif", str(SAMPLE if packed else sample), *words]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    schedule = schedule_of_calls(read_liballprof(SAMPLE), medians=True)
    alone = simulate(schedule, known_network("alps")).makespan_ns / 1e6
    assert row["ranks"] == 4 and row["ideal_ms"] == pytest.approx(alone)


def damaged(folder, rank, change):
    path = folder / f"pmpi-trace-rank-{rank}.txt"
    path.write_text("\n".join(change(path.read_text().splitlines())) + "\n")
    return folder


def without(call):
    def change(lines):
        first = next(i for i, line in enumerate(lines) if line.startswith(call + ":"))
        return lines[:first] + lines[first + 1 :]

    return change


@pytest.mark.parametrize(
    "rank, change, message",
    [
        (1, lambda lines: lines[:-1], "rank 1 ends without MPI_Finalize"),
        (2, lambda lines: lines[:500], "rank 2 ends without MPI_Finalize"),
        (0, lambda lines: [*lines[:300], lines[300][:40], *lines[301:]], "arguments|time|read"),
        (3, without("MPI_Recv"), "messages from rank [12] to rank 3, but 179 receives"),
        (3, without("MPI_Send"), "179 messages from rank 3"),
        (1, without("MPI_Init"), "before MPI_Init"),
        (1, without("MPI_Barrier"), "ranks 0 and 1 call different collectives"),
    ],
)
def test_traces_that_are_cut_short_or_do_not_match(sample, rank, change, message):
    with pytest.raises(InputError, match=message):
        schedule_of_calls(read_liballprof(damaged(sample, rank, change)))


def test_a_rank_without_a_file(sample):
    (sample / "pmpi-trace-rank-1.txt").unlink()
    with pytest.raises(InputError, match="no trace of rank 1"):
        read_liballprof(sample)


def test_an_archive_that_is_cut_short(tmp_path):
    half = tmp_path / "half.tar.xz"
    half.write_bytes(SAMPLE.read_bytes()[:40_000])
    with pytest.raises(InputError, match="can't be read"):
        read_liballprof(half)


def test_an_archive_writes_into_the_folder_alone(tmp_path):
    """A name that leads elsewhere, and a link: neither is followed."""
    (tmp_path / "inside").mkdir()
    with tarfile.open(tmp_path / "bad.tar.gz", "w:gz") as archive:
        member = tarfile.TarInfo("../outside.txt")
        member.size = 1
        archive.addfile(member, io.BytesIO(b"x"))
        link = tarfile.TarInfo("link.txt")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    unpack(tmp_path / "bad.tar.gz", tmp_path / "inside")
    assert not (tmp_path / "outside.txt").exists()
    assert [path.name for path in (tmp_path / "inside").iterdir()] == ["outside.txt"]


def test_requests_of_a_line_are_those_of_the_addresses(tmp_path):
    """Two requests begun, one call waits for both; the address is used again."""
    for rank in (0, 1):
        other, lines = 1 - rank, ["MPI_Init:-:0:0:1000"]
        for turn in range(2):
            t = 2000 + 1000 * turn
            lines += [
                f"MPI_Irecv:{t}:9:100:1,4:{other}:{turn}:0,{rank},2:800:{t + 1}",
                f"MPI_Isend:{t + 2}:9:100:1,4:{other}:{turn}:0,{rank},2:808:{t + 3}",
                f"MPI_Waitall:{t + 500}:2:800:0:{t + 600}",
            ]
        lines.append("MPI_Finalize:9000:-")
        (tmp_path / f"pmpi-trace-rank-{rank}.txt").write_text("\n".join(lines))
    calls = read_liballprof(tmp_path)
    assert len(calls.waits) == 8 and set(calls.waits["request"]) == {800, 808}
    schedule = schedule_of_calls(calls)
    assert schedule.messages == 4 and set(schedule.size[schedule.kind == SEND]) == {400}
    # computation: 1000, 1, 497, 400, 1, 497 µs, and from 3.6 to 9 ms; messages hide behind it
    assert simulate(schedule, LogGOPS(o=0, G=0)).makespan_ns == (1000 + 2 * 498 + 400 + 5400) * 1000


def test_extrapolated_work_and_counts_of_a_real_program():
    calls = read_liballprof(SAMPLE)
    one, many = schedule_of_calls(calls), schedule_of_calls(calls, times=8)
    work = [int(s.column("size")[s.kind == CALC].sum()) for s in (one, many)]
    assert work[1] == 8 * work[0]
    collectives = 32 * 32 * 5 + 3 * 32 * 5 + 4 * 31  # all-reductions, barriers, broadcasts
    assert many.messages == 8 * 5760 + collectives


def test_the_shipped_schedule_is_that_of_the_trace(tmp_path, monkeypatch):
    """With the collectives of the reference simulator's generator."""

    def generated(ranks, bytes, root):
        return patterns.dissemination(ranks, max(1, bytes))

    monkeypatch.setitem(BY_SIZE, "Barrier", generated)
    monkeypatch.setitem(BY_SIZE, "Allreduce", generated)
    schedule = schedule_of_calls(read_liballprof(SAMPLE))
    again = read_goal(write_goal(schedule, tmp_path / "again.goal"))
    shipped_one = read_goal(GOAL)
    for name in ("kind", "peer", "size", "tag", "done_op", "begun_op"):
        assert getattr(again, name).tolist() == getattr(shipped_one, name).tolist()
