"""What a hypervisor took: a real recording against what a loop saw at the same time, and a made-up
CPU whose pauses are known.
"""

import shutil

import numpy as np
import pandas as pd
import pytest

from nbhelpers.account.gaps import explained_gaps, loop_gaps
from nbhelpers.errors import InputError
from nbhelpers.machine import doctor
from nbhelpers.measurement import run_once
from nbhelpers.tracing import (
    Tracer,
    detour_workload,
    read_traces,
    stolen_times,
    with_stolen_time,
)
from nbhelpers.tracing.hypervisor import stolen_time
from tests.cells import run_cells
from tests.shown import Shown

TICK_NS, TICK_TAKES_NS = 4_000_000, 12_000
WORKLOAD, KWORKER = 100, 7


recordable = pytest.mark.skipif(
    doctor().capabilities.tracer != "tracepoints",
    reason="this machine does not trace by tracepoints (no tracefs, not root, or it has osnoise)",
)


@pytest.fixture
def recording(data, tmp_path):
    """A folder with the recording of a run, and the run."""
    shutil.copy(data / "stolen.tracepoints.gz", tmp_path / "run-000000.tracepoints.gz")
    return tmp_path, pd.DataFrame({"run": [0], "status": "ok"})


@pytest.fixture(scope="module")
def gaps(data):
    return pd.read_csv(data / "stolen.gaps.csv.gz")


def kernel_time_in(gap, events):
    """What kernel events took of a gap, ns; one by one."""
    last_ns = gap.start_ns + gap.duration_ns
    return sum(
        max(0, min(last_ns, event.end_ns) - max(gap.start_ns, event.start_ns))
        for event in events[events["cpu"] == gap.cpu].itertuples()
    )


def test_the_account_finds_the_gaps_that_a_loop_saw_and_no_kernel_event_explains(recording, gaps):
    stolen, events = stolen_times(*recording), read_traces(*recording)
    assert stolen.attrs["method"] == "account"
    assert set(stolen["source"]) == {"stolen"} and set(stolen["kind"]) == {"hardware"}
    unexplained = [
        gap
        for gap in gaps[gaps["duration_ns"] > 500_000].itertuples()
        if kernel_time_in(gap, events) < gap.duration_ns / 10
    ]
    assert len(unexplained) == len(stolen) == 3
    for gap in unexplained:
        near = stolen["start_ns"].between(gap.start_ns - 1000, gap.start_ns + 100_000)
        ((length_ns, slack_ns),) = stolen.loc[
            near & (stolen["cpu"] == gap.cpu), ["duration_ns", "slack_ns"]
        ].to_numpy()
        assert 0.98 < length_ns / gap.duration_ns < 1 and slack_ns == 0


def stolen_table(runs: pd.DataFrame, stolen: pd.DataFrame) -> pd.Series:
    """The row of page 37 on two CPUs."""
    study = Shown(machine={"machine": {"cpus": [0, 1]}})
    known = {"traced": runs, "stolen": stolen, "study": study}
    return run_cells("37-worst-runs", "stolen", **known)["steal"].iloc[0]


def test_the_sum_agrees_with_the_kernels_own_ticks_of_steal(recording):
    stolen = stolen_times(*recording)
    runs = pd.DataFrame({"run": [0], "region_seconds": [2.04], "steal_s": [0.02]})
    row = stolen_table(runs, stolen)
    # each CPU's steal is counted in whole ticks of 10 ms
    assert abs(row["account_ms"] - row["steal_ms"]) <= 10
    assert row["gaps_ms"] == pytest.approx(stolen["duration_ns"].sum() / 1e6)
    assert row["gaps_ms"] <= row["account_ms"]
    assert row["account_share"] == pytest.approx(row["account_ms"] / 20)


def test_what_gaps_are_made_of_adds_up(recording, gaps):
    events, stolen = read_traces(*recording), stolen_times(*recording)
    found = explained_gaps(gaps, events, stolen)
    explained = found["kernel_ns"] + found["stolen_ns"]
    assert explained.sum() <= 1.1 * found["duration_ns"].sum()
    assert found["stolen_ns"].sum() == pytest.approx(stolen["duration_ns"].sum(), rel=0.01)
    without = explained_gaps(gaps, events, stolen.iloc[:0])
    assert explained.sum() - without["kernel_ns"].sum() > 15e6 and not without["stolen_ns"].any()


