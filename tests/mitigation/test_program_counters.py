"""A counter that the program reports itself leads to its own paths."""

import numpy as np
import pandas as pd
import pytest

from nbhelpers.attribution import explain
from nbhelpers.mitigation.report import found_factors, is_of_program


def runs_with_probes() -> pd.DataFrame:
    """The program reports its probes; softirqs and forks are there, too, and rise with them."""
    random = np.random.default_rng(1)
    slow = random.random(60) < 1 / 3
    probes = 400 + 900 * slow + random.integers(0, 50, 60)
    return pd.DataFrame(
        {
            "seconds": 0.1 + 0.05 * slow + 0.001 * random.random(60),
            "probes": probes,
            "softirq_RCU": probes // 10 + random.integers(0, 8, 60),
            "machine_forks": random.poisson(3, 60) + 2 * slow,
        }
    )


@pytest.fixture(scope="module")
def explained():
    runs = runs_with_probes()
    return runs, explain(runs, seed=1)


def test_the_programs_counter_comes_before_what_the_system_did_for_it(explained):
    _, explanation = explained
    factors = found_factors(explanation)
    assert factors.index[0] == "program-paths"
    assert factors["columns"].iloc[0][0].removesuffix("_per_s") == "probes"


def test_what_we_count_is_not_the_programs():
    names = ["probes", "retries", "minor_faults", "vm_pgfault", "irq_LOC", "cgroup_memory_max"]
    assert [name for name in names if is_of_program(name)] == ["probes", "retries"]
