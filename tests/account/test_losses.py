"""When runs lost time: constructed records, whose truth is known."""

import numpy as np
import pandas as pd
import pytest

from nbhelpers.account.losses import longer_calls
from nbhelpers.account.owned import owned_by_threads
from nbhelpers.account.owners import held_elsewhere

MS = 1_000_000
TAKEN = ["run", "cpu", "start_ns", "end_ns"]


def owners(*rows):
    columns = ["cpu", "start_ns", "end_ns", "name", "is_program"]
    return pd.DataFrame(rows, columns=columns).assign(run=0, thread=1)


def test_threads_that_share_a_cpu_lose_it_to_who_has_the_other():
    """Two threads on CPU 0 for 100 ms, each ready for half of it, while backupd has CPU 1."""
    had = owners(
        (0, 0, 50 * MS, "prog", True),
        (0, 50 * MS, 100 * MS, "prog", True),
        (1, 0, 100 * MS, "backupd", False),
        (1, 100 * MS, 110 * MS, "prog", True),
    )
    ready = [(0, 0, 0, 50 * MS), (0, 0, 50 * MS, 100 * MS)]
    runnable = pd.DataFrame(ready, columns=TAKEN).assign(thread=2)
    nothing = pd.DataFrame(columns=TAKEN, dtype=np.int64)
    held = held_elsewhere(runnable, had, nothing)
    assert set(held["cpu"]) == {1} and held["ns"].sum() == 100 * MS
    taken = pd.DataFrame([(0, 1, 0, 60 * MS)], columns=TAKEN)
    assert held_elsewhere(runnable, had, taken)["ns"].sum() == 40 * MS
    had["thread"] = [1, 1, 0, 3]  # neither ever ran on CPU 1: it is not what they miss
    assert held_elsewhere(runnable, had, nothing).empty


def testlonger_calls_are_lost_where_their_thread_ran():
    columns = ["run", "thread", "start_ns", "end_ns", "busy_ns", "factor"]
    rows = [(0, 7, 0, 4 * MS, 4 * MS, 2.0), (0, 7, 4 * MS, 8 * MS, 4 * MS, 0.9)]
    rows += [(0, 8, 0, 4 * MS, 2 * MS, 4.0)]
    ran = pd.DataFrame(
        [(0, 7, 0, 1), (0, 8, 0, 0), (0, 7, 3 * MS, 0)],
        columns=["run", "thread", "start_ns", "cpu"],
    )
    lost = longer_calls(pd.DataFrame(rows, columns=columns), ran).set_index("thread")
    assert lost["lost_ns"].to_dict() == {7: 2 * MS, 8: 1.5 * MS}
    assert lost["cpu"].to_dict() == {7: 1, 8: 0} and set(lost["cause"]) == {"slower"}


def test_without_tracepoints_events_still_have_their_part():
    runs = pd.DataFrame({"run": [0, 1], "seconds": [0.1, 0.2], "process_runqueue_wait_ns": 3 * MS})
    event = {"run": 1, "source": "irq:7", "duration_ns": 2 * MS, "interrupted": "workload"}
    owned = owned_by_threads(runs, pd.DataFrame([event]))
    assert owned.sum(axis=1).tolist() == pytest.approx([100, 200])
    assert owned["taken", "irq:7"].tolist() == [0, 2]
    assert owned["runnable", "not recorded"].tolist() == [3, 1]
