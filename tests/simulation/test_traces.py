"""Traces of MPI calls: made into schedules, and compared with schedules and times that were worked
out without them.
"""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from nbhelpers.errors import InputError
from nbhelpers.mpi import KINDS, NUMBERS, Calls
from nbhelpers.simulation import LogGOPS, patterns, simulate
from nbhelpers.simulation.loggops import CallCosts
from nbhelpers.simulation.schedule import CALC, SEND
from nbhelpers.simulation.traces import asking, schedule_of_calls
from nbhelpers.simulation.traces.collectives import BY_SIZE

from .dataflow import knowledge

NETWORK = LogGOPS(L=1000, o=100, g=50, G=1, O=0, S=10_000)


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
    return Calls(pd.DataFrame(rows), waits, world | (comms or {}), len(programs))


def send(peer, bytes, tag=0, **more):
    return {"peer": peer, "bytes": bytes, "tag": tag} | more


def receive(peer, bytes, tag=0, **more):
    return {"peer": peer, "received_bytes": bytes, "tag": tag, "source": peer} | more


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


def test_waiting_in_a_probe_is_no_computation_and_its_message_is_received():
    asked = {"peer": 0, "start_ns": 0, "end_ns": 70_000}
    calls = of_programs(
        [("Comm_rank", 60_000, {}), ("Send", 10, send(1, 8))],
        [("Mprobe", 0, asked), ("Mrecv", 69_990, receive(0, 8)), ("Finalize", 500, {})],
    )
    found = simulate(schedule_of_calls(calls), NETWORK)
    assert found.finish_ns.tolist() == [60_020 + 100, 60_020 + 1207 + 500]


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
    pattern = BY_SIZE[name](ranks, bytes, place)
    end = patterns.compute(ranks, 0)  # waits for everything
    alone = patterns.compose([pattern, end], [500 * np.arange(ranks), 0])
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


def sends_of(schedule, tag=None):
    """(from, to) of every send (of a tag), sorted."""
    sends = schedule.kind == SEND
    sends &= True if tag is None else schedule.column("tag") == tag
    sends = np.flatnonzero(sends)
    return sorted(zip(schedule.rank_of(sends).tolist(), schedule.peer[sends].tolist()))


def test_collectives_of_sub_communicators_stay_among_their_ranks():
    schedule = schedule_of_calls(rows_and_columns())
    pairs = sends_of(schedule)
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
    assert sends_of(schedule, tag=0) == [(0, 1), (2, 3), (4, 5), (6, 7)]
    assert all(known == set(range(8)) for known in knowledge(schedule))
    within = schedule_of_calls(rows_and_columns(), times=2)
    assert [len(known) for known in knowledge(within)] == [4] * 8


def test_ranks_of_copied_blocks_differ_as_the_turns_of_a_traced_one():
    turns = [500, 900, 700]
    program = [(name, ns, {"bytes": 8}) for ns in turns for name in ("Barrier", "Allreduce")]
    program[1::2] = [(name, 10, columns) for name, _, columns in program[1::2]]
    schedule = schedule_of_calls(of_programs(program, program), times=40, drawn=1)
    work = schedule.column("size")[schedule.kind == CALC].reshape(80, -1)
    work = np.array([rank[rank > 0] for rank in work])
    assert (work[:2] == [500, 10, 900, 10, 700, 10]).all()
    assert (work[:, 1::2] == 10).all()  # between the other two calls
    assert {*work[2:, 2]} == {700, 900} and (work[2:, 0] == 500).all()  # the first has no like
    assert len({*map(tuple, work)}) > 2
    plain = schedule_of_calls(of_programs(program, program), times=2, medians=True)
    work = plain.column("size")[plain.kind == CALC].reshape(4, -1)
    assert [rank[rank > 0].tolist() for rank in work] == [[500, 10, 800, 10, 800, 10]] * 4


