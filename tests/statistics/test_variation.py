"""Variation of two sets of runs: against pairs counted one by one, and how often it is wrong."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from nbhelpers.statistics.claims import INCONCLUSIVE, NONE, REPRODUCED, Claim, judge
from nbhelpers.statistics.variation import log_variations, variation_evidence

CLAIM = Claim("the first varies less", "below", margin=0.05)


def pairs(rounds: int, programs: int, spreads: tuple, slow: float, random) -> pd.DataFrame:
    """Run times of both sides; a share of the runs, each by itself, is slow by a half."""
    index = pd.MultiIndex.from_product([range(rounds), range(programs)], names=["round", "program"])
    table = index.to_frame(index=False)
    shared = random.standard_t(3, rounds)[table["round"]] * 0.03
    for name, spread in zip(("first", "second"), spreads):
        often = random.random(len(table)) < slow
        table[name] = np.exp(shared + random.normal(0, spread, len(table)) + 0.4 * often)
    return table


def test_it_is_the_mean_over_all_pairs_of_values():
    values = np.random.default_rng(1).lognormal(size=9)
    logs = np.log(values)
    apart = [abs(one - other) for place, one in enumerate(logs) for other in logs[:place]]
    found = log_variations(values)
    assert np.isclose(found.mean(), np.log(apart).mean())
    # the jackknife by hand: without each value in turn
    without = [log_variations(np.delete(values, place)).mean() for place in range(9)]
    assert np.allclose(found, 9 * found.mean() - 8 * np.array(without))


def test_where_nothing_varies_nothing_is_known():
    assert np.isnan(log_variations(np.ones(5))).all()
    assert np.isfinite(log_variations(np.array([1.0, 1.0, 1.1, 1.2]))).all()
    few = pd.DataFrame({"first": [1.0, 2, 3], "second": 1.0, "round": range(3), "program": "a"})
    assert judge([(CLAIM, variation_evidence(few, ["program"]))])[0].verdict == INCONCLUSIVE


def test_half_the_variation_is_found_and_its_factor_is_right():
    random = np.random.default_rng(2)
    table = pairs(rounds=16, programs=12, spreads=(0.05, 0.1), slow=0.0, random=random)
    found = judge([(CLAIM, variation_evidence(table, ["program"]))])[0]
    assert found.verdict == REPRODUCED and found.low < 0
    alone = table.assign(second=table["first"] ** 2)
    twice = variation_evidence(alone, ["program"]).estimate
    assert np.isclose(twice.mean, -np.log(2)) and np.isclose(twice.error, 0)


AT_LENGTH = [
    pytest.param(*case, marks=pytest.mark.long) for case in ((8, 0.0), (10, 0.0), (10, 0.1))
]


@pytest.mark.long
@pytest.mark.parametrize("rounds, slow", [(8, 0.1), *AT_LENGTH])
def test_equal_variation_is_rarely_called_different(rounds, slow):
    random, wrong, times = np.random.default_rng(7), 0, 150
    for _ in range(times):
        table = pairs(rounds, 4, (0.05, 0.05), slow, random)
        found = judge([(CLAIM, variation_evidence(table, ["program"]))])[0]
        wrong += found.verdict not in (INCONCLUSIVE, NONE)
    assert stats.binomtest(wrong, times).proportion_ci(0.99, "wilson").low <= 0.05
