"""python -m nbhelpers.workbench STEP FILE: measure what a session says; a line of JSON a run."""

import signal
import sys
from functools import partial
from pathlib import Path

from .measuring import STEPS, measure_here
from .session import Session

if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in STEPS:
        sys.exit(f"usage: python -m nbhelpers.workbench {{{','.join(STEPS)}}} FILE")
    # a kernel that runs no cell ignores SIGINT, and what it starts inherits that
    signal.signal(signal.SIGINT, signal.default_int_handler)
    write = partial(print, flush=True)
    sys.exit(measure_here(sys.argv[1], Session.load(Path(sys.argv[2])), write))
