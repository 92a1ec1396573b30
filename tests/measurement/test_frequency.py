"""The frequency logger on written trees, in real runs, and on this machine."""

import os
import re
import time
from pathlib import Path

import pytest

from nbhelpers.measurement import run_once
from nbhelpers.measurement._clock import BusyClock, busy_mhz
from nbhelpers.measurement._perf import open_cpu_counter, read_counter
from nbhelpers.measurement.frequency import (
    NO_FREQUENCY,
    FrequencyLogger,
    frequencies_mhz,
    frequency_source,
    temperature_c,
)
from nbhelpers.workloads import nbody

from ..trees import write_tree

FREQUENT = {
    f"/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq": str(2_000_000 + 100_000 * cpu)
    for cpu in range(4)
}
CPUINFO = "\n\n".join(
    f"processor\t: {cpu}\nmodel name\t: X\ncpu MHz\t\t: {1500 + cpu}.250\nflags\t\t: fpu"
    " {extra} vme"
    for cpu in range(2)
)


def test_cpufreq_comes_first_then_cpuinfo_but_not_a_virtual_machines(tmp_path):
    assert frequency_source(write_tree(tmp_path / "a", FREQUENT)) == "cpufreq"
    assert frequencies_mhz((1, 3), "cpufreq", tmp_path / "a") == [2100.0, 2300.0]
    assert (
        frequency_source(write_tree(tmp_path / "b", {"/proc/cpuinfo": CPUINFO.format(extra="sse")}))
        == "cpuinfo"
    )
    assert frequencies_mhz((0, 1), "cpuinfo", tmp_path / "b") == [1500.25, 1501.25]
    assert (
        frequency_source(
            write_tree(tmp_path / "c", {"/proc/cpuinfo": CPUINFO.format(extra="hypervisor")})
        )
        == NO_FREQUENCY
    )
    assert NO_FREQUENCY in FrequencyLogger(root=tmp_path / "c").notes[0]


def test_the_hottest_zone_counts(tmp_path):
    files = {
        "/sys/class/thermal/thermal_zone0/temp": "41000",
        "/sys/class/thermal/thermal_zone1/temp": "57500",
    }
    assert (
        temperature_c(write_tree(tmp_path, files)) == 57.5
        and temperature_c(tmp_path / "none") is None
    )


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs a spare CPU")
def test_a_run_that_leaves_a_cpu_free_is_sampled_while_it_lasts(tmp_path):
    write_tree(tmp_path, FREQUENT)
    confined = nbody(2000, 20, threads=1).placed("RmHK")
    row = run_once(confined, [FrequencyLogger(every_ms=2, root=tmp_path)])
    assert row["status"] == "ok" and row["frequency_samples"] > 2
    assert (
        row["frequency_min_mhz"] == row["frequency_max_mhz"] == 2000 + 100 * confined.cpus[0]
        if len(confined.cpus) == 1
        else True
    )
    everywhere = run_once(nbody(256, 2), [FrequencyLogger(every_ms=1, root=tmp_path)])
    assert everywhere["frequency_samples"] == 2 * min(4, len(os.sched_getaffinity(0))), (
        "at the beginning and at the end"
    )


def test_this_machine_says_what_it_has():
    row = run_once(nbody(256, 2), [FrequencyLogger()])
    virtual = bool(
        re.search(r"^flags.*\bhypervisor\b", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    )
    has_files = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq").exists()
    assert (row["frequency_samples"] == 0) == (virtual and not has_files)


def test_the_clock_of_a_cpu_at_work_is_that_of_its_counters_and_none_where_it_slept():
    ghz = 10**9
    assert (
        busy_mhz((0, 0, 0), (3 * ghz // 4, ghz // 4, 2 * ghz), 1.0) == 6000.0
    )  # three cycles for each at the nominal 2 GHz
    assert (
        busy_mhz((2**64 - 100, 2**64 - 50, 0), (100, 50, 10**8), 0.1) == 2000.0
    )  # the counters wrapped
    assert busy_mhz((5, 5, 0), (5, 5, ghz), 1.0) is None


def test_a_machine_that_hides_the_counters_says_why(tmp_path):
    clock = BusyClock(tmp_path)
    clock.start((0,))
    clock.stop()
    assert "virtual machine" in clock.lacking and clock.columns() == {}
    assert any("APERF" in note for note in FrequencyLogger(root=tmp_path).notes)
    here = run_once(nbody(256, 2), [logger := FrequencyLogger()])
    assert bool(logger.clock_note) == ("busy_mhz" not in here)


@pytest.mark.skipif(
    not Path("/sys/bus/event_source/devices/msr/events/tsc").exists(),
    reason="perf has no device msr",
)
def test_a_counter_of_a_cpu_runs_at_the_rate_that_the_kernel_found():
    cpu = min(os.sched_getaffinity(0))
    device = Path("/sys/bus/event_source/devices/msr")
    try:
        fd = open_cpu_counter(
            int((device / "type").read_text()),
            int((device / "events/tsc").read_text().strip().removeprefix("event="), 16),
            cpu,
        )
    except PermissionError:
        pytest.skip("counters of a CPU are not allowed to this user")
    before, began = read_counter(fd)[0], time.monotonic_ns()
    time.sleep(0.1)
    rate_mhz = (read_counter(fd)[0] - before) / (time.monotonic_ns() - began) * 1e3
    os.close(fd)
    bogomips = re.search(
        r"^bogomips\s*:\s*([\d.]+)", Path("/proc/cpuinfo").read_text(), re.MULTILINE
    )
    assert rate_mhz == pytest.approx(float(bogomips[1]) / 2, rel=0.02)
