"""What is injected is what the factor says, for each kind of injection; and what competes with the
program proves nothing but competition.
"""

import os
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from nbhelpers.errors import InputError, Unavailable
from nbhelpers.measurement import Attachment, metrics, run_once
from nbhelpers.mitigation import factors
from nbhelpers.studies import graded_injection
from nbhelpers.studies.cause_proof import ASSOCIATED, CAUSE, prove_cause
from nbhelpers.studies.dose_response import WAITING, waiting_share
from nbhelpers.studies.graded_injection import (
    AT_THE_PROGRAM,
    SHAM,
    Place,
    dose_cells,
    dose_names,
    has_helper,
)
from nbhelpers.workloads import Workload, binary_folder

INJECTED = {name: factor for name, factor in factors().items() if factor.inject}
LAYERS = [
    "software",
    "kernel",
    "scheduler",
    "interrupts",
    "softirqs",
    "throttling",
    "io",
    "network",
]
# a factor of each kind: the victim, the column that shows it, and how much more of it at least
SIGNS = {
    "cpu-contention": ("compute", WAITING, 5_000_000),
    "real-time-tasks": ("compute", WAITING, 3_000_000),
    "timer-interrupts": ("compute", "irq_LOC", 800),
    "reschedule-interrupts": ("compute", "irq_CAL", 500),
    "tlb-shootdowns": ("cache", "irq_TLB", 100),
    "network-traffic": ("compute", "net_loopback_bytes", 100_000),
    "io-pressure": ("compute", "disk_write_bytes", 500_000),
    "filesystem-journal": ("compute", "others_busy_s", 0.002),
    "cache-misses": ("compute", "others_busy_s", 0.01),
    "memory-bandwidth": ("compute", "others_busy_s", 0.01),
    "cgroup-throttling": ("compute", "cgroup_nr_throttled", 1),
    "cpu-migrations": ("compute", "cpu_migrations", 5),
    "page-faults": ("allocate", "minor_faults", 400),
}
SIZES = {"compute": 9000, "cache": 4000, "allocate": 20}
QUICK = ("timer-interrupts", "tlb-shootdowns", "cgroup-throttling", "cpu-migrations", "page-faults")
PAIRS = 6  # of sham and dose; on a machine with other work a helper may get no CPU within a run


def victim(kind: str, cpus: tuple[int, ...] = ()) -> Workload:
    command = (str(binary_folder() / "victim"), kind, str(SIZES.get(kind, 9000)), "0")
    return Workload("v", "external", command, start="mark", cpus=cpus or None)


def injection(factor) -> tuple:
    return factor.inject["kind"], factor.inject.get("noise"), factor.inject.get("fifo")


def test_a_factor_of_each_kind_is_tried_here():
    assert {injection(INJECTED[name]) for name in SIGNS} == set(map(injection, INJECTED.values()))


@pytest.mark.alone
@pytest.mark.parametrize(
    "name", [one if one in QUICK else pytest.param(one, marks=pytest.mark.long) for one in SIGNS]
)
def test_what_is_injected_is_what_the_factor_says(name, binaries, nothing_left):
    kind, column, more = SIGNS[name]
    cpu = max(os.sched_getaffinity(0))
    try:
        sham, *_, most = dose_cells(INJECTED[name], victim(kind, (cpu,)), 2.0, 1.0)
        pairs = [[_counted(cell, column) for cell in (sham, most)]]
        while len(pairs) < PAIRS and not _shown(pairs, more):
            pairs.append([_counted(cell, column) for cell in (sham, most)])
    except Unavailable as error:
        pytest.skip(error.what)
    assert _shown(pairs, more), pairs


def _counted(cell, column: str) -> float:
    attached = (*cell.attachments, *metrics(*LAYERS))
    run = run_once(cell.workload, attached)
    for one in attached:
        one.close()
    assert run["status"] == "ok", run
    if column not in run:
        pytest.skip(f"this machine doesn't count {column}")
    return run[column]


def _shown(pairs: list[list[float]], more: float) -> bool:
    return any(most >= sham + more for sham, most in pairs)


@pytest.mark.alone
def test_interrupts_are_of_the_programs_cpu_and_their_sender_is_elsewhere(binaries):
    """Function calls and shootdowns; the sender's CPU has few of them."""
    from tests.interrupts import interrupt_counts

    class Counted(Attachment):
        def released(self, t0_ns):
            self.first = interrupt_counts()

        def ended(self, pid):
            self.more = interrupt_counts() - self.first

    cpus = sorted(os.sched_getaffinity(0))
    for name, column in (("reschedule-interrupts", "CAL"), ("tlb-shootdowns", "TLB")):
        counted = Counted()
        try:
            most = dose_cells(INJECTED[name], victim(SIGNS[name][0], (cpus[-1],)), 2.0, 1.0)[-1]
        except Unavailable as error:
            pytest.skip(error.what)
        if column not in interrupt_counts():
            pytest.skip(f"this kernel does not count {column}")
        for _ in range(PAIRS):
            run_once(most.workload, (counted, *most.attachments))
            there, here = counted.more.loc[[cpus[0], cpus[-1]], column]
            if here >= 200:
                break
        assert here >= 200 and there < here / 4, (name, here, there)


