"""Real injections into real programs: what was planned happens, where it was planned."""

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from nbhelpers.errors import RunError
from nbhelpers.injection import Injector, Overheads, Plan, Rules, inject, make_plan, read_logs
from nbhelpers.injection.costs import ExitCost
from nbhelpers.injection.injector import THROTTLING, may_realtime
from nbhelpers.injection.log import make_log, noise_ns
from nbhelpers.injection.replay import Replay
from nbhelpers.machine import online_cpus
from nbhelpers.measurement import Attachment, run_once
from nbhelpers.workloads import program

from .helpers import (
    CPU_COUNT,
    gone_within,
    lifted,
    make_config,
    mixed_config,
    put_back,
    run_unprivileged,
    state,
    table_of,
)

pytestmark = pytest.mark.flaky(reruns=2)

REPOSITORY = Path(__file__).parents[2]
needs_realtime = pytest.mark.skipif(not may_realtime(51), reason="SCHED_FIFO is not permitted here")
SPIN = "import time\nend = time.monotonic() + {seconds}\nwhile time.monotonic() < end: pass"


def spinner(seconds):
    return program([sys.executable, "-S", "-c", SPIN.format(seconds=seconds)], timeout_s=20)


def done(log):
    """Whether each event was injected, on time or late: an ordinary process may have to wait for a
    CPU.
    """
    return log["outcome"].isin(["injected", "late"]).tolist()


class Look(Attachment):
    """Calls a function when the run has been released; `seen` is its result."""

    def __init__(self, function):
        self._function = function

    def released(self, t0_ns):
        self.seen = self._function()


@needs_realtime
def test_every_event_is_injected_in_order_and_as_long_as_planned():
    config, rules = mixed_config(2), Rules(exit_cost_us=0, shortest_us=0)
    injection = inject(config, spinner(0.4), placement="origin", rules=rules)
    log = injection.log
    assert injection.run["status"] == "ok" and injection.run["noise"] == config.digest
    assert len(log) == len(config.events()) and set(log["outcome"]) <= {"injected", "late"}
    planned = config.events().set_index(["cpu", "event"])
    own = log.set_index(["cpu", "event"]).loc[planned.index]
    assert (own["planned_start_ns"] == planned["start_ns"]).all()
    assert (own["planned_duration_ns"] == planned["duration_ns"]).all()
    assert (own["policy"].astype(str) == planned["policy"].astype(str)).all()
    assert (log["start_ns"] >= log["planned_start_ns"]).all()
    assert (log["end_ns"] >= log["start_ns"]).all()
    realtime = log["policy"] == "SCHED_FIFO"
    assert (log["end_ns"] - log["taken_ns"] >= log["planned_duration_ns"])[realtime].all()
    assert (log["cpu_time_ns"] >= log["planned_duration_ns"])[~realtime].all()
    for _, lane in log.groupby([log["cpu"], realtime]):
        assert (lane["start_ns"].to_numpy()[1:] >= lane["end_ns"].to_numpy()[:-1]).all()
    ratio = noise_ns(log).groupby(log["kind"], observed=True).sum()
    ratio /= log.groupby("kind", observed=True)["replayed_ns"].sum()
    # wide: the hypervisor may take a CPU away within an event
    assert ratio.between(0.7, 1.5).all(), ratio
    assert (log["ran_on"] == log["cpu"]).all()


@needs_realtime
def test_lanes_roam_or_stay_as_placed_with_the_policy_of_their_first_event():
    config = make_config([(cpu, "irq", 500, 1) for cpu in range(CPU_COUNT)])
    for placement, expected in (
        ("roam", [os.sched_getaffinity(0)] * CPU_COUNT),
        ("origin", [{cpu} for cpu in range(CPU_COUNT)]),
    ):
        injector = Injector(config, placement)
        asked = (os.sched_getaffinity, os.sched_getscheduler, os.sched_getparam)
        look = Look(lambda: [tuple(ask(pid) for ask in asked) for pid in injector.pids[1:]])
        run_once(program("sleep 0.05"), [injector, look])
        injector.close()
        usual = (os.SCHED_FIFO, os.sched_param(50))
        assert look.seen == [(cpus, *usual) for cpus in expected]


def test_nothing_is_injected_after_the_workload_has_ended():
    config = make_config([(0, "thread", start, 1) for start in (5, 20, 5000, 9000)])
    injection = inject(config, program("sleep 0.1"))
    assert injection.run["seconds"] < 2
    assert done(injection.log) == [True, True, False, False]
    assert injection.log["outcome"].tolist()[2:] == ["not reached", "not reached"]
    assert injection.run["not_reached_events"] == 2 and injection.run["injected_events"] == 2
    assert injection.log["policy"].astype(str).tolist() == ["SCHED_OTHER", "SCHED_OTHER", "", ""]


