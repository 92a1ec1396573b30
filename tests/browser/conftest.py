"""One JupyterLab for the tests of a module."""

import pytest

from .lab import lab_of


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """Its address, its token and its folder."""
    with lab_of(tmp_path_factory.mktemp("lab ü"), tmp_path_factory.mktemp("own")) as one:
        yield one
