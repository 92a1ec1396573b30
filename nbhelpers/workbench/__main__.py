"""python -m nbhelpers.workbench STEP FILE: measure what a session says; a line of JSON a run."""

import signal
import sys

from .measuring import measure_here
from .session import Session

if __name__ == "__main__":
    # a kernel that runs no cell ignores SIGINT, and what it starts inherits that
    signal.signal(signal.SIGINT, signal.default_int_handler)
    _, step, file = sys.argv
    sys.exit(measure_here(step, Session.load(file)))
