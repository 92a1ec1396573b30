"""Which of our files the kernel of a stage has loaded, and what was in them.

A stage is stale when one of them changed. Following the imports in the syntax trees took 239 lines
and said of nearly every change that all stages are stale; a kernel knows what it uses.
"""

import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from .files import digest, write_json
from .places import PACKAGE, shipped

LIST = "NOISEBOOK_LOADED"  # names the file that a kernel writes
EXTENSION = __name__  # of IPython: a stage's kernel is started with it
_ROOT = PACKAGE.parent
_STYLES = (".json", ".css", ".mplstyle")
_OURS = (PACKAGE.name, "noisebook_")  # the library; packages of the extras

# What a package rests on beside its Python modules and the other files of its folder.
RESTS_ON = {
    "attribution": (
        "data/knowledge/columns.yml",
        "data/knowledge/factors/*",
        "data/knowledge/metrics/*",
    ),
    "injection": ("injector_c/*.[ch]", "injector_c/*.py"),
    "measurement": ("data/knowledge/columns.yml", "data/knowledge/metrics/*"),
    "mitigation": (
        "data/knowledge/factors*",
        "data/knowledge/factors/*",
        "data/knowledge/mitigations*",
        "data/knowledge/mitigations/*",
        "data/knowledge/references.yml",
    ),
    "report": ("data/published/*.csv", "data/knowledge/references.yml"),
    "simulation": ("simulator_c/*.[ch]", "simulator_c/*.py", "data/knowledge/networks.yml"),
    "studies": ("data/published/*.csv",),
    "workloads": (
        "data/knowledge/programs/*",
        "workloads/*.[ch]",
        "workloads/Makefile",
        "workloads/sycl/*",
        "workloads/mpi/*",
    ),
}


def load_ipython_extension(shell: Any) -> None:
    """After each cell, write the digests of what is loaded: each file as it was first seen."""
    path, seen = os.environ[LIST], dict[str, str]()

    def write(*_: object) -> None:
        seen.update(digests(set(modules()) - seen.keys()) | seen)
        write_json(path, seen)

    shell.events.register("post_run_cell", write)


def modules(*prefixes: str) -> list[str]:
    """The files of our modules that this process has loaded, as seen from the library's folder.

    Parameters
    ----------
    prefixes
        How their names begin; none: all of ours, those of the extras too.
    """
    files = [
        getattr(module, "__file__", None) or ""
        for name, module in list(sys.modules.items())
        if name.startswith(prefixes or _OURS)
    ]
    return sorted(os.path.relpath(file, _ROOT) for file in files if file.endswith(".py"))


def digests(names: Iterable[str]) -> dict[str, str]:
    """Digest of each file as it is now, and of what its package rests on besides.

    Parameters
    ----------
    names
        As `modules` has them; those of other files do not matter. One that is gone has "".

    Examples
    --------
    >>> sorted(digests(["nbhelpers/palette.py", "nbhelpers/gone.py"]).items())[0]
    ('nbhelpers/gone.py', '')
    """
    files = {_ROOT / name for name in names if name.endswith(".py")}
    files |= set(_other_files(files))
    return {
        os.path.relpath(file, _ROOT): digest(file.read_bytes()) if file.is_file() else ""
        for file in sorted(files)
    }


def _other_files(files: Iterable[Path]) -> Iterator[Path]:
    """Schemas, style sheets, C sources and knowledge: what is no Python."""
    for folder in {file.parent for file in files if file.parent.is_dir()}:
        yield from (path for path in folder.iterdir() if path.suffix in _STYLES)
        if PACKAGE in (folder, *folder.parents):
            package = [*folder.relative_to(PACKAGE).parts, ""][0]
            for pattern in RESTS_ON.get(package, ()):
                yield from (path for path in shipped().glob(pattern) if path.name[0] != "_")
