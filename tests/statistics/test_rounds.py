"""The blocks of rounds against drift."""

import numpy as np
import pandas as pd

from nbhelpers.statistics import compare


def rounds_of(effect, count=60, drift=3.0, seed=0):
    random = np.random.default_rng(seed)
    level = 10 + drift * np.sin(np.linspace(0, 6, count))
    common = {"round": range(count), "status": "ok"}
    sides = [
        pd.DataFrame(common | {"seconds": level * factor + random.normal(0, 0.1, count)})
        for factor in (1, 1 + effect)
    ]
    return [side.assign(start_ns=2 * side.index + place) for place, side in enumerate(sides)]


def test_rounds_keep_drift_out_of_the_interval():
    before, after = rounds_of(0.02)
    blocked, plain = compare(before, after), compare(before["seconds"], after["seconds"])
    assert blocked.rounds == 60 and plain.rounds == 0
    means = [result.table.loc["mean"] for result in (blocked, plain)]
    widths = [mean["high"] - mean["low"] for mean in means]
    assert widths[0] < widths[1] / 5
    assert blocked.better == "worse" and plain.better == "no difference shown"
    assert compare(before, after, higher_is_better=True).better == "better"
    assert "60 rounds" in blocked.verdict


def test_the_blocked_interval_covers_the_truth():
    covered = []
    for seed in range(25):
        result = compare(*rounds_of(0.01, count=30, seed=seed))
        covered.append(result.table.loc["mean", "low"] <= 1.01 <= result.table.loc["mean", "high"])
    assert np.mean(covered) >= 0.8


def test_rounds_of_two_campaigns_one_after_the_other_are_not_the_same_rounds():
    before, after = rounds_of(0.0)
    after["start_ns"] += 10**9
    result = compare(before, after)
    assert result.rounds == 0 and "drift" in result.verdict