def test_a_collective_among_neighbours_is_its_messages():
    """Their rows stand behind its own, and take no time; without them it is refused."""
    around = [("Neighbor_allgather", 700, {"bytes": 8}), ("Isend", 0, send(1, 8, request=1))]
    around += [("Irecv", 0, receive(1, 8, request=2)), ("Waitall", 0, {}, 1, 2)]
    calls = of_programs(around, [("Sendrecv", 5700, send(0, 8) | receive(0, 8))])
    table = calls.table
    at = table["rank"].eq(0) & table["call"].ne("MPI_Neighbor_allgather")
    table.loc[at, ["start_ns", "end_ns"]] = table["end_ns"].iloc[0]
    table["received_tag"] = 0
    found = simulate(schedule_of_calls(calls), NETWORK)
    # rank 1 sends, then its CPU takes what came while it computed
    assert found.finish_ns.tolist() == [5700 + 1207, 5700 + 100 + 107]


def test_what_a_loop_of_tests_took_is_known():
    request = {"request": 5}
    polls = [("Test", 20, {}), ("Test", 20, {})]
    program = [("Init", 0, {}), ("Ibarrier", 60, request), *polls, ("Wait", 40, {}, 5)]
    program.append(("Finalize", 30, {}))
    found = asking(of_programs(program, program))
    # of 60 + 40 + 40 + 30 ns between calls and two tests of 10 ns
    assert found.to_dict() == {"MPI_Test": pytest.approx(20 / 190)}


def test_calls_cost_more_after_computation_and_collectives_copy_and_add():
    calls = of_programs(*[[("Allreduce", wait, {"bytes": 8})] for wait in (110, 1000)])
    costs = CallCosts(copy=1, add=2, after=((10, 0), (110, 50)))
    plain, priced = (schedule_of_calls(calls, **how) for how in ({}, {"costs": costs}))
    longer = simulate(priced, NETWORK).finish_ns - simulate(plain, NETWORK).finish_ns
    assert longer.tolist() == [50 + 8 + 16] * 2, "the last rank's; it copies 8 bytes and adds 8"
    levelled = schedule_of_calls(calls, costs=costs, medians=True)
    assert levelled.column("size").tolist() == priced.column("size").tolist()


def test_memory_that_messages_of_the_size_used_is_warm_and_communicators_take_time():
    """After 1000 ns a small message takes 10 ns longer, a large one 100."""
    steps = [(1000, 8000), (1000, 8), (0, 8000), (0, 8000)]
    sender, receiver = (
        [(name, wait, end(1 - rank, size)) for wait, size in steps] + [("Comm_dup", 0, {})]
        for rank, (name, end) in enumerate((("Send", send), ("Recv", receive)))
    )
    costs = CallCosts(make=700, sizes=(8, 8000), after=((0, 0, 0), (1000, 10, 100)))
    schedule = schedule_of_calls(of_programs(sender, receiver), costs=costs)
    works = schedule.column("size")[schedule.kind == CALC][: schedule.rank_start[1]]
    assert works.tolist()[:7] == [1000, 100, 1000, 10, 0, 90, 0], "the third: as long unused"
    assert 700 in works.tolist()


@pytest.mark.parametrize(
    "programs, message",
    [
        (([("Barrier", 0, {})], [("Allreduce", 0, {"bytes": 8})]), "different collectives"),
        (([("Barrier", 0, {})], [("Finalize", 0, {})]), "rank 1 doesn't call MPI_Barrier"),
        (([("Bcast", 0, {"root": 0})], [("Bcast", 0, {"root": 1})]), "different roots"),
        (([("Send", 0, send(1, 8))], [("Finalize", 0, {})]), "1 messages from rank 0 to rank 1"),
        (
            ([("Put", 0, {}), ("Rget", 0, {})] * 2, [("Barrier", 0, {})]),
            "2 × MPI_Put, 2 × MPI_Rget",
        ),
        (([("Start", 0, {"kind": "collective"})], [("Barrier", 0, {})]), "1 × MPI_Start"),
        (([("Start", 0, {"kind": "other"})], [("Barrier", 0, {})]), "1 × MPI_Start"),
        (([("Barrier", 0, {"comm": 9})], [("Finalize", 0, {})]), "unknown communicator"),
    ],
)
def test_calls_that_do_not_fit(programs, message):
    with pytest.raises(InputError, match=message):
        schedule_of_calls(of_programs(*programs))


