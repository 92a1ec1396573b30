"""Hogs against what a program on the same CPU loses; schedules against their own promises."""

import json
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbhelpers.errors import InputError
from nbhelpers.injection import Hog, Injector, random_schedule
from nbhelpers.injection.hog import LONGEST_NS
from nbhelpers.injection.injector import may_realtime
from nbhelpers.measurement import run_once
from nbhelpers.workloads import program

from .helpers import CPU_COUNT, gone_within, make_config
from .test_simple import Look

pytestmark = pytest.mark.flaky(reruns=2)

MS = 10**6
needs_realtime = pytest.mark.skipif(not may_realtime(51), reason="SCHED_FIFO is not permitted here")
LOOP = """
import json, sys, time
gaps, before = [], time.monotonic_ns()
end = before + 200_000_000
while before < end:
    now = time.monotonic_ns()
    if now - before > 1_000_000:
        gaps.append((before, now))
    before = now
json.dump(gaps, open(sys.argv[1], "w"))
"""


def observed_gaps(tmp_path, cpu, *attachments):
    """Gaps above 1 ms that a program on one CPU lost, in ms from t0."""
    from dataclasses import replace

    loop = program([sys.executable, "-S", "-c", LOOP, str(tmp_path / "gaps")], start="exec")
    row = run_once(replace(loop, cpus=(cpu,)), attachments)
    gaps = np.array(json.loads((tmp_path / "gaps").read_text()), dtype=float).reshape(-1, 2)
    return row, (gaps - row["t0_ns"]) / 1e6


def lost_within(gaps, start, end):
    return np.clip(np.minimum(gaps[:, 1], end) - np.maximum(gaps[:, 0], start), 0, None).sum()


@needs_realtime
def test_the_hog_takes_its_cpu_exactly_on_schedule(tmp_path):
    cpu = CPU_COUNT - 1
    blocks = [(80 * MS, 10 * MS), (120 * MS, 5 * MS), (150 * MS, 20 * MS)]
    hog = Hog({cpu: blocks})
    row, gaps = observed_gaps(tmp_path, cpu, hog)
    hog.close()
    assert (
        row["status"] == "ok"
        and row["hog_planned_ns"] == 35 * MS
        and row["hog_ns"] >= 0.7 * 35 * MS
    )
    for start, length in blocks:
        assert lost_within(gaps, start / MS, (start + length) / MS) >= 0.98 * length / MS, gaps


@needs_realtime
def test_a_replay_takes_what_the_hog_took_and_both_together_take_more(tmp_path):
    cpu = CPU_COUNT - 1
    hog = Hog({cpu: [(80 * MS, 10 * MS), (150 * MS, 20 * MS)]})
    injector = Injector(
        make_config([(cpu, "irq", 80, 10), (cpu, "irq", 150, 20), (cpu, "irq", 180, 7)]), "origin"
    )
    row, gaps = observed_gaps(tmp_path, cpu, injector)
    assert (
        lost_within(gaps, 80, 90) >= 9.8
        and lost_within(gaps, 150, 170) >= 19.6
        and lost_within(gaps, 180, 187) >= 6.8
    )
    row, gaps = observed_gaps(tmp_path, cpu, hog, injector)
    assert row["status"] == "ok" and row["injected_events"] == 3 and row["hog_ns"] > 0
    assert (
        lost_within(gaps, 80, 90) + lost_within(gaps, 150, 170) + lost_within(gaps, 180, 187)
        >= 36.2
    )
    hog.close()
    injector.close()


@needs_realtime
def test_hogs_die_with_the_run_and_a_failed_one_fails_it():
    hog = Hog({cpu: [(5000 * MS, MS)] for cpu in range(CPU_COUNT)})
    look = Look(lambda: hog.pids)
    assert run_once(program("sleep 0.05"), [hog, look])["status"] == "ok"
    assert len(look.seen) == CPU_COUNT and gone_within(look.seen, 0) and not hog.pids
    bad = Hog({CPU_COUNT - 1: [(0, MS)]})
    bad._command = lambda cpu, blocks: [
        "/bin/sh",
        "-c",
        "printf r > /proc/self/fd/$NOISEBOOK_READY_FD; exit 3",
    ]
    assert run_once(program("sleep 0.1"), [bad])["status"] == "hog failed"


@pytest.mark.parametrize(
    "blocks, message",
    [
        ([(0, LONGEST_NS + 1)], "at a stretch"),
        ([(0, LONGEST_NS // 2), (LONGEST_NS // 2 + 1000, LONGEST_NS)], "at a stretch"),
        ([(10, 20), (15, 5)], "follow each other"),
        ([(10, 0)], "follow each other"),
        ([(-5, 3)], "follow each other"),
    ],
)
def test_bad_schedules_are_refused(blocks, message):
    with pytest.raises(InputError, match=message):
        Hog({0: blocks})


@settings(max_examples=200, deadline=None)
@given(st.floats(0.05, 3), st.floats(0.05, 1.7), st.integers(1, 4), st.integers(0, 10**6))
def test_random_schedules_keep_their_promises(seconds, share, cpus, seed):
    share = min(share, 0.9 * cpus)
    schedule = random_schedule(seconds, share, range(cpus), seed)
    assert schedule == random_schedule(seconds, share, range(cpus), seed)
    Hog(schedule)  # in order, no overlap, short enough
    lengths = [length for blocks in schedule.values() for _, length in blocks]
    assert sum(lengths) == pytest.approx(share * seconds * 1e9, abs=cpus)
    assert max(lengths) <= 60 * MS and all(
        length >= MS for blocks in schedule.values() for _, length in blocks[:-1]
    )
    assert all(
        start >= 0 and start + length <= seconds * 1e9 + 1
        for blocks in schedule.values()
        for start, length in blocks
    )
