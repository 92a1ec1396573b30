"""Campaigns with a known truth: pure noise, and one planted cause with near copies."""

import numpy as np
import pandas as pd
import pytest


def noise_campaign(random, runs=80, counters=12):
    seconds = random.normal(0.4, 0.008, runs)
    table = _bookkeeping(seconds)
    for number in range(counters):
        table[f"noise{number}_per_s"] = random.poisson(200, runs) / 0.4
    return pd.DataFrame(table)


def planted_campaign(random, runs=120, counters=12, copies=4, share=0.2):
    """A cause that doubles in the slow runs, its noisy copies, counters of fixed work,
    consequences.
    """
    slow = random.random(runs) < share
    seconds = random.normal(0.4, 0.006, runs) + slow * random.uniform(0.1, 0.2, runs)
    table = _bookkeeping(seconds)
    cause = random.poisson(100, runs) + slow * random.poisson(300, runs)
    table["page_faults"] = 1000 + random.poisson(30, runs)
    table["page_faults_per_s"] = table["page_faults"] / seconds
    table["cause"], table["cause_per_s"] = cause, cause / seconds
    for number in range(copies):
        table[f"copy{number}_per_s"] = cause * random.normal(1, 0.2, runs) / seconds
    for number in range(counters):
        table[f"noise{number}_per_s"] = random.poisson(200, runs) / 0.4
    return pd.DataFrame(table)


def _bookkeeping(seconds):
    runs = np.arange(len(seconds))
    times = {"seconds": seconds, "wall_seconds": seconds + 0.01, "user_s": 2 * seconds}
    rest = {"status": ["ok"] * runs.size, "always_two": [2] * runs.size}
    return {"run": runs, "start_ns": runs * 10**9} | times | rest


@pytest.fixture
def noise():
    return noise_campaign


@pytest.fixture
def planted():
    return planted_campaign
