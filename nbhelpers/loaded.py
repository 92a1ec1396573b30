"""Which of our files the kernel of a stage has read, and what was in them.

A stage is stale when one of them changed. Following the imports in the syntax trees took 239 lines
and said of nearly every change that all stages are stale; a kernel knows what it uses: its modules,
those in C, and the facts that it has opened.
"""

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .files import digest, write_json
from .places import PACKAGE, knowledge, shipped

LIST = "NOISEBOOK_LOADED"  # names the file that a kernel writes
EXTENSION = __name__  # of IPython: a stage's kernel is started with it
_ROOT = PACKAGE.parent
_STYLES = (".json", ".css", ".js", ".mplstyle", ".typ", ".bib")
_OURS = (PACKAGE.name, "noisebook_")  # the library; packages of the extras
_READING = ("open", "os.listdir", "os.scandir")  # Python's audit events


def load_ipython_extension(shell: Any) -> None:
    """After each cell, write the digests of what was read: each file as it was first seen."""
    path, seen, opened = os.environ[LIST], dict[str, str](), set[str]()
    facts = tuple(map(str, (knowledge(), shipped() / "data/published", shipped() / "workloads")))

    def note(event: str, arguments: tuple) -> None:
        if event in _READING and str(arguments[0]).startswith(facts):
            opened.add(os.path.relpath(arguments[0], _ROOT))

    def write(*_: object) -> None:
        seen.update(digests({*modules(), *opened} - seen.keys()) | seen)
        write_json(path, seen)

    sys.addaudithook(note)
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
        for name, module in sys.modules.copy().items()  # other threads may import
        if name.startswith(prefixes or _OURS)
    ]
    return sorted(os.path.relpath(file, _ROOT) for file in files if file.endswith((".py", ".so")))


def digests(names: Iterable[str]) -> dict[str, str]:
    """Digest of each file as it is now, of a folder's names, and of the schemas, style sheets and
    scripts beside a module; one that has a module's name belongs to that module alone.

    Parameters
    ----------
    names
        Paths below the library's folder, as `modules` has them. One that is gone has "".

    Examples
    --------
    >>> sorted(digests(["nbhelpers/palette.py", "nbhelpers/gone.py"]).items())[0]
    ('nbhelpers/gone.py', '')
    >>> sorted(digests(["nbhelpers/explorers.py"]))[:2]
    ['nbhelpers/explorers.css', 'nbhelpers/explorers.js']
    """
    paths = {_ROOT / name for name in names}
    folders = {path.parent for path in paths if path.suffix == ".py" and path.parent.is_dir()}
    beside = [path for one in folders for path in one.iterdir() if path.suffix in _STYLES]
    owners = {path: path.with_name(path.name.split(".")[0] + ".py") for path in beside}
    paths |= {path for path, own in owners.items() if own in paths or not own.exists()}
    return {os.path.relpath(path, _ROOT): _digest(path) for path in sorted(paths)}


def _digest(path: Path) -> str:
    if path.is_dir():
        return digest(*sorted(os.listdir(path)))
    return digest(path.read_bytes()) if path.is_file() else ""
