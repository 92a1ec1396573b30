"""What a longer run alone does to a counter, told from what makes the run longer."""

import numpy as np
import pandas as pd
import pytest

from nbhelpers.attribution import explain
from nbhelpers.attribution.consequences import JUMP, LINE, UNKNOWN, PowerLaw
from nbhelpers.attribution.screening import candidate_columns


def slow_times(random, runs=160, factor=1.4):
    slow = random.random(runs) < 0.3
    return slow, random.normal(1, 0.02, runs) * np.where(slow, factor, 1)


def verdict_of(total, seconds, slow):
    rising = np.ones(1, bool)
    return PowerLaw(total[:, None], seconds, slow, rising).verdicts()[0]


def test_a_power_is_a_line_and_a_jump_is_none():
    random = np.random.default_rng(1)
    slow, seconds = slow_times(random)
    noise = random.normal(1, 0.02, 160)
    assert verdict_of(1e4 * seconds**1.15 * noise, seconds, slow) == LINE
    assert verdict_of(1e4 * np.where(slow, 1.2, 1) * noise, seconds, slow) == JUMP
    wild = random.normal(1, 0.8, 160).clip(0.1)
    assert verdict_of(1e4 * seconds * wild, seconds, slow) == UNKNOWN


def test_the_power_is_estimated():
    random = np.random.default_rng(2)
    slow, seconds = slow_times(random)
    total = 1e4 * seconds**1.15 * random.normal(1, 0.01, 160)
    law = PowerLaw(total[:, None], seconds, slow, np.ones(1, bool))
    assert law.across[0] == pytest.approx(1.15, abs=3 * law.across_error[0])
    assert law.within[0] == pytest.approx(1.15, abs=3 * law.within_error[0])


@pytest.mark.parametrize("rated", [True, False], ids=["with rates", "foreign table"])
@pytest.mark.parametrize("power", [0.6, 1.0, 1.15])
def test_what_grows_with_the_run_time_is_no_cause(rated, power):
    random = np.random.default_rng(3)
    _, seconds = slow_times(random)
    total = (1e5 * seconds**power * random.normal(1, 0.02, 160)).round()
    runs = pd.DataFrame({"seconds": seconds, "ticks": total, "other": random.normal(size=160)})
    if rated:
        runs["ticks_per_s"] = total / seconds
    columns, excluded = candidate_columns(runs)
    assert not {"ticks"} & set(columns) and excluded["ticks"]
    assert not explain(runs).found


def test_a_cause_that_rises_less_than_the_run_time_is_found_by_its_total():
    random = np.random.default_rng(4)
    slow, seconds = slow_times(random)
    total = (1e4 * np.where(slow, 1.2, 1) * random.normal(1, 0.02, 160)).round()
    runs = pd.DataFrame({"seconds": seconds, "faults": total, "faults_per_s": total / seconds})
    explanation = explain(runs.assign(other=random.normal(size=160)))
    assert explanation.factors.iloc[0]["factor"] == "faults"
    assert "leaves the line" in explanation.excluded["faults_per_s"]


TIMED = {
    "floor of 3 a second": lambda s, noise: np.floor(3 * s),
    "rounded": lambda s, noise: np.round(7 * s),
    "from a limit on": lambda s, noise: np.floor(50 * np.maximum(s - 1.2, 0)),
    "instructions a cycle": lambda s, noise: 2 * noise / s,
}
WITH_RATES = ("floor of 3 a second", "from a limit on")


@pytest.mark.parametrize("name", TIMED)
def test_what_the_run_time_alone_gives_is_no_cause_under_any_name(name):
    random = np.random.default_rng(5)
    _, seconds = slow_times(random)
    counter = TIMED[name](seconds, random.normal(1, 0.05, 160))
    runs = pd.DataFrame({"seconds": seconds, "x": counter, "other": random.normal(size=160)})
    if name in WITH_RATES:
        runs["x_per_s"] = counter / seconds
    columns, excluded = candidate_columns(runs)
    assert list(columns) == ["other"] and "a consequence" in excluded["x"]


def test_what_changes_in_step_with_the_classes_but_not_within_them_is_a_cause():
    random = np.random.default_rng(6)
    slow, seconds = slow_times(random, factor=1.3)
    runs = pd.DataFrame({"seconds": seconds, "other": random.normal(size=160)})
    runs["clock"] = np.where(slow, 2.3, 3.0) * random.normal(1, 0.01, 160)
    runs["events"] = random.poisson(np.where(slow, 60 * (seconds - 1), 0))
    assert {"clock", "events"} <= set(candidate_columns(runs, slow=slow)[0])


def test_the_largest_of_as_many_samples_as_a_run_is_long_is_no_cause():
    random = np.random.default_rng(7)
    slow, seconds = slow_times(random, factor=2)
    lengths = (100 * seconds).astype(int)
    largest = np.array([random.exponential(1, (length, 12)).max(axis=0) for length in lengths])
    runs = pd.DataFrame(largest).add_prefix("x").assign(seconds=seconds)
    assert not explain(runs).found
    heat = random.normal(60, 3, 160) + 9 * slow  # three standard deviations
    assert explain(runs.assign(heat=heat)).factors.iloc[0]["factor"] == "heat"
