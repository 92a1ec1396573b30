"""Traces of MPI calls: read from real and damaged files, made into schedules, and compared with
schedules and times that were worked out without them.
"""

import io
import tarfile
from collections import Counter

import numpy as np
import pandas as pd
import pytest

from nbhelpers.errors import InputError
from nbhelpers.places import shipped
from nbhelpers.simulation import LogGOPS, patterns, simulate
from nbhelpers.simulation.schedule import CALC, SEND
from nbhelpers.simulation.traces import read_liballprof, read_otf2, schedule_of_calls
from nbhelpers.simulation.traces.calls import NUMBERS, TracedCalls
from nbhelpers.simulation.traces.collectives import BY_SIZE, chosen_algorithms
from nbhelpers.simulation.traces.liballprof import unpack

from .cases import reference_cases
from .dataflow import knowledge

SAMPLE = shipped() / "data" / "published" / "sweep3d-2x2.tar.xz"
NETWORK = LogGOPS(L=1000, o=100, g=50, G=1, O=0, S=10_000)


@pytest.fixture
def sample(tmp_path):
    """The files of the sample trace, to be damaged."""
    unpack(SAMPLE, tmp_path)
    return tmp_path


def of_programs(*programs, comms=None):
    """A trace from what each rank calls: (call, ns of computation before it, columns, requests that
    it completes). Every call lasts 10 ns.
    """
    rows, waits = [], []
    for rank, calls in enumerate(programs):
        now = 0
        for call, work, columns, *completes in calls:
            now += work
            waits += [(rank, len(rows), request) for request in completes]
            rows.append(
                dict.fromkeys(NUMBERS, -1)
                | {"rank": rank, "call": f"MPI_{call}", "start_ns": now, "end_ns": now + 10}
                | {"bytes": 0, "received_bytes": 0, "comm": 0}
                | columns
            )
            now += 10
    world = {0: tuple(range(len(programs)))}
    waits = pd.DataFrame(waits, columns=["rank", "row", "request"])
    return TracedCalls(pd.DataFrame(rows), waits, world | (comms or {}), len(programs))


def send(peer, bytes, tag=0, **more):
    return {"peer": peer, "bytes": bytes, "tag": tag} | more


def receive(peer, bytes, tag=0, **more):
    return {"peer": peer, "received_bytes": bytes, "tag": tag, "source": peer} | more


# --- the reference's format -----------------------------------------------------------------------


def test_a_real_trace_ends_when_the_reference_simulator_says():
    case = next(case for case in reference_cases() if "Sweep3D" in case["kind"])
    schedule = schedule_of_calls(read_liballprof(SAMPLE), algorithms="reference")
    found = simulate(schedule, LogGOPS(**case["params"]), mode="compat")
    assert found.finish_ns.tolist() == case["finish"]
    assert schedule.events == case["events"]


def test_what_a_real_trace_holds():
    calls = read_liballprof(SAMPLE)
    counts = Counter(calls.table[calls.table["rank"] == 2]["call"])
    published = {"MPI_Bcast": 4, "MPI_Barrier": 3, "MPI_Allreduce": 32}  # SC 2010, its slide
    assert {name: counts[name] for name in published} == published
    sends = calls.table[calls.table["call"] == "MPI_Send"]
    assert set(sends["bytes"]) == {36_000} and len(sends) == 5760
    assert calls.comms == {0: (0, 1, 2, 3)}


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


# --- what calls become ----------------------------------------------------------------------------


def test_two_calls_take_what_the_model_says():
    calls = of_programs([("Send", 5000, send(1, 101))], [("Recv", 200, receive(0, 101))])
    found = simulate(schedule_of_calls(calls), NETWORK)
    assert found.finish_ns.tolist() == [5000 + 100, 5000 + 2 * 100 + 1000 + 100]


