"""The rule for claims, against scipy's tests and against simulated pages whose truth is known."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import signal, stats
from statsmodels.stats.multitest import multipletests

from nbhelpers.statistics.claims import (
    INCONCLUSIVE,
    NONE,
    NOT_MEASURABLE,
    REPRODUCED,
    REVERSED,
    Claim,
    Evidence,
    judge,
    shaffer,
)

RANDOM = np.random.default_rng(3)
TEN = RANDOM.normal(0, 1, 10)


def around(mean: float, spread: float, units: int = 10) -> Evidence:
    """Effects whose mean and standard deviation are exactly these."""
    values = np.resize(TEN, units) + np.arange(units) * 1e-6
    return Evidence(mean + spread * (values - values.mean()) / values.std(ddof=1))


def verdict(direction: str, evidence: Evidence, margin: float = 0.01) -> str:
    return judge([(Claim("a", direction, margin), evidence)])[0].verdict


@pytest.mark.parametrize(
    ("direction", "margin", "mean", "spread", "expected"),
    [
        ("below", 0.01, -0.1, 0.03, REPRODUCED),
        ("below", 0.01, 0.1, 0.03, REVERSED),
        ("above", 0.01, 0.1, 0.03, REPRODUCED),
        ("above", 0.01, -0.1, 0.03, REVERSED),
        ("below", 0.01, 0.0, 0.1, INCONCLUSIVE),
        ("below", 0.01, 0.0, 0.004, NONE),
        ("above", 0.01, 0.003, 0.002, NONE),  # not 0, and less than counts
        ("not below", 0.05, -0.01, 0.003, REPRODUCED),  # a gain of 1 % is none of 5 %
        ("not below", 0.05, 0.2, 0.03, REPRODUCED),
        ("not below", 0.05, -0.2, 0.03, REVERSED),
        ("not below", 0.05, -0.05, 0.03, INCONCLUSIVE),
        ("not above", 0.05, 0.2, 0.03, REVERSED),
        ("not above", 0.05, -0.2, 0.03, REPRODUCED),
        ("none", 0.05, 0.01, 0.01, REPRODUCED),
        ("none", 0.05, 0.2, 0.03, REVERSED),
        ("none", 0.05, -0.2, 0.03, REVERSED),
        ("none", 0.05, 0.04, 0.1, INCONCLUSIVE),
    ],
)
def test_effect_and_margin_decide(direction, margin, mean, spread, expected):
    assert verdict(direction, around(mean, spread), margin) == expected


def tail(effects: np.ndarray, log: float, alternative: str) -> float:
    """The p-value by Student's t; from 20 effects on by Hall's, too, if it is larger."""
    count, share = len(effects), (effects.mean() - log) / effects.std(ddof=1)
    skew = stats.skew(effects, bias=False) if count >= 20 else 0
    hall = share + skew * share**2 / 3 + skew**2 * share**3 / 27 + skew / (6 * count)
    beyond = stats.t.cdf if alternative == "less" else stats.t.sf
    return max(beyond(np.sqrt(count) * one, count - 1) for one in (share, hall))


@pytest.mark.parametrize("count", [19, 20])
def test_one_stratum_is_students_test_and_from_20_units_halls(count):
    effects = 0.9 - np.random.default_rng(count).lognormal(-1, 1, count)
    found = judge([(Claim("a", "above"), Evidence(effects))])[0]
    assert np.isclose(found.p_value, 2 * min(tail(effects, 0, way) for way in ("less", "greater")))
    low, high = np.log1p([found.low, found.high])
    assert np.allclose([tail(effects, low, "greater"), tail(effects, high, "less")], 0.025)


def test_rounds_that_resemble_their_neighbours_count_less():
    dependent = signal.lfilter([1], [1, -0.5], RANDOM.normal(size=(300, 140)))[:, 100:]
    for units, least, most in ((None, 0.65, 0.84), (range(40), 0.88, 1)):
        ends = [Evidence(row, units).estimate.interval() for row in dependent]
        assert least < np.mean([low <= 0 <= high for low, high in ends]) < most


def test_being_within_the_margin_is_two_one_sided_tests():
    effects = RANDOM.normal(0.001, 0.01, 12)
    found = judge([(Claim("a", "above", margin=0.02), Evidence(effects))])[0]
    expected = max(tail(effects, np.log(0.98), "greater"), tail(effects, np.log(1.02), "less"))
    assert found.verdict == NONE and np.isclose(found.p_value, expected)


def crossed(rounds: int, strata: int, each: int, seed: int = 1) -> pd.DataFrame:
    """Pairs of every round and stratum; those of a round share an effect."""
    random = np.random.default_rng(seed)
    index = pd.MultiIndex.from_product([range(rounds), range(strata), range(each)])
    table = index.to_frame(index=False, name=["round", "stratum", "pair"])
    shared = random.normal(0, 0.1, rounds)[table["round"]]
    return table.assign(log=shared + random.normal(0, 0.05, len(table)) + 0.1 * table["stratum"])


def evidence_of(table: pd.DataFrame) -> Evidence:
    return Evidence(table["log"].to_numpy(), table["round"].to_numpy(), table["stratum"].to_numpy())


@pytest.mark.parametrize("times", [1, 3])
def test_pairs_of_a_round_count_as_one(times):
    table = crossed(rounds=9, strata=4, each=3)
    found = evidence_of(pd.concat([table] * times)).estimate
    means = table.groupby("round")["log"].mean()
    assert np.allclose([found.mean, found.error], [means.mean(), stats.sem(means)])
    assert (found.freedom, found.units) == (8, 9)


def test_strata_of_different_units_are_welchs_test():
    small, large = RANDOM.normal(0, 0.1, 5), RANDOM.normal(0, 1, 7)
    found = Evidence(np.append(small, large), range(12), [0] * 5 + [1] * 7).estimate
    expected = stats.ttest_ind(small, -large, equal_var=False)
    error = np.sqrt(stats.sem(small) ** 2 + stats.sem(large) ** 2) / 2
    shown = [found.mean / found.error, found.freedom, found.error]
    assert np.allclose(shown, [expected.statistic, expected.df, error])


def test_few_units_or_none_settle_nothing():
    claims = [
        (Claim("few", "above"), Evidence(np.full(5, 0.5) + TEN[:5])),
        (Claim("one value", "above"), Evidence(np.full(9, 0.5))),
        (Claim("nothing", "above"), Evidence()),
        (Claim("elsewhere", "above"), Evidence(TEN, unmeasurable="one CPU", unit="traces")),
    ]
    few, same, nothing, elsewhere = judge(claims)
    assert {few.verdict, same.verdict, nothing.verdict} == {INCONCLUSIVE}
    assert few.why == "5 rounds; at least 6 that differ are needed" and np.isnan(few.low)
    assert np.isnan(nothing.effect) and nothing.units == 0
    assert elsewhere.verdict == NOT_MEASURABLE and np.isfinite(elsewhere.effect)
    assert (elsewhere.units, elsewhere.unit, elsewhere.why) == (10, "traces", "one CPU")


def test_an_open_claim_is_settled_by_the_units_that_it_asks_for():
    claim = Claim("a", "above")
    found = judge([(claim, around(0.05, 0.1))])[0]
    assert found.verdict == INCONCLUSIVE and f"about {found.needed:.0f} rounds" in found.why
    settled = [
        judge([(claim, Evidence(RANDOM.normal(0.05, 0.1, int(found.needed))))])[0].verdict
        for _ in range(200)
    ]
    assert 0.7 < settled.count(REPRODUCED) / 200 < 0.9


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=6))
def test_the_correction_is_between_none_and_holms(rows):
    p_values = np.array(rows)
    adjusted = shaffer(p_values)
    by_holm = multipletests(p_values.ravel(), method="holm")[1].reshape(-1, 2)
    assert (adjusted >= p_values - 1e-12).all() and (adjusted <= by_holm + 1e-12).all()
    assert np.isclose(adjusted.min(), min(1, p_values.min() * len(rows)))


@pytest.mark.parametrize("pages", [500, pytest.param(3000, marks=pytest.mark.long)])
def test_a_page_of_claims_is_wrong_as_seldom_as_it_says(pages):
    """Half of the claims have no effect, half one as large as the margin: any verdict that says
    otherwise makes the page wrong.
    """
    random, wrong = np.random.default_rng(11), 0
    claims = [Claim("a", "below", margin=0.05)] * 4
    truths = np.log([1, 1, 1.05, 0.95])
    for _ in range(pages):
        shared = random.normal(0, 0.02, 9)
        effects = [truth + shared + random.standard_t(4, 9) * 0.01 for truth in truths]
        found = judge(list(zip(claims, map(Evidence, effects), strict=True)))
        verdicts = [one.verdict for one in found]
        is_wrong = {REPRODUCED, REVERSED} & set(verdicts[:2]) or NONE in verdicts[2:]
        wrong += bool(is_wrong)
    assert stats.binomtest(wrong, pages).proportion_ci(0.95, "wilson").low <= 0.05
    assert wrong > 0  # it is not right by saying nothing
