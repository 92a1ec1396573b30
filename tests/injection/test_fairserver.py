"""The fair server: read and lifted where debugfs allows it (an emulated PC), put back after any
end; what it cut is told.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nbhelpers.errors import SettingError
from nbhelpers.injection import make_plan
from nbhelpers.injection.fairserver import (
    DEBUGFS,
    SINCE,
    FairServer,
    cuts,
    fair_server,
    fair_server_lifted,
)
from nbhelpers.injection.injector import may_realtime
from nbhelpers.injection.log import make_log
from nbhelpers.injection.replay import Replay
from nbhelpers.machine import settings
from tests.emulated import emulated_pc

from .helpers import CPU_COUNT, build_with_injector, make_config, table_of

REPOSITORY = Path(__file__).parents[2]
RUN = emulated_pc()
RELEASE = tuple(int(part) for part in os.uname().release.split("-")[0].split(".")[:2])
MS = 1_000_000


def log_of(rows):
    """An injection log from (cpu, policy, start_ms, end_ms, cpu_time_ms, gap_ms)."""
    table = table_of("cpu policy start_ns end_ns cpu_time_ns gap_ns", rows, MS)
    event = table.groupby("cpu").cumcount()
    return table.assign(ran_on=table["cpu"], event=event, outcome="injected")


def test_a_cut_is_a_long_gap_on_a_cpu_that_has_long_been_filled():
    usual, none = (50 * MS, 1000 * MS), (0, 1000 * MS)
    server = FairServer(True, {0: usual, 1: usual})
    log = log_of(
        [
            (0, "SCHED_FIFO", 0, 600, 600, 0.1),
            (0, "SCHED_RR", 600.5, 1100, 449.5, 50),
            (0, "SCHED_FIFO", 1110, 1300, 140, 50),
            (1, "SCHED_FIFO", 0, 1200, 1150, 50),
            (1, "SCHED_FIFO", 1200, 1300, 100, 0.2),
            (1, "SCHED_OTHER", 1300, 1400, 50, 50),
        ]
    )
    found = cuts(log, server)
    assert found[["cpu", "event"]].values.tolist() == [[0, 1], [1, 0]]
    assert found["lost_ns"].tolist() == [50 * MS, 50 * MS]
    assert found["filled_ns"].tolist() == [1100 * MS, 1200 * MS]
    for other, cpus in (
        (FairServer(False, {}), []),
        (FairServer(True, {0: none, 1: none}), []),
        (FairServer(True, {0: none, 1: usual}), [1]),
        (FairServer(True, {}), [0, 1]),  # unreadable: as the kernel usually has it
    ):
        assert cuts(log, other)["cpu"].tolist() == cpus
    assert cuts(log.iloc[:0], server).empty


def debugfs_mounts():
    return [
        line for line in Path("/proc/self/mounts").read_text().splitlines() if " debugfs " in line
    ]


def test_what_this_machine_has_is_told_and_nothing_stays_mounted():
    mounts = debugfs_mounts()
    server = fair_server()
    assert debugfs_mounts() == mounts
    assert server.exists == (RELEASE >= SINCE) or server.budgets
    assert server.budgets or server.why or RELEASE < SINCE
    assert server.budget_ns(0)[1] > 0


def test_where_it_cannot_be_lifted_it_says_so_and_changes_nothing():
    mounts, server = debugfs_mounts(), fair_server()
    try:
        with fair_server_lifted() as changed:
            budgets = server.budgets.items()
            files = {
                f"{DEBUGFS}/sched/fair_server/cpu{cpu}/runtime" for cpu, (ns, _) in budgets if ns
            }
            assert set(changed) == files
            assert all(runtime == 0 for runtime, _ in fair_server().budgets.values())
    except SettingError as error:
        assert error.fix and error.where
    assert fair_server() == server and debugfs_mounts() == mounts


@pytest.mark.skipif(not may_realtime(51), reason="SCHED_FIFO is not permitted here")
@pytest.mark.skipif(
    CPU_COUNT < 2, reason="one CPU: an event of more than a second would be a full stop"
)
@pytest.mark.skipif(RELEASE < SINCE, reason="a kernel before 6.12 has no fair server")
def test_a_real_cut_is_reported():
    """An ordinary program wants the CPU that an event fills for 1.3 s: it gets its 50 ms, and the
    report says so.
    """
    cpu = max(os.sched_getaffinity(0))
    spin = f"import os\nos.sched_setaffinity(0, {{{cpu}}})\nwhile True: pass"
    burner = subprocess.Popen([sys.executable, "-S", "-c", spin])
    replay = Replay(make_plan(make_config([(cpu, "irq", 50, 1300)]), "origin"))
    try:
        with settings.apply({"/proc/sys/kernel/sched_rt_runtime_us": -1}):
            replay.start()
            replay.release(time.monotonic_ns())
            replay.wait(10)
    finally:
        replay.close()
        burner.kill()
        burner.wait()
    server = fair_server()
    found = cuts(make_log(replay), server)
    assert len(found) == (1 if server.patience_ns else 0)
    if len(found):
        assert found["gap_ns"][0] > 25 * MS and found["lost_ns"][0] >= found["gap_ns"][0] * 0.9


# In the emulated PC debugfs can be read and written. Its processor is too old for NumPy's wheels,
# which these modules need only for logs.
GUEST = """
import importlib.util, json, os, signal, subprocess, sys, time, types
from unittest.mock import MagicMock
for name in ("numpy", "pandas", "pandas.api", "pandas.api.types"):
    sys.modules[name] = MagicMock()