def test_a_long_message_holds_its_sender_until_it_is_received():
    late = 50_000
    calls = of_programs(
        [("Send", 0, send(1, 20_000)), ("Finalize", 7, {})],
        [("Recv", late, receive(0, 20_000))],
    )
    assert simulate(schedule_of_calls(calls), NETWORK).finish_ns[0] == late + 7


def test_nonblocking_messages_overlap_with_computation_until_their_wait():
    calls = of_programs(
        [
            ("Irecv", 0, receive(1, 8, request=1)),
            ("Isend", 0, send(1, 8, request=2)),
            ("Waitall", 9000, {}, 1, 2),
        ],
        [("Recv", 0, receive(0, 8)), ("Send", 3000, send(0, 8)), ("Finalize", 0, {})],
    )
    found = simulate(schedule_of_calls(calls), NETWORK)
    # rank 1 has its message at 1207, computes 3000, sends 100; rank 0 has it long before its wait
    assert found.finish_ns.tolist() == [100 + 9000 + 100 + 7, 1207 + 3000 + 100]


def test_sendrecv_sends_and_receives_at_the_same_time():
    ring = [
        [
            (
                "Sendrecv",
                10,
                send(1 - me, 8) | {"source": 1 - me, "received_tag": 0, "received_bytes": 8},
            )
        ]
        for me in (0, 1)
    ]
    assert simulate(schedule_of_calls(of_programs(*ring)), NETWORK).makespan_ns == 10 + 1207


def test_nobody_and_anybody():
    calls = of_programs(
        [("Send", 0, send(-1, 8)), ("Send", 0, send(1, 8, tag=3))],
        [
            ("Recv", 0, receive(-1, 0) | {"source": -1}),
            ("Recv", 0, receive(-1, 8, tag=-1) | {"source": 0, "received_tag": 3}),
        ],
    )
    schedule = schedule_of_calls(calls)
    assert schedule.messages == 1 and (schedule.peer[schedule.kind == 2] == [0]).all()
    simulate(schedule, NETWORK)


@pytest.mark.parametrize("name", sorted(BY_SIZE))
@pytest.mark.parametrize("bytes", [8, 100_000])
def test_a_collective_is_its_pattern_after_the_computation(name, bytes):
    ranks, root = 6, 2
    columns = {"root": root if name in ("Bcast", "Reduce", "Gather", "Scatter") else -1}
    sizes = {"Alltoall": bytes * ranks, "Scatter": bytes * ranks}
    columns["bytes"] = sizes.get(name, bytes)
    calls = of_programs(*[[(name, 500 * rank, columns)] for rank in range(ranks)])
    schedule = schedule_of_calls(calls)
    place = root if columns["root"] >= 0 else 0
    pattern = chosen_algorithms()[name](ranks, bytes, place)
    alone = patterns.compose([pattern], [500 * np.arange(ranks)], join=True)
    assert schedule.messages == pattern.messages
    expected = simulate(alone, NETWORK).finish_ns
    assert simulate(schedule, NETWORK).finish_ns.tolist() == expected.tolist()


def test_a_nonblocking_collective_begins_before_the_computation():
    """Its first messages leave before; a CPU that computes receives nothing meanwhile."""
    begun = [("Iallreduce", 0, {"bytes": 8, "request": 5}), ("Wait", 50_000, {}, 5)]
    overlapped = simulate(schedule_of_calls(of_programs(*[begun] * 4)), NETWORK).makespan_ns
    # the send of the first round, the computation, a reception, and a whole second round
    assert overlapped == 100 + 50_000 + 107 + 1207
    blocking = [("Allreduce", 0, {"bytes": 8}), ("Finalize", 50_000, {})]
    after = simulate(schedule_of_calls(of_programs(*[blocking] * 4)), NETWORK).makespan_ns
    assert after == 50_000 + 2 * 1207


