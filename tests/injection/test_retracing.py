"""Re-traced replays: the matching against made-up records that are known, and real ones through the
whole chain.
"""

import numpy as np
import pandas as pd
import pytest

from nbhelpers.errors import InputError
from nbhelpers.injection import Rules, demonstration_noise, observe_loss, retrace
from nbhelpers.injection.log import OUTCOMES
from nbhelpers.injection.observed_loss import ObservedLoss
from nbhelpers.injection.retracing import compare_retraced
from nbhelpers.injection.rules import may_realtime
from nbhelpers.machine import doctor
from nbhelpers.measurement import Campaign, Cell, finished
from nbhelpers.noise import average_noise
from nbhelpers.tracing import Tracer, read_traces
from nbhelpers.tracing._table import noise_events
from nbhelpers.workloads import nbody

from .helpers import CPU_COUNT, make_config, table_of

pytestmark = pytest.mark.flaky(reruns=2)

US = 1000
LANE, ORDINARY = 501, 502


def logged(rows):
    """A log of rows with the times in µs."""
    names = "lane policy replay_start_ns replayed_ns start_ns end_ns cpu_time_ns"
    log = table_of(names, rows, US)
    return log.assign(
        run=0,
        cpu=0,
        event=range(len(log)),
        kind="irq",
        ran_on=0,
        taken_ns=log["replay_start_ns"],
        planned_start_ns=log["replay_start_ns"],
        planned_duration_ns=log["replayed_ns"],
        outcome=pd.Categorical(["injected"] * len(log), OUTCOMES),
    )


def seen(rows):
    """Rows (kind, pid, start_us, end_us, net_us)."""
    kind, pid, start, end, net = zip(*rows)
    return noise_events(
        {
            "run": 0,
            "cpu": np.zeros(len(rows)),
            "kind": list(kind),
            "source": ["x"] * len(rows),
            "start_ns": np.array(start) * US,
            "end_ns": np.array(end) * US,
            "duration_ns": np.array(net) * US,
            "policy": [""] * len(rows),
            "priority": np.zeros(len(rows)),
            "pid": pid,
            "interrupted": ["workload"] * len(rows),
        }
    )


RUN = pd.DataFrame(
    {
        "run": [0],
        "seconds": [0.01],
        "t0_ns": [1_000_000],
        "start_ns": [1_000_000],
        "end_ns": [11_000_000],
        "injector_pids": [f"500 {LANE} {ORDINARY}"],
    }
)
AVERAGE = pd.DataFrame(
    {"kind": ["irq"], "source": ["x"], "frequency_hz": [100.0], "duration_ns": [10_000.0]}
)


def test_each_event_is_found_in_the_trace():
    log = logged(
        [
            (
                0,
                "SCHED_FIFO",
                1000,
                100,
                1030,
                1095,
                65,
            ),  # woken by an interrupt at 1005, away until 1101
            (0, "SCHED_FIFO", 2000, 50, 2025, 2048, 23),
            (0, "SCHED_FIFO", 2050, 50, 2050, 2098, 48),  # one stretch for both
            (1, "SCHED_OTHER", 3000, 200, 3040, 3400, 205),  # in two pieces
            (0, "SCHED_FIFO", 5000, 70, 5020, 5068, 48),
        ]
    )  # nothing reported
    events = seen(
        [
            ("irq", -1, 1005, 1020, 15),
            ("thread", LANE, 1022, 1101, 79),
            ("irq", -1, 2004, 2016, 12),
            ("thread", LANE, 2018, 2104, 86),
            ("thread", ORDINARY, 3030, 3130, 100),
            ("thread", 9, 3130, 3300, 170),
            ("thread", ORDINARY, 3300, 3410, 110),
        ]
    )
    found = compare_retraced(RUN, log, events, AVERAGE)
    table = found.events.set_index("event")
    assert (
        table.loc[0, "start_error_us"] == 5
        and table.loc[0, "traced_ns"] == 96 * US
        and table.loc[0, "duration_error_us"] == -4
    )
    assert (
        table.loc[1, "traced_ns"] + table.loc[2, "traced_ns"] == 100 * US
        and table.loc[1, "start_error_us"] == 4
    )
    assert table.loc[2, "start_error_us"] == pytest.approx(0, abs=1.1)
    assert table.loc[3, "traced_ns"] == 210 * US and table.loc[3, "start_error_us"] == 30
    assert (
        np.isnan(table.loc[4, "traced_ns"])
        and found.errors["seen"].tolist() == [3, 1]
        and found.errors["events"].tolist() == [4, 1]
    )
    totals = found.totals
    assert totals.loc["injected ordinary", "expected_ms"] == 0.2 and totals.loc[
        "injected ordinary", "traced_ms"
    ] == pytest.approx(0.21)
    assert totals.loc["irq (not injected)", ["expected_ms", "traced_ms"]].tolist() == pytest.approx(
        [0.01, 0.027]
    )
    assert totals.loc["thread (not injected)", "traced_ms"] == pytest.approx(0.17), (
        "the injectors' threads are not among the others"
    )
    assert "4 of 5 injected events" in " ".join(found.sentences())


