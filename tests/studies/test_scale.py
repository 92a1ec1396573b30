"""The studies: against the engine, closed forms and plain arithmetic; nothing here depends on
chance, every seed is given.
"""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from nbhelpers.errors import InputError
from nbhelpers.simulation import patterns, periodic
from nbhelpers.simulation.noisy_cases import slowdowns
from nbhelpers.studies.scale.signatures import (
    QUANTILES,
    published_noise,
    published_signature,
    published_signatures,
)

REPOSITORY = Path(__file__).resolve().parents[2]
RECORDED = REPOSITORY / "data" / "recorded" / "80-noise-at-scale"


def test_signatures_have_the_published_figures():
    made = published_signatures(seconds=100)
    for row in published_noise().to_dict("records"):
        trace, named = made[row["system"]], row["system"]
        assert len(trace) == pytest.approx(row["detours_per_s"] * 100, rel=0.001), named
        overhead = pytest.approx(row["overhead_percent"] / 100, rel=0.15)
        assert trace.overhead == overhead, named
        for column in ("median_us", "p99_us", "max_us"):
            level = QUANTILES[column]
            found = np.quantile(trace.duration_ns, level, method="inverted_cdf") / 1e3
            assert found == pytest.approx(row[column], rel=0.02), (named, column)


@pytest.mark.parametrize(
    "quantiles, overhead",
    [({0.5: 1, 1: 5}, 0.01), ({0.5: 5, 0.99: 2, 1: 9}, 0.01), ({0.5: 1, 0.99: 2, 1: 3}, 0.9)],
)
def test_signatures_that_no_noise_has_are_refused(quantiles, overhead):
    with pytest.raises(InputError):
        published_signature(quantiles, 100, overhead)


@pytest.mark.skipif(not RECORDED.exists(), reason="no simulations at full size were recorded")
def test_recorded_tables_are_what_this_library_computes():
    """The small rows again, of the sizes of PROFILE=recorded."""
    values = yaml.safe_load((REPOSITORY / "notebooks/parameters/recorded.yml").read_text())
    seeds = values["80-noise-at-scale"]["seeds"]
    table = pd.read_csv(RECORDED / "regular.csv", comment="#")
    small = table[table["ranks"] <= 512].reset_index(drop=True)
    columns = ["noise", "ranks", "bytes", "cosched"]
    noise = {"1000 Hz x 100 us": periodic(1000, 100)}
    again = slowdowns(small[columns], patterns.dissemination, noise, seeds=seeds)
    assert again["median"].to_numpy() == pytest.approx(small["median"].to_numpy(), rel=1e-12)
    assert len(small) > 8
