"""Where the journals of changed settings lie, and the guardian process that watches ours.

Owns the state folders of root and of other users, how they find each other, and the start and end
of the guardian process. `guardian.py` owns what is in a journal.
"""

import contextlib
import errno
import functools
import json
import os
import pwd
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ..errors import SettingError
from . import guardian, kernel, privileged
from .lock import lock_path

ROOTS = Path("/run/noisebook")
_NOTICE = "noisebook-state-"


def state_folder() -> Path:
    """Where the journals are, for their owner to write: $NOISEBOOK_STATE; for root /run/noisebook;
    else in the home.

    Raises
    ------
    SettingError
        No such folder can be made.
    """
    for folder in _state_candidates():
        with contextlib.suppress(OSError):
            folder.mkdir(mode=0o755, parents=True, exist_ok=True)
            if folder == ROOTS:
                folder.chmod(0o755)  # for others to see what only root can put back
            if _is_ours(folder) and os.access(folder, os.W_OK | os.X_OK):
                return folder
    raise SettingError(
        "there is no folder for the journal of changed settings",
        where=folder,
        why="without it nothing could be put back after a crash, so nothing is changed",
        fix=f"make a folder of yours there: mkdir -p {folder}; ls -ld {folder}",
    )


def _is_ours(folder: Path) -> bool:
    """Not for everybody to write; among temporary files also no link that somebody has laid."""
    found = os.lstat(folder) if folder.parent == Path(tempfile.gettempdir()) else folder.stat()
    return (
        stat.S_ISDIR(found.st_mode)
        and found.st_uid == os.geteuid()
        and not found.st_mode & stat.S_IWOTH
    )


