"""The event queue by itself, under sanitizers, against a sorted list: small and large buckets,
bursts, one time for all, the distant future.
"""

import subprocess
from pathlib import Path

import pytest

from ..sanitizers import REPOSITORY, build_checked


@pytest.fixture(scope="module")
def driver(tmp_path_factory) -> Path:
    return build_checked(
        tmp_path_factory.mktemp("queue"),
        f"-I{REPOSITORY / 'simulator_c'}",
        Path(__file__).with_name("queue_driver.c"),
    )


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize(
    "events, spread, burst",
    [
        (2000, 10, 5),
        (50_000, 1, 3000),
        (50_000, 100, 20_000),
        (100_000, 5_000_000, 30_000),
        (60_000, 2**40, 9000),
        (30_000, 3000, 60_000),
        (20_000, 2**50, 10),
    ],
)
def test_events_come_in_order(driver: Path, seed: int, events: int, spread: int, burst: int):
    done = subprocess.run(
        [driver, str(seed), str(events), str(spread), str(burst)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
