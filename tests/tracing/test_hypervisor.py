"""What a hypervisor took: a real recording against what a loop saw at the same time, and a made-up
CPU whose pauses are known.
"""

import numpy as np
import pandas as pd
import pytest

from nbhelpers.errors import InputError
from nbhelpers.machine import doctor
from nbhelpers.measurement import run_once
from nbhelpers.studies.loop_and_trace import compare_loop_with_trace, loop_sentences, rhythm_of
from nbhelpers.tracing import (
    Tracer,
    detour_workload,
    read_tracepoints,
    read_traces,
    stolen_time_sentence,
    stolen_time_table,
    stolen_times,
    with_stolen_time,
)
from nbhelpers.tracing.hypervisor import stolen_from_tracepoints, stolen_time
from nbhelpers.tracing.stolen_shares import explained_gaps, gap_causes

TICK_NS, TICK_TAKES_NS = 4_000_000, 12_000
WORKLOAD, KWORKER = 100, 7


@pytest.fixture(scope="module")
def recording(data):
    return data / "stolen.tracepoints.gz"


@pytest.fixture(scope="module")
def gaps(data):
    return pd.read_csv(data / "stolen.gaps.csv.gz")


def kernel_time_in(gap, events):
    """What kernel events took of a gap, ns; one by one."""
    return sum(
        max(
            0, min(gap.start_ns + gap.duration_ns, event.end_ns) - max(gap.start_ns, event.start_ns)
        )
        for event in events[events["cpu"] == gap.cpu].itertuples()
    )


def test_the_account_finds_the_gaps_that_a_loop_saw_and_no_kernel_event_explains(recording, gaps):
    stolen, events = stolen_time(recording), read_tracepoints(recording)
    assert (
        stolen.attrs["method"] == "account"
        and set(stolen["source"]) == {"stolen"}
        and set(stolen["kind"]) == {"hardware"}
    )
    unexplained = [
        gap
        for gap in gaps[gaps["duration_ns"] > 500_000].itertuples()
        if kernel_time_in(gap, events) < gap.duration_ns / 10
    ]
    assert len(unexplained) == len(stolen) == 3
    for gap in unexplained:
        own = stolen[
            (stolen["cpu"] == gap.cpu)
            & (stolen["start_ns"].between(gap.start_ns - 1000, gap.start_ns + 100_000))
        ]
        assert (
            len(own) == 1
            and 0.98 < own["duration_ns"].iloc[0] / gap.duration_ns < 1
            and own["slack_ns"].iloc[0] == 0
        )


def test_late_ticks_are_a_lower_bound_of_the_same_gaps(recording):
    account, ticks = stolen_time(recording), stolen_time(recording, "ticks")
    assert len(ticks) == len(account) and set(ticks["source"]) == {"late tick"}
    for seen, whole in zip(
        ticks.sort_values(["cpu", "start_ns"]).itertuples(),
        account.sort_values(["cpu", "start_ns"]).itertuples(),
    ):
        assert (
            whole.start_ns <= seen.start_ns
            and abs(seen.end_ns - whole.end_ns) < 50_000
            and seen.duration_ns <= whole.duration_ns
        )


def test_the_sum_agrees_with_the_kernels_own_ticks_of_steal(recording):
    stolen = stolen_time(recording)
    table = stolen_time_table(
        pd.DataFrame({"run": [0], "seconds": [2.04], "status": "ok", "steal_s": [0.02]}),
        stolen,
        cpus=2,
    ).iloc[0]
    assert (
        abs(table["account_ms"] - table["steal_ms"]) <= 10
    )  # each CPU's steal is counted in whole ticks of 10 ms
    assert (
        table["gaps_ms"] == pytest.approx(stolen["duration_ns"].sum() / 1e6)
        and table["gaps_ms"] <= table["account_ms"]
    )
    assert table["account_share"] == pytest.approx(table["account_ms"] / 20)
    assert np.isnan(
        stolen_time_table(
            pd.DataFrame({"run": [0], "seconds": [2.04], "steal_s": [0.0]}),
            stolen_time(recording, "ticks"),
            2,
        )["account_share"][0]
    )


def test_what_gaps_are_made_of_adds_up(recording, gaps):
    events, stolen = read_tracepoints(recording), stolen_time(recording)
    table = gap_causes(explained_gaps(gaps, events, stolen))
    parts = table[["kernel_ms", "stolen_ms", "edges_ms", "unexplained_ms"]].sum(axis=1)
    assert (parts >= table["gaps_ms"] - 1e-6).all() and (parts <= table["gaps_ms"] * 1.1).all()
    assert table["stolen_ms"].sum() == pytest.approx(stolen["duration_ns"].sum() / 1e6, rel=0.01)
    without = gap_causes(explained_gaps(gaps, events, stolen.iloc[:0]))
    assert (without["edges_ms"] + without["unexplained_ms"]).sum() > (
        table["edges_ms"] + table["unexplained_ms"]
    ).sum() + 15


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
            rows.append(
                (
                    now,
                    "sched_stat_runtime",
                    pid,
                    0,
                    pid,
                    now
                    - account_from
                    - paused(account_from, now)
                    - out
                    + int(random.integers(-300, 2000)),
                )
            )
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
    table = pd.DataFrame(
        rows, columns=["time_ns", "event", "pid", "prev_pid", "next_pid", "delta_ns"]
    ).assign(cpu=cpu, number=236)
    return table.astype({"event": "category"})


