"""Pages answer their titles in their first sentence: with a number, or that they cannot tell."""

import numpy as np
import pandas as pd
import pytest

from nbhelpers import compare
from nbhelpers.attribution import explain
from nbhelpers.machine.checks import Capabilities, Doctor
from nbhelpers.studies.sentences import (
    counters_sentence,
    parts_sentence,
    tracing_sentence,
)
from nbhelpers.studies.worst_runs import worst_sentences


@pytest.fixture(scope="module")
def runs():
    """A quarter of the runs is slow and has more page faults; nothing else differs."""
    random = np.random.default_rng(1)
    slow = random.permutation(np.arange(60) % 4 == 0)
    faults = np.where(slow, 900, 100) + random.integers(0, 50, 60)
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
    named, others, few = counters_sentence(searches).removesuffix(".").split("; ")
    p_value = searches["these runs"].p_value
    assert named == (
        f"In these runs **page_faults**, higher in slow runs (p = {p_value:.3f}, n = 60)"
    )
    assert others == f"in others none (p = {searches['others'].p_value:.3f}, n = 60)"
    assert few == "in few cannot tell here (n = 6)"


def test_counters_that_move_with_the_first_are_counted(runs):
    together = explain(runs[["seconds", "page_faults"]].assign(twin=runs["page_faults"] * 2))
    assert " and 1 that move with it, higher" in counters_sentence({"runs": together})


def seconds(mean: float, spread: float = 0.001, runs: int = 20) -> pd.DataFrame:
    """Runs whose mean is exactly this."""
    return pd.DataFrame({"seconds": mean + spread * np.linspace(-1, 1, runs)})


def split(*parts: tuple[float, float, float]) -> pd.DataFrame:
    """Cases by what kernel, hypervisor and nothing explain (ms), each to within 5 ms."""
    table = pd.DataFrame(parts, columns=["kernel_ms", "hypervisor_ms", "unexplained_ms"])
    table["excess_ms"] = table.sum(axis=1)
    lows = (table - 5).add_suffix("_low")
    shares = dict.fromkeys(["ratio", "ratio_kernel", "ratio_undisturbed", "ratio_low"], 1.0)
    return table.join(lows).assign(**shares, ratio_high=1.0, runs=15)


def test_what_most_of_the_excess_is_explained_by_comes_first():
    assert worst_sentences(split((60, 4, 6), (4, 0, 6)))[0] == (
        "Mostly **replayed kernel events**, shown by the 95 % intervals in 1 of 2 cases: the 2"
        " slowest runs together took **80.0 ms** longer than the undisturbed mean, explained 64.0"
        " ms (80%) by replayed kernel events, 4.0 ms (5%) by replayed hypervisor gaps, 12.0 ms"
        " (15%) by nothing that was replayed (n = 15 replays of each)."
    )
    assert worst_sentences(split((0, 4, 60)))[0].startswith("Mostly **nothing that was replayed**")


def test_parts_that_may_be_chance_explain_nothing():
    said = worst_sentences(split((4, 1, 2)))[0]
    assert said.startswith("Cannot tell here: the slowest run took **7.0 ms** longer")
    overshot = worst_sentences(split((30, 0, -28)))[0]
    assert overshot.startswith("Cannot tell here: the slowest run took **2.0 ms** longer")
    assert worst_sentences(split((-4, 0, 1), (0, 0, -3)))[0] == (
        "Cannot tell here: the 2 slowest runs together took 6.0 ms less than the undisturbed mean."
    )


def limits(
    tracer: str = "osnoise", fifo: bool = True, server: str = "absent", counters: bool = True
) -> list[str]:
    """What the doctor says is replaced; without FIFO, throttling matters to nothing."""
    can = Capabilities(
        tracer=tracer,
        fifo=fifo,
        rt_throttling_liftable=server == "absent",
        fair_server=server,
        perf_software=True,
        perf_hardware=counters,
        stolen_time=True,
    )
    return Doctor((), can).replaced()


def test_a_machine_is_described_by_what_is_replaced():
    assert parts_sentence(limits()) == (
        "**0 of 3** parts of the full method are replaced or limited here."
    )
    said = parts_sentence(limits("tracepoints", server="locked", counters=False))
    assert said.startswith("**3 of 3** ")
    assert said.endswith("limited here (tracing, injection, hardware counters).")
    assert parts_sentence(limits(fifo=False)).startswith("**1 of 3** parts")


@pytest.mark.parametrize(
    "replaced",
    [limits("tracepoints"), limits("detours"), limits(fifo=False), limits(server="locked")]
    + [limits(counters=False)],
)
def test_every_replacement_is_of_a_part(replaced):
    assert replaced and not parts_sentence(replaced).startswith("**0 of")


def tracing_said(before: pd.DataFrame, after: pd.DataFrame, tracer: str = "osnoise") -> str:
    events = pd.DataFrame()
    events.attrs["tracer"] = tracer
    noise = pd.DataFrame({"cpu_share": [0.005, 0.003]})
    return tracing_sentence(events, noise, compare(before, after), after)


def test_a_run_loses_what_was_recorded_and_tracing_disturbs_by_its_interval():
    undisturbed = tracing_said(seconds(0.4), seconds(0.4))
    assert undisturbed.startswith(
        "Recorded noise takes **0.80%** of the CPU time of a run (n = 20 traced); tracing does not"
        " disturb it, to within 1 %: the mean changes by **+0.0%** (95 % interval -0."
    )
    assert "; tracing disturbs it: the mean changes by **+2.5%** (95 % interval +2." in (
        tracing_said(seconds(0.4), seconds(0.41))
    )
    wide = tracing_said(seconds(0.4, spread=0.2), seconds(0.4, spread=0.2))
    assert "; whether tracing disturbs it cannot be told here: the mean changes by" in wide


def test_detours_name_nobody_and_are_no_tracer():
    said = tracing_said(seconds(0.4), seconds(0.5), tracer="detours")
    assert said.startswith(
        "Detours take **0.80%** of the CPU time of a run (n = 20 traced), and what"
    )
    assert said.endswith("cannot be told here, as there is none.")
