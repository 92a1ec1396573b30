"""States of threads and owners of CPUs: they agree with each other in recorded traces, and with
what programs that were started here are known to have done.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pandas as pd
import pytest

from nbhelpers import Campaign, Cell, finished, program
from nbhelpers.account.tracks import tracks_of_run
from nbhelpers.errors import InputError
from nbhelpers.machine import doctor
from nbhelpers.measurement import Attachment
from nbhelpers.perfetto import write_tracks
from nbhelpers.tracing import Tracer
from nbhelpers.tracing.campaign import OWNERS, STATES, each_recording
from nbhelpers.tracing.states import tables_of_recording
from nbhelpers.tracing.tracepoints import read_recording

from .test_missing_switches import row, switch, wake

TRACES = sorted(Path("data/recorded/10-trace-collection/baseline/traces").glob("*.tracepoints.gz"))
BUSY = "end = time.thread_time() + {}\nwhile time.thread_time() < end: sum(range(20000))\n"


@pytest.mark.parametrize("path", TRACES[::40], ids=lambda path: path.name)
def test_recorded_threads_run_where_they_have_the_cpu(path):
    states, owners = tables_of_recording(*read_recording(path), path)
    for table, key in ((states, "thread"), (owners, "cpu")):
        following = table.groupby(key)["start_ns"].shift(-1)
        assert (following.isna() | (following == table["end_ns"])).all()
    assert (owners.groupby("cpu")["start_ns"].min() == 0).all()
    assert owners.groupby("cpu")["end_ns"].max().nunique() == 1
    keys = ["cpu", "start_ns", "end_ns", "thread"]
    running = states[states["state"] == "running"].sort_values(keys)[keys]
    owned = owners[owners["is_program"]].sort_values(keys)[keys]
    assert running.to_numpy().tolist() == owned.to_numpy().tolist()


def test_a_wake_up_that_begins_before_its_thread_is_off_the_cpu():
    waking = row(95, "sched_waking", 1, next_pid=2, number=1)
    runs, sleeps = switch(10, 0, 2, cpu=1), switch(100, 2, 0, cpu=1, state=1)
    rows = waking, wake(110, 1, 2), runs, sleeps, switch(200, 0, 2, cpu=1)
    header = {"start_ns": 0, "end_ns": 300, "on_ns": 0, "off_ns": 300, "run": 0}
    header |= {"workload_pids": [1, 2], "buffers": [{"cpu": 0}, {"cpu": 1}]}
    states, _ = tables_of_recording(header, pd.DataFrame(rows), "made by hand")
    columns = ["start_ns", "end_ns", "state", "woken_by"]
    assert states[states["thread"] == 2][columns].to_numpy().tolist() == [
        [0, 10, "runnable", -1],
        [10, 100, "running", -1],
        [100, 110, "sleeping", 1],
        [110, 200, "runnable", -1],
        [200, 300, "running", -1],
    ]


@pytest.fixture
def tracing():
    if doctor().capabilities.tracer != "tracepoints":
        pytest.skip("this user may not record tracepoints")


class Outsider(Attachment):
    """Calls something with the program's process id from its begin on, in a thread."""

    def __init__(self, act):
        self.act = act

    def released(self, t0_ns):
        self.thread.start()

    def armed(self, pid):
        self.thread = threading.Thread(target=self.act, args=(pid,))

    def ended(self, pid):
        self.thread.join()


def seen(tmp_path, code, act=None):
    """States and owners of one run of Python code, and its length in ns."""
    command = [sys.executable, "-S", "-c", f"import threading, time\n{code}"]
    outside = [Outsider(act)] if act else []
    cell = Cell("traced", program(command), attachments=[Tracer(tmp_path / "traces"), *outside])
    runs = finished(Campaign(tmp_path, [cell], runs=1).run())
    (tables,) = each_recording(tmp_path / "traces", runs)
    states, owners = tables[STATES], tables[OWNERS]
    return states.assign(ms=(states["end_ns"] - states["start_ns"]) / 1e6), owners


