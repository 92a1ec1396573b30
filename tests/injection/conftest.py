"""Every test of the injector leaves the machine as it was: no process, no descriptor, no setting."""

import pytest

from nbhelpers.measurement._process import children

from .helpers import descriptors, put_back


@pytest.fixture(autouse=True)
def nothing_left():
    before = children(), descriptors()
    yield
    assert (children(), descriptors()) == before
    assert put_back()
