"""Each mitigation has a proof, and the proof fails where the effect is absent: on the program that
the mitigation is meant for, run without it, and on one that it means nothing to, run with it.
"""

import os
import subprocess
import time
from contextlib import nullcontext

import pytest

from nbhelpers.errors import Unavailable
from nbhelpers.measurement import run_once
from nbhelpers.mitigation import Treatment, mitigations, treat_workload, verification
from nbhelpers.mitigation._kinds import KINDS, OfAnExtra
from nbhelpers.mitigation.action import Action, Momentary, Prepared
from nbhelpers.mitigation.program import Environment, Preload, find_library
from nbhelpers.mitigation.settings import InterruptsAway
from nbhelpers.mitigation.treatment import NOT_IN_EFFECT, NOT_PROVEN
from nbhelpers.mitigation.verification import proof_of
from nbhelpers.workloads import program

from .programs import OPENMP, Looking, built, suitable

ABSENT = (NOT_IN_EFFECT, NOT_PROVEN)
ACTING = {name: one for name, one in mitigations().items() if one.automated}
FOR_SOME = {*OPENMP, "malloc-arenas", "thp-always"}


def looked_at(name: str) -> dict:
    """A run of the suitable program without the mitigation, but with its proof."""
    workload = suitable(name)
    actions = [Looking(action.settled(workload)) for action in ACTING[name].actions]
    return run_once(workload, (Treatment(name, actions, workload),))


@pytest.mark.parametrize("name", sorted(ACTING))
def test_the_proof_fails_where_nothing_was_done(name, binaries):
    if not (answer := ACTING[name].possible(suitable(name))):
        pytest.skip(answer.reason)
    row = looked_at(name)
    assert row["status"] in ABSENT and row["message"].startswith(f"{name}: "), row["message"]


@pytest.mark.parametrize("name", sorted(FOR_SOME))
def test_a_program_that_it_means_nothing_to_is_not_counted(name, binaries):
    try:
        treated = treat_workload(name, program([built("plain")]))
    except Unavailable:
        return
    row = run_once(*treated)
    assert row["status"] in ABSENT, row["message"]


@pytest.mark.parametrize("library", ["jemalloc", "tcmalloc_minimal", "mimalloc"])
def test_an_allocator_beside_a_malloc_of_the_programs_own_is_not_counted(library, binaries):
    if find_library(library) is None:
        pytest.skip(f"{library} is not installed")
    row = run_once(*treat_workload([Preload(library)], program([built("own")])))
    assert row["status"] == NOT_IN_EFFECT and "malloc of its own" in row["message"]


def test_every_kind_of_action_has_a_proof_of_its_own():
    """None inherits the answer that nothing shows it, and each variable is followed by somebody."""
    for one in ACTING.values():
        for action in one.actions:
            assert type(action).check is not Action.check or isinstance(action, OfAnExtra), one.id
            assert "doctor" not in action.possible().fix, "the doctor itself shows it"
            if isinstance(action, Environment):
                assert all(map(proof_of, action.variables)), one.id
    assert len(KINDS) >= len({kind for one in ACTING.values() for kind in one.kinds})


def test_a_variable_that_nobody_is_known_to_follow_is_not_proven(binaries):
    row = run_once(*treat_workload([Environment({"MINE": "1"})], program([built("plain")])))
    assert row["status"] == NOT_PROVEN and "anybody follows MINE" in row["message"]


@pytest.mark.parametrize("name, status", [("GOMP_SPINCOUNT", "ok"), ("KMP_BLOCKTIME", NOT_PROVEN)])
def test_a_variable_of_openmp_is_proven_by_the_runtime_that_follows_it(name, status, binaries):
    """GCC's runtime prints the first and has never heard of the second."""
    action = Environment({name: "1000"}, needs="openmp")
    row = run_once(*treat_workload([action], suitable("openmp-passive")))
    assert row["status"] == status, row["message"]


def test_what_was_done_before_counts_for_that_run_only():
    action = ACTING["flush-first"].actions[0]
    assert isinstance(action, Prepared) and action.check(os.getpid())
    with action.held(program("true")):
        assert action.check(os.getpid()) is None
    assert action.check(os.getpid())


# ---- what this machine may not have, on trees of files -------------------------------------------


def test_an_interrupt_that_is_not_moved_shows(monkeypatch):
    action = InterruptsAway()
    counts = [{"24": 100}, {"24": 101}, {"24": 150}]
    monkeypatch.setattr(action, "_elsewhere", lambda: counts.pop(0))
    monkeypatch.setattr("nbhelpers.mitigation.settings.not_as_wanted", lambda values: None)
    assert action.check(1) == "no interrupt is routed"
    action._routed = {"/proc/irq/24/smp_affinity_list": "0"}
    action.arm(1)
    assert action.check(1) is None, "it moves when it comes next"
    assert "interrupt 24 still" in action.check(1)


def test_huge_pages_that_are_not_there_may_have_been(binaries):
    """A program may give each block back: what an earlier look saw stands."""
    with subprocess.Popen(["sleep", "5"]) as process:
        try:
            while "sleep" not in os.readlink(f"/proc/{process.pid}/exe"):
                time.sleep(0.01)
            time.sleep(0.1)
            answer = verification.proof(process.pid, "GLIBC_TUNABLES", "glibc.malloc.hugetlb=1")
        finally:
            process.kill()
    assert isinstance(answer, Momentary) and "huge pages" in answer


class Seldom(Action):
    """Its effect is seen in the first run only."""

    runs = 0

    def held(self, workload):
        self.runs += 1
        return nullcontext()

    def check(self, pid):
        return None if self.runs == 1 else Momentary("nothing to be seen now")


@pytest.mark.parametrize("first, status", [(0, "ok"), (1, NOT_PROVEN)])
def test_what_is_there_for_moments_is_proven_once_for_a_program(first, status, binaries):
    action = Seldom()
    action.runs = first
    workload = program(["sleep", f"0.02{first}"])
    rows = [run_once(workload, (Treatment("seldom", [action], workload),)) for _ in range(3)]
    assert [row["status"] for row in rows] == 3 * [status]
    other = program(["sleep", "0.03"])
    row = run_once(other, (Treatment("seldom", [action], other),))
    assert row["status"] == NOT_PROVEN
