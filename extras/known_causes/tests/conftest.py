"""The fixtures of the repository's own tests: programs that are built, and nothing left behind."""

from tests.conftest import binaries, nothing_left

__all__ = ["binaries", "nothing_left"]
