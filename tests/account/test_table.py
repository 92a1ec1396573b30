"""The account of constructed runs, whose truth is known, and of real ones."""

import numpy as np
import pandas as pd
import pytest

from nbhelpers.account import Account
from nbhelpers.account.table import PARTS
from nbhelpers.errors import InputError

MS = 1_000_000
WORK_MS = 200.0
NO_WAITS = pd.DataFrame(columns=["run", "thread", "start_ns", "end_ns", "busy_ns"])
TAKEN = ["run", "cpu", "start_ns", "end_ns", "kernel_ns", "hypervisor_ns", "edges_ns"]
HELD = ["run", "cpu", "start_ns", "end_ns", "length_ns"]


def made(count=40, slow=(), taken=(), threads=2, seed=0):
    """Runs of a program that computes WORK_MS in each thread.

    `slow`: run -> factor of its core; `taken`: run -> ms that an event takes from CPU 0, for which
    the other threads wait.
    """
    random = np.random.default_rng(seed)
    slow, taken = dict(slow), dict(taken)
    samples, occupied, waits, rows = [], [], [], []
    for run in range(count):
        factor = slow.get(run, 1.0) * np.exp(random.normal(0, 0.003))
        lost_ms = taken.get(run, 0.0)
        region_ms = WORK_MS * factor + lost_ms
        ends_ms = np.arange(16.0, region_ms, 16.0)
        for thread in range(threads):
            wall = np.diff(ends_ms, prepend=0.0) * MS
            of_thread = {"run": run, "thread": 100 + thread, "cpu": thread, "place": "program"}
            speed = {"latency": 1.0, "throughput": 1 / slow.get(run, 1.0), "memory": 0.9}
            lengths = {"wall_ns": wall.astype(int), "cpu_ns": wall.astype(int)}
            start_ns = (ends_ms * MS).astype(int)
            samples.append(pd.DataFrame(of_thread | speed | lengths | {"start_ns": start_ns}))
            busy_ms = region_ms - (lost_ms if thread else 0.0)
            waits.append((run, 100 + thread, 0, round(region_ms * MS), round(busy_ms * MS)))
        if lost_ms:
            end_ns = round((50 + lost_ms) * MS)
            occupied.append((run, 0, 50 * MS, end_ns, end_ns - 52 * MS, 0, 2 * MS))
        rows.append({"run": run, "seconds": region_ms / 1e3, "status": "ok"})
    return (
        pd.DataFrame(rows),
        pd.DataFrame(occupied, columns=TAKEN, dtype=np.int64),
        pd.concat(samples, ignore_index=True),
        pd.DataFrame(waits, columns=NO_WAITS.columns),
    )


def test_parts_sum_to_the_region_of_each_thread():
    account = Account(*made(slow=[(3, 1.5)], taken=[(5, 30.0)]))
    regions = account.table.merge(account.runs, on="run")["seconds"] * 1e9
    assert account.table[list(PARTS)].sum(axis=1).to_numpy() == pytest.approx(regions, rel=1e-6)


def test_a_slower_core_is_named_with_its_amount():
    account = Account(*made(slow=[(3, 1.5), (7, 2.0)]))
    excess = account.excess(3).set_index("part")
    assert excess.loc["slow_core", "ms"] == pytest.approx(WORK_MS * 0.5, rel=0.1)
    assert abs(excess.loc["unexplained", "share"]) < 0.1
    assert excess["ms"].sum() == pytest.approx(excess.attrs["excess_ms"])


def test_one_slow_run_alone_is_explained_by_what_is_expected():
    """No other run was slow: how sensitive the program is rests on the prior."""
    excess = Account(*made(slow=[(3, 1.5)])).excess().set_index("part")
    assert excess.attrs["runs"] == [3]
    assert excess.loc["slow_core", "ms"] == pytest.approx(WORK_MS * 0.5, rel=0.1)


def test_an_event_is_a_loss_of_its_thread_and_a_wait_of_the_other():
    account = Account(*made(taken=[(5, 30.0)]))
    by_thread = account.table[account.table["run"] == 5].set_index("thread") / MS
    assert by_thread.loc[100, "kernel"] == pytest.approx(28.0)
    assert by_thread.loc[100, "edges"] == pytest.approx(2.0)
    assert by_thread.loc[101, ["kernel", "edges"]].sum() == 0
    assert by_thread.loc[101, "waiting"] == pytest.approx(30.0)
    excess = account.excess(5).set_index("part")["ms"]
    assert excess["kernel"] + excess["edges"] == pytest.approx(15.0, abs=0.1)
    assert excess["waiting"] == pytest.approx(15.0, abs=0.1)