def made_up(pauses, seconds=0.2, cpu=0, seed=0, with_account=True, without_interrupts=False):
    """Tracepoints of a CPU that runs the workload, with a kworker now and then, and that stands
    still in `pauses` [(start_ns, length_ns)].

    Whatever is due in a pause comes at its end, and the account leaves the pause out; on request
    interrupts, too (some of 80 us), as many kernels do.
    """
    random, end_ns = np.random.default_rng(seed), round(seconds * 1e9)
    pauses = sorted(pauses)

    def after(due):
        ends = [begin + length for begin, length in pauses if begin <= due < begin + length]
        return max([due, *ends])

    def paused(low, high):
        return sum(max(0, min(high, b + n) - max(low, b)) for b, n in pauses)

    rows = [(0, "sched_switch", 0, 0, WORKLOAD, 0)]
    account_from = interrupts = 0

    def account(now, pid, ran_interrupt=0):
        nonlocal account_from, interrupts
        out = interrupts + ran_interrupt if without_interrupts else 0
        if with_account:
            ran_ns = now - account_from - paused(account_from, now) - out
            ran_ns += int(random.integers(-300, 2000))
            rows.append((now, "sched_stat_runtime", pid, 0, pid, ran_ns))
        account_from, interrupts = now, -ran_interrupt

    came = 0
    for due in range(TICK_NS, end_ns, TICK_NS):
        now = after(due + int(random.integers(-4000, 4000)))
        if now <= came + TICK_TAKES_NS:
            continue  # one interrupt for all that was due
        came = now
        takes = 80_000 if without_interrupts and random.random() < 0.2 else TICK_TAKES_NS
        rows.append((now, "local_timer_entry", WORKLOAD, 0, 0, 0))
        account(now + 3000, WORKLOAD, 3000)
        rows.append((now + takes, "local_timer_exit", WORKLOAD, 0, 0, 0))
        interrupts += takes
        begin = now + 300_000
        if random.random() < 0.3 and not paused(begin - 1000, begin + 60_000):
            account(begin, WORKLOAD)
            rows.append((begin + 1000, "sched_switch", WORKLOAD, WORKLOAD, KWORKER, 0))
            account_from = begin
            account(begin + 50_000, KWORKER)
            rows.append((begin + 51_000, "sched_switch", KWORKER, KWORKER, WORKLOAD, 0))
            account_from = begin + 50_000
    columns = ["time_ns", "event", "pid", "prev_pid", "next_pid", "delta_ns"]
    table = pd.DataFrame(rows, columns=columns).assign(cpu=cpu, number=236)
    return table.astype({"event": "category"})


def stolen_from(raw, pids=(WORKLOAD,)):
    header = {"start_ns": 0, "end_ns": 200_000_000, "run": 0, "workload_pids": list(pids)}
    return stolen_time(header, raw, "made up")


def random_pauses(seed, count=8):
    random = np.random.default_rng(seed)
    starts = np.sort(random.choice(np.arange(1, 9), count, replace=False)) * 20_000_000
    starts = starts + random.integers(0, 4_000_000, count)
    return list(zip(starts.tolist(), random.integers(60_000, 14_000_000, count).tolist()))


@pytest.mark.parametrize("seed", range(4))
def test_known_pauses_are_found_with_their_length_and_within_their_slack(seed):
    pauses = random_pauses(seed)
    stolen = stolen_from(made_up(pauses, seed=seed))
    true_ns = sum(length for _, length in pauses)
    assert stolen["duration_ns"].sum() == pytest.approx(true_ns, rel=0.01)
    for begin, length in pauses:
        first_ns = stolen["start_ns"] - stolen["slack_ns"] - 20_000
        last_ns = stolen["end_ns"] + stolen["slack_ns"] + 20_000
        own = stolen[(first_ns <= begin) & (begin + length <= last_ns)]
        near = own[(own["duration_ns"] - length).abs() < 10_000]
        around = stolen["start_ns"].between(begin - 4_100_000, begin + length)
        assert len(near) == 1 or stolen.loc[around, "duration_ns"].sum() == pytest.approx(
            length, abs=10_000
        )


@pytest.mark.parametrize("seed", range(4))
def test_the_share_of_late_ticks_estimates_what_was_stolen(seed):
    pauses = random_pauses(seed)
    stolen = stolen_from(made_up(pauses, seed=seed, with_account=False))
    assert stolen.empty and stolen.attrs["method"] == "not recorded"
    true_share = sum(length for _, length in pauses) / 200_000_000
    # each pause is off by a tick at most
    assert stolen.attrs["away_share"] == pytest.approx(true_share, abs=len(pauses) / 50)


@pytest.mark.parametrize("with_account", [True, False])
def test_a_cpu_that_never_pauses_has_no_gap(with_account):
    stolen = stolen_from(made_up([], with_account=with_account))
    assert stolen.empty and stolen.attrs["away_share"] == 0


@pytest.mark.parametrize("seed", range(3))
def test_interrupts_that_the_kernel_takes_out_of_the_account_are_no_pauses(seed):
    calm = stolen_from(made_up([], seed=seed, without_interrupts=True))
    assert calm.empty and calm.attrs["all_ns"] == 0
    pauses = random_pauses(seed)
    stolen = stolen_from(made_up(pauses, seed=seed, without_interrupts=True))
    assert stolen.attrs["all_ns"] == pytest.approx(sum(length for _, length in pauses), rel=0.01)