sys.path.insert(0, {repository!r})
package = types.ModuleType("nbhelpers.injection")
package.__path__ = [{repository!r} + "/nbhelpers/injection"]
sys.modules["nbhelpers.injection"] = package
from nbhelpers.injection.fairserver import fair_server, fair_server_lifted

def mounts():
    return [line for line in open("/proc/self/mounts") if "debugfs" in line]

def hog():
    line = subprocess.run([{hog!r}, "1", "2.5"], capture_output=True, text=True, check=True).stdout
    return {{name: int(value) for name, _, value in (word.partition("=") for word in line.split())}}

if sys.argv[1:] == ["owner"]:
    with fair_server_lifted():
        print(json.dumps(fair_server().budgets), flush=True)
        time.sleep(600)
told = {{"mounts": mounts(), "before": repr(fair_server()), "budgets": fair_server().budgets}}
told["with"] = hog()
with fair_server_lifted() as changed:
    told |= {{"changed": changed, "during": fair_server().budgets, "without": hog()}}
told |= {{"after": fair_server().budgets, "mounts_after": mounts()}}
command = [sys.executable, "-B", __file__, "owner"]
owner = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
told["owner"] = json.loads(owner.stdout.readline())
owner.send_signal(signal.SIGKILL)
owner.wait()
limit = time.monotonic() + 30
state = os.environ["NOISEBOOK_STATE"]
while os.listdir(state) != ["lock"] or mounts() != told["mounts"]:
    if time.monotonic() >= limit:
        break
    time.sleep(0.1)
told |= {{"after_kill": fair_server().budgets, "mounts_after_kill": mounts()}}
told["state"] = os.listdir(state)
print(json.dumps(told))
"""


@pytest.mark.vm
@pytest.mark.timeout(300)
@pytest.mark.skipif(RUN is None, reason="no emulated PC: see NOISEBOOK_OSNOISE_VM")
@pytest.mark.skipif(
    shutil.which("qemu-system-x86_64") is None, reason="qemu-system-x86_64 is not installed"
)
def test_an_event_of_seconds_is_cut_with_the_server_and_not_without_and_all_is_put_back(tmp_path):
    (tmp_path / "job").mkdir()
    hog, guest = tmp_path / "hog", tmp_path / "guest.py"
    build_with_injector(REPOSITORY / "tests/injection/fair_hog.c", hog)
    guest.write_text(GUEST.format(repository=str(REPOSITORY), hog=str(hog)))
    command = f"NOISEBOOK_STATE=/tmp/job/state {sys.executable} -B {guest}"
    done = subprocess.run(
        [RUN, "-s", "280", "--", f"umount /sys/kernel/debug; {command}"],
        env={**os.environ, "JOB": str(tmp_path / "job")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    told = json.loads(done.stdout.splitlines()[-1])
    usual = {"0": [50 * MS, 1000 * MS], "1": [50 * MS, 1000 * MS]}
    assert told["budgets"] == usual and told["before"] == "FairServer(50 of 1000 ms)"
    assert len(told["changed"]) == 2
    assert {ns for who in ("during", "owner") for ns, _ in told[who].values()} == {0}
    assert told["after"] == usual and told["after_kill"] == usual and told["state"] == ["lock"]
    assert told["mounts"] == told["mounts_after"] == told["mounts_after_kill"]
    assert 70 * MS < told["with"]["ordinary"] < 200 * MS, "two cuts of 50 ms in 2.5 s"
    assert told["with"]["longest_gap"] > 30 * MS
    assert told["without"]["ordinary"] < 20 * MS