def test_corrected_times_are_alike_where_the_causes_are_known():
    account = Account(*made(slow=[(3, 1.5), (9, 1.2)], taken=[(5, 30.0)]))
    corrected = account.corrected()
    raw = account.runs.set_index("run")["seconds"]
    assert corrected.std() < 0.1 * raw.std()
    assert corrected.loc[5] == pytest.approx(corrected.drop([3, 5, 9]).mean(), rel=0.02)


def test_losses_are_what_a_replay_can_take_away():
    account = Account(*made(slow=[(3, 1.5), (7, 2.0)], taken=[(5, 30.0)]))
    event = account.losses(5).query("cause == 'kernel'")
    assert event["lost_ns"].tolist() == [30 * MS]
    slow = account.losses(3).query("cause == 'slow_core'")
    covered = slow["end_ns"] - slow["start_ns"]
    assert (slow["lost_ns"] / covered).to_numpy() == pytest.approx(1 / 3, rel=0.1)
    assert (slow["lost_ns"] <= covered).all()


def test_without_marks_a_thread_waits_when_it_is_off_its_cpu_and_nobody_took_it():
    runs, occupied, speed, _ = made(taken=[(5, 30.0)])
    blocked = (speed["run"] == 8) & (speed["thread"] == 101) & (speed["start_ns"] < 40 * MS)
    speed.loc[blocked, "cpu_ns"] -= 10 * MS
    table = Account(runs, occupied, speed, NO_WAITS).table.set_index(["run", "thread"]) / MS
    assert table.loc[(8, 101), "waiting"] == pytest.approx(20.0)
    assert table.loc[(8, 100), "waiting"] == 0


def test_a_cpu_that_another_program_has_robs_the_threads_that_share_the_rest():
    """In run 5 both threads are on CPU 1, each off it for half of the time; CPU 0 is held."""
    runs, occupied, speed, waits = made()
    of_run = speed["run"] == 5
    region = round(float(runs.loc[5, "seconds"]) * 1e9)
    runs.loc[5, "seconds"] *= 2
    speed.loc[of_run, ["start_ns", "wall_ns"]] *= 2
    speed.loc[of_run, "cpu"] = 1
    chosen = waits["run"] == 5
    waits.loc[chosen, "end_ns"], waits.loc[chosen, "busy_ns"] = 2 * region, 2 * region
    held = pd.DataFrame([(5, 0, 0, 2 * region, 2 * region)], columns=HELD)
    alone = Account(runs, occupied, speed, waits)
    assert alone.by_run.loc[5, "waiting"] == pytest.approx(region, rel=0.01)
    account = Account(runs, occupied, speed, waits, held)
    assert account.by_run.loc[5, "kernel"] == pytest.approx(region, rel=0.01)
    assert account.by_run.loc[5, "waiting"] == pytest.approx(0, abs=0.01 * region)
    losses = account.losses(5).query("cause == 'kernel'")
    assert losses["lost_ns"].sum() == pytest.approx(2 * region, rel=0.01)
    assert (account.losses(6)["cause"] != "kernel").all()


def test_without_a_trace_a_busy_thread_off_its_cpu_was_robbed_of_it():
    runs, _, speed, waits = made(taken=[(5, 30.0)])
    first = (speed["run"] == 5) & (speed["start_ns"] < 40 * MS)
    speed.loc[first, "cpu_ns"] -= 15 * MS
    table = Account(runs, None, speed, waits).table.set_index(["run", "thread"]) / MS
    assert table.loc[(5, 100), "kernel"] == pytest.approx(30.0)
    # the other thread waits for 30 ms of 230, spread over the run by its only mark
    assert table.loc[(5, 101), "waiting"] == pytest.approx(30.0, abs=0.1)


def test_runs_without_a_sample_are_refused():
    runs, occupied, speed, waits = made(count=4)
    with pytest.raises(InputError, match="0 of 4 runs"):
        Account(runs, occupied, speed.head(0), waits)
    with pytest.raises(InputError, match="3 of 3 runs"):
        Account(runs[runs["run"] < 3], occupied, speed[speed["run"] < 3], waits)
    few = Account(runs, occupied, speed, waits).excess()
    assert few[["ms", "low", "high"]].notna().all(axis=None)
    with pytest.raises(InputError, match="not in the account"):
        Account(runs, occupied, speed, waits).excess(99)
