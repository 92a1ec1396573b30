"""Every test of the injector leaves no process, no descriptor and no setting behind."""

import pytest

from nbhelpers.measurement._orphans import children

from .helpers import descriptors, put_back


@pytest.fixture(autouse=True)
def nothing_left():
    before = children(), descriptors()
    yield
    assert (children(), descriptors()) == before
    assert put_back()
