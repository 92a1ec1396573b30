"""Journals of changed settings, the folder they lie in, and the guardian process that watches over one.

Owns where state is kept and how the guardian is started and dismissed; `guardian.py` owns what is in a journal.
"""

import contextlib
import errno
import itertools
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from ..errors import SettingError
from ..files import write_json
from . import guardian

_serial = itertools.count()


def state_folder() -> Path:
    """Where the journals are, readable by their owner only: $NOISEBOOK_STATE; for root /run/noisebook; else in the home.

    Raises
    ------
    SettingError : no such folder can be made.
    """
    for folder in _state_candidates():
        with contextlib.suppress(OSError):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if folder.stat().st_uid == os.geteuid() and os.access(folder, os.W_OK | os.X_OK):
                return folder
    raise SettingError("there is no folder for the journal of changed settings", where=folder,
                       why="without it nothing could be put back after a crash",
                       mend="name a folder of your own: export NOISEBOOK_STATE=FOLDER")


def _state_candidates() -> list[Path]:
    if named := os.environ.get("NOISEBOOK_STATE"):
        return [Path(named).absolute()]
    home = Path(os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")) / "noisebook"
    spare = Path(tempfile.gettempdir()) / f"noisebook-{os.geteuid()}"
    return ([Path("/run/noisebook")] if os.geteuid() == 0 else []) + [home, spare]


def write_journal(folder: Path, changes: list[dict]) -> Path:
    """Put on disk what this process is about to change; the name sorts by the time of the change."""
    pid = os.getpid()
    journal = {"format": guardian.FORMAT, "pid": pid, "started": guardian.started(pid), "boot": guardian.boot_id(),
               "changes": changes}
    name = f"{pid}-{time.monotonic_ns():020d}{next(_serial):06d}.journal"
    return write_json(folder / name, journal)


def start_guardian(journal: Path) -> subprocess.Popen:
    """Start the guardian in a session of its own, where no signal to our group reaches it, and wait until it watches."""
    with explained(f"cannot start the guardian process, {sys.executable}", guardian.__file__):
        process = subprocess.Popen([sys.executable, "-I", "-S", guardian.__file__, str(journal)], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True, bufsize=0)
    try:
        with process.stdout:
            ready = process.stdout.read(1)
    except BaseException:
        dismiss(process)
        raise
    if ready != b"r":
        dismiss(process)
        raise SettingError("the guardian process did not start", where=guardian.__file__,
                           why="after a crash nobody would put the setting back, so nothing was changed",
                           mend=f"try it: {sys.executable} -I -S {guardian.__file__} {journal}")
    return process


def dismiss(process: subprocess.Popen | None) -> None:
    """Tell the guardian that all is undone, and wait until it has gone."""
    if process is not None:
        with contextlib.suppress(OSError), process.stdin:
            process.stdin.write(b"q")
        process.wait()


@contextlib.contextmanager
def explained(what: str, path: str) -> Iterator[None]:
    """Turn an OSError into a SettingError that says what to do."""
    try:
        yield
    except OSError as error:
        raise SettingError(f"{what}: {os.strerror(error.errno or errno.EIO)}", where=path,
                           why="a study that needs it cannot be made; the machine stays as it was",
                           mend=_mend(error.errno, path)) from None


def _mend(number: int | None, path: str) -> str:
    if number in (errno.EPERM, errno.EACCES):
        return "run as root: sudo -E make paper" if os.geteuid() else "even root may not do this here; see: make doctor"
    return {errno.ENOENT: f"this kernel has no such setting; see what there is: ls {os.path.dirname(path)}",
            errno.EROFS: "it is mounted read-only here, as in a container; run outside of it",
            errno.ENODEV: "this kernel lacks the file system; see: cat /proc/filesystems",
            errno.EBUSY: "something else has it in use; end that first",
            }.get(number, f"see which form the value has: cat {path}")
