"""Hogs against what a program on the same CPU loses; schedules against their own promises."""

import json
import sys
from contextlib import closing
from dataclasses import replace

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
end = before + 350_000_000
while before < end:
    now = time.monotonic_ns()
    if now - before > 1_000_000:
        gaps.append((before, now))
    before = now
json.dump(gaps, open(sys.argv[1], "w"))
"""
CPU = CPU_COUNT - 1


def run_beside(tmp_path, *attachments):
    """A run of a loop on one CPU, and a function of what it lost from one time to another, in ms
    from t0.
    """
    loop = program([sys.executable, "-S", "-c", LOOP, str(tmp_path / "gaps")], start="exec")
    row = run_once(replace(loop, cpus=(CPU,)), attachments)
    gaps = np.array(json.loads((tmp_path / "gaps").read_text()), dtype=float).reshape(-1, 2)
    begins, ends = (gaps - row["t0_ns"]).T / 1e6

    def lost_ms(start, end):
        return np.clip(np.minimum(ends, end) - np.maximum(begins, start), 0, None).sum()

    return row, lost_ms


@needs_realtime
def test_the_hog_takes_its_cpu_exactly_on_schedule(tmp_path):
    blocks = [(180, 10), (220, 5), (250, 20)]
    with closing(Hog({CPU: [(start * MS, length * MS) for start, length in blocks]})) as hog:
        row, lost_ms = run_beside(tmp_path, hog)
    assert row["status"] == "ok"
    assert row["hog_planned_ns"] == 35 * MS and row["hog_ns"] >= 0.7 * 35 * MS
    for start, length in blocks:
        assert lost_ms(start, start + length) >= 0.98 * length


@needs_realtime
def test_a_replay_takes_what_the_hog_took_and_both_together_take_more(tmp_path):
    hog = Hog({CPU: [(180 * MS, 10 * MS), (250 * MS, 20 * MS)]})
    config = make_config([(CPU, "irq", 180, 10), (CPU, "irq", 250, 20), (CPU, "irq", 280, 7)])
    with closing(hog), closing(Injector(config, "origin")) as injector:
        _, lost_ms = run_beside(tmp_path, injector)
        assert lost_ms(180, 190) >= 9.8 and lost_ms(250, 270) >= 19.6 and lost_ms(280, 287) >= 6.8
        row, lost_ms = run_beside(tmp_path, hog, injector)
    assert row["status"] == "ok" and row["injected_events"] == 3 and row["hog_ns"] > 0
    assert lost_ms(180, 190) + lost_ms(250, 270) + lost_ms(280, 287) >= 36.2


@needs_realtime
def test_hogs_die_with_the_run_and_a_failed_one_fails_it():
    hog = Hog({cpu: [(5000 * MS, MS)] for cpu in range(CPU_COUNT)})
    look = Look(lambda: hog.pids)
    assert run_once(program("sleep 0.05"), [hog, look])["status"] == "ok"
    assert len(look.seen) == CPU_COUNT and gone_within(look.seen, 0) and not hog.pids
    bad, command = Hog({CPU: [(0, MS)]}), "printf r > /proc/self/fd/$NOISEBOOK_READY_FD; exit 3"
    bad._command = lambda cpu, blocks: ["/bin/sh", "-c", command]
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
    assert max(lengths) <= 60 * MS
    for blocks in schedule.values():
        assert all(length >= MS for _, length in blocks[:-1])
        assert all(at >= 0 and at + length <= seconds * 1e9 + 1 for at, length in blocks)
