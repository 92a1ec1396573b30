"""Traces of MPI programs that other tools wrote, as the calls that Noisebook simulates."""

from .liballprof import read_liballprof
from .otf2_archive import read_otf2

__all__ = ["read_liballprof", "read_otf2"]