def test_pauses_of_others_are_not_counted_again():
    """Nobody of the workload ran: the time is in the other threads' own events already. But it was
    stolen.
    """
    pauses = random_pauses(1)
    stolen = stolen_from(made_up(pauses), [12345])
    true_ns = sum(length for _, length in pauses)
    assert stolen.empty and stolen.attrs["all_ns"] == pytest.approx(true_ns, rel=0.01)


def test_a_thread_that_was_away_without_a_report_is_not_taken_for_a_pause():
    """The kernel did not report the switches; records of another thread in between tell."""
    raw = made_up([])
    tick_ns = raw.loc[raw["event"] == "local_timer_entry", "time_ns"].iloc[10]
    entry = raw["event"] == "sched_stat_runtime"
    silent = raw[~(entry & raw["time_ns"].between(tick_ns, tick_ns + 3000))].copy()
    within = silent["time_ns"].between(tick_ns, tick_ns + TICK_TAKES_NS)
    silent.loc[within, "pid"] = KWORKER
    following = entry & (silent["time_ns"] > tick_ns + TICK_TAKES_NS)
    # the workload had only a part of the time since its last entry
    silent.loc[following.idxmax(), "delta_ns"] = 1_000_000
    assert stolen_from(silent).empty


def test_without_any_recording_of_tracepoints_there_is_nothing_and_with_some_it_is_an_error(
    recording,
):
    folder, runs = recording
    both = pd.DataFrame({"run": [0, 1], "status": "ok"})
    assert stolen_times(folder / "elsewhere", both).attrs["method"] == "not recorded"
    with pytest.raises(InputError, match="run 1"):
        stolen_times(folder, both)
    events, stolen = read_traces(folder, runs), stolen_times(folder, runs)
    joined = with_stolen_time(events, stolen)
    assert len(joined) == len(events) + len(stolen) and joined["start_ns"].is_monotonic_increasing
    assert joined.attrs["hypervisor"] == "account"
    assert with_stolen_time(events, stolen.iloc[:0]).equals(events)


@pytest.mark.alone
@recordable
def test_a_recording_of_this_machine_has_the_account(tmp_path, binaries):
    tracer = Tracer(tmp_path, source="tracepoints")
    row = run_once(detour_workload(0.1, tmp_path), [tracer])
    tracer.close()
    stolen = stolen_times(tmp_path, pd.DataFrame([row]))
    assert stolen.attrs["method"] == "account"
    # one that interrupts cut in two may be shorter than what is looked for
    assert (stolen["duration_ns"] > 0).all()
    assert stolen["duration_ns"].sum() <= row["seconds"] * 1e9 * len(stolen.attrs["cpus"])


@pytest.mark.long
@pytest.mark.alone
@recordable
def test_a_loop_beside_the_trace_shares_its_gaps_out(tmp_path, binaries):
    looped, gaps = loop_gaps(tmp_path, 2, 0.1)
    assert len(looped) == 2 and (looped["loop_s"] > 0.1).all()
    again, _ = loop_gaps(tmp_path, 2, 0.1, recorded_only=True)
    pd.testing.assert_frame_equal(again, looped)
    table = page_of(looped, gaps)
    parts = table[["kernel_ms", "stolen_ms", "edges_ms", "unexplained_ms"]]
    assert (table["gaps"] > 0).all() and (parts >= 0).all(axis=None)
    assert parts.sum(axis=1).to_numpy() == pytest.approx(table["gaps_ms"].to_numpy(), rel=0.2)


def page_of(looped: pd.DataFrame, gaps: pd.DataFrame) -> pd.DataFrame:
    """The table `loop` of page 37."""
    known = {"looped": looped, "gaps": gaps, "study": Shown(), "seed": 0}
    return run_cells("37-worst-runs", "loop", **known)["beside"]


def test_where_no_loop_was_traced_the_table_has_no_row():
    looped = pd.DataFrame({"run": [], "loop_s": [], "steal_s": []})
    columns = ["run", "cpu", "start_ns", "duration_ns", "kernel_ns", "stolen_ns"]
    assert not len(page_of(looped, pd.DataFrame(columns=columns, dtype=float)))


def test_what_no_recording_tells_is_unknown_and_not_none(tmp_path):
    runs = pd.DataFrame({"run": [0], "region_seconds": [2.0], "status": "ok", "steal_s": [0.04]})
    row = stolen_table(runs, stolen_times(tmp_path, runs))
    assert row["steal_ms"] == 40
    assert row[["account_ms", "gaps", "gaps_ms", "late_ms"]].isna().all()
