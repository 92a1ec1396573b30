"""Every test of the injector leaves the machine as it was: no process, no descriptor, no setting."""

from pathlib import Path

import pytest

from nbhelpers.measure._process import children

from .helpers import descriptors

THROTTLING = Path("/proc/sys/kernel/sched_rt_runtime_us")


@pytest.fixture(autouse=True)
def nothing_left():
    before = children(), descriptors(), THROTTLING.read_text()
    yield
    assert (children(), descriptors(), THROTTLING.read_text()) == before
