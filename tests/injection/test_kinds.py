"""Noise that does more than occupy a CPU: short real injections, and what the kernel counts of
them.
"""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nbhelpers.errors import InputError, Unavailable
from nbhelpers.injection import Rules, inject, make_plan
from nbhelpers.injection.log import make_log
from nbhelpers.injection.replay import Replay
from nbhelpers.injection.stressors import (
    cache_bytes,
    disk_kind,
    make_scratch,
    may_count_cpus,
    remove_scratch,
)
from nbhelpers.machine import online_cpus
from nbhelpers.noise import NoiseConfig, stressor_noise
from nbhelpers.noise._vocabulary import STRESSOR_KINDS

from ..combined import combined, made_noise
from ..interrupts import interrupt_counts
from ..sanitizers import assert_clean, build_checked_injector
from .helpers import gone_within, owner_and_pids

CPU = online_cpus()[-1]
MS, MIB = 10**6, 2**20
PATIENT = Rules(
    give_up_ms=10_000, exit_cost_us=5, shortest_us=0
)  # on a busy machine events come late; here they come all the same
may_interrupt = pytest.mark.skipif(not may_count_cpus(), reason="needs perf events of a CPU")
two_cpus = pytest.mark.skipif(
    len(online_cpus()) < 2, reason="interrupts of this kind come from a second CPU"
)


def statuses(file: str) -> dict[str, int]:
    """The first number behind each name of a file in /proc: PID/io, PID/status, net/dev."""
    found = re.findall(r"^ *(\w+):\s*(\d+)\b", Path("/proc", file).read_text(), re.M)
    return {name: int(number) for name, number in found}


@contextlib.contextmanager
def sleeper():
    """A workload that waits, so that the lanes stay after their last event."""
    with subprocess.Popen(["sleep", "60"]) as process:
        try:
            yield process.pid
        finally:
            process.kill()


@contextlib.contextmanager
def replayed(*noise, scratch=None, placement="origin"):
    """A replay that is armed, beside a sleeping workload."""
    config = NoiseConfig.from_events(combined(*noise))
    with sleeper() as pid:
        replay = Replay(make_plan(config, placement, rules=PATIENT, scratch=scratch))
        try:
            replay.start(pid)
            yield replay
        finally:
            replay.close()


def wait_done(replay: Replay, seconds: float = 20) -> None:
    limit = time.monotonic() + seconds
    while not all(replay._run.lanes[number].done for number in range(replay._run.lane_count)):
        assert time.monotonic() < limit, "the lanes took too long"
        time.sleep(0.005)


def finish(replay: Replay):
    """Replay to the end; its log."""
    replay.release(time.monotonic_ns() + MS)
    wait_done(replay)
    log = make_log(replay)
    assert set(log["outcome"]) <= {"injected", "late"}, log.T
    return log


def units(log, at: int = 0) -> float:
    """How many units an event's achieved intensity stands for; it is counted from the planned start
    if that was met.
    """
    row = log.iloc[at]
    begin = row["planned_start_ns"] if row["outcome"] == "injected" else row["start_ns"]
    return row["achieved"] * (row["end_ns"] - begin) / 1e9


@contextlib.contextmanager
def busy(cpu: int):
    """A CPU that is not idle: an idle one that polls for work is told without an interrupt."""
    spin = f"import os\nos.sched_setaffinity(0, [{cpu}])\nprint(flush=True)\nwhile True: pass"
    with subprocess.Popen([sys.executable, "-c", spin], stdout=subprocess.PIPE) as process:
        try:
            process.stdout.readline()
            yield
        finally:
            process.kill()


# CPU, memory, caches
# --------------------------------------------------------------------------------------------------


def test_a_duty_uses_its_share_of_a_cpu():
    with replayed(stressor_noise("duty", 0.2, 0.15, [CPU])) as replay:
        log = finish(replay)
    used = log["cpu_time_ns"][0] / (log["end_ns"] - log["start_ns"])[0]
    assert log["achieved"][0] == pytest.approx(used, rel=0.15)
    assert 0 < log["achieved"][0] < 0.21


@pytest.mark.parametrize("kind", ["memory_stream", "cache_l3"])
def test_memory_moves_what_is_asked_and_no_more(kind):
    if kind == "cache_l3" and not cache_bytes():
        pytest.skip("this machine states no L3 cache")
    noise = combined(
        stressor_noise(kind, 20e6, 0.12, [CPU], duration_s=0.05),
        stressor_noise(kind, 1e15, 0.12, [CPU], start_s=0.06),
    )
    with replayed(noise) as replay:
        resident = statuses(f"{replay.pids[1]}/status")["VmRSS"] * 1024
        log = finish(replay)
    size = 64 * MIB if kind == "memory_stream" else cache_bytes()
    assert resident >= size
    assert 0 < log["achieved"][0] <= 20e6 * 1.01 < log["achieved"][1]
    assert log["cpu_time_ns"][0] < log["cpu_time_ns"][1]
    assert log["intensity"][0] == 20e6


