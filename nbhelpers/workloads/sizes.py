"""The size of a program, and how its run time grows with it."""

from collections.abc import Callable
from dataclasses import dataclass

from ..errors import check_choice
from .openmp import minife, nbody, schedbench, stream, syncbench
from .workload import Workload


@dataclass(frozen=True)
class SizeModel:
    """What the size of a program is, and how its run time grows with it.

    Parameters
    ----------
    make
        Gives the workload of a size; takes `threads` and the options of the program by keyword.
    start
        Where a search begins.
    exponent
        Run time grows as size**exponent.
    """

    make: Callable[..., Workload]
    start: int
    exponent: float


PUBLISHED_ELEMENTS = 2**25
_DOUBLE_B = 8

SIZE_MODELS = {
    "nbody": SizeModel(nbody, 4000, 2.0),
    "stream": SizeModel(stream, 20, 1.0),
    "minife": SizeModel(minife, 30, 4.0),
    "schedbench": SizeModel(schedbench, 32, 1.0),
    "syncbench": SizeModel(syncbench, 100, 1.0),
}


def size_model(program: str) -> SizeModel:
    """Return what the size of one of our programs is, and how its run time grows with it.

    Parameters
    ----------
    program
        "nbody", "stream", "minife", "schedbench" or "syncbench".

    Returns
    -------
    SizeModel

    Raises
    ------
    InputError
        There is no such program.
    """
    check_choice("program", program, SIZE_MODELS)
    return SIZE_MODELS[program]


def stream_elements(cache_bytes: int) -> int:
    """Return how many elements BabelStream's arrays need so that memory is measured, not a cache.

    The least power of two of which an array is four times the caches, as STREAM demands, and at
    least the 2**25 of Cui et al. 2023, sec. 4.2.

    Parameters
    ----------
    cache_bytes
        Size in bytes of all last-level caches that the run uses together; 0: unknown.

    Returns
    -------
    int

    Examples
    --------
    >>> stream_elements(512 * 2**20) == 2**28
    True
    """
    return max(PUBLISHED_ELEMENTS, 1 << (-(-4 * cache_bytes // _DOUBLE_B) - 1).bit_length())