def test_an_event_in_progress_is_cut_when_the_workload_ends():
    config = make_config([(0, "thread", 1, 1500), (0, "irq", 1900, 1)])
    injection = inject(config, program("sleep 0.05"))
    log = injection.log.set_index("event")
    assert log["outcome"].to_dict() == {0: "cut", 1: "not reached"}
    assert 0 < log["cpu_time_ns"][0] < 1_000_000_000 and injection.run["seconds"] < 1


@needs_realtime
def test_throttling_is_lifted_during_the_injection_and_put_back():
    injector = Injector(make_config([(0, "irq", 1, 1)]))
    look = Look(lifted)
    run_once(program("sleep 0.02"), [injector, look])
    injector.close()
    # another measurement may hold the setting
    assert look.seen or any("throttling" in note for note in injector.notes)
    assert put_back()


@needs_realtime
@pytest.mark.skipif(
    not os.access(THROTTLING, os.W_OK) or lifted(),
    reason="real-time throttling may not be lifted here, or is",
)
class TestThrottlingOfSeveralInjectors:
    """The first that closes must not put it back for the others."""

    @pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)], ids=str)
    def test_in_one_process(self, order):
        injectors = [Injector(make_config([(0, "irq", 1, 1)])) for _ in range(3)]
        looks = [Look(lifted) for _ in injectors]
        for injector in injectors:
            injector.before(program("true"))
        for number in order:
            row = run_once(program("sleep 0.02"), [injectors[number], looks[number]])
            injectors[number].close()
            assert row["injected_events"] == 1 and looks[number].seen
        assert put_back()
        assert not any("throttling" in note for injector in injectors for note in injector.notes)

    def test_one_within_another(self):
        outer, inner = (Injector(make_config([(0, "irq", 1, 1)])) for _ in range(2))
        look = Look(lambda: (run_once(program("sleep 0.02"), [inner]), inner.close(), lifted()))
        run_once(program("sleep 0.02"), [outer, look])
        outer.close()
        row, _, still_lifted = look.seen
        assert row["injected_events"] == 1 and still_lifted and put_back()


def released_in_the_past(config, lateness_ms, **rules):
    """The log of a replay whose t0 has long passed."""
    replay = Replay(make_plan(config, rules=Rules(**rules)))
    replay.start()
    replay.release(time.monotonic_ns() - round(lateness_ms * 1e6))
    replay.wait(5)
    replay.close()
    assert replay.ended_by == "plan done" and not replay.problem()
    return make_log(replay)


def test_a_late_event_keeps_its_duration_and_a_hopeless_one_is_dropped():
    rows = [(0, "thread", 0, 2), (0, "thread", 100, 3), (0, "thread", 260, 4)]
    log = released_in_the_past(make_config(rows), 200, give_up_ms=150)
    assert log["outcome"].tolist()[:2] == ["dropped", "late"] and done(log)[2]
    first, *others = log["cpu_time_ns"] / 1e6
    assert first < 1 and others[0] >= 3 and others[1] >= 4


@needs_realtime
def test_a_late_realtime_event_is_anchored_at_its_wake_up_and_a_timely_one_at_its_plan():
    rows = [(0, "irq", 0, 2), (0, "irq", 300, 3)]
    log = released_in_the_past(make_config(rows), 100, give_up_ms=200, exit_cost_us=0)
    assert log["outcome"].tolist() == ["late", "injected"]
    assert log["taken_ns"].tolist() == [log["start_ns"][0], 300_000_000]
    assert log["end_ns"][0] >= log["start_ns"][0] + 2_000_000 and log["end_ns"][1] >= 303_000_000


@needs_realtime
def test_lateness_is_used_up_in_pauses_and_never_grows():
    """The first two events begin 120 ms late, and keep their durations; after the pause all is on
    time again.
    """
    rows = [(0, "irq", 0, 60), (0, "irq", 70, 2), (0, "irq", 300, 3)]
    log = released_in_the_past(make_config(rows), 120, give_up_ms=200, exit_cost_us=0)
    late_ms = (log["start_ns"] - log["planned_start_ns"]) / 1e6
    assert log["outcome"].tolist() == ["late", "late", "injected"]
    assert late_ms[0] >= 120 and 110 <= late_ms[1] <= late_ms[0] and late_ms[2] < 0.5


