"""The study of natural worst runs: what is replayed of them, how their excess is split, and one
real case.
"""

import numpy as np
import pandas as pd
import pytest

from nbhelpers.errors import InputError
from nbhelpers.measurement import finished
from nbhelpers.studies.worst_losses import LOSSES, gate_sentences
from nbhelpers.studies.worst_runs import (
    BOTH,
    KERNEL,
    UNDISTURBED,
    WorstCase,
    describe_worst,
    worst_campaign,
    worst_cases,
    worst_sentences,
    worst_table,
)
from nbhelpers.tracing._table import noise_events
from nbhelpers.workloads import nbody

MS = 1_000_000


def noise(rows):
    """Rows (run, kind, start_ms, length_ms)."""
    run, kind, start, length = (
        (np.array(column) for column in zip(*rows))
        if rows
        else ([], [], np.array([]), np.array([]))
    )
    start, length = np.asarray(start, float), np.asarray(length, float)
    return noise_events(
        {
            "run": run,
            "cpu": np.zeros(len(start)),
            "kind": list(kind),
            "source": list(kind),
            "start_ns": start * MS,
            "end_ns": (start + length) * MS,
            "duration_ns": length * MS,
            "policy": [""] * len(start),
            "priority": np.zeros(len(start)),
            "pid": np.zeros(len(start)),
            "interrupted": ["workload"] * len(start),
        }
    )


RUNS = pd.DataFrame(
    {"run": range(6), "seconds": [0.10, 0.13, 0.10, 0.11, 0.10, 0.10], "status": "ok"}
)
EVENTS = noise(
    [(run, "irq", 10, 1) for run in range(6)] + [(1, "irq", 30, 8), (1, "thread", 50, 3)]
)
STOLEN = noise([(1, "hardware", 70, 12), (3, "hardware", 20, 9)])


def test_a_case_has_what_its_run_suffered_beyond_the_others():
    first, second = worst_cases(RUNS, EVENTS, STOLEN, 2)
    assert (first.run, second.run) == (1, 3)
    assert sorted(first.kernel.events()["duration_ns"] // MS) == [
        3,
        8,
    ], "the millisecond that every run had is not in it"
    hardware = first.both.events().query("kind == 'hardware'")
    assert hardware["duration_ns"].tolist() == [12 * MS] and hardware["policy"].tolist() == [
        "SCHED_FIFO"
    ]
    assert second.kernel is None and set(second.both.events()["kind"]) == {"hardware"}
    table = describe_worst([first, second])
    assert table["kernel_ms"].tolist() == [11, 0] and table["hypervisor_ms"].tolist() == [12, 9]
    assert worst_cases(RUNS, EVENTS, STOLEN.iloc[:0], 1)[0].both is None
    with pytest.raises(InputError, match="6 worst runs of 6"):
        worst_cases(RUNS, EVENTS, STOLEN, 6)


def test_what_only_a_loop_saw_is_not_taken_for_the_hypervisors():
    detours = noise([(run, "hardware", 10, 1) for run in range(6)] + [(1, "hardware", 30, 8)])
    case = worst_cases(RUNS, detours, STOLEN.iloc[:0], 1)[0]
    assert case.both is None and len(case.kernel.events()) == 1
    table = worst_table(measured(calm=0.1, kernel=0.11), [case])
    told = " ".join(worst_sentences(table, "detours"))
    assert "by replayed detours of a loop" in told and "kernel events" not in told


def measured(**cells):
    random = np.random.default_rng(0)
    names = {
        "calm": UNDISTURBED,
        "kernel": f"{KERNEL} 1",
        "both": f"{BOTH} 1",
        "both_2": f"{BOTH} 2",
        "losses": f"{LOSSES} 1",
        "losses_2": f"{LOSSES} 2",
    }
    return pd.concat(
        [
            pd.DataFrame({"cell": names[name], "seconds": random.normal(mean, 0.002, 100)})
            for name, mean in cells.items()
        ]
    )


def test_the_excess_is_split_and_the_parts_add_up():
    cases = worst_cases(RUNS, EVENTS, STOLEN, 2)
    table = worst_table(
        measured(calm=0.1, kernel=0.111, both=0.123, both_2=0.109), cases
    ).set_index("case")
    parts = table[["kernel_ms", "hypervisor_ms", "unexplained_ms"]].sum(axis=1)
    assert np.allclose(parts, table["excess_ms"])
    assert table.loc[1, ["kernel_ms", "hypervisor_ms", "unexplained_ms"]].tolist() == pytest.approx(
        [11, 12, 7], abs=1
    )
    assert table.loc[2, ["kernel_ms", "hypervisor_ms", "unexplained_ms"]].tolist() == pytest.approx(
        [0, 9, 1], abs=1
    )
    assert (
        table.loc[1, "ratio"] == pytest.approx(0.123 / 0.13, abs=0.01)
        and table.loc[1, "ratio_low"] < table.loc[1, "ratio"] < table.loc[1, "ratio_high"]
    )
    assert (
        table.loc[1, "kernel_ms_low"] < 11 < table.loc[1, "kernel_ms_high"]
        and table.loc[2, "kernel_ms_low"] == table.loc[2, "kernel_ms_high"] == 0
    )
    told = " ".join(worst_sentences(table.reset_index()))
    assert "2 slowest runs" in told and "by replayed hypervisor gaps" in told


