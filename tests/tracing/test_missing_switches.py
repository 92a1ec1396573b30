"""Switches that the kernel did not report are inferred from who is named as running; what can't be
known is counted.
"""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbhelpers.tracing import noise_from_tracepoints, read_recording
from nbhelpers.tracing._missing_switches import infer_switches

TEXTS = ("name", "prev_comm", "next_comm")
COLUMNS = dict.fromkeys(("number", "prev_pid", "prev_state", "next_pid", "delta_ns"), 0)
COLUMNS |= {"prev_prio": 120, "next_prio": 120} | dict.fromkeys(TEXTS, "")


def row(time_ns, event, pid, cpu=0, **others):
    return {"cpu": cpu, "time_ns": time_ns, "event": event, "pid": pid, **COLUMNS, **others}


def switch(time_ns, prev, following, cpu=0, state=0):
    ends = {"prev_pid": prev, "next_pid": following, "prev_state": state}
    names = {"prev_comm": f"t{prev}", "next_comm": f"t{following}"}
    return row(time_ns, "sched_switch", prev, cpu, **ends, **names)


def tick(time_ns, pid, cpu=0):
    return [
        row(time_ns, "local_timer_entry", pid, cpu, number=236),
        row(time_ns + 10, "local_timer_exit", pid, cpu, number=236),
    ]


def wake(time_ns, pid, who, on=0):
    """`pid`, running on CPU `on`, wakes `who` for CPU 0."""
    return row(time_ns, "sched_wakeup", pid, on, next_pid=who, number=0)


def table(*rows):
    items = [item if isinstance(item, list) else [item] for item in rows]
    return pd.DataFrame([one for item in items for one in item])


def threads(raw):
    events = noise_from_tracepoints(raw, workload_pids=[1]).query("kind == 'thread'")
    return events[["pid", "start_ns", "duration_ns", "source"]].values.tolist()


def test_a_whole_trace_is_left_as_it_is():
    raw = table(switch(0, 1, 7), tick(100, 7), switch(1000, 7, 1), tick(2000, 1))
    assert infer_switches(raw).count == 0 and threads(raw) == [[7, 0, 990, "t7"]]


def test_a_thread_that_left_unseen_is_not_charged_with_the_workloads_time():
    raw = table(
        switch(0, 1, 7), tick(100, 7), tick(5000, 1), switch(9000, 1, 8), switch(9100, 8, 1)
    )
    inferred = infer_switches(raw)
    assert (inferred.count, inferred.ambiguous_ns) == (1, 5000 - 110)
    assert threads(raw) == [[7, 0, 100, "t7"], [8, 9000, 100, "t8"]]


def test_a_hog_that_left_the_idle_task_unseen_counts_from_its_wakeup():
    raw = table(
        switch(0, 1, 0, state=1),
        row(500, "local_timer_entry", 0, number=236),
        wake(505, 0, 9),
        row(510, "local_timer_exit", 0, number=236),
        tick(4000, 9),
        switch(9000, 9, 0, state=1),
        switch(9500, 0, 1),
    )
    inferred = infer_switches(raw)
    assert (inferred.count, inferred.ambiguous_ns) == (1, 0)
    ((pid, start_ns, duration_ns, source),) = threads(raw)
    assert (pid, source) == (9, "t9") and start_ns in (505, 510)
    assert duration_ns == pytest.approx(9000 - 510 - 10, abs=15)


def test_a_thread_that_left_unseen_before_another_was_woken_leaves_the_cpu_idle_in_between():
    raw = table(switch(0, 1, 7, state=1), tick(100, 7), wake(5000, 3, 9, on=1), switch(9000, 9, 1))
    assert infer_switches(raw).count == 2
    assert threads(raw) == [[7, 0, 100, "t7"], [9, 5000, 4000, "t9"]]


STEP = st.tuples(st.integers(1, 50), st.integers(0, 3), st.booleans())


@settings(max_examples=150, deadline=None)
@given(st.lists(STEP, min_size=2, max_size=40))
def test_the_mended_table_is_a_chain_whatever_is_missing(steps):
    """Build an unbroken trace, leave switches out, fix: no record contradicts the one before it."""
    time_ns, running, rows = 0, 1, []
    for gap, following, kept in steps:
        time_ns += 100 * gap
        if following == running:
            rows += tick(time_ns, running)
        elif kept:
            rows.append(switch(time_ns, running, following))
        running = following
    if not rows:
        return
    raw = table(rows)
    inferred = infer_switches(raw).raw
    is_switch = (inferred["event"] == "sched_switch").to_numpy()
    before = np.where(is_switch, inferred["prev_pid"], inferred["pid"])
    after = np.where(is_switch, inferred["next_pid"], inferred["pid"])
    assert (after[:-1] == before[1:]).all() and (np.diff(inferred["time_ns"]) >= 0).all()
    assert len(inferred) - len(raw) == infer_switches(raw).count


def account(time_ns, pid, spent_ns, cpu=0):
    return row(time_ns, "sched_stat_runtime", pid, cpu, next_pid=pid, delta_ns=spent_ns)


def unseen_switch_to(pid, spent_ns):
    """Nothing from 110 to 5000, where a tick finds `pid` with so much time on its account."""
    return table(
        switch(0, pid, 7),
        tick(100, 7),
        row(5000, "local_timer_entry", pid, number=236),
        account(5003, pid, spent_ns),
        row(5010, "local_timer_exit", pid, number=236),
    )


def test_the_account_of_who_came_next_tells_when_an_unseen_switch_was():
    raw = unseen_switch_to(1, 4003)
    inferred = infer_switches(raw)
    assert (inferred.count, inferred.ambiguous_ns) == (1, 0)
    # to 1000, where the workload's account begins, less the tick
    assert threads(raw) == [[7, 0, 990, "t7"]]


def test_an_account_that_began_before_the_gap_tells_nothing():
    inferred = infer_switches(unseen_switch_to(1, 9000))
    assert (inferred.count, inferred.ambiguous_ns) == (1, 5000 - 110)


def test_the_account_settles_what_was_ambiguous_in_a_real_recording(data):
    """The same recording with and without the account."""
    raw = read_recording(data / "stolen.tracepoints.gz")[1]
    with_account = infer_switches(raw)
    without = infer_switches(raw[raw["event"] != "sched_stat_runtime"].reset_index(drop=True))
    assert with_account.count == without.count > 0
    assert with_account.ambiguous_ns < 0.2 * without.ambiguous_ns