def by_hand(rows):
    """A plan with a lane on CPU 0 for each row (start_ms, duration_ms, priority)."""
    events = table_of("start_ns duration_ns priority", rows, 1e6)
    events = events.assign(
        cpu=0,
        event=range(len(rows)),
        policy="SCHED_FIFO",
        kind="irq",
        intensity=0.0,
        into=range(len(rows)),
        recorded_start_ns=events["start_ns"],
        recorded_duration_ns=events["duration_ns"],
    )
    lanes = pd.DataFrame({"cpu": 0, "first": range(len(rows)), "count": 1})
    return Plan(events, lanes, Rules(exit_cost_us=0))


def replayed(plan):
    replay = Replay(plan)
    replay.start()
    replay.release(time.monotonic_ns() + 5_000_000)
    replay.wait(5)
    replay.close()
    assert not replay.problem()
    return make_log(replay)


@needs_realtime
def test_what_an_interrupt_takes_from_a_softirq_is_made_up_for():
    log = replayed(by_hand([(1, 20, 49), (6, 5, 50)]))
    softirq, irq = log.iloc[0], log.iloc[1]
    assert irq["start_ns"] < softirq["end_ns"] - 10_000_000 and irq["preempted_ns"] < 5_000_000
    assert softirq["preempted_ns"] >= irq["end_ns"] - irq["start_ns"]
    assert softirq["end_ns"] - softirq["taken_ns"] >= 20_000_000 + softirq["preempted_ns"]


@needs_realtime
def test_an_event_that_waits_for_one_of_its_priority_takes_nothing_from_it():
    log = replayed(by_hand([(1, 20, 50), (6, 5, 50)]))
    first, second = log.iloc[0], log.iloc[1]
    assert second["start_ns"] > first["start_ns"] + 19_000_000, "not before the way out is warmed"
    took_ns = log["end_ns"] - log["taken_ns"] - log["preempted_ns"]
    assert took_ns.tolist() == pytest.approx([20_000_000, 5_000_000], abs=500_000)


@needs_realtime
def test_an_ordinary_event_in_progress_does_not_delay_an_interrupt():
    """Two lanes a CPU: the 30 ms of the thread would make the interrupts behind it late."""
    config = make_config([(0, "thread", 2, 30), *((0, "irq", 3 + 4 * i, 0.5) for i in range(5))])
    log = inject(config, spinner(0.4), placement="origin").log
    irq, thread = (log[log["kind"] == kind] for kind in ("irq", "thread"))
    assert all(done(irq)) and (irq["end_ns"] < thread["end_ns"].max()).all()
    thread = thread[done(thread)]
    assert (thread["cpu_time_ns"] >= 0.99 * thread["planned_duration_ns"]).all()


@needs_realtime
def test_in_a_pause_that_is_too_short_to_leave_the_cpu_is_kept():
    config = make_config([(0, "irq", 5, 1), (0, "irq", 6.005, 1)])
    rules = Rules(exit_cost_us=0, shortest_us=0)
    replay = Replay(make_plan(config, "origin", rules=rules, overheads=Overheads(wake_us=20)))

    def switches():
        status = Path(f"/proc/{replay.pids[1]}/status").read_text()
        return int(status.split("\nvoluntary_ctxt_switches:")[1].split()[0])

    with subprocess.Popen(["sleep", "1"]) as workload:
        try:
            replay.start(workload.pid)
            before = switches()
            replay.release(time.monotonic_ns() + 5_000_000)
            time.sleep(0.1)
            slept = switches() - before
        finally:
            workload.kill()
            replay.close()
    # woken by the release; asleep until the first event; asleep after the second: the pause between
    # them is no sleep
    assert all(done(make_log(replay))) and slept <= 2


@pytest.mark.skipif(CPU_COUNT < 2, reason="one CPU: there is nothing to exclude")
def test_roaming_injectors_stay_away_from_excluded_cpus():
    injector = Injector(make_config([(0, "thread", 500, 1)]), exclude_cpus=[0])
    look = Look(lambda: [os.sched_getaffinity(pid) for pid in injector.pids[1:]])
    run_once(program("sleep 0.05"), [injector, look])
    injector.close()
    assert look.seen == [os.sched_getaffinity(0) - {0}]


@needs_realtime
def test_the_exit_cost_is_interpolated_over_the_logarithm_of_the_length():
    points = tuple(ExitCost(us, cost_us, 0, 0, 0) for us, cost_us in ((100, 0), (6400, 3000)))
    overheads = Overheads(exit_us=0, exit_by_length=points)
    lengths_ms = (0.05, 0.1, 0.8, 6.4, 9)
    config = make_config([(0, "irq", 20 + 20 * i, ms) for i, ms in enumerate(lengths_ms)])
    log = replayed(make_plan(config, "origin", rules=Rules(shortest_us=0), overheads=overheads))
    assert done(log) == [True] * 5
    assert log["exit_ns"].tolist() == [0, 0, 1_500_000, 3_000_000, 3_000_000]
    assert (log["end_ns"] - log["taken_ns"])[3:].tolist() == pytest.approx(
        [3_400_000, 6_000_000], abs=1_000_000
    )


