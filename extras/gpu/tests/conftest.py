"""The fixture of the repository's own tests: programs that are built."""

from tests.conftest import binaries

__all__ = ["binaries"]