# Files and network
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind, counter", [("io_read", "read_bytes"), ("io_sync", "wchar")])
def test_the_kernel_counts_the_bytes_that_a_file_moves(kind, counter, tmp_path):
    if disk_kind(tmp_path) in ("tmpfs", "ramfs"):
        pytest.skip("the folder for temporary files lies in memory")
    with replayed(stressor_noise(kind, 20e6, 0.1, [CPU]), scratch=tmp_path) as replay:
        folder = next(tmp_path.iterdir())
        before = statuses(f"{replay.pids[1]}/io")
        log = finish(replay)
        after = statuses(f"{replay.pids[1]}/io")
        moved = after[counter] - before[counter]
        assert list(folder.iterdir()) == []  # the file has no name
    assert units(log) == pytest.approx(moved, rel=0.02) and moved >= 4096
    # through the cache whole folios count
    assert kind == "io_read" or after["write_bytes"] - before["write_bytes"] >= moved
    assert log["achieved"][0] < 20e6 * 1.1 + 512 * 1024 / 0.1
    assert list(tmp_path.iterdir()) == []


def test_metadata_noise_makes_and_removes_names(tmp_path):
    with replayed(stressor_noise("io_metadata", 3000, 0.1, [CPU]), scratch=tmp_path) as replay:
        folder = next(tmp_path.iterdir())
        before = folder.stat().st_mtime_ns
        log = finish(replay)
        assert folder.stat().st_mtime_ns > before and list(folder.iterdir()) == []
    assert round(units(log)) % 3 == 0 and 3 <= units(log) <= 303
    assert list(tmp_path.iterdir()) == []


def test_network_noise_goes_through_the_loopback_device():
    with replayed(stressor_noise("network", 20e6, 0.1, [CPU])) as replay:
        before = statuses("net/dev")["lo"]
        log = finish(replay)
        counted = statuses("net/dev")["lo"] - before
    assert 512 <= units(log) <= counted
    assert log["achieved"][0] <= 20e6 * 1.02


# Interrupts
# --------------------------------------------------------------------------------------------------


def counted_while(replay: Replay, name: str) -> tuple[int, object]:
    """Interrupts on the CPU during a replay, and the log."""
    if name not in interrupt_counts():
        pytest.skip(f"this kernel does not count {name}")
    before = interrupt_counts().loc[CPU, name]
    log = finish(replay)
    return interrupt_counts().loc[CPU, name] - before, log


@pytest.mark.flaky(reruns=2)
def test_timers_interrupt_the_cpu():
    with replayed(stressor_noise("timer", 2000, 0.1, [CPU])) as replay:
        counted, log = counted_while(replay, "LOC")
    assert 10 <= round(units(log)) <= 200
    assert counted >= 0.7 * units(log)  # two that were held up together are one interrupt
    assert log["cpu_time_ns"][0] < (log["end_ns"] - log["start_ns"])[0] / 2


@two_cpus
@may_interrupt
def test_interrupts_from_another_cpu_are_counted_by_the_kernel():
    with busy(CPU), replayed(stressor_noise("ipi", 1000, 0.15, [CPU])) as replay:
        counted, log = counted_while(replay, "CAL")
    assert 1 <= round(units(log)) <= 152
    assert counted >= 0.9 * units(log)


# Together
# --------------------------------------------------------------------------------------------------


@two_cpus
@may_interrupt
def test_kinds_overlap_on_one_cpu_each_in_a_lane_of_its_own():
    noise = (
        made_noise(100, 500, seconds=0.1, cpus=[CPU]),
        stressor_noise("memory_stream", 50e6, 0.1, [CPU], start_s=0.01),
        stressor_noise("ipi", 300, 0.1, [CPU], start_s=0.02, duration_s=0.06),
        stressor_noise("duty", 0.05, 0.1, [CPU], start_s=0.03),
    )
    with replayed(*noise) as replay:
        assert len(replay.plan.lanes) == 4 and set(replay.plan.lanes["cpu"]) == {CPU}
        log = finish(replay)
    spans = log.groupby(log["kind"].astype(str))
    assert set(spans.groups) == {"thread", "memory_stream", "ipi", "duty"}
    assert spans["start_ns"].min().max() < spans["end_ns"].max().min()
    stressing = log[log["kind"] != "thread"]
    assert (stressing["achieved"] / stressing["intensity"]).between(1e-9, 1.05).all()
    assert (log.loc[log["kind"] == "thread", "cpu_time_ns"] > 400_000).all()