@needs_realtime
def test_the_exit_cost_is_that_of_the_kind_of_core():
    slow = Overheads(exit_us=3000, cpus=(max(online_cpus()),))
    overheads = Overheads(exit_us=0, others=(slow,))
    config = make_config([(cpu, "irq", 20, 8) for cpu in (0, max(online_cpus()))])
    log = replayed(make_plan(config, "origin", rules=Rules(shortest_us=0), overheads=overheads))
    by_cpu = dict(zip(log["ran_on"], log["exit_ns"]))
    assert by_cpu.pop(max(online_cpus())) == 3_000_000 and set(by_cpu.values()) <= {0}
    took_ms = (log["end_ns"] - log["taken_ns"]) / 1e6
    assert took_ms[log["ran_on"] == max(online_cpus())].item() == pytest.approx(5, abs=1)


def test_the_time_limit_ends_everything():
    replay = Replay(make_plan(make_config([(0, "thread", 1, 1900)])))
    replay._run.rules.limit_ns = 50_000_000
    replay.start()
    pids = replay.pids
    replay.release(time.monotonic_ns())
    replay.wait(3)
    replay.close()
    assert replay.ended_by in ("time limit", "plan done")  # the lane knows the limit too
    assert make_log(replay)["outcome"].tolist() == ["cut"] and gone_within(pids, 0)


def test_the_log_is_a_view_of_the_shared_memory_and_outlives_the_injection():
    replay = Replay(make_plan(make_config([(0, "thread", 1, 1)])))
    log = make_log(replay)
    column = replay.log["cpu_time_ns"]
    assert np.shares_memory(log["cpu_time_ns"].to_numpy(), column)
    column[0] = 12345
    assert log["cpu_time_ns"][0] == 12345
    del replay, column
    assert log["cpu_time_ns"][0] == 12345


def test_logs_are_kept_as_files_and_put_together(tmp_path):
    config = make_config([(0, "thread", 1, 1), (0, "thread", 5, 1)])
    injection = inject(config, program("sleep 0.03"), runs=3, log_folder=tmp_path)
    assert len(injection.run) == 3 and injection.log["run"].tolist() == [0, 0, 1, 1, 2, 2]
    again = read_logs(tmp_path, injection.runs)
    kept = injection.log.astype(again.dtypes.to_dict())
    pd.testing.assert_frame_equal(again, kept, check_categorical=False)
    assert sum(done(injection.log)) == 6


def test_a_workload_that_has_ended_and_a_memory_that_is_reused_are_no_problem():
    replay = Replay(make_plan(make_config([(0, "thread", 1, 1)])))
    with pytest.raises(RunError, match="No such process"):
        replay.start(2**22 - 3)  # beyond the largest pid
    replay.close()
    replay.close()


def test_injectors_sleep_after_their_last_event_until_the_workload_has_ended():
    """Ending a process takes CPU time: not within the run."""
    injector = Injector(make_config([(0, "thread", 1, 1)]))
    look = Look(lambda: (time.sleep(0.1), [state(pid) for pid in injector.pids])[1])
    row = run_once(program("sleep 0.3"), [injector, look])
    injector.close()
    assert look.seen == ["S", "S"] and row["injected_events"] == 1


UNPRIVILEGED = """
from nbhelpers.injection import inject
from nbhelpers.workloads import program
from tests.injection.helpers import make_config
injection = inject(make_config([(0, "irq", 5, 3), (0, "thread", 20, 3)]), program("sleep 0.06"))
assert any("SCHED_FIFO is not permitted" in note for note in injection.notes), injection.notes
assert injection.run["status"] == "ok", injection.run
log = injection.log
assert set(log["policy"]) == {"SCHED_OTHER"} and (log["cpu_time_ns"] >= 3_000_000).all(), log
"""


def test_without_permission_everything_is_ordinary_and_the_notes_say_so():
    done = run_unprivileged(UNPRIVILEGED)
    assert done.returncode == 0, done.stderr


def test_a_workload_may_outlast_the_plan_by_more_than_the_limit():
    config, rules = make_config([(0, "thread", 1, 1)]), Rules(overtime_s=0.1)
    injection = inject(config, program("sleep 0.5"), rules=rules)
    assert injection.run["status"] == "ok" and done(injection.log) == [True]
