"""The net-duration algorithm: hand-made sequences, random ones against the kernel's algorithm step
by step, and the recorded agreement with osnoise.
"""

import gzip
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbhelpers.tracing import noise_from_tracepoints, read_recording, read_tracepoints
from nbhelpers.tracing._missing_switches import infer_switches

from .conftest import account

WL, WL2, KW, RT = 100, 101, 7, 8
PRIO = {0: 120, WL: 120, WL2: 120, KW: 100, RT: 49, 55: 139, 15: 130, 16: 98}


def raw(*rows):
    """Rows: (time, event, number or (prev, state, next)), all on CPU 0 unless a fourth element says
    otherwise; who runs is followed.
    """
    numbers = ("number", "prev_pid", "prev_prio", "prev_state", "next_pid", "next_prio", "delta_ns")
    empty = dict.fromkeys(numbers, 0) | dict.fromkeys(("name", "prev_comm", "next_comm"), "")
    running, table = {}, []
    for _, event, what, *cpu in reversed(rows):
        if event == "sched_switch":  # who runs before a CPU's first one is who it takes it from
            running[cpu[0] if cpu else 0] = what[0]
    for time, event, what, *cpu in rows:
        cpu = cpu[0] if cpu else 0
        row = empty | {"cpu": cpu, "time_ns": time, "event": event, "pid": running.get(cpu, 0)}
        row["number"] = -1
        if event == "sched_switch":
            prev, row["prev_state"], following = what
            row |= {"pid": prev, "prev_pid": prev, "next_pid": following}
            row |= {"prev_prio": PRIO[prev], "next_prio": PRIO[following]}
            row |= {"prev_comm": f"c{prev}", "next_comm": f"c{following}"}
            running[cpu] = following
        elif event == "sched_process_fork":
            row |= {"prev_pid": what[0], "next_pid": what[1]}
        elif event == "nmi_handler":
            row |= {"delta_ns": what}
        else:
            row |= {"number": what, "name": "eth0" if event == "irq_handler_entry" else ""}
        table.append(row)
    return pd.DataFrame(table)


def told(events):
    columns = ["kind", "source", "start_ns", "end_ns", "duration_ns", "interrupted"]
    return list(events[columns].itertuples(index=False, name=None))


@pytest.mark.parametrize(
    "prio, wanted",
    [
        (-1, ("SCHED_DEADLINE", 0)),
        (0, ("SCHED_FIFO", 99)),
        (49, ("SCHED_FIFO", 50)),
        (98, ("SCHED_FIFO", 1)),
        (100, ("SCHED_OTHER", -20)),
        (139, ("SCHED_OTHER", 19)),
    ],
)
def test_the_kernels_scale_of_priorities(prio, wanted):
    table = raw((0, "sched_switch", (WL, 0, KW)), (1, "sched_switch", (KW, 0, WL)))
    table.loc[1, "prev_prio"] = prio
    events = noise_from_tracepoints(table, [WL])
    assert events[["policy", "priority"]].values.tolist() == [list(wanted)]


def test_whom_a_thread_interrupted():
    """A preempted workload, through a chain of threads; a workload that slept; one that went on
    elsewhere; an idle CPU.
    """
    table = raw(
        (0, "sched_switch", (WL, 0, KW)),
        (10, "sched_switch", (KW, 1, RT)),
        (20, "sched_switch", (RT, 1, WL)),
        (30, "sched_switch", (WL, 1, KW)),
        (40, "sched_switch", (KW, 1, 0)),
        (50, "sched_switch", (0, 0, KW)),
        (60, "sched_switch", (KW, 1, WL)),
        (70, "sched_switch", (WL, 256, KW)),
        (71, "sched_switch", (0, 0, WL), 1),
        (80, "sched_switch", (KW, 1, RT)),
        (90, "sched_switch", (RT, 1, 0)),
    )
    found = noise_from_tracepoints(table, [WL])["interrupted"].tolist()
    assert found == ["workload", "workload", "other", "idle", "workload", "other"]


def test_children_of_the_workload_are_the_workload_and_the_harness_is_nothing():
    table = raw(
        (0, "sched_process_fork", (WL, WL2)),
        (1, "sched_process_fork", (WL2, 16)),
        (2, "sched_process_fork", (KW, 15)),
        (10, "sched_switch", (0, 0, WL2)),
        (20, "sched_switch", (WL2, 0, 16)),
        (30, "sched_switch", (16, 0, 15)),
        (40, "sched_switch", (15, 0, 55)),
        (50, "sched_switch", (55, 0, 0)),
    )
    assert noise_from_tracepoints(table, [WL], excluded_pids=[55]).pid.tolist() == [15]


def test_threads_over_the_edges_of_the_recording():
    """Nobody else was switched in, so they ran from its begin and to its end; net of the interrupts
    there.
    """
    table = raw(
        (20, "local_timer_entry", 236),
        (25, "local_timer_exit", 236),
        (100, "sched_switch", (KW, 0, WL)),
        (200, "sched_switch", (WL, 0, RT)),
        (210, "local_timer_entry", 236),
        (220, "local_timer_exit", 236),
    )
    assert noise_from_tracepoints(table, [WL]).kind.tolist() == ["irq", "irq"]
    events = noise_from_tracepoints(table, [WL], recorded=(10, 300))
    threads = events[events.kind == "thread"]
    assert told(threads) == [
        ("thread", "c7", 10, 100, 85, "other"),
        ("thread", "c8", 200, 300, 90, "workload"),
    ]
    assert threads.policy.tolist() == ["SCHED_OTHER", "SCHED_FIFO"]
    clipped = noise_from_tracepoints(table, [WL], recorded=(10, 300), window=(50, 250))
    assert clipped.duration_ns.tolist() == [47, 45, 10]


