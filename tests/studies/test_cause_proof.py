"""A cause is claimed only where its dose shows in the run time and a mitigation takes it away, or
one where the other cannot be done.
"""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from nbhelpers.injection.rules import may_realtime
from nbhelpers.measurement import measure, run_once
from nbhelpers.mitigation import factors
from nbhelpers.mitigation.loop import METRICS
from nbhelpers.mitigation.trials import HARMS, NO_EFFECT, NOT_AGAIN, SEEMS, TOO_FEW, judge_trials
from nbhelpers.studies.cause_proof import (
    ASSOCIATED,
    CANNOT_BE_REMOVED,
    CAUSE,
    CauseProof,
    judge_doses,
    prove_cause,
    removal,
    suspect,
    verdict_of,
)
from nbhelpers.studies.graded_injection import dose_cells, dose_names
from nbhelpers.workloads import Workload, binary_folder

NAMES = ["sham", "1 unit", "2 units", "3 units"]


def dosed(effects, rounds=12, spread=0.03, seed=1, counter=(0, 1, 2, 3)) -> pd.DataFrame:
    """Runs of the sham and three doses, each with its effect and its count."""
    random, size = np.random.default_rng(seed), rounds * len(NAMES)
    runs = pd.DataFrame({"cell": NAMES * rounds, "round": np.repeat(range(rounds), len(NAMES))})
    runs["seconds"] = (1 + np.tile(effects, rounds)) * random.lognormal(0, spread, size)
    runs["minor_faults"] = 100 + 50 * np.tile(counter, rounds) + random.integers(0, 10, size)
    return runs


def response(effects, **options):
    return judge_doses(dosed(effects, **options), NAMES, ["vm_pgfault", "minor_faults_per_s"])


def test_a_dose_response_needs_the_dose_in_the_run_time_and_in_the_counter():
    found = response((0, 0.05, 0.1, 0.2))
    assert found.holds and "the more the slower" in found.sentence
    assert found.doses["dose"].tolist() == NAMES
    assert found.doses["low"][3] < 1.2 < found.doses["high"][3]
    assert not response((0, 0, 0, 0)).holds
    assert not response((0.2, 0.1, 0.05, 0)).holds
    assert not response((0, 0.5, 0.05, 0.4)).holds  # more is not slower
    flat = response((0, 0.05, 0.1, 0.2), counter=(0, 0, 0, 0))
    assert not flat.holds and "does not raise the counters" in flat.sentence


@pytest.mark.long
def test_without_an_effect_a_dose_response_is_rarely_seen():
    found = [response((0, 0, 0, 0), seed=seed, rounds=8, spread=0.2) for seed in range(200)]
    assert sum(one.holds for one in found) <= 10


@pytest.mark.parametrize(
    "injected, removed, verdict",
    [
        (True, True, CAUSE),
        (True, None, CAUSE),
        (None, True, CAUSE),
        (True, False, ASSOCIATED),
        (False, True, ASSOCIATED),
        (None, None, ASSOCIATED),
        (None, False, ASSOCIATED),
    ],
)
def test_both_halves_or_one_where_the_other_cannot_be_done(injected, removed, verdict):
    assert verdict_of(injected, removed) == verdict


def reported(factor: str, columns: tuple[str, ...] = (), tried=None, helped=(), again=None):
    """What the proof reads of a report."""
    index = pd.Index([factor], name="factor")
    return SimpleNamespace(
        factors=pd.DataFrame({"columns": [columns]}, index=index),
        tried=pd.DataFrame(tried or {"factor": [], "verdict": []}, index=list(again or {})),
        helped=list(helped),
        not_tried=pd.DataFrame({"name": [], "reason": [], "fix": []}),
        again=again or {},
        baseline=None,
    )


