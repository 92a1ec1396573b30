"""Answers on causes, mitigations and scale: each word is reached, the numbers are the tables'."""

import numpy as np
import pandas as pd
import pytest

from nbhelpers.answers import CANNOT_TELL, NO, YES
from nbhelpers.attribution import explain
from nbhelpers.mitigation.trials import HELPS, NO_EFFECT, SEEMS
from nbhelpers.statistics.claims import (
    INCONCLUSIVE,
    NONE,
    NOT_MEASURABLE,
    REPRODUCED,
    REVERSED,
    Claim,
    Judgement,
)
from nbhelpers.studies.answers_causes import counters_answer, helps_answer, jeffreys, named_answer
from nbhelpers.studies.answers_scale import (
    machine_noise_answer,
    spread_noise_answer,
    ten_thousand_sentence,
)
from nbhelpers.studies.answers_words import changes_of, ratios_of, some_groups, word_of
from nbhelpers.studies.cui import variability_answer, variability_sentence
from nbhelpers.studies.persson import mitigation_answer
from nbhelpers.studies.persson.answer import mitigation_sentences


@pytest.mark.parametrize(
    ("verdict", "word"),
    [(REPRODUCED, YES), (REVERSED, NO), (NONE, NO), (INCONCLUSIVE, CANNOT_TELL)]
    + [(NOT_MEASURABLE, CANNOT_TELL)],
)
def test_a_verdict_has_a_word(verdict, word):
    judged = Judgement(Claim("it is longer", "above"), verdict, 0.1, 0.05, 0.15, units=9)
    assert word_of(judged) == word
    assert changes_of(judged, "")["value"] == pytest.approx(10)
    assert ratios_of(judged, "")["high"] == pytest.approx(1.15)


def test_groups_are_finite_and_at_most_four():
    groups = {str(i): [i, np.nan] for i in range(6)} | {"0": [np.nan]}
    assert some_groups(groups) == {"1": [1.0], "2": [2.0], "3": [3.0], "4": [4.0]}


@pytest.fixture(scope="module")
def runs():
    """A quarter of the runs is slow and has more page faults; nothing else differs."""
    random = np.random.default_rng(1)
    slow = random.permutation(np.arange(60) % 4 == 0)
    faults = np.where(slow, 900, 100) + random.integers(0, 50, 60)
    times = 1 + faults / 1000 + random.normal(0, 0.01, 60)
    other = random.integers(0, 50, 60)
    return pd.DataFrame({"seconds": times, "page_faults": faults, "migrations": other})


def test_the_first_group_of_counters_is_the_answer_or_none_or_open(runs):
    found = counters_answer(explain(runs[["seconds", "page_faults"]], seed=1), runs)
    assert found.answer == "page_faults" and found.n == 60 and found.value > 90
    faults = runs.query("page_faults > 500")["page_faults"]
    assert sorted(found.groups["slow runs"]) == sorted(faults)
    twin = runs[["seconds", "page_faults"]].assign(twin=runs["page_faults"] * 2)
    assert counters_answer(explain(twin, seed=1), twin).answer.endswith(" and 1 more")
    others = counters_answer(explain(runs[["seconds", "migrations"]], seed=1), runs)
    assert others.answer == "none"
    assert counters_answer(explain(runs.head(6), seed=1), runs).answer == CANNOT_TELL


def test_named_causes_are_counted_with_their_interval():
    from scipy.stats import beta

    scores = pd.DataFrame({"cause": list("abcd"), "effect": [1.2, 1.3, 1.4, 1.1]})
    scores["right"] = [True, True, True, False]
    nothing = pd.DataFrame({"kind": ["shuffled", "undisturbed"], "found": [False, True]})
    found = named_answer(scores, nothing)
    assert found.answer == "3 of 4" and "not: d;" in found.sentence
    assert found.low == pytest.approx(100 * beta.ppf(0.025, 3.5, 1.5))
    assert "in 0 of 1 shuffled" in found.sentence
    assert named_answer(scores.head(0), nothing).answer == CANNOT_TELL
    assert jeffreys(0, 3)[0] == 0 and jeffreys(3, 3)[1] == 1


def tried(*verdicts: str) -> pd.DataFrame:
    names = ["jemalloc", "mimalloc"][: len(verdicts)]
    table = pd.DataFrame({"mitigation": names, "verdict": list(verdicts), "runs": 30})
    return table.assign(mean_ratio=[0.8, 0.9][: len(names)], mean_low=0.7, mean_high=0.95)