def rows_and_columns():
    """2 × 2 ranks reduce along their row (comm 1, 2), then their column (3, 4)."""
    comms = {1: (0, 1), 2: (2, 3), 3: (0, 2), 4: (1, 3)}
    program = [
        [
            ("Allreduce", 10, {"comm": 1 + rank // 2, "bytes": 8}),
            ("Allreduce", 10, {"comm": 3 + rank % 2, "bytes": 8}),
        ]
        for rank in range(4)
    ]
    return of_programs(*program, comms=comms)


def test_collectives_of_sub_communicators_stay_among_their_ranks():
    schedule = schedule_of_calls(rows_and_columns())
    sends = schedule.table()[schedule.table()["kind"] == "send"]
    pairs = sorted(zip(sends["rank"], sends["peer"], strict=True))
    assert pairs == [(0, 1), (0, 2), (1, 0), (1, 3), (2, 0), (2, 3), (3, 1), (3, 2)]
    assert all(known == {0, 1, 2, 3} for known in knowledge(schedule))


def test_more_ranks_copy_messages_and_make_collectives_anew():
    pair = [
        [("Send", 10, send(1, 8)), ("Allreduce", 10, {"bytes": 8})],
        [("Recv", 10, receive(0, 8)), ("Allreduce", 10, {"bytes": 8})],
    ]
    schedule = schedule_of_calls(of_programs(*pair), times=4)
    assert schedule.ranks == 8
    assert schedule.messages == 4 + patterns.recursive_doubling_allreduce(8, 8).messages
    copied = schedule.table()
    copied = copied[(copied["kind"] == "send") & (copied["tag"] == 0)]
    assert list(zip(copied["rank"], copied["peer"], strict=True)) == [
        (0, 1),
        (2, 3),
        (4, 5),
        (6, 7),
    ]
    assert all(known == set(range(8)) for known in knowledge(schedule))
    within = schedule_of_calls(rows_and_columns(), times=2)
    assert [len(known) for known in knowledge(within)] == [4] * 8


def test_extrapolated_work_and_counts_of_a_real_program():
    calls = read_liballprof(SAMPLE)
    one, many = schedule_of_calls(calls), schedule_of_calls(calls, times=8)
    work = [int(s.column("size")[s.kind == CALC].sum()) for s in (one, many)]
    assert work[1] == 8 * work[0]
    collectives = 32 * 32 * 5 + 3 * 32 * 5 + 4 * 31  # all-reductions, barriers, broadcasts
    assert many.messages == 8 * 5760 + collectives


def test_what_tracing_took_comes_off_the_computation():
    calls = of_programs([("Send", 100, send(1, 8))], [("Recv", 30, receive(0, 8))])
    schedule = schedule_of_calls(calls, call_ns=40)
    assert schedule.column("size")[schedule.kind == CALC].tolist() == [60, 0]


@pytest.mark.parametrize(
    "programs, message",
    [
        (([("Barrier", 0, {})], [("Allreduce", 0, {"bytes": 8})]), "different collectives"),
        (([("Barrier", 0, {})], [("Finalize", 0, {})]), "rank 1 doesn't call MPI_Barrier"),
        (([("Bcast", 0, {"root": 0})], [("Bcast", 0, {"root": 1})]), "different roots"),
        (([("Send", 0, send(1, 8))], [("Finalize", 0, {})]), "1 messages from rank 0 to rank 1"),
        (([("Put", 0, {})], [("Finalize", 0, {})]), "no schedule can have"),
        (([("Barrier", 0, {"comm": 9})], [("Finalize", 0, {})]), "unknown communicator"),
    ],
)
def test_calls_that_do_not_fit(programs, message):
    with pytest.raises(InputError, match=message):
        schedule_of_calls(of_programs(*programs))


def test_collectives_in_another_order_on_other_ranks():
    comms = {1: (0, 1), 2: (0, 1)}
    there = [("Barrier", 0, {"comm": 1}), ("Barrier", 0, {"comm": 2})]
    with pytest.raises(InputError, match="another order"):
        schedule_of_calls(of_programs(there, there[::-1], comms=comms))


def test_times_that_go_back_and_ranks_without_calls():
    calls = of_programs([("Barrier", 0, {})], [("Barrier", 0, {})])
    back = calls.table.assign(end_ns=-5)
    with pytest.raises(InputError, match="time goes back"):
        schedule_of_calls(TracedCalls(back, calls.waits, calls.comms, 2))
    with pytest.raises(InputError, match="rank 2 has no call"):
        schedule_of_calls(TracedCalls(calls.table, calls.waits, calls.comms, 3))
    with pytest.raises(InputError, match="no algorithms 'best'"):
        schedule_of_calls(calls, algorithms="best")


# --- OTF2 -----------------------------------------------------------------------------------------


def writer_of_otf2():
    otf2 = pytest.importorskip("otf2", reason="OTF2's reader is not installed: pip install otf2")
    pytest.importorskip("otf2.writer")
    return otf2


def write_archive(folder, otf2, ends=True):
    """Two ranks: rank 0 sends without waiting, rank 1 receives, both reduce."""
    from otf2.enums import CollectiveOp, GroupFlag, GroupType, Paradigm

    with otf2.writer.open(str(folder), timer_resolution=1_000_000_000) as trace:
        root = trace.definitions.system_tree_node("node")
        groups = [
            trace.definitions.location_group(f"rank {n}", system_tree_parent=root) for n in (0, 1)
        ]
        places = [trace.definitions.location("main", group=group) for group in groups]
        world = trace.definitions.comm(
            "world",
            group=trace.definitions.group(
                "world", GroupType.COMM_LOCATIONS, Paradigm.MPI, GroupFlag.NONE, places
            ),
        )
        region = {
            name: trace.definitions.region(f"MPI_{name}")
            for name in ("Isend", "Wait", "Recv", "Allreduce", "Finalize")
        }

        def call(writer, start, name, *records):
            writer.enter(start, region[name])
            for kind, *what in records:
                getattr(writer, kind)(start + 1, *what)
            if ends or name != "Finalize":
                writer.leave(start + 10, region[name])

        reduced = ("mpi_collective_end", CollectiveOp.ALLREDUCE, world, 0xFFFFFFFF, 8, 8)
        first, second = (trace.event_writer_from_location(place) for place in places)
        call(first, 1000, "Isend", ("mpi_isend", 1, world, 7, 101, 5))
        call(first, 1500, "Wait", ("mpi_isend_complete", 5))
        call(first, 2000, "Allreduce", reduced)
        call(first, 9000, "Finalize")
        call(second, 1000, "Recv", ("mpi_recv", 0, world, 7, 101))
        call(second, 3000, "Allreduce", reduced)
        call(second, 9000, "Finalize")


def test_an_otf2_archive_becomes_the_schedule_of_its_calls(tmp_path):
    otf2 = writer_of_otf2()
    write_archive(tmp_path / "trace", otf2)
    calls = read_otf2(tmp_path / "trace" / "traces.otf2")
    expected = of_programs(
        [
            ("Isend", 0, send(1, 101, tag=7, request=5)),
            ("Wait", 490, {}, 5),
            ("Allreduce", 490, {"bytes": 8}),
            ("Finalize", 6990, {}),
        ],
        [
            ("Recv", 0, receive(0, 101, tag=7)),
            ("Allreduce", 1990, {"bytes": 8}),
            ("Finalize", 5990, {}),
        ],
    )
    ends = [
        simulate(schedule_of_calls(one), NETWORK).finish_ns.tolist() for one in (calls, expected)
    ]
    assert ends[0] == ends[1]
    assert calls.comms[0] == (0, 1)


def test_an_otf2_archive_that_was_cut_short(tmp_path):
    otf2 = writer_of_otf2()
    write_archive(tmp_path / "trace", otf2, ends=False)
    with pytest.raises(InputError, match="ends within MPI_Finalize"):
        read_otf2(tmp_path / "trace" / "traces.otf2")


def test_without_the_reader_the_error_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "otf2", None)
    with pytest.raises(InputError, match="pip install otf2"):
        read_otf2(tmp_path / "traces.otf2")
