"""The frequency logger on written trees, in real runs, and on this machine."""

import os
from dataclasses import replace

import pytest

from nbhelpers.measurement import run_once
from nbhelpers.measurement.frequency import FrequencyLogger
from nbhelpers.workloads import nbody

from ..trees import write_tree

FREQUENT = {
    f"/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq": str(2_000_000 + 100_000 * cpu)
    for cpu in range(4)
}


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs a spare CPU")
def test_a_run_that_leaves_a_cpu_free_is_sampled_while_it_lasts(tmp_path):
    write_tree(tmp_path, FREQUENT)
    cpu = min(os.sched_getaffinity(0))
    confined = replace(nbody(2000, 20, threads=1), cpus=(cpu,))
    row = run_once(confined, [FrequencyLogger(every_ms=2, root=tmp_path)])
    assert row["status"] == "ok" and row["frequency_samples"] > 2
    assert row["frequency_min_mhz"] == row["frequency_max_mhz"] == 2000 + 100 * cpu
    everywhere = run_once(nbody(256, 2), [FrequencyLogger(every_ms=1, root=tmp_path)])
    # at the beginning and at the end
    assert everywhere["frequency_samples"] == 2 * min(4, len(os.sched_getaffinity(0)))
