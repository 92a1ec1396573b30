"""Whether an association comes back in fresh runs, where the truth is known."""

import numpy as np
import pandas as pd
import pytest

from nbhelpers.attribution.replication import (
    ENOUGH,
    comes_back,
    fresh_category_evidence,
    fresh_evidence,
)
from nbhelpers.outcomes import Outcome


def fresh(share: float, random: np.random.Generator, runs: int = 30) -> pd.DataFrame:
    """Runs whose time follows a counter by a share of its variance."""
    faults, other = random.normal(size=(2, runs))
    seconds = 10 + np.sqrt(share) * faults + np.sqrt(1 - share) * other
    return pd.DataFrame({"run": range(runs), "seconds": seconds, "faults": faults})


def test_without_an_association_the_evidence_is_1_in_the_mean_and_seldom_enough():
    random = np.random.default_rng(1)
    tables = [fresh(0, random) for _ in range(300)]
    found = [comes_back(runs.faults, runs.seconds, 1, count=199) for runs in tables]
    assert np.mean(found) < 1.6 and np.mean(np.array(found) >= ENOUGH) <= 0.05
    pairs = np.array(found).reshape(150, 2).prod(axis=1)  # of two campaigns
    assert np.mean(pairs >= ENOUGH) <= 0.05


def test_an_association_comes_back_and_its_contrary_does_not():
    random = np.random.default_rng(2)
    tables = [fresh(0.7, random) for _ in range(20)]
    found = [comes_back(runs.faults, runs.seconds, 1, count=199) for runs in tables]
    assert np.mean(np.array(found) >= ENOUGH) > 0.9
    assert max(comes_back(runs.faults, runs.seconds, -1, 199) for runs in tables) < 1


def test_what_only_drifts_together_does_not_come_back():
    random = np.random.default_rng(3)
    drift = np.linspace(0, 3, 40)
    tables = [drift + random.normal(size=(2, 40)) for _ in range(20)]
    found = [comes_back(pd.Series(one), pd.Series(two), 1, 199) for one, two in tables]
    assert np.mean(np.array(found) >= ENOUGH) <= 0.1


@pytest.mark.parametrize("slow", [1.0, 0.0])
@pytest.mark.parametrize("as_level", [str, float], ids=["names", "numbers"])
def test_the_levels_that_were_worse_come_back_or_do_not(slow, as_level):
    random = np.random.default_rng(5)

    def runs():
        node = random.integers(4, size=40)
        seconds = 10 + slow * (node == 3) + random.normal(0, 0.3, 40)
        return pd.DataFrame({"run": range(40), "seconds": seconds, "node": map(as_level, node)})

    found_in = runs().astype({"node": str if as_level is str else int})
    about = Outcome("seconds"), "node", found_in
    found = [fresh_category_evidence(runs(), *about) for _ in range(20)]
    assert np.mean(np.array(found) >= ENOUGH) > 0.9 if slow else np.mean(found) < 4
    other = found_in.rename(columns={"node": "other"})
    assert fresh_category_evidence(runs(), Outcome("seconds"), "other", other) == 1


@pytest.mark.parametrize("value", [1.0, float("nan")])
def test_a_counter_that_is_the_same_everywhere_or_missing_is_no_evidence(value):
    runs = fresh(0.5, np.random.default_rng(4)).assign(faults=value)
    assert fresh_evidence(runs, Outcome("seconds"), "faults", 1) == 1
    assert fresh_evidence(runs, Outcome("seconds"), "no such counter", 1) == 1
