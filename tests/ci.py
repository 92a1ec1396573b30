"""What CI leaves out, since another of its parts shows it or it takes too long; it says so."""

import os

import pytest


def not_in_ci(reason: str) -> pytest.MarkDecorator:
    """A mark for tests that run by hand and not in CI."""
    return pytest.mark.skipif(os.environ.get("CI") == "true", reason=f"not in CI: {reason}")