def test_without_a_kernel_tracer_the_gaps_of_a_loop_take_the_place_of_its_events():
    log = logged(
        [
            (0, "SCHED_OTHER", 1000, 100, 1000, 1100, 100),
            (0, "SCHED_OTHER", 3000, 200, 3010, 3215, 200),
            (0, "SCHED_OTHER", 6000, 50, 6000, 6050, 50),
        ]
    )  # of the last the loop lost nothing
    gaps = [
        ("hardware", -1, 990, 1105, 115),
        ("hardware", -1, 2000, 2030, 30),
        ("hardware", -1, 2990, 3100, 110),
        ("hardware", -1, 3150, 3240, 90),
    ]
    events = seen(gaps)
    events.attrs["tracer"] = "detours"
    average = AVERAGE.assign(kind="hardware", source="x")
    found = compare_retraced(RUN, log, events, average)
    table = found.events.set_index("event")
    assert table.loc[0, "traced_ns"] == 115 * US and table.loc[0, "start_error_us"] == -10
    assert table.loc[1, "traced_ns"] == 200 * US and table.loc[1, "start_error_us"] == -10
    assert np.isnan(table.loc[2, "traced_ns"]) and np.isnan(table.loc[2, "start_error_us"])
    assert found.totals.loc[
        "hardware (not injected)", ["expected_ms", "traced_ms"]
    ].tolist() == pytest.approx([0.01, 0.03])
    assert (
        found.witness == "a loop in the program's place"
        and found.witness in found.sentences()[0]
        and "kernel" not in found.sentences()[0]
    )


def test_a_replay_without_events_has_nothing_to_be_seen():
    for tracer in ("tracepoints", "detours"):
        events = seen([("irq", -1, 1005, 1020, 15)])
        events.attrs["tracer"] = tracer
        found = compare_retraced(RUN, logged([]).astype({"policy": str}), events, AVERAGE)
        assert (
            len(found.events) == 0
            and found.errors["events"].tolist() == [0, 0]
            and "no event was injected" in found.sentences()[0]
        )
        assert found.totals.loc["irq (not injected)", "traced_ms"] == pytest.approx(0.015)


@pytest.mark.parametrize("source", ["detours"])
def test_a_replay_is_seen_by_a_user_without_any_tracer(tmp_path, binaries, source):
    workload, config = nbody(2000, 20, threads=2), make_config(CONFIG_ROWS)
    tracer = Tracer(tmp_path / "calm/traces", source=source)
    calm = finished(
        Campaign(
            tmp_path / "calm",
            [Cell("traced", tracer.stand_in(workload), attachments=[tracer])],
            runs=2,
        ).run()
    )
    average = average_noise(read_traces(tmp_path / "calm/traces", calm), calm)
    found = retrace(
        tmp_path / "replayed",
        workload,
        config,
        average,
        runs=2,
        source=source,
        placement="origin",
        rules=Rules(shortest_us=0),
    )
    assert len(found.events) > 0 and found.events["traced_ns"].notna().mean() > 0.5
    again = retrace(tmp_path / "replayed", workload, config, average, recorded_only=True, runs=2)
    pd.testing.assert_frame_equal(again.events, found.events)