RECORDED = Path(__file__).parents[2] / "workloads" / "mpi" / "nbtrace_names.h"
# Only these take no part in a schedule: they ask, prepare, or what they find or begin comes later.
_WITHOUT = "Init Init_thread Finalize Abort Probe Iprobe Mprobe Improbe Startall Request_free"
_WITHOUT += " Comm_free Comm_disconnect Comm_create_group Comm_idup Intercomm_create"
_WITHOUT += " Intercomm_merge"


def what_becomes_of(name):
    """Of a call that the tracer records: scheduled, refused, or nothing."""
    kind = KINDS.get(name, "other")
    own = {"tag": 0, "bytes": 8, "received_tag": 0, "received_bytes": 8, "request": 1, "root": 0}
    mine, theirs = (own | {"peer": peer, "source": peer, "kind": kind} for peer in (1, 0))
    waits = kind == "wait"
    calls = [("Isend", 0, mine), (name, 0, mine, 1)] if waits else [(name, 0, mine)]
    other = {"send": "Recv", "wait": "Recv", "receive": "Send", "both": "Sendrecv"}.get(kind, name)
    try:
        schedule = schedule_of_calls(of_programs(calls, [(other, 0, theirs)]))
    except InputError as error:
        assert f"× MPI_{name}" in str(error)
        return "refused"
    simulate(schedule, NETWORK)
    return "scheduled" if schedule.messages else "nothing"


def test_every_call_that_is_recorded_is_understood_or_refused():
    """None of them counts as computation in silence."""
    text = RECORDED.read_text()
    names = re.findall(r"\b(?:CALL|ONLY_TIMED)\((\w+)\)", text.partition("clang-format off")[2])
    names = [name for name in names if name not in ("Start_send", "Start_receive", "Completed")]
    found = {name: what_becomes_of(name) for name in names}
    became = {what: {one for one in found if found[one] == what} for what in set(found.values())}
    inits = {name for name in names if name.endswith("_init")} - {"Psend_init", "Precv_init"}
    assert became["nothing"] == {*_WITHOUT.split(), *inits}
    timed = set(re.findall(r"ONLY_TIMED\((\w+)\)", text.partition("clang-format off")[2]))
    one_sided = {name for name in names if re.match("R?(put|get|acc)", name, re.I)}
    neighbours = {name for name in names if re.match("I?neighbor", name, re.I)} - inits
    assert became["refused"] == timed | one_sided | neighbours | {"Start", "Cancel"}
    assert len(became["scheduled"]) >= 60 and len(became["refused"]) >= 40


def test_collectives_in_another_order_on_other_ranks():
    comms = {1: (0, 1), 2: (0, 1)}
    there = [("Barrier", 0, {"comm": 1}), ("Barrier", 0, {"comm": 2})]
    with pytest.raises(InputError, match="another order"):
        schedule_of_calls(of_programs(there, there[::-1], comms=comms))


def test_times_that_go_back_and_ranks_without_calls():
    calls = of_programs([("Barrier", 0, {})], [("Barrier", 0, {})])
    back = calls.table.assign(end_ns=-5)
    with pytest.raises(InputError, match="time goes back"):
        schedule_of_calls(Calls(back, calls.waits, calls.comms, 2))
    with pytest.raises(InputError, match="rank 2 has no call"):
        schedule_of_calls(Calls(calls.table, calls.waits, calls.comms, 3))