def test_nothing_recorded():
    nothing = raw((0, "local_timer_entry", 236)).iloc[:0]
    events = noise_from_tracepoints(nothing, [WL], recorded=(0, 10))
    assert events.empty and list(events.columns)[:4] == ["run", "cpu", "kind", "source"]


IN_PAIRS = [("local_timer", 236), ("irq_handler", 27), ("softirq", 9), ("softirq", 1)]
EVENT = st.tuples(
    st.integers(0, 30),
    st.integers(0, 2),
    st.sampled_from(
        [(f"{name}_{end}", number) for name, number in IN_PAIRS for end in ("entry", "exit")]
        + [("nmi_handler", 3), ("sched_switch", None)]
    ),
    st.sampled_from([0, WL, KW, RT]),
)
ACCOUNTED = ["cpu", "time_ns", "event", "number", "name", "prev_pid", "next_pid", "delta_ns"]


def slowly(table):
    """What the kernel's algorithm finds, one event after the other."""
    rows = table[ACCOUNTED].astype({"event": str, "name": str})
    return account(list(rows.itertuples(index=False, name=None)))


@settings(max_examples=150, deadline=None)
@given(st.lists(EVENT, max_size=60))
def test_any_sequence_gives_what_the_kernels_algorithm_gives(sequence):
    time, current, rows = 1000, {}, []
    for step, cpu, (event, number), following in sequence:
        time += step + 4
        what = (current.get(cpu, 0), 0, following) if event == "sched_switch" else number
        current[cpu] = following if event == "sched_switch" else current.get(cpu, 0)
        rows.append((time, event, what, cpu))
    table = raw(*rows) if rows else raw((0, "nmi_handler", 1)).iloc[:0]
    slow = slowly(table.sort_values(["cpu", "time_ns"]))
    wanted = [event for event in slow if event[2] not in (0, WL)]
    events = noise_from_tracepoints(table, [WL])
    who = np.where(events["kind"] == "thread", events["pid"], events["source"].astype(object))
    columns = ["cpu", "kind", "who", "start_ns", "end_ns", "duration_ns"]
    ours = events.assign(who=who)[columns].astype(str).itertuples(index=False, name=None)
    assert sorted(ours) == sorted(tuple(map(str, event)) for event in wanted)


# ---- recorded ------------------------------------------------------------------------------------


def test_a_recorded_second_against_the_kernels_algorithm(recorded):
    table = infer_switches(read_recording(recorded("contended"))[1]).raw
    ours = noise_from_tracepoints(table)
    wanted = [(e[0], e[1], *e[3:]) for e in slowly(table) if e[2] != 0]
    assert len(wanted) > 500
    found = zip(ours.cpu, ours.kind, ours.start_ns, ours.end_ns, ours.duration_ns)
    assert sorted(found) == sorted(wanted)


def test_net_times_fill_a_cpu_exactly(recorded):
    """No nanosecond counts twice: all there is between the first and the last switch, idle and
    workload too, sums to the time between.
    """
    table = read_recording(recorded("contended"))[1]
    table[["prev_pid", "next_pid"]] += 1  # then nobody is idle, and all is reported
    for cpu in (0, 1):
        mine = table[table.cpu == cpu]
        switches = mine.loc[mine.event == "sched_switch", "time_ns"]
        events = noise_from_tracepoints(mine)
        inside = events[
            (events.start_ns >= switches.iloc[0]) & (events.end_ns <= switches.iloc[-1])
        ]
        assert inside.duration_ns.sum() == switches.iloc[-1] - switches.iloc[0]


def test_a_recorded_region(recorded, data):
    """The detour loop was the workload (its two threads, and the shell's child that started them);
    times count from its start.
    """
    region = {"start_ns": 2334632154549, "end_ns": 2335632154563, "off_ns": 2336000000000}
    path = recorded("contended", workload_pids=[21736, 21737, 21738], run=5, **region)
    events = read_tracepoints(path)
    assert set(events.run) == {5} and events.start_ns.min() >= 0
    assert events.end_ns.max() <= 1_000_000_014
    assert not events.source.str.startswith(("detour", "swapper")).any()
    text = gzip.decompress((data / "contended.trace.txt.gz").read_bytes()).decode()
    stamps = re.findall(r"\[000\] \S+ +([\d.]+): local_timer_entry", text)
    ticks = sum(2334.632154 <= float(stamp) < 2335.632154 for stamp in stamps)
    assert ((events.source == "local_timer") & (events.cpu == 0)).sum() == ticks
    assert events.loc[events.kind == "thread", "interrupted"].eq("workload").sum() > 50
    prios = re.findall(r"next_comm=cc1 next_pid=\d+ next_prio=(\d+)", text)
    assert set(events.loc[events.source == "cc1", "priority"]) == {19}
    assert {int(prio) - 120 for prio in prios} == {19}


def test_osnoise_and_tracepoints_of_the_same_seconds_agree(
    recorded, data, check_agreement, vm_pages
):
    """Recorded in the emulated PC, in one buffer; `test_vm.py` does it afresh."""
    assert check_agreement(data / "vm-both.trace.gz", recorded("vm-both"), *vm_pages) > 800
