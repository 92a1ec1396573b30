"""`Tracer` on this machine: a planted hog is found, lost events fail a run, nothing is left behind;
and the reading of campaigns.
"""

import gzip
import os
import shlex
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

from nbhelpers.errors import InputError, LostEvents
from nbhelpers.machine import doctor, kernel
from nbhelpers.measurement import Attachment, run_once
from nbhelpers.tracing import (
    Tracer,
    noise_summary,
    read_osnoise,
    read_recording,
    read_tracepoints,
    read_traces,
)
from nbhelpers.tracing.cost import event_costs_ns
from nbhelpers.workloads import binary_folder, nbody, program

from .conftest import osnoise_file

HOG = """
import os, sys, time
os.sched_setaffinity(0, {0})
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(33))
print("ready", flush=True)
sys.stdin.readline()
time.sleep(0.06)
end = time.monotonic() + 0.05
while time.monotonic() < end: pass
print(os.getpid(), flush=True)
"""


def instances() -> list[str]:
    """Those of tracefs, whether or not somebody has mounted it."""
    return os.listdir(f"{kernel.file_system(kernel.TRACEFS)}/instances")


@pytest.fixture(scope="module")
def can():
    return doctor().capabilities


@pytest.fixture
def recording(can):
    if can.tracer == "detours":
        pytest.skip("this user may not use tracefs")


@pytest.fixture
def tracer(tmp_path, recording):
    tracer = Tracer(tmp_path / "traces", source="tracepoints", buffer_kib=16384)
    yield tracer
    tracer.close()


@pytest.fixture(scope="module")
def workload():
    if not (binary_folder() / "nbody").exists():
        pytest.skip("workloads are not built: make env")
    return nbody(3000, 20)


