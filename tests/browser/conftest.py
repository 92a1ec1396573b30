"""One JupyterLab and one browser for the tests of a module."""

import pytest

from ..pages import browser, chromium
from .lab import lab_of


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """Its address, its token and its folder."""
    with lab_of(tmp_path_factory.mktemp("lab ü"), tmp_path_factory.mktemp("own")) as one:
        yield one


@pytest.fixture(scope="module")
def opened():
    if chromium() is None:
        pytest.skip("no chromium on this machine")
    pytest.importorskip("playwright", reason="playwright comes with the extra `test`")
    with browser() as one:
        yield one
