"""What the tests of the workbench share."""

import pytest


@pytest.fixture(autouse=True)
def state(tmp_path_factory, monkeypatch):
    """A measuring lock of these tests' own, so that they do not wait for a study."""
    monkeypatch.setenv("NOISEBOOK_STATE", str(tmp_path_factory.mktemp("state")))
