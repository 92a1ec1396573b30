"""Traces of real ranks against what their programs are known to do: each message, each request,
communicators, sizes of collectives, threads, Python, and ranks that die.
"""

import ctypes
import os
import re
import shutil
import subprocess
from dataclasses import replace

import pytest

from nbhelpers import program
from nbhelpers.errors import InputError
from nbhelpers.mpi import installation, read_calls
from nbhelpers.simulation.traces import schedule_of_calls
from nbhelpers.simulation.traces.calls import LOCAL
from nbhelpers.simulation.traces.collectives import BY_SIZE
from nbhelpers.workloads import Region

from . import built_program, needs_mpi, traced_run
from .messages import matched_messages

pytestmark = needs_mpi


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("programs")
    return {name: built_program(name, folder) for name in ("known", "groups", "dies", "threads")}


def traced(command, ranks, folder, here=None):
    words = [*(here or installation()).command(ranks), *map(str, command)]
    return traced_run(program(words, region=Region("mpi"), timeout_s=60), folder)


@pytest.fixture(scope="module")
def known_run(built, tmp_path_factory):
    return traced([built["known"]], 2, tmp_path_factory.mktemp("known"))


@pytest.fixture(scope="module")
def groups_run(built, tmp_path_factory):
    return traced([built["groups"]], 4, tmp_path_factory.mktemp("groups"))


def known_messages(output: str) -> list[tuple[int, int, int, int]]:
    lines = [line.split() for line in output.splitlines() if line.startswith("known ")]
    return sorted(tuple(map(int, words[2:])) for words in lines)


def without_cancelled(calls):
    """Without MPI_Cancel, and the receive that it cancels."""
    table = calls.table
    left = (table["call"] != "MPI_Cancel") & (table["tag"] != 61)
    rows = (left.cumsum() - 1)[calls.waits["row"]].to_numpy()
    table = table[left].reset_index(drop=True)
    return replace(calls, table=table, waits=calls.waits.assign(row=rows))


@pytest.mark.parametrize("ranks", [2, 4])
def test_traces_match_message_by_message(built, ranks, tmp_path):
    """The program names each message that it sends; all are there, and each is received."""
    alone = subprocess.run(
        [*installation().command(ranks), built["known"]], capture_output=True, text=True, timeout=60
    )
    row, calls = traced([built["known"]], ranks, tmp_path)
    assert row["status"] == "ok" and calls.ranks == ranks and calls.notes == ()
    messages = matched_messages(calls)
    columns = ["sender", "receiver", "tag", "bytes"]
    assert sorted(map(tuple, messages[columns].to_numpy().tolist())) == known_messages(alone.stdout)
    assert (messages["bytes"] == messages["received_bytes"]).all()
    assert (messages[["send_row", "receive_row"]] >= 0).all().all() and len(messages) == 42 * ranks
    with pytest.raises(InputError, match=f"{ranks} × MPI_Cancel"):
        schedule_of_calls(calls)
    barriers = (
        len(of_call(calls, "MPI_Barrier")) // ranks * BY_SIZE["Barrier"](ranks, 0, 0).messages
    )
    assert schedule_of_calls(without_cancelled(calls)).messages == len(messages) + barriers


def test_every_request_is_completed_one_time(known_run):
    _, calls = known_run
    begun = calls.table[calls.table["request"] >= 0]
    begun = begun[begun["kind"].isin(("send", "receive"))]
    assert len(begun) == 2 * (4 + 64 + 6 + 2)
    pairs = set(zip(begun["rank"], begun["request"]))
    done = list(zip(calls.waits["rank"], calls.waits["request"]))
    assert len(done) == len(set(done)) and set(done) == pairs
    waits = calls.table.loc[calls.waits["row"]]
    assert set(waits["kind"]) == {"wait"} and (waits["received_bytes"] == 0).all()
    ends = waits["end_ns"].to_numpy()
    starts = begun.set_index(["rank", "request"])["start_ns"]
    assert (ends >= starts.loc[done].to_numpy()).all()


def test_times_begin_at_zero_and_follow_each_other(known_run):
    row, calls = known_run
    table = calls.table
    inits = table[table["call"] == "MPI_Init"]
    assert inits["end_ns"].min() == 0 and (inits["start_ns"] < 0).all()
    assert (table["end_ns"] >= table["start_ns"]).all()
    for _, own in table.groupby("rank"):
        ordered = own[own["call"] != "MPI_Start"]
        assert (ordered["start_ns"].to_numpy()[1:] >= ordered["end_ns"].to_numpy()[:-1]).all()
    finalize = table[table["call"] == "MPI_Finalize"]["start_ns"].max() * 1e-9
    # a rank that is out of MPI_Init first may wait for the others, and on a busy machine long
    assert row["region_seconds"] - 0.05 < finalize < row["region_seconds"] + 2


def of_call(calls, name):
    return calls.table[calls.table["call"] == name]