def random_pauses(seed, count=8, seconds=0.2):
    random = np.random.default_rng(seed)
    starts = np.sort(
        random.choice(np.arange(1, int(seconds * 50) - 1), count, replace=False)
    ) * 20_000_000 + random.integers(0, 4_000_000, count)
    return [
        (int(start), int(length))
        for start, length in zip(starts, random.integers(60_000, 14_000_000, count))
    ]


@pytest.mark.parametrize("seed", range(4))
def test_known_pauses_are_found_with_their_length_and_within_their_slack(seed):
    pauses = random_pauses(seed)
    stolen = stolen_from_tracepoints(made_up(pauses, seed=seed), [WORKLOAD], (0, 200_000_000))
    assert stolen["duration_ns"].sum() == pytest.approx(
        sum(length for _, length in pauses), rel=0.01
    )
    for begin, length in pauses:
        own = stolen[
            (stolen["start_ns"] - stolen["slack_ns"] - 20_000 <= begin)
            & (begin + length <= stolen["end_ns"] + stolen["slack_ns"] + 20_000)
        ]
        near = own[(own["duration_ns"] - length).abs() < 10_000]
        assert len(near) == 1 or stolen.loc[
            stolen["start_ns"].between(begin - 4_100_000, begin + length), "duration_ns"
        ].sum() == pytest.approx(length, abs=10_000)


@pytest.mark.parametrize("seed", range(4))
def test_late_ticks_see_no_more_than_there_was_and_their_share_estimates_it(seed):
    pauses = random_pauses(seed)
    ticks = stolen_from_tracepoints(
        made_up(pauses, seed=seed, with_account=False), [WORKLOAD], (0, 200_000_000)
    )
    assert ticks.attrs["method"] == "ticks"
    for gap in ticks.itertuples():
        begin, length = next(
            (begin, length)
            for begin, length in pauses
            if begin <= gap.end_ns <= begin + length + 20_000
        )
        assert gap.start_ns >= begin - 5000 and gap.duration_ns <= length + 10_000
    true_share = sum(length for _, length in pauses) / 200_000_000
    assert ticks.attrs["away_share"] == pytest.approx(
        true_share, abs=len(pauses) / 50
    )  # each pause is off by a tick at most


def test_a_cpu_that_never_pauses_has_no_gap():
    for with_account in (True, False):
        stolen = stolen_from_tracepoints(
            made_up([], with_account=with_account), [WORKLOAD], (0, 200_000_000)
        )
        assert stolen.empty and stolen.attrs["away_share"] == 0


@pytest.mark.parametrize("seed", range(3))
def test_interrupts_that_the_kernel_takes_out_of_the_account_are_no_pauses(seed):
    calm = stolen_from_tracepoints(
        made_up([], seed=seed, without_interrupts=True), [WORKLOAD], (0, 200_000_000)
    )
    assert calm.empty and calm.attrs["all_ns"] == 0
    pauses = random_pauses(seed)
    stolen = stolen_from_tracepoints(
        made_up(pauses, seed=seed, without_interrupts=True), [WORKLOAD], (0, 200_000_000)
    )
    assert stolen.attrs["all_ns"] == pytest.approx(sum(length for _, length in pauses), rel=0.01)


def test_pauses_of_others_are_not_counted_again():
    """Nobody of the workload ran: the time is in the other threads' own events already. But it was
    stolen.
    """
    pauses = random_pauses(1)
    stolen = stolen_from_tracepoints(made_up(pauses), [12345], (0, 200_000_000))
    assert stolen.empty and stolen.attrs["all_ns"] == pytest.approx(
        sum(length for _, length in pauses), rel=0.01
    )


def test_a_thread_that_was_away_without_a_report_is_not_taken_for_a_pause():
    """The kernel did not report the switches; records of another thread in between tell."""
    raw = made_up([])
    at = raw.index[(raw["event"] == "local_timer_entry")][10]
    silent = raw[
        ~(
            (raw["event"] == "sched_stat_runtime")
            & raw["time_ns"].between(raw["time_ns"][at], raw["time_ns"][at] + 3000)
        )
    ].copy()
    silent.loc[
        silent["time_ns"].between(raw["time_ns"][at], raw["time_ns"][at] + TICK_TAKES_NS), "pid"
    ] = KWORKER
    following = silent.index[
        (silent["event"] == "sched_stat_runtime")
        & (silent["time_ns"] > raw["time_ns"][at] + TICK_TAKES_NS)
    ][0]
    silent.loc[following, "delta_ns"] = (
        1_000_000  # the workload had only a part of the time since its last entry
    )
    assert stolen_from_tracepoints(silent, [WORKLOAD], (0, 200_000_000)).empty