def test_what_helps_is_named_with_its_change():
    times = pd.DataFrame({"cell": ["baseline", "mimalloc"], "seconds": [1.0, 0.9]})
    found = helps_answer(tried(SEEMS, HELPS), times, "faults")
    assert found.answer == "mimalloc, −10 %" and found.value == pytest.approx(-10)
    assert found.groups == {"untreated": [1.0], "mimalloc": [0.9]}
    assert helps_answer(tried(NO_EFFECT, NO_EFFECT), times, "faults").answer == "none"
    assert helps_answer(tried(NO_EFFECT, SEEMS), times, "faults").answer == CANNOT_TELL
    assert helps_answer(tried(), times, "faults").answer == CANNOT_TELL


def weighed(*rows: tuple) -> pd.DataFrame:
    """Verdicts on housekeeping, pinning (claimed not to help) and SYCL."""
    pairs = ("(slowdown RmHK / Rm)", "(slowdown TP / Rm)", "(slowdown SYCL / OpenMP)")
    numbers = pd.DataFrame(rows, columns=["verdict", "effect_percent", "p_corrected", "why"])
    width = numbers["effect_percent"].abs() / 2
    return numbers.assign(
        finding=[f"it helps {pair}" for pair in pairs],
        low_percent=numbers["effect_percent"] - width,
        high_percent=numbers["effect_percent"] + width,
        run_time_percent=np.nan,
        rounds=16,
        paper_percent=[-10.8, np.nan, np.nan],
        source="Persson et al. 2025, sec. 6 (1)",
    )


RATIOS = pd.DataFrame({"config": ["Rm", "Rm", "RmHK"], "ratio": [1.4, 1.5, 1.2]})
HELPING = (REPRODUCED, -20, 0.0001, "")
NO_GAIN = (REPRODUCED, 8, 0.01, "")
GAIN = (REVERSED, -20, 0.01, "")
OPEN = (INCONCLUSIVE, -4, 0.15, "about 40 rounds would settle it")
UNMEASURED = (NOT_MEASURABLE, np.nan, np.nan, "no SYCL runs")


@pytest.mark.parametrize(
    ("rows", "word"),
    [
        ((HELPING, NO_GAIN, OPEN), "housekeeping"),
        ((HELPING, GAIN, OPEN), "housekeeping and pinning"),
        ((HELPING, GAIN, HELPING), "housekeeping"),
        (((REVERSED, 9, 0.01, ""), NO_GAIN, OPEN), "none is shown to help"),
        ((OPEN, OPEN, UNMEASURED), CANNOT_TELL),
        ((UNMEASURED, UNMEASURED, UNMEASURED), CANNOT_TELL),
    ],
)
def test_a_mitigation_helps_by_its_verdict(rows, word):
    found = mitigation_answer(weighed(*rows), RATIOS)
    assert found.answer == word and found.groups == {"Rm": [1.4, 1.5], "RmHK": [1.2]}
    if word.startswith("housekeeping"):
        assert (found.value, found.low, found.high, found.n) == (-20, -30, -10, 16)
        assert found.published == "-10.8 % (Persson et al. 2025, sec. 6 (1), Tables 3 to 5)"


def test_each_mitigation_is_a_sentence_with_its_price():
    rows = weighed(HELPING, NO_GAIN, UNMEASURED)
    rows.loc[0, "run_time_percent"], rows["longer_cells"] = 44.0, "6 of 6"
    price = {"finding": "slower in average noise (N-body, RmHK / Rm)", "effect_percent": 84.0}
    rows = pd.concat([rows, pd.DataFrame([price | {"rounds": 16}])], ignore_index=True)
    first, second, third = mitigation_sentences(rows)
    assert first == (
        "Housekeeping: helps; slowdown -20.0 %, 95 % interval -30.0 to -10.0, p < 0.001 corrected,"
        " n = 16 rounds; the run time itself +44.0 %, longer in 6 of 6 cells. In average noise"
        " housekeeping changes the run time of N-body by +84.0 % (n = 16 rounds)."
    )
    assert second.startswith("Pinning: does not help; slowdown +8.0 %")
    assert third == "SYCL in place of OpenMP: not measurable here; no SYCL runs."


VARIABILITY = pd.DataFrame(
    [
        ("barrier", "TP-ST1", 1, 10.0, 4.0),
        ("static_1", "TP", 2, 30.0, 8.0),
        ("lock", "TP", 2, 12.0, 6.0),
        ("copy", "TP", 2, 90.0, 80.0),
    ],
    columns=["benchmark", "config", "threads", "within_cv_percent", "between_cv_percent"],
)