def test_communicators_have_one_number_on_all_their_ranks(groups_run):
    row, calls = groups_run
    assert row["status"] == "ok", row["message"]
    assert calls.comms[0] == (0, 1, 2, 3)
    reduced = of_call(calls, "MPI_Allreduce")
    assert {calls.comms[comm] for comm in reduced["comm"]} == {(0, 2), (1, 3)}
    assert reduced.groupby("comm")["rank"].apply(tuple).to_dict() == {
        comm: calls.comms[comm] for comm in reduced["comm"].unique()
    }
    assert calls.comms[of_call(calls, "MPI_Bcast")["comm"].unique().item()] == (3, 2, 1, 0)
    grid = of_call(calls, "MPI_Neighbor_alltoall")["comm"].unique()
    assert len(grid) == 1 and grid[0] != 0 and calls.comms[grid[0]] == (0, 1, 2, 3)
    barriers = of_call(calls, "MPI_Barrier")
    members = [calls.comms[comm] for comm in barriers["comm"]]
    assert all(rank in group for rank, group in zip(barriers["rank"], members))
    assert sorted(set(members)) == sorted([(0,), (1,), (2,), (3,), (0, 1), (2, 3)])
    halves = barriers[[len(group) == 2 for group in members]]
    assert halves["comm"].nunique() == 4 and (halves["comm"].value_counts() == 2).all()
    messages = matched_messages(calls)
    pair = messages[messages["tag"] == 9]
    assert pair[["sender", "receiver"]].to_numpy().tolist() == [[0, 1], [1, 0]]
    assert {calls.comms[comm] for comm in pair["comm"]} == {(1, 0)}
    among = messages.drop(pair.index)  # neighbours of 2 × 2 ranks in a ring each way
    assert (among[["bytes", "received_bytes"]] == 4).all().all()
    pairs = sorted(zip(among["sender"], among["receiver"]))
    assert pairs == sorted((rank, rank ^ way) for rank in range(4) for way in (1, 1, 2, 2))


def test_collectives_say_how_much_they_move(groups_run):
    _, calls = groups_run

    def sizes(name):
        found = of_call(calls, name).sort_values("rank")
        return list(zip(found["bytes"], found["received_bytes"]))

    assert sizes("MPI_Allreduce") == [(24, 24)] * 4
    assert sizes("MPI_Iallreduce") == [(28, 28), (44, 44), (44, 44)] * 4  # two of them persistent
    assert sizes("MPI_Bcast") == [(0, 20), (0, 20), (0, 20), (20, 0)]
    assert list(of_call(calls, "MPI_Bcast")["root"]) == [3] * 4
    assert sizes("MPI_Reduce") == [(8, 0), (8, 8), (8, 0), (8, 0)]
    assert sizes("MPI_Alltoallv") == [(8, 8)] * 4
    assert sizes("MPI_Reduce_scatter") == [(8, 4)] * 4
    assert sizes("MPI_Neighbor_alltoall") == [(16, 16)] * 4
    assert sizes("MPI_Gather") == [(4, 16), (4, 0), (4, 0), (4, 0)]
    assert sizes("MPI_Put") == [(8, 0)] * 4


def test_what_no_schedule_can_have_is_refused_by_name(groups_run):
    row, calls = groups_run
    assert row["status"] == "ok", row["message"]  # the calls were passed on as they are
    refused = ["File_open", "File_read_at", "File_close", "Put", "Win_create", "Win_free"]
    with pytest.raises(InputError) as refusal:
        schedule_of_calls(calls)
    assert all(f"4 × MPI_{name}" in str(refusal.value) for name in refused)
    assert "8 × MPI_Win_fence" in str(refusal.value)
    names = calls.table["call"].str.removeprefix("MPI_")
    assert {"Win_fence", "Neighbor_alltoall", *refused} <= set(names)
    assert "Neighbor" not in str(refusal.value)


def test_every_function_of_this_mpi_is_recorded_or_known_to_be_local():
    """A call that nobody records would count as computation, and nobody would say so."""
    folder = installation().mpicc.parent.parent / "include"
    headers = [path for path in (folder / "mpi.h", folder / "mpi_proto.h") if path.is_file()]
    if not headers:
        pytest.skip(f"there is no mpi.h in {folder}")
    text = "".join(path.read_text() for path in headers)  # MPICH's functions are in the second
    library = ctypes.CDLL(str(installation().programs / "libnbtrace.so"))
    prototypes = re.findall(r"^(?:OMPI_DECLSPEC)?[\w *]+\b(MPI_[A-Z]\w*[a-z]\w*)\(", text, re.M)
    recorded = {name for name in prototypes if hasattr(library, name)}
    assert len(prototypes) > 400 and "MPI_File_open" in recorded
    prototypes = [name for name in prototypes if not name.startswith("MPI_File_")]  # not without
    assert [name for name in prototypes if not (name in recorded or LOCAL.fullmatch(name))] == []