def test_what_is_suspected_is_what_a_confirmed_mitigation_is_against():
    pair = tuple(
        pd.DataFrame({"seconds": mean + 0.01 * np.arange(12) % 3, "round": range(12)})
        for mean in (1.0, 0.8)
    )
    again = judge_trials({"jemalloc": pair})
    tried = {"factor": ["page-faults"], "verdict": ["helps"]}
    report = reported("softirqs", tried=tried, helped=["jemalloc"], again=again)
    assert suspect(report) == "softirqs"  # page faults were not found
    report = reported("page-faults", tried=tried, helped=["jemalloc"], again=again)
    assert suspect(report) == "page-faults"
    assert removal(report, "page-faults") == (True, ("jemalloc", again["jemalloc"]), "")
    assert removal(report, "softirqs") == (None, None, CANNOT_BE_REMOVED)
    left = {"name": "Interrupts away", "reason": "the budget", "fix": "a larger budget"}
    report.not_tried = pd.DataFrame([left], index=["interrupts-away"])
    untried = "Interrupts away was not tried (a larger budget)"
    assert removal(report, "softirqs") == (None, None, untried)
    assert suspect(SimpleNamespace(helped=[], factors=pd.DataFrame(), tried=None)) is None


@pytest.mark.parametrize(
    "verdict, taken_away",
    [(TOO_FEW, None), (SEEMS, None), (NO_EFFECT, False), (HARMS, False), (NOT_AGAIN, False)],
)
def test_an_open_trial_does_not_count_as_one_that_does_not_help(verdict, taken_away):
    tried = {"factor": 2 * ["page-faults"], "verdict": [NO_EFFECT, verdict]}
    report = reported("page-faults", tried=tried, again={"jemalloc": None, "mimalloc": None})
    found, removed, reason = removal(report, "page-faults")
    assert found is taken_away and removed is None
    assert ("helps" in reason) is (taken_away is False)
    doses = response((0, 0.05, 0.1, 0.2))
    proof = CauseProof("page-faults", verdict_of(True, found), doses, not_removed=reason)
    assert proof.verdict == (CAUSE if found is None else ASSOCIATED)
    assert ("by its doses alone" in proof.sentence) is (found is None)


def test_what_nobody_can_inject_or_remove_stays_associated(tmp_path):
    proof = prove_cause(reported("program-paths"), Workload("w", "external", ("true",)), tmp_path)
    assert proof.verdict == ASSOCIATED and "nobody knows yet" in proof.sentence
    assert "associated" in proof.sentence and CANNOT_BE_REMOVED in proof.sentence
    missing = prove_cause(reported("page-faults"), None, tmp_path, recorded_only=True)
    assert missing.verdict == ASSOCIATED  # what was not recorded could be done


def test_every_factor_with_doses_names_a_sham_and_each_dose():
    for factor in filter(lambda one: one.inject, factors().values()):
        assert len(set(dose_names(factor))) == len(factor.inject["doses"]) + 1 >= 4


def victim(*words: str) -> Workload:
    command = (str(binary_folder() / "victim"), *words, "0")
    return Workload("v", "external", command, start="mark")


def test_the_doses_of_a_variable_reach_the_program(binaries):
    cells = dose_cells(factors()["page-faults"], victim("allocate", "20"), 2.0, 1.0)
    faults = [run_once(cell.workload, cell.attachments)["minor_faults"] for cell in cells]
    assert faults[-1] > 1.5 * faults[0]


@pytest.mark.alone  # beside others it may be too busy here to inject
@pytest.mark.long
@pytest.mark.parametrize(
    "name, column",
    [("cpu-contention", "process_runqueue_wait_ns"), ("timer-interrupts", "irq_LOC")],
)
def test_injected_for_real_the_dose_shows(binaries, tmp_path, name, column, nothing_left):
    program = victim("compute", "6000")
    report = reported(name, (column,))
    report.baseline = measure(program, runs=5, metrics=list(METRICS))
    if column not in report.baseline:
        pytest.skip(f"this machine, or this user, doesn't count {column}")
    proof = prove_cause(report, program, tmp_path, seconds=8)
    if proof.response is None and not may_realtime(50):
        pytest.skip(proof.not_injected)
    assert proof.response is not None, proof.not_injected
    assert proof.response.shown[0].verdict == "reproduced", proof.sentence
    assert proof.response.slower.effect > 0
