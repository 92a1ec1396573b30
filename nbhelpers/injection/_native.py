"""The compiled injector: `ffi` and `lib` of injector_c, where it lies, and the name of its program;
or an error that says how to build it.
"""

import os

from ..errors import RunError, Unavailable

try:
    from . import _injector
    from ._injector import ffi, lib
except ImportError as error:
    raise Unavailable("the injector is not built", where=str(error), fix="run: make env") from None

if not hasattr(lib, "NB_LIMIT_STRETCH"):  # what was added to injector.h last
    raise Unavailable(
        "the injector was built from older sources", where=_injector.__file__, fix="run: make env"
    )

__all__ = ["PROGRAM", "ffi", "lib", "library", "check"]

library = _injector.__file__
PROGRAM = "nbinject"  # supervisor and lanes, beside our other programs


def check(code: int, doing: str) -> None:
    """Turn a negative errno of the C core into an error."""
    if code < 0:
        raise RunError(
            f"the injector failed {doing}: {os.strerror(-code)}",
            why="without its noise the run would be an undisturbed one",
            fix="see: make doctor",
        )
