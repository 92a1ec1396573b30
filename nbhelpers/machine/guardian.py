"""Undoes what a dead process changed; runs as `python -I -S guardian.py JOURNAL`.

Owns the journal, a JSON file that is on disk before the first change that it names. It holds the
owner (pid, start time, boot, pid namespace) and its changes (write, rmdir) in the order
made. They are undone in the reverse order; a change leaves the journal when its undoing was seen.
Standard library only, since it must work when nothing else does.
"""

import contextlib
import errno
import fcntl
import json
import os
import select
import signal
import sys
import tempfile
import time
from _thread import RLock
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING or __package__:
    from . import kernel, run_groups
else:  # a script, and with -I its folder is not searched
    sys.path.append(os.path.dirname(os.path.abspath(__file__)))
    import kernel
    import run_groups

MOMENT_S = 0.1  # in which the children of a process that was killed close their files
FORMAT = "noisebook journal 1"
DONE, LEFT, FAILED = "put back", "left alone", "not undone"
ENDED = "killed, left by a run whose harness is dead"
_inside = RLock()
_holding: list[int] = []
Place = str | os.PathLike[str]
# what came of undoing: DONE, LEFT, FAILED or ENDED; of what, or a sentence; errno
Account = list[tuple[str, str, int]]


# ---- journals ------------------------------------------------------------------------------------


def read_journal(path: Place) -> dict:
    """The journal in a file: owner and changes; one of another user is refused: it could name any
    path.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    with open(handle, encoding="utf-8", errors="surrogateescape") as file:
        if os.fstat(file.fileno()).st_uid != os.geteuid():
            raise ValueError("belongs to another user")
        journal = json.load(file)
    whole = isinstance(journal, dict) and {"pid", "started", "boot", "changes"} <= set(journal)
    if not whole or journal.get("format") != FORMAT:
        raise ValueError("not a whole journal")
    return journal


def journals(folder: Place) -> list[str]:
    """Paths of the journals in a folder."""
    with kernel.passing_over():
        return sorted(
            os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".journal")
        )
    return []


class Journal:
    """What one owner has changed, in the order made.

    Every method is called with the folder `locked`. Several changes of a process may be ended in
    any order; each is undone as soon as nothing that was made later stands on it.
    """

    def __init__(self, path: Place, owner: dict, changes: Sequence[dict] = ()):
        self.path, self.owner, self.changes = str(path), owner, list(changes)

    @classmethod
    def read(cls, path: str) -> "Journal":
        """The journal in a file, to undo it in its owner's place: all of it is over."""
        content = read_journal(path)
        changes = [change | {"over": True} for change in content.pop("changes")]
        if not all(
            change["kind"] in kernel.UNDO and isinstance(change["path"], str) for change in changes
        ):
            raise ValueError("names changes of an unknown kind")
        return cls(path, content, changes)

    def add(self, changes: list[dict]) -> None:
        """Take changes in, on disk before they are made; if that fails, they are not in it."""
        self.changes += changes
        try:
            self.save()
        except BaseException:
            self.drop(changes)
            raise

    def drop(self, changes: list[dict]) -> None:
        """Take changes out.

        On a full disk the longer journal stays: what it names too much needs no undoing.
        """
        gone = set(map(id, changes))
        self.changes = [change for change in self.changes if id(change) not in gone]
        with contextlib.suppress(OSError):
            self.save()

    def save(self) -> None:
        """Bring the file up to date; without changes there is none."""
        if not self.changes:
            remove(self.path)
            return
        folder, name = os.path.split(self.path)
        changes = [
            {key: value for key, value in change.items() if key != "over"}
            for change in self.changes
        ]
        content = json.dumps(self.owner | {"format": FORMAT, "changes": changes}, indent=2) + "\n"
        handle, temporary = tempfile.mkstemp(dir=folder, prefix=f".{name}.")
        try:
            with open(handle, "w", encoding="utf-8", errors="surrogateescape") as file:
                file.write(content)
                file.flush()
                os.fchmod(handle, 0o644)
                os.fsync(handle)
            os.replace(temporary, self.path)
        except BaseException:
            remove(temporary)
            raise

    def holds(self, changes: Sequence[dict]) -> bool:
        """Whether one of these changes is still to be undone."""
        return any(mine is change for mine in self.changes for change in changes)

    def end(self, changes: Sequence[dict], patience_s: float = kernel.BUSY_FOR_S) -> Account:
        """Undo these changes, and what waited for them, the last one first.

        What fails stays in the journal.
        """
        for change in changes:
            change["over"] = True
        account: Account = []
        for change in [change for change in reversed(self.changes) if change.get("over")]:
            # the collector may have ended one meanwhile
            if self.holds([change]) and not self._carries(change):
                self._undo(change, account, patience_s)
        return account

    def _undo(self, change: dict, account: Account, patience_s: float) -> None:
        try:
            # another part of this process may share the change, and has not ended it
            again = any(mine is not change and is_shared(mine, change) for mine in self.changes)
            acted, remark = (False, "") if again else _undone(change, account, patience_s)
        except OSError as error:
            reason = error.strerror or os.strerror(error.errno or errno.EIO)
            sentence = f"{change['path']}: {reason}{_for_root(change, error)}"
            account.append((FAILED, sentence, error.errno or 0))
            return
        self.drop([change])
        if acted or remark:
            account.append((DONE, change["path"], 0) if acted else (LEFT, remark, 0))

    def _carries(self, change: dict) -> bool:
        """Whether what was made later stands on a change: the same path again, or one below it."""
        at = next(number for number, mine in enumerate(self.changes) if mine is change)
        below = change["path"].rstrip("/") + "/"
        return any(
            f"{later['path']}/".startswith(below) and not is_shared(later, change)
            for later in self.changes[at + 1 :]
        )


