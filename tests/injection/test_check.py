"""What a plan may take of the whole machine: refused at planning and at the start, and what is just
allowed lets others answer.
"""

import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbhelpers.errors import InputError
from nbhelpers.injection import Overheads, make_plan
from nbhelpers.injection._check import check_plan, lib
from nbhelpers.injection._native import ffi
from nbhelpers.injection.injector import THROTTLING
from nbhelpers.injection.replay import Replay
from nbhelpers.injection.rules import KIND_CODES, Rules, may_realtime
from nbhelpers.injection.stressors import may_count_cpus
from nbhelpers.machine import settings as machine_settings
from nbhelpers.noise import NoiseConfig, stressor_noise
from nbhelpers.noise._vocabulary import STRESSORS

from .helpers import CPU_COUNT, make_config

MS, SECOND = 10**6, 10**9
STEP = 50 * MS


def fullest(lanes: list[tuple[int, list]], cpus: int, roam=(), kinds=(), **most_ns):
    """Code and excess of the C core; a lane is (cpu, [(start_ns, duration_ns, policy)]); kinds, if
    not all occupy, are one a lane; limits are `stretch`, `second`, `ten_seconds`.
    """
    rows = [event for _, events in lanes for event in events]
    run = ffi.new("struct nb_injection *")
    table = ffi.new("struct nb_lane[]", len(lanes))
    columns = [
        ffi.new(f"{kind}[]", [int(row[place]) for row in rows])
        for place, kind in enumerate(("int64_t", "int64_t", "int8_t"))
    ]
    run.plan.start_ns, run.plan.duration_ns, run.plan.policy = columns
    run.lanes, run.lane_count, run.event_count = table, len(lanes), len(rows)
    first = 0
    for lane, (cpu, events) in zip(table, lanes):
        lane.cpu, lane.first, lane.count = cpu, first, len(events)
        first += len(events)
    for cpu in roam:
        run.roam[0] |= 1 << cpu
    if kinds:
        each = [KIND_CODES.get(kind, 0) for (_, events), kind in zip(lanes, kinds) for _ in events]
        codes = ffi.new("int8_t[]", each)
        run.plan.kind = codes
    run.rules.cpus = cpus
    run.rules.full_stop_ns = most_ns.get("stretch", 0)
    run.rules.full_stop_second_ns = most_ns.get("second", 0)
    run.rules.full_stop_ten_seconds_ns = most_ns.get("ten_seconds", 0)
    excess = ffi.new("struct nb_excess *")
    return lib.nb_check_limits(run, excess), excess


