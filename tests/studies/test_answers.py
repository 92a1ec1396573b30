"""Pages answer their titles in their first sentence: with a number, or that they cannot tell."""

import numpy as np
import pandas as pd
import pytest

from nbhelpers import compare
from nbhelpers.attribution import explain
from nbhelpers.machine.checks import Capabilities, Doctor
from nbhelpers.statistics.claims import INCONCLUSIVE, NOT_MEASURABLE, REPRODUCED, REVERSED
from nbhelpers.studies.cui import variability_answer
from nbhelpers.studies.persson import mitigation_answer
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


def judged(*verdicts: str) -> pd.DataFrame:
    findings = ["more threads vary more (CV, TP / one thread)", "pinned threads vary less (CV)"]
    rows = zip([*findings, "a schedule costs more (time)"], [*verdicts, REPRODUCED], (30.04, -2, 9))
    return pd.DataFrame(rows, columns=["finding", "verdict", "effect_percent"])


VARIABILITY = pd.DataFrame(
    [("barrier", 10.0, 4.0), ("static_1", 30.0, 8.0), ("lock", 12.0, 6.0), ("copy", 90.0, 80.0)],
    columns=["benchmark", "within_cv_percent", "between_cv_percent"],
)


def test_openmps_operations_vary_by_their_median_and_with_what_is_decided():
    assert variability_answer(VARIABILITY, judged(REPRODUCED, REVERSED)) == (
        "By **12.0 %** within a run and **6.0 %** from run to run (median coefficients of"
        " variation, n = 3 cells); reproduced: more threads vary more (+30.0 %); reversed: "
        "pinned threads vary less (-2.0 %)."
    )


def test_what_the_runs_do_not_decide_they_cannot_tell():
    said = variability_answer(VARIABILITY, judged(INCONCLUSIVE, INCONCLUSIVE))
    assert said.endswith("cannot tell here with what (none of 2 findings is decided).")
    one_run = VARIABILITY.assign(between_cv_percent=np.nan)
    said = variability_answer(one_run, judged(INCONCLUSIVE, INCONCLUSIVE))
    assert "within a run and cannot tell here how much from run to run (" in said
    only_kernels = VARIABILITY.tail(1)
    assert variability_answer(only_kernels, judged(INCONCLUSIVE, INCONCLUSIVE)).startswith(
        "Cannot tell here"
    )


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


def weighed(*rows: tuple) -> pd.DataFrame:
    """Verdicts on housekeeping, pinning (claimed not to help) and SYCL; intervals are as long as
    the effects are large.
    """
    pairs = ("(slowdown RmHK / Rm)", "(slowdown TP / Rm)", "(slowdown SYCL / OpenMP)")
    numbers = pd.DataFrame(rows, columns=["verdict", "effect_percent", "p_corrected", "why"])
    width = numbers["effect_percent"].abs() / 2
    return numbers.assign(
        finding=[f"it helps {pair}" for pair in pairs],
        low_percent=numbers["effect_percent"] - width,
        high_percent=numbers["effect_percent"] + width,
        run_time_percent=np.nan,
        rounds=16,
    )


HELPS = (REPRODUCED, -20, 0.0001, "")
NO_GAIN = (REPRODUCED, 8, 0.01, "")
OPEN = (INCONCLUSIVE, -4, 0.15, "about 40 rounds would settle it")
UNMEASURED = (NOT_MEASURABLE, np.nan, np.nan, "no SYCL runs")


def test_a_mitigation_helps_by_its_verdict():
    said = mitigation_answer(weighed(HELPS, NO_GAIN, OPEN))
    assert said == (
        "Under heavy replayed noise **housekeeping** helps (slowdown -20.0 %, 95 % interval -30.0"
        " to -10.0, p < 0.001 corrected, n = 16 rounds); does not help: pinning (slowdown +8.0 %,"
        " 95 % interval +4.0 to +12.0, p = 0.010 corrected, n = 16 rounds); inconclusive: SYCL in"
        " place of OpenMP (slowdown -4.0 %, 95 % interval -6.0 to -2.0, p = 0.150 corrected, n = 16"
        " rounds; about 40 rounds would settle it)."
    )


def test_that_pinning_helps_is_the_reverse_of_what_was_claimed():
    gain = (REVERSED, -20, 0.01, "")
    assert "**pinning** helps" in mitigation_answer(weighed(HELPS, gain, HELPS))
    worse = mitigation_answer(weighed((REVERSED, 9, 0.01, ""), NO_GAIN, OPEN))
    assert "makes it worse: housekeeping" in worse


def test_a_mitigation_that_bears_noise_better_may_still_be_slower():
    rows = weighed(HELPS, NO_GAIN, OPEN)
    rows.loc[0, "run_time_percent"], rows["longer_cells"] = 44.0, "6 of 6"
    assert (
        "n = 16 rounds; the run time itself +44.0 %, longer in 6 of 6 cells)"
        in mitigation_answer(rows)
    )


def test_where_no_mitigation_is_shown_to_help_the_page_says_so():
    none = mitigation_answer(weighed(OPEN, NO_GAIN, UNMEASURED))
    assert none.startswith("None is shown to help under heavy replayed noise: inconclusive: house")
    assert none.endswith("not measurable here: SYCL in place of OpenMP (no SYCL runs).")
    nothing = mitigation_answer(weighed(*3 * [UNMEASURED]))
    assert nothing.startswith("Cannot tell here: not measurable here: housekeeping (no SYCL runs),")
    assert mitigation_answer(weighed(OPEN, OPEN, OPEN)).startswith("Cannot tell here: inconclusive")


def test_what_a_helping_mitigation_costs_in_average_noise_stands_beside_it():
    price = pd.DataFrame(
        [("slower in average noise (N-body, RmHK / Rm)", 84.0, 16)],
        columns=["finding", "effect_percent", "rounds"],
    )
    said = mitigation_answer(
        pd.concat([weighed(HELPS, NO_GAIN, UNMEASURED), price], ignore_index=True)
    )
    assert said.endswith(
        " In average noise housekeeping changes the run time of N-body by +84.0 % (n = 16 rounds)."
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