def _undone(change: dict, account: Account, patience_s: float) -> tuple[bool, str]:
    """Undo a change; first end processes that would hold a control group."""
    if change["kind"] == "rmdir" and run_groups.is_group(change["path"]):
        if names := run_groups.end_group(change["path"], kernel.BUSY_FOR_S):
            account.append((ENDED, ", ".join(names), 0))
        with contextlib.suppress(OSError):  # a group that is busy for a moment is tried again
            run_groups.remove(change["path"])
            return True, ""
    return kernel.UNDO[change["kind"]](change, patience_s)


@contextlib.contextmanager
def locked(folder: Place) -> Iterator[None]:
    """Hold the folder of journals, so that nobody reads a journal while it is acted on.

    May be nested.
    """
    with _inside:
        # A change that the collector finds dropped is undone wherever its process is, here too.
        if _holding:
            yield
            return
        handle = os.open(os.path.join(folder, "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            _holding.append(handle)
            yield
        finally:
            _holding.clear()
            fcntl.flock(handle, fcntl.LOCK_UN)
            os.close(handle)


def is_shared(one: dict, other: dict) -> bool:
    """Whether two changes make the same of the same thing, and both share it."""
    same_thing = (one["kind"], one["path"]) == (other["kind"], other["path"]) and kernel.same(
        one.get("new", ""), other.get("new", "")
    )
    return same_thing and bool(one.get("shared") and other.get("shared"))


def remove(path: str) -> None:
    """Delete a file that may be gone already."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def _for_root(change: dict, error: OSError) -> str:
    """What root can type where this user may not undo a change (any more)."""
    refused = error.errno in (errno.EPERM, errno.EACCES, errno.EROFS)
    if not refused or os.geteuid() == 0:
        return ""
    written = change["kind"] == "write"
    command = "echo '{old}' | sudo tee {path}" if written else "sudo rmdir {path}"
    return f"; only root can put it back: {command.format(**change)}"


# ---- the process ---------------------------------------------------------------------------------


def recover(folder: Place, whose: tuple[int, int] | None = None) -> Account:
    """Undo the journals of dead owners, or of one owner (pid, start time).

    The last children of that one may still be ending.
    """
    account: Account = []
    with locked(folder):
        _sweep(folder)
        dead = [
            journal for path in journals(folder) if (journal := _of_the_dead(path, whose, account))
        ]
        for journal in sorted(dead, key=_made_at, reverse=True):
            account.extend(journal.end(journal.changes, kernel.BUSY_FOR_S if whose else MOMENT_S))
    return account


def _of_the_dead(path: str, whose: tuple[int, int] | None, account: Account) -> Journal | None:
    """The journal in a file if it is to be undone now; those of earlier boots are discarded."""
    try:
        journal = Journal.read(path)
        if journal.owner["boot"] != kernel.boot_id():
            node = os.uname().nodename
            if journal.owner.get("node", node) == node:  # else on a disk in common
                remove(path)
            return None
        owner = journal.owner["pid"], journal.owner["started"]
        if not kernel.alive(journal.owner) and whose in (None, owner):
            return journal
    except (OSError, ValueError, KeyError, TypeError) as error:
        sentence = (
            f"{path}: a journal that cannot be used ({error}); what it names may still be changed:"
            f" look at it, then rm {path}"
        )
        account.append((FAILED, sentence, errno.EINVAL))
    return None


def _made_at(journal: Journal) -> tuple[int, str]:
    return (
        max((change.get("at", 0) for change in journal.changes), default=0),
        os.path.basename(journal.path).partition("-")[2],
    )


def _sweep(folder: Place) -> None:
    """Remove what a killed writer has left; nobody writes while the folder is locked."""
    for name in os.listdir(folder):
        if name.startswith(".") and ".journal." in name:
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(folder, name))


def wait_for_end(owner: dict) -> None:
    """Return when the owner is dead, or has reported through the pipe that all is undone.

    It uses no CPU. The pidfd shows the death, not the end of the pipe: children of the owner hold
    the pipe open and may outlive it, and a dying process closes its files before it counts as dead.
    """
    watch = select.poll()
    watch.register(0, select.POLLIN)
    with contextlib.suppress(ProcessLookupError):
        watch.register(os.pidfd_open(owner["pid"]), select.POLLIN)
    while _lives(owner):
        if any(handle == 0 for handle, _ in watch.poll()):
            if os.read(0, 1):
                return
            watch.unregister(0)


def _lives(owner: dict) -> bool:
    """A moment without memory or files says nothing of it."""
    while True:
        with contextlib.suppress(OSError):
            return kernel.alive(owner)
        time.sleep(MOMENT_S)


def stand_ready() -> None:
    """Go on when the terminal, the shell or a full CPU would stop others."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    os.chdir("/")
    # Injectors may outlive the owner as SCHED_FIFO hogs with throttling lifted: only a higher
    # priority gets a turn then.
    with contextlib.suppress(OSError):
        os.sched_setaffinity(0, range(os.cpu_count() or 1))
    with contextlib.suppress(OSError):
        os.sched_setscheduler(
            0, os.SCHED_FIFO, os.sched_param(os.sched_get_priority_max(os.SCHED_FIFO))
        )
    with contextlib.suppress(OSError):  # who waits for this word may be dead already
        os.write(1, b"r")
    os.close(1)


def main(journal: str) -> None:
    """Wait for the owner's end; if it left changes, undo them, the last first."""
    owner = read_journal(journal)
    stand_ready()
    wait_for_end(owner)
    if not _lives(owner):
        recover(os.path.dirname(journal), (owner["pid"], owner["started"]))


if __name__ == "__main__":
    main(sys.argv[1])