def test_threads_that_talk_at_the_same_time(built, tmp_path):
    row, calls = traced([built["threads"]], 2, tmp_path)
    if row["status"] == "exit 77":
        pytest.skip("this MPI lets one thread at a time call it")
    assert row["status"] == "ok", row["message"]
    messages = matched_messages(calls)
    assert len(messages) == 2 * 3 * 60 and (messages["bytes"] == messages["received_bytes"]).all()
    sent = calls.table.loc[messages["send_row"], "bytes"].to_numpy()
    assert sorted(sent) == sorted(2 * [1 + (i + tag) % 400 for i in range(60) for tag in range(3)])
    assert len(calls.waits) == 2 * 2 * 3 * 60


PYTHON = """
from mpi4py import MPI
world = MPI.COMM_WORLD
next, before = (world.rank + 1) % world.size, (world.rank - 1) % world.size
for i in range(5):
    world.sendrecv({"rank": world.rank, "text": "x" * 100 * i}, dest=next, source=before)
room = bytearray(64)
request = world.Irecv(room, source=before, tag=7)
world.Send(bytes(33), dest=next, tag=7)
request.Wait()
part = world.Split(world.rank % 2)
part.Barrier()
world.Barrier()
"""


def test_mpi4py(tmp_path):
    here = installation()
    if here.python is None:
        pytest.skip("this MPI is the site's own: make mpi installs no mpi4py for it")
    (tmp_path / "talks.py").write_text(PYTHON)
    row, calls = traced([here.python, tmp_path / "talks.py"], 4, tmp_path / "trace")
    assert row["status"] == "ok", row["message"]
    messages = matched_messages(calls)
    assert (messages["bytes"] == messages["received_bytes"]).all()
    assert (messages["tag"] == 7).sum() == 4
    assert (messages.loc[messages["tag"] == 7, "bytes"] == 33).all()
    assert {calls.comms[comm] for comm in of_call(calls, "MPI_Barrier")["comm"]} >= {(0, 2)}
    assert schedule_of_calls(calls).messages > len(messages)  # objects are received by Mrecv


@pytest.mark.parametrize(
    "signal", [9, pytest.param(11, marks=pytest.mark.long), pytest.param(0, marks=pytest.mark.long)]
)
def test_of_a_rank_that_dies_the_calls_until_then_are_known(built, signal, tmp_path):
    row, calls = traced([built["dies"], signal], 2, tmp_path)
    assert row["status"].startswith("exit") and "the program failed" in row["message"]
    assert calls.cut == (0, 1) and "Rank 1 did not end its MPI_Finalize" in calls.notes[1]
    assert "within MPI_Recv" in calls.notes[0]
    assert of_call(calls, "MPI_Allreduce").groupby("rank").size().to_list() == [100, 100]
    left = subprocess.run(["pgrep", "-f", str(built["dies"])], capture_output=True, text=True)
    assert left.stdout == ""


def test_a_trace_that_is_cut_short_is_read_as_far_as_it_is(built, tmp_path):
    _, calls = traced([built["known"]], 2, tmp_path)
    (path,) = tmp_path.glob("run-*/calls.1")
    os.truncate(path, 8192 + 64 * 20 + 17)
    short = read_calls(path.parent)
    assert (short.table["rank"] == 1).sum() <= 20
    kept = short.table[short.table["rank"] == 0]
    assert len(kept) == (calls.table["rank"] == 0).sum()
    path.unlink()
    assert "no trace of rank 1" in read_calls(path.parent).notes[0]
    (path.parent / "calls.1").write_bytes(b"short")
    with pytest.raises(InputError, match="no trace of MPI calls"):
        read_calls(path.parent)


def test_ranks_that_do_not_find_each_other_are_an_error(built, tmp_path):
    library = shutil.copy(installation().programs / "libnbtrace.so", tmp_path)  # no blank
    env = {**os.environ, "LD_PRELOAD": str(library), "NBTRACE": str(tmp_path)}
    for _ in range(2):
        subprocess.run([built["dies"], "0"], env=env, capture_output=True, timeout=60)
    with pytest.raises(InputError, match="each was alone"):
        read_calls(tmp_path)
    with pytest.raises(InputError, match="no MPI call was recorded"):
        read_calls(tmp_path / "nothing")


def test_without_a_trace_the_library_changes_nothing(built, tmp_path):
    library = shutil.copy(installation().programs / "libnbtrace.so", tmp_path)  # no blank
    env = {name: value for name, value in os.environ.items() if name != "NBTRACE"}
    done = subprocess.run(
        [*installation().command(2), built["known"]],
        env={**env, "LD_PRELOAD": str(library)},
        capture_output=True,
        text=True,
        timeout=60,
        cwd=tmp_path,
    )
    assert done.returncode == 0 and len(known_messages(done.stdout)) == 84
    assert [str(path) for path in tmp_path.iterdir()] == [str(library)]
