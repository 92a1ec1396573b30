"""What Noisebook has to know of this extra: its notebook, with its record and values; and which
traces it reads.
"""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from nbhelpers.extras import Extra
from nbhelpers.mpi import Calls


def _reader(module: str, name: str) -> Callable[[Path], Calls]:
    """A function of a module that is loaded when a trace is read."""
    return lambda path: getattr(import_module(f"noisebook_formats.{module}"), name)(path)


_liballprof = _reader("liballprof", "read_liballprof")
EXTRA = Extra(
    Path(__file__).parent / "notebooks",
    traces={"*rank-0.txt": _liballprof, "*.tar.xz": _liballprof}
    | {"*.otf2": _reader("otf2_archive", "read_otf2")},
)