def full_steps(lanes, cpus: int) -> np.ndarray:
    """Whether so many CPUs are taken at once, step by step."""
    grid = np.zeros((len(lanes), 2000), bool)
    for number, (_, events) in enumerate(lanes):
        free = 0
        for start, duration, policy in events:
            begin = max(start, free)
            free = begin + duration
            if policy in (1, 2):
                grid[number, begin // STEP : free // STEP] = True
    slots = [cpu if cpu >= 0 else 1000 + number for number, (cpu, _) in enumerate(lanes)]
    busy = sum(
        np.any([grid[i] for i, slot in enumerate(slots) if slot == one], axis=0).astype(int)
        for one in set(slots)
    )
    return busy >= cpus


def fullest_ns(full: np.ndarray, window_ns: int) -> int:
    return int(np.convolve(full, np.ones(window_ns // STEP)).max().round()) * STEP


def longest_ns(full: np.ndarray) -> int:
    ends = np.flatnonzero(np.diff(np.concatenate([[0], full.astype(int), [0]])))
    return int((ends[1::2] - ends[::2]).max(initial=0)) * STEP


@st.composite
def some_lanes(draw):
    steps = st.integers(0, 12)
    lanes = []
    for _ in range(draw(st.integers(1, 5))):
        start, events = 0, []
        for _ in range(draw(st.integers(0, 25))):
            start += draw(steps) * STEP
            events.append((start, draw(steps) * STEP, draw(st.sampled_from([1, 1, 2, 0]))))
        lanes.append((draw(st.sampled_from([-1, 0, 0, 1])), events))
    return lanes


@settings(max_examples=300, deadline=None)
@given(some_lanes(), st.integers(1, 3))
def test_the_longest_stretch_and_fullest_windows_are_those_that_counting_finds(lanes, cpus):
    roams = any(cpu < 0 for cpu, _ in lanes)
    reachable = roams or len({cpu for cpu, _ in lanes}) >= cpus
    full = full_steps(lanes, cpus)
    found = {"second": fullest_ns(full, SECOND), "ten_seconds": fullest_ns(full, 10 * SECOND)}
    for name, most in (found | {"stretch": longest_ns(full)}).items():
        most = most if reachable else 0
        if most:
            assert fullest(lanes, cpus, **{name: most})[0] == 0
        if most > 1:
            code, excess = fullest(lanes, cpus, **{name: most - 1})
            assert code < 0 and excess.value == most and excess.most == most - 1


@pytest.mark.parametrize(
    "period_ns, busy_ns, longest_ns",
    [
        (10 * MS, 10 * MS - 50_000, 700 * MS - 50_000),  # nobody can use such pauses
        (10 * MS, 9 * MS, 699 * MS),  # nor those that are no longer than 1 ms and the noise before
        (10 * MS, 9 * MS - 1, 9 * MS - 1),
        (MS, 25_000, 25_000),  # a loaded timer
    ],
)
def test_pauses_that_nobody_can_use_are_none(period_ns, busy_ns, longest_ns):
    events = [(at * period_ns, busy_ns, 1) for at in range(70)]
    lanes = [(0, events), (1, events)]
    assert fullest(lanes, 2, stretch=longest_ns)[0] == 0
    code, excess = fullest(lanes, 2, stretch=longest_ns - 1)
    assert code < 0 and (excess.value, excess.start_ns) == (longest_ns, 0)
    assert fullest(lanes, 3, stretch=1)[0] == 0


def test_lanes_that_cannot_reach_every_cpu_stop_nobody():
    lanes = [(-1, [(0, SECOND, 1)]), (-1, [(0, SECOND, 1)])]
    assert fullest(lanes, 2, second=MS)[0] < 0
    assert fullest(lanes, 2, second=MS, roam=(1,))[0] == 0
    assert fullest(lanes, 2, second=MS, roam=(0, 1))[0] < 0
    assert fullest([(0, lanes[0][1]), (-1, lanes[1][1])], 2, second=MS, roam=(1,))[0] < 0


@pytest.mark.parametrize("kind", sorted(STRESSORS))
def test_what_disturbs_a_cpu_from_another_holds_that_other(kind):
    """Beside a lane that occupies the CPU, the only one that both are for."""
    lanes = [(0, [(0, SECOND, 1)]), (0, [(0, SECOND, 1)])]
    refused = kind == "ipi"
    for roam in ((), (1,), (0, 1)):
        code, excess = fullest(lanes, 2, second=MS, kinds=["occupy", kind], roam=roam)
        assert (code < 0) == refused and excess.value == (SECOND if refused else 0)


def every_cpu(period_ms: float, busy_ms: float, seconds: float = 12) -> NoiseConfig:
    starts = [i * period_ms for i in range(int(seconds * 1000 / period_ms))]
    return make_config([(cpu, "irq", at, busy_ms) for cpu in range(CPU_COUNT) for at in starts])


def planned(config: NoiseConfig, **rules):
    return make_plan(config, rules=Rules(**rules), overheads=Overheads())


def test_short_pauses_over_and_over_are_refused_unless_meant():
    with pytest.raises(InputError, match="998.* ms of a second") as caught:
        planned(every_cpu(500.2, 499))
    assert "full_stop_second_ms" in caught.value.fix and "allow_full_stop" in caught.value.fix
    with pytest.raises(InputError, match="of ten seconds") as caught:
        planned(every_cpu(1000, 490), full_stop_ten_seconds_s=4.8)
    assert "full_stop_ten_seconds_s" in caught.value.fix
    planned(every_cpu(500.2, 499), allow_full_stop=True)
    planned(every_cpu(500.2, 499), full_stop_second_ms=998, full_stop_ten_seconds_s=10)


def test_what_is_exactly_at_the_limit_passes_and_a_nanosecond_more_is_refused():
    planned(every_cpu(500, 400, 5))
    with pytest.raises(InputError, match="800.000002 ms of a second"):
        planned(every_cpu(500, 400.000001, 5))
    planned(every_cpu(1000, 490), full_stop_ten_seconds_s=4.9)
    with pytest.raises(InputError, match="4900.000010 ms of ten seconds"):
        planned(every_cpu(1000, 490.000001), full_stop_ten_seconds_s=4.9)


@pytest.mark.skipif(CPU_COUNT < 2, reason="the only CPU is every CPU")
def test_one_cpu_of_several_may_be_taken_for_good():
    planned(make_config([(0, "irq", i * 1000, 1000) for i in range(12)]))


# the highest rate that is allowed; the others are limited by what the machine moves, or by the
# memory that a lane may hold
HIGHEST = {"duty": 1, "timer": 1e5, "ipi": 1e6, "io_metadata": 1e6}
INTERRUPTS = pytest.param(
    "ipi",
    marks=pytest.mark.skipif(
        CPU_COUNT < 2 or not may_count_cpus(), reason="counters of other CPUs may not be read"
    ),
)


@pytest.mark.parametrize("kind", sorted(set(STRESSORS) - {"ipi"}) + [INTERRUPTS])
def test_the_highest_rate_passes_and_the_next_number_is_refused_unless_meant(kind):
    plan = planned(NoiseConfig.from_events(stressor_noise(kind, 1, 0.1, [0])))
    plan.events["intensity"] = HIGHEST.get(kind, 1e15)
    check_plan(plan)
    plan.events["intensity"] = np.nextafter(plan.events["intensity"], np.inf)
    if kind in HIGHEST:
        with pytest.raises(InputError, match=f"{kind} noise of intensity") as caught:
            check_plan(plan)
        assert "any_intensity" in caught.value.fix
    check_plan(replace(plan, rules=Rules(any_intensity=True)))


def test_a_plan_that_was_changed_after_planning_is_refused_at_the_start():
    plan = planned(NoiseConfig.from_events(stressor_noise("timer", 1, 0.1, [0])))
    plan.events["intensity"] = 1e15
    replay = Replay(plan)
    with pytest.raises(InputError, match="timer noise"):
        replay.start()
    assert replay.pids == ()


ANSWER = "import sys\nfor line in sys.stdin: print(line, end='', flush=True)"


def slowest_answer_s(config: NoiseConfig, seconds: float, least_share: float = 0.3) -> float:
    """Of an ordinary process that is pinged every 50 ms while a config is injected, which takes at
    least a share of all CPUs; from when the ping was due, for whoever pings is stopped, too.
    """
    replay = Replay(planned(config))
    pipe = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    answerer = subprocess.Popen([sys.executable, "-c", ANSWER], **pipe)
    slowest = 0.0
    try:
        with machine_settings.apply({THROTTLING: -1}):
            replay.start()
            begin = due = time.monotonic()
            replay.release(time.monotonic_ns())
            while time.monotonic() < begin + seconds:
                answerer.stdin.write("?\n")
                answerer.stdin.flush()
                assert answerer.stdout.readline() == "?\n"
                slowest = max(slowest, time.monotonic() - due)
                due = max(due + 0.05, time.monotonic())
                time.sleep(max(0, due - time.monotonic()))
            replay.close()
    finally:
        replay.close()
        answerer.stdin.close()
        answerer.wait(10)
        answerer.stdout.close()
    taken = replay.log["cpu_time_ns"].sum()
    assert taken > least_share * CPU_COUNT * seconds * 1e9  # else nothing was to be seen
    print(f"the slowest answer took {1e3 * slowest:.0f} ms")
    return slowest


# as much in a piece as is allowed, as much of a second, and as much of ten
HEAVIEST = [(833.2, 499.5), (500, 400), (50, 30)]


@pytest.mark.alone
@pytest.mark.skipif(not may_realtime(98), reason="needs SCHED_FIFO")
@pytest.mark.long
@pytest.mark.parametrize("period_ms, busy_ms", HEAVIEST)
def test_an_ordinary_process_answers_within_a_second(period_ms, busy_ms):
    length = 7 if period_ms == 500 else 12
    assert slowest_answer_s(every_cpu(period_ms, busy_ms, length), length) < 1


@pytest.mark.alone
@pytest.mark.long
@pytest.mark.skipif(not may_realtime(98), reason="needs SCHED_FIFO")
@pytest.mark.parametrize("policy", ["SCHED_OTHER", "SCHED_FIFO"])
@pytest.mark.parametrize("kind", [kind for kind in STRESSORS if kind != "network"])
def test_beside_the_most_of_a_kind_an_ordinary_process_answers_within_a_second(kind, policy):
    """On every CPU: as an ordinary process for two seconds, in real time as long as is allowed."""
    intensity = HIGHEST.get(kind, 1e12)  # what only the machine limits: more than it can do
    if CPU_COUNT == 1 and STRESSORS[kind].needs == "cpus":
        pytest.skip("this kind comes from another CPU")
    seconds = 2.0 if policy == "SCHED_OTHER" else 0.49
    priority = {"SCHED_OTHER": 0, "SCHED_FIFO": 50}[policy]
    how = {"policy": policy, "priority": priority}
    noise = stressor_noise(kind, intensity, seconds, range(CPU_COUNT), **how)
    assert slowest_answer_s(NoiseConfig.from_events(noise), seconds + 0.3, least_share=0) < 1
