"""What comes first of what happens at the same time: each rule of the notes of `simulate`."""

import numpy as np
import pytest

from nbhelpers.simulation.engine import simulate
from nbhelpers.simulation.loggops import LogGOPS
from nbhelpers.simulation.schedule import CALC, RECV, SEND, Schedule

INSTANT = LogGOPS(L=1000, o=0, g=0, G=1, S=0)  # a message of 1 byte takes L; 1001 bytes, 1000 more


def begins(schedule: Schedule, network: LogGOPS, mode: str) -> list[float]:
    """When each operation began, ns."""
    result = simulate(schedule, network, mode=mode, critical_path=True)
    unit = 1e-3 if mode == "exact" else 1.0
    return (result.record.begin[: len(schedule)] * unit).tolist()


@pytest.fixture(params=["exact", "compat"])
def mode(request: pytest.FixtureRequest) -> str:
    return request.param


def test_what_required_a_begin_comes_before_what_required_the_end(mode: str):
    calcs = Schedule.from_arrays(
        [3], [CALC] * 3, [-1] * 3, [5, 10, 20], requires=([1], [0]), irequires=([2], [0])
    )
    assert begins(calcs, LogGOPS(), mode) == [0, 25, 5]


def test_dependents_of_one_sort_come_in_the_order_of_the_dependencies(mode: str):
    calcs = Schedule.from_arrays([3], [CALC] * 3, [-1] * 3, [5, 10, 20], requires=([2, 1], [0, 0]))
    assert begins(calcs, LogGOPS(), mode) == [0, 25, 5]


def test_sends_come_before_calculations_whatever_required_them(mode: str):
    """Though the send required the end, and the calculation only the begin."""
    ops = Schedule.from_arrays(
        [3, 1],
        [CALC, CALC, SEND, RECV],
        [-1, -1, 1, 0],
        [5, 10, 1, 1],
        requires=([2], [0]),
        irequires=([1], [0]),
    )
    assert begins(ops, LogGOPS(o=100, g=0), mode)[:3] == [0, 105, 5]


def test_receives_come_before_calculations(mode: str):
    """Both are over at once, and the calculations that they let go compete for the CPU. Rank 0
    begins with a message that comes late, when the other's has long been there.
    """
    ops = Schedule.from_arrays(
        [5, 3],
        [RECV, CALC, RECV, CALC, CALC, SEND, CALC, SEND],
        [1, -1, 1, -1, -1, 0, -1, 0],
        [1, 0, 1, 10, 20, 1, 9000, 1],
        tag=np.array([1, 0, 0, 0, 0, 0, 0, 1]),
        requires=([1, 2, 3, 4, 6, 7], [0, 0, 1, 2, 5, 6]),
    )
    found = begins(ops, INSTANT.with_(S=1), mode)
    assert found[:5] == [0, 10_000, 10_000, 10_020, 10_000]


def test_sends_come_before_receives(mode: str):
    """The receive's message is there, so both let go a calculation as soon as the CPU is free."""
    ops = Schedule.from_arrays(
        [5, 4],
        [RECV, RECV, SEND, CALC, CALC, SEND, CALC, SEND, RECV],
        [1, 1, 1, -1, -1, 0, -1, 0, 0],
        [1, 1, 1, 10, 20, 1, 9000, 1, 1],
        tag=np.array([1, 0, 0, 0, 0, 0, 0, 1, 0]),
        requires=([1, 2, 3, 6, 7], [0, 0, 1, 5, 6]),
        irequires=([4], [2]),
    )
    found = begins(ops, LogGOPS(L=1000, o=100, g=0), mode)
    start = found[2]
    assert start >= 9000 and found[1:5] == [start, start, start + 100 + 20, start + 100]


def test_what_requires_nothing_comes_by_kind_and_file(mode: str):
    ops = Schedule.from_arrays(
        [4, 2], [CALC, CALC, SEND, SEND, RECV, RECV], [-1, -1, 1, 1, 0, 0], [10, 20, 1, 1, 1, 1]
    )
    assert begins(ops, LogGOPS(o=100, g=0), mode)[:4] == [200, 210, 0, 100]


def first_taken(schedule: Schedule, network: LogGOPS, mode: str) -> float:
    """When rank 2's first receive was done, ns."""
    result = simulate(schedule, network, mode=mode, critical_path=True)
    return float(result.record.end[schedule.rank_start[2]]) * (1e-3 if mode == "exact" else 1.0)


@pytest.mark.parametrize("small", [0, 1])
def test_messages_of_sends_of_one_time_come_by_rank(mode: str, small: int):
    """Rank 2 takes anybody's message; that of rank 0 comes first, small or large."""
    sizes = [1, 1001] if small == 0 else [1001, 1]
    ops = Schedule.from_arrays([1, 1, 2], [SEND, SEND, RECV, RECV], [2, 2, -1, -1], [*sizes, 1, 1])
    network = INSTANT.with_(S=2**20)
    assert first_taken(ops, network, mode) == 1000 + (0 if small == 0 else 1000)


@pytest.mark.parametrize("sender, receiver", [(0, 1), (1, 0)])
def test_what_one_event_lets_go_on_two_ranks_comes_by_rank(mode: str, sender: int, receiver: int):
    """A rendezvous ends a send and a receive in the same moment; each is followed by a send to
    rank 2. Rank 0's is small.
    """
    kinds = {sender: [SEND, SEND], receiver: [RECV, SEND]}
    ops = Schedule.from_arrays(
        [2, 2, 2],
        [*kinds[0], *kinds[1], RECV, RECV],
        [1, 2, 0, 2, -1, -1],
        [1, 1, 1, 1001, 1, 1],
        tag=np.array([0, 5, 0, 5, 5, 5]),
        requires=([1, 3], [0, 2]),
    )
    assert first_taken(ops, INSTANT, mode) == 2000


def test_what_waits_for_a_cpu_goes_in_the_order_of_its_creation(mode: str):
    """Two calculations wait while a third runs: that which was let go first goes first, though it
    stands last in the file.
    """
    ops = Schedule.from_arrays(
        [5, 2],
        [CALC, RECV, RECV, CALC, CALC, SEND, SEND],
        [-1, 1, 1, -1, -1, 0, 0],
        [50_000, 1, 1, 10, 20, 1, 1],
        tag=np.array([0, 2, 1, 0, 0, 1, 2]),
        requires=([3, 4, 6], [1, 2, 5]),
    )
    found = begins(ops, LogGOPS(), mode)
    assert found[3] == found[4] + 20
