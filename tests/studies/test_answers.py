"""Pages answer their titles in their first sentence: with a number, or that they cannot tell."""

import numpy as np
import pandas as pd
import pytest

from nbhelpers.attribution import explain
from nbhelpers.noise import NoiseConfig
from nbhelpers.studies.cui import variability_answer
from nbhelpers.studies.findings import CONTRADICTED, SUPPORTED, UNSEEN
from nbhelpers.studies.sentences import counters_answer, delta_answer

TRACED = pd.DataFrame({"run": range(4), "seconds": [0.09, 0.09, 0.09, 0.13]})  # mean 0.1


def delta(seconds: float, **milliseconds: float) -> pd.DataFrame:
    """One event of each source, one after the other, above average noise of run 3."""
    durations_ns = np.array([int(1e6 * value) for value in milliseconds.values()], "int64")
    starts_ns = np.cumsum(durations_ns) - durations_ns
    events = pd.DataFrame(
        {
            "run": 3,
            "cpu": 0,
            "kind": "thread",
            "source": list(milliseconds),
            "start_ns": starts_ns,
            "duration_ns": durations_ns,
            "end_ns": starts_ns + durations_ns,
            "policy": "SCHED_OTHER",
            "priority": 0,
            "pid": 1,
            "interrupted": "workload",
        }
    )
    events.attrs |= {"run": 3, "seconds": seconds}
    return events


def answer(events: pd.DataFrame) -> str:
    return delta_answer(events, TRACED, NoiseConfig.from_events(events))


def test_the_source_that_took_most_is_the_answer():
    said = answer(delta(0.13, bash=5, python=15, sed=4))
    assert said == (
        "Above all **python** (thread): **15.0 of 24.0 ms** of noise above average in run **3**,"
        " 30.0 ms slower than the mean of 4 traced runs; written down as **3 events** of a noise"
        " config."
    )


def test_noise_that_sums_to_less_than_half_of_the_time_lost_is_no_answer():
    said = answer(delta(0.13, bash=14))
    assert said.startswith("Cannot tell here: run **3** took **30.0 ms** longer")
    assert said.endswith("sums to **14.0 ms** only.")
    assert answer(delta(0.13, bash=16)).startswith("Above all **bash**")


def test_nothing_made_a_run_slow_that_was_not():
    assert answer(delta(0.09, bash=20)) == (
        "Nothing: run **3** took 10.0 ms less than the mean of 4 traced runs."
    )


@pytest.fixture(scope="module")
def runs():
    """A quarter of the runs is slow and has more page faults; nothing else differs."""
    random = np.random.default_rng(1)
    faults = np.where(np.arange(60) % 4 == 0, 900, 100) + random.integers(0, 50, 60)
    seconds = 1 + faults / 1000 + random.normal(0, 0.01, 60)
    return pd.DataFrame(
        {
            "seconds": seconds,
            "page_faults": faults,
            "migrations": random.integers(0, 50, 60),
        }
    )


def test_the_first_group_of_counters_is_the_answer_or_none_or_that_nobody_can_tell(runs):
    searches = {
        "these runs": explain(runs[["seconds", "page_faults"]], seed=1),
        "others": explain(runs[["seconds", "migrations"]], seed=1),
        "few": explain(runs.head(6), seed=1),
    }
    named, others, few = counters_answer(searches).removesuffix(".").split("; ")
    p_value = searches["these runs"].p_value
    assert named == (
        f"In these runs **page_faults**, higher in slow runs (p = {p_value:.3f}, n = 60)"
    )
    assert others == f"in others none (p = {searches['others'].p_value:.3f}, n = 60)"
    assert few == "in few cannot tell here (n = 6)"


def test_counters_that_move_with_the_first_are_counted(runs):
    together = explain(runs[["seconds", "page_faults"]].assign(twin=runs["page_faults"] * 2))
    assert " and 1 that move with it, higher" in counters_answer({"runs": together})


def judged(*verdicts: str) -> pd.DataFrame:
    findings = ["more threads vary more (CV, TP / one thread)", "pinned threads vary less (CV)"]
    rows = zip([*findings, "a schedule costs more (time)"], [*verdicts, SUPPORTED], (30.04, -2, 9))
    return pd.DataFrame(rows, columns=["finding", "verdict", "effect_percent"])


VARIABILITY = pd.DataFrame(
    [("barrier", 10.0, 4.0), ("static_1", 30.0, 8.0), ("lock", 12.0, 6.0), ("copy", 90.0, 80.0)],
    columns=["benchmark", "within_cv_percent", "between_cv_percent"],
)


def test_openmps_operations_vary_by_their_median_and_with_what_is_decided():
    assert variability_answer(VARIABILITY, judged(SUPPORTED, CONTRADICTED)) == (
        "By **12.0 %** within a run and **6.0 %** from run to run (median coefficients of"
        " variation, n = 3 cells); supported here: more threads vary more (+30.0 %); contradicted"
        " here: pinned threads vary less (-2.0 %)."
    )


def test_what_the_runs_do_not_decide_they_cannot_tell():
    said = variability_answer(VARIABILITY, judged(UNSEEN, UNSEEN))
    assert said.endswith("cannot tell here with what (none of 2 findings is decided).")
    one_run = VARIABILITY.assign(between_cv_percent=np.nan)
    said = variability_answer(one_run, judged(UNSEEN, UNSEEN))
    assert "within a run and cannot tell here how much from run to run (" in said
    only_kernels = VARIABILITY.tail(1)
    assert variability_answer(only_kernels, judged(UNSEEN, UNSEEN)).startswith("Cannot tell here")
