"""Where the journals of changed settings lie, and the guardian process that watches ours.

Owns the state folders of root and of other users, and the start and end of the guardian process.
`guardian.py` owns what is in a journal.
"""

import contextlib
import errno
import functools
import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ..errors import SettingError
from . import guardian, kernel, privileged

ROOTS = Path("/run/noisebook")
_SPARE = "noisebook-{}"


def state_folder() -> Path:
    """Where the journals are, for their owner to write: $NOISEBOOK_STATE; for root /run/noisebook;
    else in the home. What is changed must be put back after its user has logged out, too, when
    $XDG_RUNTIME_DIR is gone: that one comes next. Last come temporary files: somebody else may have
    made a folder of our name there, so that it then gets a new one.

    Raises
    ------
    SettingError
        No such folder can be made.
    """
    for folder in _state_candidates():
        with contextlib.suppress(OSError):
            folder.mkdir(mode=0o755, parents=True, exist_ok=True)
            # among temporary files no link is followed: anybody may lay one there
            linked = folder.parent != Path(tempfile.gettempdir())
            if is_ours(folder, stat.S_IWOTH, linked):
                return folder
    if not os.environ.get("NOISEBOOK_STATE"):
        with contextlib.suppress(OSError):
            return Path(tempfile.mkdtemp(prefix=f"{_SPARE.format(os.geteuid())}-"))
    raise SettingError(
        "there is no folder for the journal of changed settings",
        where=folder,
        why="without it nothing could be put back after a crash, so nothing is changed",
        fix=f"make a folder of yours there: mkdir -p {folder}; ls -ld {folder}",
    )


def is_ours(folder: Path, forbidden: int, linked: bool = False) -> bool:
    """Whether a folder is this user's to write, with none of the forbidden permissions; `linked`:
    perhaps by a link.
    """
    found = os.stat(folder, follow_symlinks=linked)
    return (
        stat.S_ISDIR(found.st_mode)
        and found.st_uid == os.geteuid()
        and not found.st_mode & forbidden
        and os.access(folder, os.W_OK | os.X_OK)
    )


def _state_candidates() -> list[Path]:
    if named := os.environ.get("NOISEBOOK_STATE"):
        return [Path(named).absolute()]
    parents = [os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")]
    parents += filter(None, [os.environ.get("XDG_RUNTIME_DIR")])
    spare = Path(tempfile.gettempdir()) / _SPARE.format(os.geteuid())
    return [
        *([ROOTS] if os.geteuid() == 0 else []),
        *(Path(parent) / "noisebook" for parent in parents),
        *(spare, *sorted(spare.parent.glob(f"{spare.name}-*"))),
    ]


# ---- our journal and its guardian ----------------------------------------------------------------


class Watched:
    """The journal of this process, and the guardian that runs while the journal names a change."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.process: subprocess.Popen[bytes] | None = None
        owner = kernel.identity(os.getpid())
        self.journal = guardian.Journal(
            str(folder / f"{owner['pid']}-{owner['started']:020d}.journal"), owner
        )

    def guard(self) -> None:
        """Start a guardian if none watches, or if it was killed."""
        if self.process is None or self.process.poll() is not None:
            self.process = start_guardian(Path(self.journal.path))

    def relax(self) -> None:
        """Dismiss the guardian if nothing is left to guard."""
        if not self.journal.changes:
            process, self.process = self.process, None
            dismiss(process)


@contextlib.contextmanager
def journalling(folder: Path) -> Iterator[None]:
    """An error of the disk becomes a SettingError: nothing may be changed then."""
    try:
        yield
    except OSError as error:
        raise SettingError(
            f"the journal of changed settings cannot be written: {error.strerror}",
            where=folder,
            why="without it nothing could be put back after a crash, so nothing was changed",
            fix=f"see what is wrong there: df {folder}; ls -ld {folder}",
        ) from None


def watched(folder: Path) -> Watched:
    """The journal of this process in a folder; a forked child has another."""
    return _watched(folder, os.getpid())


@functools.cache
def _watched(folder: Path, pid: int) -> Watched:
    return Watched(folder)


def start_guardian(journal: Path) -> subprocess.Popen[bytes]:
    """Start the guardian in a new session and wait until it watches.

    No signal to our process group reaches it there.
    """
    with explained(f"cannot start the guardian process, {sys.executable}", guardian.__file__):
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", guardian.__file__, str(journal)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            bufsize=0,
        )
    try:
        assert process.stdout is not None  # it is a pipe
        with process.stdout:
            ready = process.stdout.read(1)
    except BaseException:
        dismiss(process)
        raise
    if ready != b"r":
        dismiss(process)
        raise SettingError(
            "the guardian process did not start",
            where=guardian.__file__,
            why="after a crash nobody would put the setting back, so nothing was changed",
            fix=f"try it: {sys.executable} -I -S {guardian.__file__} {journal}",
        )
    return process


def dismiss(process: subprocess.Popen[bytes] | None) -> None:
    """End the guardian: all is undone."""
    if process is not None:
        process.kill()
        process.wait()


@contextlib.contextmanager
def explained(what: str, path: str) -> Iterator[None]:
    """Turn an OSError into a SettingError with the command that fixes it."""
    try:
        yield
    except OSError as error:
        text = error.strerror or ""
        if not text.startswith(privileged.NAME):  # the helper has words of its own
            text = os.strerror(error.errno or errno.EIO)
        raise SettingError(
            f"{what}: {text}",
            where=path,
            why="a study that needs it cannot be made; the machine stays as it was",
            fix=_fix(error.errno, path),
        ) from None


def _fix(number: int | None, path: str) -> str:
    if number in (errno.EPERM, errno.EACCES):
        return (
            f"let the helper do it ({privileged.INSTALL}),"
            " or run as root, in a checkout that belongs to root"
            if os.geteuid()
            else "even root may not here: run outside of a container, or without kernel lockdown"
        )
    return {
        errno.ENOENT: (
            f"this kernel has no such setting; see what there is: ls {os.path.dirname(path)}"
        ),
        errno.EROFS: "it is mounted read-only here, as in a container; run outside of it",
        errno.EEXIST: f"choose another name, or remove it: rmdir {path}",
        errno.EBUSY: "something else has it in use; end that first",
    }.get(number or 0, f"see which form the value has: cat {path}")
