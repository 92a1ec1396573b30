"""The process that measures on a node; a worker starts it."""

import sys
from pathlib import Path

from ..errors import NoisebookError
from ._task import run

try:
    run(Path(sys.argv[1]), sys.stdin.buffer.read())
except NoisebookError as error:
    sys.exit(str(error))
except KeyboardInterrupt:
    sys.exit(130)