needs_tracing = pytest.mark.skipif(
    doctor().capabilities.tracer == "detours" or not may_realtime(51),
    reason="this machine cannot trace, or permits no SCHED_FIFO",
)
CONFIG_ROWS = [
    (cpu, kind, 5 + 12 * at + 4 * cpu, length)
    for cpu in range(CPU_COUNT)
    for at, (kind, length) in enumerate([("irq", 0.5), ("irq", 2), ("thread", 1), ("irq", 4)])
]


@pytest.mark.long
@needs_tracing
def test_the_kernel_sees_the_replay_and_does_not_take_it_for_noise_of_others(tmp_path, binaries):
    workload = nbody(2000, 20, threads=2)
    tracer = Tracer(tmp_path / "calm/traces")
    calm = finished(
        Campaign(tmp_path / "calm", [Cell("traced", workload, attachments=[tracer])], runs=2).run()
    )
    average = average_noise(read_traces(tmp_path / "calm/traces", calm), calm)
    config = make_config(CONFIG_ROWS)
    options = {"runs": 2, "placement": "origin", "rules": Rules(shortest_us=0)}
    found = retrace(tmp_path / "replayed", workload, config, average, **options)
    injected = found.totals.loc[found.totals.index.str.startswith("injected")]
    assert len(found.events) > 0 and found.events["traced_ns"].notna().mean() > 0.8
    realtime = found.events[found.events["realtime"] & found.events["traced_ns"].notna()]
    assert (realtime["traced_ns"] / realtime["replayed_ns"]).median() == pytest.approx(1, abs=0.2)
    assert injected["traced_ms"].sum() > 0.5 * injected["expected_ms"].sum()
    again = retrace(tmp_path / "replayed", workload, config, average, recorded_only=True, runs=2)
    pd.testing.assert_frame_equal(again.events, found.events)


@pytest.mark.skipif(not may_realtime(51), reason="SCHED_FIFO is not permitted here")
def test_what_a_shielded_loop_lost_is_what_was_injected(tmp_path, binaries):
    config = demonstration_noise(range(CPU_COUNT))
    observed = observe_loss(tmp_path, config, shielded=True, rules=Rules(shortest_us=0))
    table = observed.table()
    seen = table.dropna(subset="observed_us")
    assert len(table) == 10 * CPU_COUNT and len(seen) >= 8 * CPU_COUNT
    assert (seen["observed_us"] >= seen["planned_us"] - 30).all(), (
        "the loop is without its CPU while an event has it"
    )
    assert (seen["observed_us"] - seen["planned_us"]).median() < 100
    assert observed.drawn["took_ns"].sum() == pytest.approx(
        config.events()["duration_ns"].sum(), rel=0.2
    )
    pd.testing.assert_frame_equal(
        observe_loss(tmp_path, config, shielded=True, recorded_only=True).table(),
        table,
        check_categorical=False,
    )
    with pytest.raises(InputError, match="shielded"):
        observe_loss(tmp_path, make_config([(0, "thread", 1, 1)]), shielded=True)


def test_the_time_of_a_gap_is_shared_by_the_events_in_it():
    log = logged(
        [
            (0, "SCHED_FIFO", 1000, 100, 1000, 1100, 100),
            (0, "SCHED_FIFO", 1100, 300, 1100, 1400, 300),
            (0, "SCHED_FIFO", 3000, 50, 3000, 3050, 50),
        ]
    )
    gaps = pd.DataFrame(
        {
            "cpu": 0,
            "start_ns": [500 * US, 999 * US, 2000 * US],
            "end_ns": [600 * US, 1407 * US, 2010 * US],
        }
    )
    observed = ObservedLoss(
        log, gaps.assign(duration_ns=gaps["end_ns"] - gaps["start_ns"]), pd.Series(dtype=object)
    ).table()
    assert observed["observed_us"].tolist() == pytest.approx([102, 306, 0])
    late = ObservedLoss(
        log,
        gaps.assign(duration_ns=gaps["end_ns"] - gaps["start_ns"]),
        pd.Series(dtype=object),
        {0: (1_050 * US, 3_050 * US)},
    ).table()
    assert late["observed_us"].tolist() == pytest.approx([np.nan, 306, 0], nan_ok=True), (
        "what the loop did not look at is unknown"
    )