class Hog(Attachment):
    """A SCHED_FIFO program that takes CPU 0 for 50 ms, 60 ms after the start."""

    def armed(self, pid):
        self.program = subprocess.Popen(
            [sys.executable, "-c", HOG], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.program.stdout.readline()

    def released(self, t0_ns):
        self.program.stdin.write("go\n")
        self.program.stdin.flush()

    def after(self, run):
        self.program.communicate()
        return {"hog_pid": self.program.pid}


def test_a_planted_hog_is_found(tracer, workload, can, tmp_path):
    """Its pid, CPU, policy and priority, its share of 50 ms, and where it was in the run."""
    if not can.fifo:
        pytest.skip("SCHED_FIFO is not granted to this user")
    row = run_once(workload, [Hog(), tracer], run=3)
    assert row["status"] == "ok" and row["trace_lost"] == 0 and row["trace_events"] > 100
    path = tmp_path / "traces/run-000003.tracepoints.gz"
    assert row["trace_bytes"] == path.stat().st_size
    events = read_traces(tmp_path / "traces", pd.DataFrame([row]))
    hog = events[(events.pid == row["hog_pid"]) & (events.duration_ns > 1_000_000)]
    assert set(hog.cpu) == {0} and set(hog.policy) == {"SCHED_FIFO"} and set(hog.priority) == {33}
    assert (
        10e6 < hog.duration_ns.sum() < 80e6
    )  # it spins by the clock (others may take some of it), then its interpreter ends
    assert 50e6 < hog.start_ns.iloc[0] < row["seconds"] * 1e9


def test_the_table_of_a_run(tracer, workload, tmp_path):
    """Ticks of the timer; nothing of the workload's threads, of the idle task, of the harness, of
    times outside of the region.
    """
    rows = [run_once(workload, [tracer], run=run) for run in (0, 1)]
    runs = pd.DataFrame(rows)
    events = read_traces(tmp_path / "traces", runs)
    assert set(events.run) == {0, 1} and events.attrs["lost"] == 0
    assert events.attrs["tracer"] == "tracepoints"
    assert (events[["start_ns", "duration_ns"]] >= 0).all(axis=None)
    assert (events.duration_ns <= events.end_ns - events.start_ns).all()
    for run, row in zip((0, 1), rows):
        assert events.loc[events.run == run, "end_ns"].max() <= row["end_ns"] - row["start_ns"]
    assert not events.pid.isin([0, os.getpid()]).any()
    assert (events[events.kind == "irq"].groupby("cpu").size() > 20).all()
    assert (events.loc[events.kind == "irq", "interrupted"] == "workload").sum() > 20
    path = tmp_path / "traces/run-000001.tracepoints.gz"
    header, raw = read_recording(path)
    pids = header["workload_pids"]
    assert set(raw.loc[raw.prev_pid.isin(pids), "prev_comm"]) == {"nbody"}
    assert len(pids) == rows[1]["threads"]
    assert not events.loc[events.run == 1, "pid"].isin(pids).any()
    assert raw.groupby("cpu").time_ns.apply(lambda times: times.is_monotonic_increasing).all()


def test_buffers_are_empty_between_runs(tracer, workload, tmp_path):
    first, second = (run_once(workload, [tracer], run=run) for run in (0, 1))
    raw = read_recording(tmp_path / "traces/run-000001.tracepoints.gz")[1]
    assert raw.time_ns.min() > first["end_ns"] and second["trace_events"] >= len(raw) > 0


def test_lost_events_fail_the_run_and_are_refused(tmp_path, recording):
    """A buffer of 8 KiB and a program that switches thousands of times; it grows."""
    tracer = Tracer(tmp_path, source="tracepoints", buffer_kib=8)
    switching = program(
        [sys.executable, "-c", "import time\nfor i in range(3000): time.sleep(1e-6)"], start="exec"
    )
    try:
        row, *_, last = [run_once(switching, [tracer], run=run) for run in range(12, 19)]
    finally:
        tracer.close()
    assert row["status"] == "lost events" and row["trace_lost"] > 1000
    assert "8 KiB a CPU were full" in row["message"] and last["status"] == "ok"
    refused = r"(?s)run 12: the kernel lost \d+ events.*run-000012.tracepoints.gz"
    with pytest.raises(LostEvents, match=refused):
        read_traces(tmp_path, pd.DataFrame([row | {"status": "ok"}]))
    assert read_traces(tmp_path, pd.DataFrame([row])).empty


def test_threads_and_children_of_any_program_are_the_workload(tmp_path, recording):
    """A shell that starts others, none of which carries its name or was there at the barrier."""
    tracer = Tracer(tmp_path, source="tracepoints")
    child = f"{shlex.quote(sys.executable)} -c 'print(sum(range(3000000)))'"
    shell = program(["sh", "-c", f"{child} & {child}; wait"], start="exec")
    try:
        row = run_once(shell, [tracer], run=0)
    finally:
        tracer.close()
    header, raw = read_recording(tmp_path / "run-000000.tracepoints.gz")
    of_shell = header["workload_pids"]
    forks = raw[raw.event == "sched_process_fork"]
    children = set(forks.loc[forks.prev_pid.isin(of_shell), "next_pid"])
    events = read_traces(tmp_path, pd.DataFrame([row]))
    assert len(children) >= 2 and not events.pid.isin([*children, *of_shell]).any()
    assert raw.loc[raw.event == "sched_switch", "next_pid"].isin(children).sum() >= 2


def test_nothing_is_left_behind(tmp_path, workload, recording):
    tracer, other = (Tracer(tmp_path / name, source="tracepoints") for name in "ab")
    run_once(workload, [tracer]), run_once(workload, [other])
    name, _ = [name for name in instances() if str(os.getpid()) in name]
    events = kernel.read_value(f"{kernel.TRACEFS}/instances/{name}/set_event")
    assert events == ""  # detached between runs
    tracer.close(), other.close()
    tracer.close()
    assert not [name for name in instances() if str(os.getpid()) in name]
    assert run_once(workload, [tracer], run=1)["trace_events"] > 0  # and it can be used again
    tracer.close()


def test_a_killed_harness_leaves_no_instance(tmp_path, recording):
    code = (
        "from nbhelpers.tracing import Tracer;"
        f" t = Tracer({str(tmp_path)!r}, source='tracepoints');"
        " t.before(None); t.armed(1); print('ready', flush=True); import time; time.sleep(60)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True
    ) as harness:
        assert harness.stdout.readline() == "ready\n"
        [name] = [name for name in instances() if f"-{harness.pid}-" in name]
        harness.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 20
    while name in instances() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert name not in instances()


def test_the_best_source_is_chosen(tmp_path, can):
    assert Tracer(tmp_path).source == can.tracer
    with pytest.raises(InputError, match="osnoise, tracepoints, detours"):
        Tracer(tmp_path, source="bpf")


def test_a_run_without_a_trace(tmp_path):
    with pytest.raises(InputError, match="run 4 has no trace"):
        read_traces(tmp_path, pd.DataFrame({"run": [4], "status": ["ok"], "seconds": [1.0]}))


def test_no_finished_run(tmp_path):
    runs = pd.DataFrame({"run": [4], "status": ["timeout"], "seconds": [None]})
    events = read_traces(tmp_path, runs)
    assert events.empty
    with pytest.raises(InputError, match="no finished run"):
        noise_summary(events, runs)


def test_traces_of_any_source_are_read(tmp_path, recorded, data):
    """An osnoise trace in our own layout: header with window and pids, then the kernel's text; and
    a recording of tracepoints.
    """
    text = gzip.decompress((data / "osnoise-run-003.trace.gz").read_bytes())
    window = (25 * 10**9, 26 * 10**9)
    header = dict(clock="local", start_ns=window[0], end_ns=window[1], workload_pids=[103])
    ours = tmp_path / "run-000001.osnoise.gz"
    ours.write_bytes(gzip.compress(osnoise_file(text, **header)))
    region = {"start_ns": 2334632154549, "end_ns": 2335632154563}
    recorded("contended", path=tmp_path / "run-000002.tracepoints.gz", **region)
    events = read_traces(tmp_path, pd.DataFrame({"run": [1, 2], "status": "ok", "seconds": 1.0}))
    plain = read_osnoise(data / "osnoise-run-003.trace.gz", window=window, workload=[103], run=1)
    pd.testing.assert_frame_equal(
        events[events.run == 1].astype({"source": str}), plain.astype({"source": str})
    )
    assert (events.run == 2).sum() == len(read_tracepoints(tmp_path / "run-000002.tracepoints.gz"))
    ours.write_bytes(gzip.compress(osnoise_file(text, **header, lost=7)))
    with pytest.raises(LostEvents, match="run 1: the kernel lost 7"):
        read_traces(tmp_path, pd.DataFrame({"run": [1], "status": "ok", "seconds": 1.0}))


def test_summary_against_plain_pandas(recorded):
    events = read_tracepoints(recorded("contended", start_ns=2334632154549, end_ns=2335632154563))
    runs = pd.DataFrame({"run": [0], "status": ["ok"], "seconds": [1.000000014]})
    table = noise_summary(events, runs)
    for (kind, source), row in table.iterrows():
        durations = events[(events.kind == kind) & (events.source == source)].duration_ns.to_numpy()
        rate, share = len(durations) / 2.000000028, durations.sum() / 2.000000028e9
        p99, longest = np.quantile(durations, 0.99), durations.max()
        lengths = np.array([durations.mean(), np.median(durations), p99, longest]) / 1e3
        assert row.to_list() == pytest.approx([len(durations), rate, share, *lengths])
    assert table.cpu_share.is_monotonic_decreasing and table.events.sum() == len(events)


def test_the_cost_of_an_event_is_measured(recording):
    costs = event_costs_ns(blocks=4)
    assert len(costs) == 4 and np.isfinite(costs).all() and np.abs(costs).max() < 1e6
    assert not [name for name in instances() if str(os.getpid()) in name]
