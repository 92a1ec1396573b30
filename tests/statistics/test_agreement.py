"""The accepted range: worked out by hand."""

import numpy as np
import pytest

from nbhelpers.statistics.agreement import accepted_range


@pytest.mark.parametrize(
    "published, accepted",
    [
        ((1.3, 1.3), (1.24, 1.36)),  # an excess of 30 %, 6 points either way
        ((1.5, 1.6), (1.4, 1.72)),  # 50 to 60 %: 40 to 72 %
        ((1.0, 1.05), (0.99, 1.06)),  # hardly any: a point at least
        ((20, 21), (16.2, 25)),  # 1900 to 2000 %: 1520 to 2400 %
        ((2, np.nan), (1.99, np.nan)),  # a lone bound: 1 % of 100 %
        ((1.04, np.nan), (1.0396, np.nan)),
    ],
)
def test_a_slowdown_is_accepted_by_its_excess(published, accepted):
    assert np.allclose(accepted_range(*published), accepted, equal_nan=True)


def test_other_quantities_are_accepted_by_themselves():
    assert accepted_range(np.nan, 1, "ratio")[1] == pytest.approx(1.01)
    assert np.allclose(accepted_range(100, 200, "µs"), (80, 240))
