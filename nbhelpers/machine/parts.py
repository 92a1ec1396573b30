"""Which optional parts this machine has now, so that a study notices what changed since it was
measured.

Owns where a shared library is found. Cheap: every `make paper` calls it.
"""

import os
import platform
import subprocess
from contextlib import suppress
from functools import cache
from pathlib import Path

LIBRARIES = ("jemalloc", "tcmalloc_minimal", "mimalloc")  # that mitigations put in place of malloc


def optional_parts(programs: str | Path) -> dict[str, list]:
    """What a study can make use of where it is there: `cpus` (that this process may use),
    `libraries`, `programs` (built ones).

    Parameters
    ----------
    programs
        The folder that programs are built into; one by another compiler, or of SYCL, lies in a
        folder below.

    Examples
    --------
    >>> sorted(optional_parts("build/bin"))
    ['cpus', 'libraries', 'programs']
    """
    built = Path(programs)
    return {
        "cpus": sorted(os.sched_getaffinity(0)),
        "libraries": [name for name in LIBRARIES if find_library(name)],
        "programs": sorted(
            str(path.relative_to(built))
            for path in built.rglob("*")
            if os.access(path, os.X_OK) and path.is_file()
        ),
    }


@cache
def find_library(name: str) -> str | None:
    """The file of a shared library for programs of this machine's kind, or None.

    A path stands for itself.
    """
    if os.sep in name:
        return name if os.path.isfile(name) else None
    machine = {"x86_64": "x86-64", "aarch64": "AArch64"}.get(platform.machine(), "")
    path = f"{os.environ.get('PATH', '')}:/sbin:/usr/sbin"
    with suppress(OSError):
        done = subprocess.run(
            ["ldconfig", "-p"], capture_output=True, text=True, env=os.environ | {"PATH": path}
        )
        for line in done.stdout.splitlines():
            file, _, place = line.strip().partition(" => ")
            if file.startswith(f"lib{name}.so") and machine in file and os.path.isfile(place):
                return place
    return None
