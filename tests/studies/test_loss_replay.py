"""The calibration of replays of losses: a real one, what is corrected, and what that leaves."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from nbhelpers.empty import why_empty
from nbhelpers.injection import read_logs
from nbhelpers.injection.log import noise_ns
from nbhelpers.injection.rules import may_realtime
from nbhelpers.measurement import finished, recorded_runs
from nbhelpers.noise.losses import COLUMNS, loss_config
from nbhelpers.studies.loss_replay import (
    CalibratedReplay,
    calibrated_cases,
    calibrated_replay,
    corrected_scales,
    rounds_table,
    scaled_config,
)
from nbhelpers.studies.replayed_losses import Replayed, summarise_round
from nbhelpers.studies.worst_runs import WorstCase
from nbhelpers.workloads import nbody

MS = 1_000_000


def losses(factor=1.4, until_ms=200, cpus=(0, 1)):
    rows = [
        (cpu, start * MS, (start + 8) * MS, round(8 * MS * (1 - 1 / factor)), "slow_core")
        for cpu in cpus
        for start in range(0, until_ms, 8)
    ]
    rows += [(cpu, 30 * MS, 33 * MS, 3 * MS, "hypervisor") for cpu in cpus]
    return pd.DataFrame(rows, columns=list(COLUMNS))


CONFIG = loss_config(losses(), 200 * MS)


def replayed(took, reached=1.0):
    """A round of two replays in which events took `took` (by CPU) times what was asked."""
    index = pd.MultiIndex.from_product([(1, 3), (0, 1), range(3)], names=["run", "cpu", "interval"])
    lost = pd.DataFrame({"planned_ns": 4e6}, index=index)
    factor = index.get_level_values("cpu").map(took).to_numpy()
    lost["observed_ns"] = lost["planned_ns"] * factor
    keys = pd.MultiIndex.from_tuples([(0, 2), (1, 2)], names=["cpu", "class"])
    events = pd.DataFrame({"asked_ns": [24e6, 24e6]}, index=keys)
    events["observed_ns"] = events["asked_ns"] * [took[0], took[1]]
    return Replayed(lost, events, pd.Series([reached] * 2, index=[1, 3]), pd.DataFrame())


RUNS = pd.DataFrame({"cell": ["undisturbed", "replay"], "seconds": [0.1, 0.15]})


def test_a_cpu_that_took_too_much_is_corrected_alone():
    ones = scales_of(1.0, 1.0)
    corrected = corrected_scales(ones, replayed({0: 1.0, 1: 1.1})).set_index(["cpu", "class"])
    assert corrected.loc[(0, 2), "scale"] == pytest.approx(1)
    assert corrected.loc[(1, 2), "scale"] == pytest.approx(1 / 1.1)
    before, after = (
        config.events().groupby("cpu")["duration_ns"].sum()
        for config in (CONFIG, scaled_config(CONFIG, corrected.reset_index()))
    )
    changed = (CONFIG.events()["duration_ns"].between(5e5, 2e6 - 1)).groupby(CONFIG.events()["cpu"])
    assert changed.any().all(), "there are bursts of that length on each CPU"
    assert after[0] == before[0] and 0.9 < after[1] / before[1] < 0.95


def scales_of(*by_cpu):
    rows = [(cpu, number, by_cpu[cpu]) for cpu in (0, 1) for number in range(4)]
    return pd.DataFrame(rows, columns=["cpu", "class", "scale"])


def test_noise_that_met_an_idle_cpu_is_made_longer_but_not_without_end():
    corrected = corrected_scales(scales_of(1.0, 1.0), replayed({0: 1.0, 1: 1.0}, reached=0.9))
    assert corrected.loc[corrected["class"] == 2, "scale"].tolist() == pytest.approx([1 / 0.9] * 2)
    most = corrected_scales(scales_of(1.0, 1.0), replayed({0: 0.1, 1: 1.0}))
    assert most["scale"].max() == 1.25
    kept = corrected[corrected["class"] == 0]["scale"]
    assert (kept == 1).all(), "of a class without events nothing was learned"


def test_a_round_is_within_where_every_cpu_is():
    close = summarise_round(RUNS, replayed({0: 1.002, 1: 0.996}), 0.01, 0)
    assert close["within"] and close["worst_cpu"] == 1
    assert close["error"] == pytest.approx(-0.001) and close["planned_ms"] == 24
    sums = summarise_round(RUNS, replayed({0: 1.05, 1: 0.95}), 0.01, 0)
    assert not sums["within"] and sums["error"] == pytest.approx(0, abs=1e-9)
    unknown = summarise_round(RUNS, replayed({0: 1.0, 1: 1.0}, reached=np.nan), 0.01, 0)
    assert unknown["within"] and np.isnan(unknown["reached_share"])


def test_what_was_never_measured_is_not_called_calibrated():
    nothing = CalibratedReplay(
        CONFIG, CONFIG, scales_of(1.0, 1.0), pd.DataFrame(), pd.DataFrame(), 0.01
    )
    assert not nothing.is_within and "not calibrated" in nothing.sentences()[0]
    assert nothing.corrected(CONFIG).digest == CONFIG.digest


@pytest.mark.skipif(not may_realtime(50), reason="SCHED_FIFO is not permitted here")
@pytest.mark.flaky(reruns=2)
def test_a_real_replay_is_measured_and_its_recording_says_the_same(tmp_path, binaries):
    workload = nbody(1500, 12, threads=2)
    cases = [WorstCase(1, 7, 0.2, None, None), WorstCase(2, 9, 0.2, None, None, CONFIG)]
    corrected, found = calibrated_cases(tmp_path, workload, cases, runs=2, rounds=1)
    assert corrected[0] == cases[0] and found is not None and len(found.rounds) == 1
    last = found.rounds.iloc[0]
    assert last["runs"] == 2 and last["noise"] == CONFIG.digest
    assert last["planned_ms"] > 1 and last["error_low"] <= last["error"] <= last["error_high"]
    table = found.intervals
    assert table["planned_ms"].sum() == pytest.approx(last["planned_ms"], rel=0.5)
    again = calibrated_replay(tmp_path, workload, CONFIG, runs=2, rounds=1, recorded_only=True)
    pd.testing.assert_frame_equal(again.rounds, found.rounds)
    pd.testing.assert_frame_equal(again.intervals, found.intervals)
    assert again.injected.digest == found.injected.digest
    assert corrected[1] == replace(cases[1], losses=found.injected)
    assert found.sentences()[0].startswith("The replay took **")


@pytest.mark.skipif(not may_realtime(50), reason="SCHED_FIFO is not permitted here")
def test_replays_that_end_before_the_first_loss_leave_the_plan_as_it_is(tmp_path, binaries):
    table = losses()
    table[["start_ns", "end_ns"]] += 60_000 * MS
    late = loss_config(table, 60_200 * MS)
    short = nbody(500, 2, threads=2)  # ends a minute before the first loss
    cases = [WorstCase(1, 7, 60.2, None, None, late)]
    corrected, found = calibrated_cases(tmp_path, short, cases, runs=2, rounds=3)
    replays = finished(recorded_runs(tmp_path / late.digest)).query("cell == 'replay'")
    assert set(read_logs(tmp_path / late.digest, replays)["outcome"]) == {"not reached"}
    assert found is not None and found.rounds.empty and found.intervals.empty
    assert corrected[0].losses.digest == found.injected.digest == late.digest
    assert not found.is_within and "not calibrated" in found.sentences()[0]
    assert why_empty(rounds_table(found)) == "the replays ended before the run's first loss"


@pytest.mark.skipif(not may_realtime(50), reason="SCHED_FIFO is not permitted here")
@pytest.mark.flaky(reruns=2)
def test_what_was_observed_is_what_the_log_states(tmp_path, binaries):
    long = nbody(4000, 40, threads=2)  # its region lasts longer than the config
    found = calibrated_replay(tmp_path, long, CONFIG, runs=1, rounds=1)
    folder = tmp_path / CONFIG.digest
    log = read_logs(folder, pd.DataFrame({"run": [int(next(folder.glob("inj*")).stem[-6:])]}))
    done = log[log["outcome"].isin(["injected", "late"])]
    took_ms = noise_ns(done).sum() / 1e6
    assert found.intervals["observed_ms"].sum() == pytest.approx(took_ms, rel=0.1)