def threads(verdict: str, effect: float = 30.0) -> pd.DataFrame:
    row = {"finding": "more threads vary more (CV, TP / one thread)", "verdict": verdict}
    row |= {"effect_percent": effect, "low_percent": effect - 9, "high_percent": effect + 9}
    return pd.DataFrame([row | {"rounds": 10, "paper_percent": np.nan, "why": "one thread only"}])


@pytest.mark.parametrize(
    ("verdict", "word"),
    [(REPRODUCED, YES), (REVERSED, NO), (NONE, NO), (INCONCLUSIVE, CANNOT_TELL)],
)
def test_operations_vary_more_with_more_threads_by_the_verdict(verdict, word):
    found = variability_answer(VARIABILITY, threads(verdict))
    assert (found.answer, found.value, found.low, found.high) == (word, 30, 21, 39)
    assert found.groups == {"1 thread": [10.0], "2 threads": [30.0, 12.0]}
    assert "by 12.0 % within a run (median of 3 cells)" in found.sentence


def test_where_no_threads_were_compared_the_answer_is_open():
    unmeasured = threads(NOT_MEASURABLE, np.nan)
    assert variability_answer(VARIABILITY, unmeasured).sentence.endswith("; one thread only.")
    kernels = VARIABILITY.tail(1)
    assert variability_answer(kernels, threads(REPRODUCED)).answer == CANNOT_TELL
    assert variability_sentence(kernels) == "No operation of OpenMP was measured."
    one_run = VARIABILITY.assign(between_cv_percent=np.nan)
    assert "cannot tell here how much from run to run" in variability_sentence(one_run)


def codes(*rows: tuple) -> pd.DataFrame:
    columns = ["application", "noise", "median", "low", "high"]
    return pd.DataFrame(rows, columns=columns).assign(overhead_share=0.025, ranks=2500, seeds=30)


def test_noise_slows_programs_by_more_than_its_share_or_not():
    results = pd.DataFrame(
        {"result": ["POP 10 Hz"], "published": ["20–21"], "source": ["Ferreira et al. 2008"]}
    )
    more = spread_noise_answer(
        codes(("POP", "10 Hz", 22, 21, 23), ("CTH", "1 kHz", 1.03, 1.02, 1.04)), results
    )
    assert (more.answer, more.value, more.n) == (YES, 22, 30)
    assert more.published == "20–21 times (Ferreira et al. 2008)"
    assert more.line == ("its share", pytest.approx(1 / 0.975))
    no = spread_noise_answer(codes(("CTH", "1 kHz", 1.026, 1.025, 1.027)), results)
    assert (no.answer, no.published) == (NO, "")
    wide = spread_noise_answer(codes(("CTH", "1 kHz", 1.1, 1.0, 1.2)), results)
    assert wide.answer == CANNOT_TELL
    assert spread_noise_answer(codes(), results).answer == CANNOT_TELL


def spreads(*rows: tuple) -> pd.DataFrame:
    columns = ["recording", "median", "recording_low", "recording_high", "units"]
    return pd.DataFrame(rows, columns=columns).assign(ranks=131072)


def test_the_cost_at_scale_is_the_range_of_the_recordings():
    found = machine_noise_answer(
        spreads(("kernel events", 982.0, 672.0, 1145.0, 200), ("a loop", 96.3, 34.2, 127.3, 80))
    )
    assert found.answer == "all-reduce: 96 to 982 times as long"
    assert (found.value, found.low, found.high, found.n) == (96.3, 34.2, 127.3, 80)
    assert machine_noise_answer(spreads(("a loop", 1.5, 1.0, 2.0, 8))).answer == CANNOT_TELL
    assert machine_noise_answer(spreads()).answer == CANNOT_TELL
    one = machine_noise_answer(spreads(("a loop", 1.5, 1.2, 2.0, 8)))
    assert one.answer == "all-reduce: 1.5 times as long"
    loaded = spreads(("a loop", 51070.0, 900.0, 80000.0, 9), ("idle", 9344.0, 70.0, 20000.0, 9))
    long = machine_noise_answer(loaded)
    assert long.answer == "9,344 to 51,070 times as long" and "all-reduce" in long.sentence


def test_the_sentence_on_ten_thousand_cpus_is_of_the_nearest_number():
    ranks = [2, 8192, 32768]
    here = pd.DataFrame({"recording": "a loop", "ranks": ranks, "median": [1.0, 87, 96]})
    said = ten_thousand_sentence(here.assign(low=80.0, high=99.0, seeds=30))
    assert said.startswith(
        "On 8,192 CPUs an all-reduce takes **87** times by a loop (80 to 99, n ="
    )