@pytest.mark.alone
def test_a_sleep_ends_by_a_timer_and_a_wait_by_who_ended_it(tmp_path, tracing):
    code = f"""event = threading.Event()
def second():
    event.wait()
    {BUSY.format(0.05).replace(chr(10), chr(10) + "    ")}
thread = threading.Thread(target=second)
thread.start()
time.sleep(0.2)
event.set()
thread.join()
"""
    states, _ = seen(tmp_path, code)
    main = states["thread"].iloc[0]
    longest = states[states["state"] == "sleeping"].nlargest(3, "ms").set_index("thread")
    slept = longest.loc[[main]].sort_values("ms")
    assert slept["woken_by_name"].iloc[-1] == "timer" and slept["ms"].iloc[-1] >= 199
    second = next(one for one in longest.index if one != main)
    assert longest.loc[second, "woken_by"] == main and longest.loc[second, "ms"] > 190
    # the join: the main thread waits for the second, which computes for 50 ms
    assert slept["woken_by"].iloc[0] == second and slept["ms"].iloc[0] > 40
    ran = states[(states["thread"] == second) & (states["state"] == "running")]["ms"].sum()
    assert ran == pytest.approx(50, rel=0.2)


@pytest.mark.alone
def test_stopped_by_a_signal(tmp_path, tracing):
    def stop(pid):
        time.sleep(0.1)
        os.kill(pid, signal.SIGSTOP)
        time.sleep(0.2)
        os.kill(pid, signal.SIGCONT)

    states, _ = seen(tmp_path, BUSY.format(0.4), stop)
    stopped = states[states["state"] == "stopped"]
    # it stops when it next runs, which may be late beside other programs
    assert 100 < stopped["ms"].sum() < 400


@pytest.mark.alone
def test_another_process_on_its_cpu_is_named(tmp_path, tracing):
    def hog(pid):
        cpu = min(os.sched_getaffinity(pid))
        os.sched_setaffinity(pid, {cpu})
        words = ["taskset", "-c", str(cpu), "./backupd", "-S", "-c"]
        subprocess.run([*words, f"import time\n{BUSY.format(0.2)}"], cwd=tmp_path, check=True)

    (tmp_path / "backupd").symlink_to(sys.executable)
    states, owners = seen(tmp_path, BUSY.format(0.5), hog)
    waited = states[states["state"] == "runnable"]["ms"].sum()
    named = owners[(owners["name"] == "backupd") & ~owners["is_program"]]
    had = (named["end_ns"] - named["start_ns"]).sum() / 1e6
    assert had > 150 and waited > 0.6 * had


def test_perfetto_gets_what_was_recorded(tmp_path):
    path = TRACES[40]
    runs = pd.DataFrame({"run": [int(path.name[4:10])], "status": "ok"})
    file = write_tracks(tmp_path / "run.json", tracks_of_run(path.parent, runs))
    shown = json.loads(file.read_text())
    slices = pd.DataFrame([one for one in shown["traceEvents"] if one["ph"] == "X"])
    states, owners = tables_of_recording(*read_recording(path), path)
    tables = {1: owners[owners["name"] != "idle"], 3: states}
    for number, table in tables.items():
        mine = slices[slices["pid"] == number]
        assert len(mine) == len(table)
        assert 1e3 * mine["dur"].sum() == pytest.approx((table["end_ns"] - table["start_ns"]).sum())
    assert set(slices.loc[slices["pid"] == 2, "name"]) >= {"local_timer"}
    account = slices.loc[slices["pid"] == 4, "args"].map(lambda piece: float(piece["ns"]))
    assert account.sum() == pytest.approx(states["end_ns"].max())  # all of the run, once
    with pytest.raises(InputError, match="no recording to show"):
        tracks_of_run(tmp_path, runs)
