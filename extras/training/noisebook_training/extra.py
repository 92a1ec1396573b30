"""What Noisebook has to know of this extra: where its notebook lies, with its record and values;
and which traces it reads.
"""

from pathlib import Path

from nbhelpers.extras import Extra
from nbhelpers.mpi import Calls


def _kineto(path: Path) -> Calls:
    from .kineto import read_kineto

    return read_kineto(path)


EXTRA = Extra(Path(__file__).parent / "notebooks", traces={"*.json": _kineto, "*.json.gz": _kineto})