def _state_candidates() -> list[Path]:
    if named := os.environ.get("NOISEBOOK_STATE"):
        return [Path(named).absolute()]
    home = (
        Path(os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")) / "noisebook"
    )
    spare = Path(tempfile.gettempdir()) / f"noisebook-{os.geteuid()}"
    return ([ROOTS] if os.geteuid() == 0 else []) + [home, spare]


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

    def add(self, changes: list[dict]) -> None:
        """Put on disk what is about to be changed.

        Raises
        ------
        SettingError
            The disk does not take it; nothing may be changed then.
        """
        try:
            self.journal.add(changes)
        except OSError as error:
            raise SettingError(
                f"the journal of changed settings cannot be written: {error.strerror}",
                where=self.folder,
                why="without it nothing could be put back after a crash, so nothing was changed",
                fix=_fix_of_disk(error.errno, self.folder),
            ) from None
        _give_notice(self.folder)

    def guard(self) -> None:
        """See that a guardian watches; one that was killed is replaced."""
        if self.process is None or self.process.poll() is not None:
            self.process = start_guardian(Path(self.journal.path))

    def relax(self) -> None:
        """Dismiss the guardian if nothing is left to guard."""
        if not self.journal.changes:
            process, self.process = self.process, None
            dismiss(process)


_FIXES_OF_DISKS = {
    errno.ENOSPC: "make room there: df {0}",
    errno.EDQUOT: "make room there: quota; df {0}",
    errno.EROFS: "make it writable, or keep the state elsewhere: export XDG_STATE_HOME=FOLDER",
}


def _fix_of_disk(number: int | None, folder: Path) -> str:
    return _FIXES_OF_DISKS.get(number or 0, "see what is wrong there: ls -ld {0}").format(folder)


def watched(folder: Path) -> Watched:
    """The journal of this process in a folder; a forked child has another."""
    return _watched(folder, os.getpid())


@functools.cache
def _watched(folder: Path, pid: int) -> Watched:
    return Watched(folder)


# ---- the journals of other users -----------------------------------------------------------------


def _give_notice(folder: Path) -> None:
    """Note for root, next to the lock that all users share, where this user's journals lie."""
    if os.geteuid() == 0:
        return
    with contextlib.suppress(OSError):
        notice = lock_path().with_name(f"{_NOTICE}{os.geteuid()}")
        handle = os.open(notice, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        with open(handle, "w") as file:
            file.write(f"{folder}\n")
            file.truncate()


def repair_others() -> list[str]:
    """Sentences on what other users' dead processes left.

    Root puts it back with their rights; others get the command for root.
    """
    return _repair_users() if os.geteuid() == 0 else _left_to_root()


def _repair_users() -> list[str]:
    sentences = []
    for notice in sorted(lock_path().parent.glob(f"{_NOTICE}[0-9]*")):
        with contextlib.suppress(OSError, ValueError, KeyError, subprocess.SubprocessError):
            user, folder = _noticed(notice)
            if any(name.endswith(".journal") for name in os.listdir(folder)):
                sentences += _repaired_as(user, folder)
    return sentences


def _noticed(notice: Path) -> tuple[pwd.struct_passwd, str]:
    """The user who wrote a notice, and the folder it names."""
    with open(os.open(notice, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)) as file:
        writer = os.fstat(file.fileno()).st_uid
        if writer == 0 or notice.name != f"{_NOTICE}{writer}":
            raise ValueError("not written by the user it names")
        return pwd.getpwuid(writer), file.read(4096).strip()


def _repaired_as(user: pwd.struct_passwd, folder: str) -> list[str]:
    command = [
        sys.executable,
        "-I",
        "-S",
        guardian.__file__,
        folder,
        str(user.pw_uid),
        str(user.pw_gid),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True, cwd="/")
    account = guardian.Account()
    account.__dict__.update(json.loads(done.stdout))
    return [f"{sentence} (changed by {user.pw_name})" for sentence in account.sentences()]


def _left_to_root() -> list[str]:
    """What a dead process of root's has left, as far as root's journals can be read."""
    paths = []
    for path in guardian.journals(str(ROOTS)):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            journal = guardian.read_journal(path, user=0)
            if journal["boot"] == kernel.boot_id() and not kernel.alive(journal):
                paths += [change["path"] for change in journal["changes"]]
    return (
        [
            f"left changed by root: {', '.join(paths)}; only root can put it back: "
            f"sudo {sys.executable} -m nbhelpers.machine.checks"
        ]
        if paths
        else []
    )


def start_guardian(journal: Path) -> subprocess.Popen[bytes]:
    """Start the guardian in a new session and wait until it watches.

    No signal to our process group reaches it there.
    """
    with explained(f"cannot start the guardian process, {sys.executable}", guardian.__file__):
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", guardian.__file__, str(journal)],
            stdin=subprocess.PIPE,
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
    """Report to the guardian that all is undone, and wait until it has ended."""
    if process is not None:
        assert process.stdin is not None  # it is a pipe
        with contextlib.suppress(OSError), process.stdin:
            process.stdin.write(b"q")
        process.wait()


@contextlib.contextmanager
def explained(what: str, path: str) -> Iterator[None]:
    """Turn an OSError into a SettingError with the command that fixes it."""
    try:
        yield
    except OSError as error:
        raise SettingError(
            f"{what}: {_reason(error)}",
            where=path,
            why="a study that needs it cannot be made; the machine stays as it was",
            fix=_fix(error.errno, path),
        ) from None


def _reason(error: OSError) -> str:
    """The kernel's words for the number, or those of the helper."""
    text = error.strerror or ""
    return text if text.startswith(privileged.NAME) else os.strerror(error.errno or errno.EIO)


def _fix(number: int | None, path: str) -> str:
    if number in (errno.EPERM, errno.EACCES):
        return (
            f"let the helper do it ({privileged.INSTALL}), or run as root: sudo -E make paper"
            if os.geteuid()
            else "even root may not do this here; see: make doctor"
        )
    return {
        errno.ENOENT: (
            f"this kernel has no such setting; see what there is: ls {os.path.dirname(path)}"
        ),
        errno.EROFS: "it is mounted read-only here, as in a container; run outside of it",
        errno.ENODEV: "this kernel lacks the file system; see: cat /proc/filesystems",
        errno.EBUSY: "something else has it in use; end that first",
    }.get(number or 0, f"see which form the value has: cat {path}")