def test_a_case_with_nothing_to_replay_is_all_unexplained():
    table = worst_table(measured(calm=0.1), [WorstCase(1, 5, 0.12, None, None)])
    assert (
        table["unexplained_ms"][0] == pytest.approx(20, abs=1)
        and table["kernel_ms"][0] == table["hypervisor_ms"][0] == 0
    )


def lost(run, seconds, cause="slow_core", cpus=(0, 1)):
    """So many seconds on each CPU, spread over 0.1 s."""
    rows = [
        (run, cpu, start * MS, (start + 10) * MS, round(seconds * 1e8), cause)
        for cpu in cpus
        for start in range(0, 100, 10)
    ]
    return pd.DataFrame(rows, columns=["run", "cpu", "start_ns", "end_ns", "lost_ns", "cause"])


LOSSES_TABLE = pd.concat([lost(1, 0.006), lost(3, 0.009), lost(0, 0.001)], ignore_index=True)


def test_a_run_that_can_be_replayed_stands_beside_the_worst_by_time():
    first, second = worst_cases(RUNS, EVENTS, STOLEN, 1, losses=LOSSES_TABLE)
    assert (first.run, first.chosen, second.run, second.chosen) == (1, "by time", 3, "replayable")
    assert first.replayable_share == pytest.approx(0.2)
    assert second.replayable_share == pytest.approx(0.9)
    assert first.losses.events()["duration_ns"].sum() == 12 * MS
    assert first.losses.provenance["run"] == 1 and first.losses.window_ns == 130 * MS
    plain = worst_cases(RUNS, EVENTS, STOLEN, 1)[0]
    assert (first.kernel.digest, first.both.digest) == (plain.kernel.digest, plain.both.digest)
    table = describe_worst([first, second]).set_index("case")
    assert table["slow_core_lost_ms"].tolist() == pytest.approx([6, 9])
    assert table["unexplained_lost_ms"].tolist() == pytest.approx([24, 1])
    gate = gate_sentences([first, second, plain])
    assert len(gate) == 2 and gate[1].startswith("Case 2 (run 3, 0.110 s, slow and replayable): Of")
    assert np.isnan(plain.replayable_share) and "chosen" not in describe_worst([plain])


def test_where_nothing_can_be_injected_only_the_worst_by_time_is_left():
    cases = worst_cases(RUNS, EVENTS, STOLEN, 1, losses=LOSSES_TABLE, realtime=False)
    assert len(cases) == 1 and cases[0].losses is None and cases[0].replayable_share == 0
    nothing = worst_cases(RUNS, EVENTS, STOLEN, 2, losses=LOSSES_TABLE.iloc[:0])
    assert [case.run for case in nothing] == [1, 3] and nothing[1].losses is None


def test_the_replay_of_losses_is_judged_where_enough_can_be_replayed():
    cases = worst_cases(RUNS, EVENTS, STOLEN, 1, losses=LOSSES_TABLE)
    runs = pd.concat(
        [
            measured(calm=0.1, kernel=0.111, both=0.123, both_2=0.109),
            measured(losses=0.106, losses_2=0.109),
        ]
    )
    table = worst_table(runs, cases).set_index("case")
    assert table["losses_ms"].tolist() == pytest.approx([6, 9], abs=1)
    assert table["missing_ms"].tolist() == pytest.approx([24, 1], abs=1)
    assert table.loc[2, "ratio_losses_low"] < 0.109 / 0.11 < table.loc[2, "ratio_losses_high"]
    said = worst_sentences(table.reset_index())
    assert said[0].startswith("Mostly **an unknown cause**: the 2 slow runs took **")
    assert "Their account has 25.0 ms of that cause" in said[0]
    assert said[1].startswith("Of the excess of the 2 cases, 20% to 90% can be replayed here")
    assert said[2].startswith("In **1 of 1** such cases the replay of what was lost came")
    plain = worst_table(runs, worst_cases(RUNS, EVENTS, STOLEN, 1))
    assert "losses_ms" not in plain and len(worst_sentences(plain)) == 3


@pytest.mark.long
def test_real_replays_of_both_parts_interleaved_with_the_undisturbed_program(tmp_path, binaries):
    cases = worst_cases(RUNS, EVENTS, STOLEN, 1)
    campaign = worst_campaign(tmp_path, nbody(1000, 10, threads=2), cases, runs=2)
    runs = finished(campaign.run())
    assert runs.groupby("cell").size().to_dict() == {
        UNDISTURBED: 2,
        f"{KERNEL} 1": 2,
        f"{BOTH} 1": 2,
    }
    assert set(runs["noise"]) == {"none", cases[0].kernel.digest, cases[0].both.digest}
    again = worst_campaign(tmp_path, nbody(1000, 10, threads=2), cases, runs=2, recorded_only=True)
    assert len(finished(again.run())) == 6 and len(worst_table(runs, cases)) == 1