def test_a_workload_runs_under_a_config_from_a_file(tmp_path):
    noise = stressor_noise("memory_stream", 50e6, 0.2, [CPU], duration_s=0.05)
    path = NoiseConfig.from_events(noise).write(tmp_path / "noise.json")
    done = inject(path, "sleep 0.15", placement="origin", rules=PATIENT)
    assert done.run["status"] == "ok" and done.log["achieved"].item() > 0


def test_a_stop_ends_every_kind_at_once(tmp_path):
    kinds = set(STRESSOR_KINDS) - {"cache_l3", "memory_stream"}
    kinds -= set() if len(online_cpus()) > 1 and may_count_cpus() else {"ipi"}
    noise = [stressor_noise(kind, 0.01 if kind == "duty" else 1000, 30, [CPU]) for kind in kinds]
    with replayed(*noise, scratch=tmp_path) as replay:
        pids = replay.pids
        assert len(pids) == len(kinds) + 1
        replay.release(time.monotonic_ns())
        time.sleep(0.05)
        replay.close()
        assert gone_within(pids, 0)
    assert list(tmp_path.iterdir()) == [] and replay.ended_by == "stopped"
    assert set(replay.log["outcome"]) == {3}


# Deaths
# --------------------------------------------------------------------------------------------------

OWNER = """
import json, sys, time
from nbhelpers.injection import make_plan
from nbhelpers.injection.replay import Replay
from nbhelpers.noise import NoiseConfig, stressor_noise
from tests.combined import combined
kinds = {"io_metadata": 1e6, "io_sync": 1e6}
noise = [stressor_noise(kind, intensity, 30, [0]) for kind, intensity in kinds.items()]
config = NoiseConfig.from_events(combined(*noise))
replay = Replay(make_plan(config, scratch=sys.argv[1]))
replay.start()
replay.release(time.monotonic_ns())
print(json.dumps(replay.pids), flush=True)
time.sleep(30)
"""


def test_the_death_of_the_owner_leaves_no_process_and_no_file(tmp_path):
    owner, pids = owner_and_pids(OWNER, str(tmp_path))
    time.sleep(0.1)
    assert len(list(tmp_path.iterdir())) == 1
    owner.kill()
    owner.wait()
    assert gone_within(pids, 5) and list(tmp_path.iterdir()) == []


def test_what_the_death_of_everybody_leaves_is_removed_by_the_next(tmp_path):
    owner, pids = owner_and_pids(OWNER, str(tmp_path))
    time.sleep(0.1)
    for pid in (owner.pid, *pids):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    owner.wait()
    assert gone_within(pids, 5)
    assert len(list(tmp_path.iterdir())) == 1 and len(list(next(tmp_path.iterdir()).iterdir())) <= 1
    folder = make_scratch(tmp_path)
    assert list(tmp_path.iterdir()) == [folder]
    remove_scratch(folder)
    remove_scratch(folder)


# Refusals
# --------------------------------------------------------------------------------------------------


def test_noise_of_a_disk_needs_one():
    if disk_kind("/dev/shm") != "tmpfs":
        pytest.skip("no /dev/shm in memory")
    config = NoiseConfig.from_events(stressor_noise("io_read", 1e6, 0.1, [CPU]))
    for folder, match in (("/dev/shm", "lies in memory"), ("/dev/shm/nowhere", "no folder")):
        with pytest.raises(InputError, match=match):
            make_plan(config, scratch=folder)
    with replayed(stressor_noise("io_metadata", 300, 0.02, [CPU]), scratch="/dev/shm") as replay:
        assert finish(replay)["achieved"][0] > 0


def test_the_file_system_of_a_folder_is_told_as_the_system_tells_it(tmp_path):
    found = shutil.which("findmnt")
    if not found:
        pytest.skip("no findmnt to compare with")
    for folder in (tmp_path, "/", "/proc", "/dev/shm"):
        command = [found, "-no", "FSTYPE", "--target", str(folder)]
        assert disk_kind(folder) == subprocess.check_output(command, text=True).split()[-1]


def test_other_cpus_are_not_interrupted_without_leave(monkeypatch):
    monkeypatch.setattr("nbhelpers.injection.stressors.may_count_cpus", lambda: False)
    monkeypatch.setattr("nbhelpers.injection.stressors.online_cpus", lambda: [0, 1])
    with pytest.raises(Unavailable, match="counters may not be read"):
        make_plan(NoiseConfig.from_events(stressor_noise("ipi", 500, 0.1, [CPU])))


# Sanitizers
# --------------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("sanitizer", ["address,undefined", "thread"])
def test_every_kind_is_clean(tmp_path, sanitizer):
    if len(online_cpus()) < 2 or disk_kind(tmp_path) == "tmpfs":
        pytest.skip("the driver makes every kind: it needs two CPUs and a disk")
    driver = build_checked_injector(tmp_path, sanitizer, "kinds_driver.c")
    assert_clean(tmp_path, driver, tmp_path / "scratch", seconds=120, thread=":die_after_fork=0")
