"""Campaigns of these tests take a measuring lock of their own: they test what is done, not how
fast, and must not wait for others.
"""

import pytest


@pytest.fixture(autouse=True)
def own_lock(tmp_path_factory, monkeypatch):
    """Locks and journals in a folder of the test's own."""
    monkeypatch.setenv("NOISEBOOK_STATE", str(tmp_path_factory.mktemp("state")))
