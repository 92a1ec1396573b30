"""An emulated PC whose kernel has the osnoise tracer and a readable fair server.

It is a kernel and a file system for qemu, and no part of this repository. NOISEBOOK_OSNOISE_VM
names the program that runs a command in it: `PROGRAM -s SECONDS -- COMMAND`; the guest sees this
machine's files, and the folder $JOB as /tmp/job.
"""

import os
from pathlib import Path


def emulated_pc() -> Path | None:
    """The program that NOISEBOOK_OSNOISE_VM names; None if there is none."""
    path = Path(os.environ.get("NOISEBOOK_OSNOISE_VM", "") or "/nonexistent")
    return path if path.is_file() else None