def test_wrong_words_are_told():
    with pytest.raises(InputError, match="unknown method"):
        stolen_from_tracepoints(made_up([]), [WORKLOAD], (0, 1), method="guess")
    with pytest.raises(InputError, match="account was not recorded"):
        stolen_from_tracepoints(
            made_up([], with_account=False), [WORKLOAD], (0, 1), method="account"
        )


def test_without_any_recording_of_tracepoints_there_is_nothing_and_with_some_it_is_an_error(
    tmp_path, recording
):
    runs = pd.DataFrame({"run": [0, 1], "status": "ok"})
    assert stolen_times(tmp_path, runs).attrs["method"] == "not recorded"
    (tmp_path / "run-000000.tracepoints.gz").write_bytes(recording.read_bytes())
    with pytest.raises(InputError, match="run 1"):
        stolen_times(tmp_path, runs)
    stolen = stolen_times(tmp_path, runs.head(1))
    events = read_traces(tmp_path, runs.head(1))
    both = with_stolen_time(events, stolen)
    assert (
        len(both) == len(events) + len(stolen)
        and both["start_ns"].is_monotonic_increasing
        and both.attrs["hypervisor"] == "account"
    )
    assert with_stolen_time(events, stolen.iloc[:0]).equals(events)


@pytest.mark.skipif(
    doctor().capabilities.tracer != "tracepoints",
    reason="this machine does not trace by tracepoints (no tracefs, not root, or it has osnoise)",
)
def test_a_recording_of_this_machine_has_the_account(tmp_path, binaries):
    tracer = Tracer(tmp_path, source="tracepoints")
    row = run_once(detour_workload(0.1, tmp_path), [tracer])
    tracer.close()
    stolen = stolen_times(tmp_path, pd.DataFrame([row]))
    assert stolen.attrs["method"] == "account" and (stolen["duration_ns"] > 0).all(), (
        "one that interrupts cut in two may be shorter than what is looked for"
    )
    assert stolen["duration_ns"].sum() <= row["seconds"] * 1e9 * len(stolen.attrs["cpus"])


def test_the_rhythm_of_gaps_is_found():
    random, tick = np.random.default_rng(2), np.arange(50) * 10_000_000
    in_step = pd.concat(
        [
            pd.DataFrame({"cpu": cpu, "start_ns": tick + phase + random.integers(0, 20_000, 50)})
            for cpu, phase in ((0, 3_000_000), (1, 8_700_000))
        ]
    )
    assert rhythm_of(in_step) == (10.0, pytest.approx(1, abs=0.01))
    at_random = in_step.assign(start_ns=random.integers(0, 500_000_000, 100))
    assert rhythm_of(at_random)[1] < 0.4 and rhythm_of(in_step.iloc[:5])[1] == 0
    mixed = pd.concat([in_step, at_random.assign(start_ns=random.integers(0, 500_000_000, 100))])
    assert rhythm_of(mixed)[0] == 10.0 and 0.3 < rhythm_of(mixed)[1] < 0.7


@pytest.mark.skipif(
    doctor().capabilities.tracer != "tracepoints",
    reason="this machine does not trace by tracepoints (no tracefs, not root, or it has osnoise)",
)
def test_a_loop_beside_the_trace_shares_its_gaps_out(tmp_path, binaries):
    table = compare_loop_with_trace(tmp_path, 2, 0.1)
    parts = table[["kernel_ms", "stolen_ms", "edges_ms", "unexplained_ms"]]
    assert (
        len(table) == 2
        and (table["gaps"] > 0).all()
        and (table["loop_s"] > 0.1).all()
        and (parts >= 0).all(axis=None)
    )
    assert parts.sum(axis=1).to_numpy() == pytest.approx(table["gaps_ms"].to_numpy(), rel=0.2)
    pd.testing.assert_frame_equal(
        compare_loop_with_trace(tmp_path, 2, 0.1, recorded_only=True), table
    )
    assert (
        "no record explains" in loop_sentences(table)[0]
        and "not known" in loop_sentences(table.iloc[:0])[0]
    )


def test_what_no_recording_tells_is_unknown_and_not_none(tmp_path):
    runs = pd.DataFrame({"run": [0], "seconds": [2.0], "status": "ok", "steal_s": [0.04]})
    stolen = stolen_times(tmp_path, runs)
    table = stolen_time_table(runs, stolen, cpus=2)
    assert table["steal_ms"][0] == 40 and table[
        ["account_ms", "gaps", "gaps_ms", "late_ms"]
    ].isna().all(axis=None)
    told = stolen_time_sentence(table, stolen.attrs["method"])
    assert (
        "40 ms by the kernel's sum" in told
        and "nan" not in told
        and "only a recording of tracepoints" in told
    )
