"""OTF2 archives: written by the format's own writer, read, and cut short."""

import pytest
from noisebook_formats import read_otf2

from nbhelpers.errors import InputError
from nbhelpers.simulation import simulate
from nbhelpers.simulation.traces import schedule_of_calls
from tests.simulation.test_traces import NETWORK, of_programs, receive, send


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
