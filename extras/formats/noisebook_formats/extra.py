"""What Noisebook has to know of this extra: its notebook, with its record and values; and which
traces it reads.
"""

from pathlib import Path

from nbhelpers.extras import Extra
from nbhelpers.mpi import Calls


def _liballprof(path: Path) -> Calls:
    from .liballprof import read_liballprof

    return read_liballprof(path)


def _otf2(path: Path) -> Calls:
    """The archive, or the folder that Score-P makes, which has it under this name."""
    from .otf2_archive import read_otf2

    return read_otf2(path / "traces.otf2" if path.is_dir() else path)


EXTRA = Extra(
    Path(__file__).parent / "notebooks",
    traces={"*rank-0.txt": _liballprof, "*.tar.xz": _liballprof, "*.otf2": _otf2},
)
