"""Where the journals of changed settings lie, and the guardian process that watches ours.

Owns the state folders of root and of other users, and the start and end of the guardian process.
`guardian.py` owns what is in a journal.
"""

import contextlib
import errno
import functools
import os
import shlex
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ..errors import SettingError
from . import guardian, kernel, privileged

ROOTS = Path("/run/noisebook")
_SPARE = "noisebook-{}-"


def state_folder() -> Path:
    """Where the journals are, for their owner to write: $NOISEBOOK_STATE; for root /run/noisebook;
    else in the home. What is changed must be put back after its user has logged out, too, when
    $XDG_RUNTIME_DIR is gone: that one comes next. Last comes a folder among temporary files whose
    name is drawn, so that nobody else has it.

    Raises
    ------
    SettingError
        No such folder can be made.
    """
    for folder in _state_candidates():
        with contextlib.suppress(OSError):
            folder.mkdir(mode=0o755, parents=True, exist_ok=True)
            if _is_ours(folder):
                return folder
    if not os.environ.get("NOISEBOOK_STATE"):
        with contextlib.suppress(OSError):
            return Path(tempfile.mkdtemp(prefix=_SPARE.format(os.geteuid())))
    raise SettingError(
        "there is no folder for the journal of changed settings",
        where=folder,
        why="without it nothing could be put back after a crash, so nothing is changed",
        fix=f"make a folder of yours there: mkdir -p {folder}; ls -ld {folder}",
    )


def _is_ours(folder: Path) -> bool:
    """Whether it is a folder of this user's, which not everybody may write; no link is followed."""
    found = folder.lstat()
    mine = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
    return mine and not found.st_mode & stat.S_IWOTH and os.access(folder, os.W_OK | os.X_OK)


def _state_candidates() -> list[Path]:
    if named := os.environ.get("NOISEBOOK_STATE"):
        return [Path(named).resolve()]
    parents = [os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")]
    parents += filter(None, [os.environ.get("XDG_RUNTIME_DIR")])
    return [
        *([ROOTS] if os.geteuid() == 0 else []),
        *(Path(parent) / "noisebook" for parent in parents),
        *sorted(Path(tempfile.gettempdir()).glob(_SPARE.format(os.geteuid()) + "*")),
    ]


# ---- our journal and its guardian ----------------------------------------------------------------


class Watched(guardian.Journal):
    """The journal of this process, and the guardian that runs while it names a change."""

    def __init__(self, folder: Path):
        owner = kernel.identity(os.getpid())
        name = f"{owner['pid']}-{owner['started']:020d}.journal"
        super().__init__(folder / name, owner)
        self.folder = folder
        self.process: subprocess.Popen[bytes] | None = None

    def guard(self) -> None:
        """Start a guardian if none watches, or if it was killed."""
        if self.process is None or self.process.poll() is not None:
            self.process = start_guardian(Path(self.path))

    def save(self) -> None:
        """Bring the file up to date; dismiss the guardian if nothing is left to guard."""
        if not self.changes:
            process, self.process = self.process, None
            dismiss(process)
        super().save()


@functools.cache
def watched(folder: Path, pid: int) -> Watched:
    """The journal of this process, `pid`, in a folder; a forked child has another."""
    return Watched(folder)


def start_guardian(journal: Path) -> subprocess.Popen[bytes]:
    """Start the guardian in a new session and wait until it watches.

    No signal to our process group reaches it there.
    """
    command = [sys.executable, "-ISc", guardian.START, guardian.__file__, str(journal)]
    with explained(f"cannot start the guardian process, {sys.executable}", guardian.__file__):
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            bufsize=0,
        )
    try:
        assert process.stdout is not None  # it is a pipe
        with process.stdout:
            if process.stdout.read(1) == b"r":
                return process
        raise SettingError(
            "the guardian process did not start",
            where=guardian.__file__,
            why="after a crash nobody would put the setting back, so nothing was changed",
            fix=f"try it: {shlex.join(command)}",
        )
    except BaseException:
        dismiss(process)
        raise


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
            why="a study that needs it cannot be made; nothing is changed",
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
        errno.ENOSPC: f"make room: df {path}",
        errno.ENOENT: (
            f"this kernel has no such setting; see what there is: ls {os.path.dirname(path)}"
        ),
        errno.EROFS: "it is mounted read-only here, as in a container; run outside of it",
        errno.EEXIST: f"choose another name, or remove it: rmdir {path}",
        errno.EBUSY: "something else has it in use; end that first",
    }.get(number or 0, f"see which form the value has: cat {path}")
