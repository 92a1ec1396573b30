"""What of ours stands on the machine without a live owner, found by its name.

Owns the private folders for files of a run, and how what dead processes have left is removed:
tracefs instances, control groups, such folders, and memory that ranks of MPI shared.
"""

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from ..errors import Unavailable
from . import guardian, kernel, run_groups

IN_MEMORY = "/dev/shm"  # nosec B108
# of MPICH, of Open MPI 5 and 4, of Intel MPI
OF_MPI = ("mpich_shm_*", "sm_segment.*", "vader_segment.*", "Intel_MPI_*")
UNUSED_S = 600  # a job elsewhere, whose processes are not seen from here, may be starting


def remove() -> list[str]:
    """Remove what dead processes have left, as far as this user may; a sentence for each thing
    removed, or not to be removed.
    """
    return [*_gone(), *_segments()]


def _named() -> Iterator[tuple[str, str]]:
    """What bears a name of ours, as (path, what it is): instances, also of unmounted tracefs, where
    they go on recording unseen; groups beside ours, of runs outside of a campaign (a campaign's is
    in the journal); folders of runs.
    """
    with contextlib.suppress(OSError):
        top = f"{kernel.file_system(kernel.TRACEFS)}/instances"
        yield from ((f"{top}/{name}", f"the tracefs instance {name}") for name in os.listdir(top))
    groups = Path(run_groups.base()).glob(f"{kernel.OURS}*") if run_groups.base() else ()
    yield from ((str(path), f"the control group {path}") for path in groups)
    for place in _places():
        yield from ((str(path), str(path)) for path in place.glob(f"{kernel.OURS}*"))


def _gone() -> Iterator[str]:
    """Remove what a dead process made, and the processes in it; sentences on it."""
    for path, what in _named():
        owner = kernel.owner_of(os.path.basename(path))
        if owner is None or kernel.alive(owner):
            continue
        left, account = f"{what}, left by process {owner['pid']}, which is dead", guardian.Account()
        try:
            if what != path:
                acted, _ = guardian.undone({"kind": "rmdir", "path": path}, account, 0)
            elif acted := os.lstat(path).st_uid == os.geteuid():
                shutil.rmtree(path)
            yield from (f"{said}: {of_what}" for said, of_what, _ in account)
            yield from [f"removed: {left}"] * acted
        except OSError as error:
            yield f"not removed: {left}: {error.strerror or error}"


def _segments() -> Iterator[str]:
    """Memory that ranks of an MPI program shared, until they were killed: no process has it."""
    found = set()
    for path in (path for pattern in OF_MPI for path in Path(IN_MEMORY).glob(pattern)):
        with contextlib.suppress(FileNotFoundError):
            status = path.lstat()  # of this user, and nobody wrote it of late
            if status.st_uid == os.geteuid() and status.st_mtime < time.time() - UNUSED_S:
                found.add(str(path))
    for maps in Path("/proc").glob("[0-9]*/maps") if found else ():
        with contextlib.suppress(OSError):
            text = maps.read_text(errors="replace")
            found = {path for path in found if path not in text}
    for name in found:
        Path(name).unlink(missing_ok=True)
        yield f"removed: {name}, left by ranks of an MPI program that are dead"


# ---- files of a run ------------------------------------------------------------------------------


class RunFolder:
    """A private folder for the files of one run, in memory where there is any.

    Its name says whose it is: what a killed process left is removed by `settings.repair`.

    Parameters
    ----------
    name
        What it is for: a part of its name.

    Attributes
    ----------
    path
        Where it lies.

    Raises
    ------
    Unavailable
        There is no place for it.

    Examples
    --------
    >>> folder = RunFolder("example")
    >>> folder.path.is_dir()
    True
    >>> folder.close()
    >>> folder.path.exists()
    False
    """

    def __init__(self, name: str):
        for place in _places():
            with contextlib.suppress(OSError):
                prefix = f"{kernel.owned_name(name)}-"  # what follows is drawn: nobody can take it
                self.path = Path(tempfile.mkdtemp(prefix=prefix, dir=place))
                return
        raise Unavailable(
            "there is no private folder for the files of a run",
            where=place,
            why="a file that others can change would change what is measured",
            fix=f"make room for it: df {place}; ls -ld {place}",
        )

    def close(self) -> None:
        """Remove it with all that is in it; safe to call again."""
        shutil.rmtree(self.path, ignore_errors=True)


def _places() -> list[Path]:
    return [Path(IN_MEMORY), Path(tempfile.gettempdir())]