@pytest.mark.parametrize("noise", ["network", "io_sync", "cache_l3", "memory_stream"])
def test_a_helper_on_the_programs_cpu_is_refused(noise):
    """Its work would be waiting for the CPU, whatever its kind is."""
    assert noise not in AT_THE_PROGRAM
    inject = {"kind": "stressor", "noise": noise, "where": "program", "unit": "x"}
    factor = replace(factors()["tlb-shootdowns"], inject=inject | {"doses": [1, 2, 3]})
    with pytest.raises(InputError, match="for the program's CPU"):
        dose_cells(factor, victim("compute"), 2.0, 1.0)


def test_no_factor_is_injected_by_a_helper_on_the_programs_cpu():
    for name, factor in INJECTED.items():
        if factor.inject.get("where") == "program":
            assert factor.inject["noise"] in AT_THE_PROGRAM, name
    competitors = {name for name, one in INJECTED.items() if one.inject.get("noise") == "duty"}
    assert competitors == {"cpu-contention", "real-time-tasks"}


def test_interrupts_of_a_program_on_all_cpus_are_refused():
    everywhere = victim("compute", tuple(sorted(os.sched_getaffinity(0))))
    for name in ("reschedule-interrupts", "tlb-shootdowns", "memory-bandwidth"):
        with pytest.raises(Unavailable):
            dose_cells(factors()[name], everywhere, 2.0, 1.0)


def test_the_other_thread_of_a_core_is_no_free_cpu(monkeypatch):
    cpus = [SimpleNamespace(cpu=cpu, core=cpu % 2) for cpu in range(4)]
    monkeypatch.setattr(graded_injection, "topology", lambda: SimpleNamespace(cpus=cpus))
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2, 3})
    assert Place(victim("compute", (1,)), 1.0, 1.0, 1.0).last_cpu == (2,)
    with pytest.raises(Unavailable, match="another core"):
        _ = Place(victim("compute", (0, 3)), 1.0, 1.0, 1.0).last_cpu


def test_threads_that_would_share_a_cpu_are_not_moved():
    with pytest.raises(Unavailable, match="keeps 2.0 CPUs busy"):
        dose_cells(factors()["cpu-migrations"], victim("compute"), 2.0, 2.0)


def test_a_factor_that_nobody_can_inject_says_why(tmp_path):
    reasons = {name: one.not_injected for name, one in factors().items() if one.not_injected}
    assert {"context-switches", "kernel-threads", "softirqs", "interrupts"} <= set(reasons)
    assert not set(reasons) & set(INJECTED)
    proof = prove_cause(reported("softirqs"), victim("compute"), tmp_path)
    assert reasons["softirqs"] in proof.sentence


# ---- what competed counts as not injected --------------------------------------------------------


def reported(factor: str) -> SimpleNamespace:
    """What the proof reads of a report without trials."""
    return SimpleNamespace(
        factors=pd.DataFrame({"columns": [()]}, index=[factor]),
        tried=pd.DataFrame({"factor": [], "verdict": []}),
        helped=[],
        not_tried=pd.DataFrame({"name": [], "reason": [], "fix": []}),
    )


def dosed(factor, waited: float) -> pd.DataFrame:
    """Runs that a dose makes slower, with so much of it spent in waiting for a CPU."""
    random, names = np.random.default_rng(1), dose_names(factor)
    lost = 0.1 * np.tile(np.arange(len(names)), 12)
    seconds = (1 + lost) * random.lognormal(0, 0.01, lost.size)
    waits = 1e9 * (waited * lost + 0.001 * random.random(lost.size))
    columns = {"cell": names * 12, "round": np.repeat(range(12), len(names))}
    return pd.DataFrame(columns | {"seconds": seconds, "wall_seconds": seconds, WAITING: waits})


@pytest.fixture
def proven(tmp_path, monkeypatch):
    """The proof by runs of doses that were recorded."""

    def prove(name: str, runs: pd.DataFrame):
        monkeypatch.setattr("nbhelpers.studies.cause_proof.recorded_runs", lambda folder: runs)
        monkeypatch.setattr("nbhelpers.studies.cause_proof.finished", lambda table: table)
        return prove_cause(reported(name), victim("compute"), tmp_path, recorded_only=True)

    return prove


@pytest.mark.parametrize("name", [name for name, one in INJECTED.items() if has_helper(one)])
@pytest.mark.parametrize(
    "waited, verdict", [(0.0, CAUSE), (0.3, CAUSE), (0.8, ASSOCIATED), (1, ASSOCIATED)]
)
def test_a_competitor_proves_nothing(name, waited, verdict, proven):
    proof = proven(name, dosed(INJECTED[name], waited))
    assert proof.verdict == verdict
    assert (proof.response is None) == (verdict == ASSOCIATED)
    assert ("competed with the program" in proof.sentence) == (verdict == ASSOCIATED)


def test_where_nobody_counts_the_waiting_a_helper_proves_nothing(proven):
    proof = proven("tlb-shootdowns", dosed(INJECTED["tlb-shootdowns"], 0.0).drop(columns=WAITING))
    assert proof.verdict == ASSOCIATED and "nobody counts here" in proof.sentence


def test_the_waiting_share_is_of_what_was_lost():
    factor = INJECTED["tlb-shootdowns"]
    for waited in (0.0, 0.5, 1.0):
        share = waiting_share(dosed(factor, waited), dose_names(factor)[-1])
        assert share == pytest.approx(waited, abs=0.05)
    assert SHAM in dose_names(factor)
