"""Undoes what a dead process changed; runs as a process of its own, see `START`.

Owns the journal, a JSON file that is on disk before the first change that it names. It holds the
owner (pid, start time, boot, pid namespace) and its changes (write, rmdir) in the order
made. They are undone in the reverse order; a change leaves the journal when its undoing was seen.
What this imports needs nothing but the standard library.
"""

import contextlib
import errno
import fcntl
import json
import os
import select
import signal
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from ..files import write_atomically
from . import kernel, run_groups

# after it come the path of this file and that of the journal; -I and -S: no module of others
START = (
    "import pathlib, sys; sys.path.append(str(pathlib.Path(sys.argv[1]).parents[2]));"
    "from nbhelpers.machine.guardian import main; main(sys.argv[2])"
)
FORMAT = "noisebook journal 1"
DONE, LEFT, FAILED = "put back", "left alone", "not undone"
ENDED = "killed, left by a run whose harness is dead"
# what came of undoing: DONE, LEFT, FAILED or ENDED; of what, or a sentence; errno
Account = list[tuple[str, str, int]]


# ---- journals ------------------------------------------------------------------------------------


def read_journal(path: str | Path) -> dict:
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
    if {change["kind"] for change in journal["changes"]} - kernel.UNDO.keys():
        raise ValueError("names changes of an unknown kind")
    return journal


def journals(folder: str | Path) -> list[str]:
    """Paths of the journals in a folder."""
    with kernel.passing_over():
        return sorted(
            os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".journal")
        )
    return []


class Journal:
    """What one owner has changed, in the order made.

    Every method is called with the folder `locked`. Several changes of a process may be ended in
    any order: the next change of the same setting takes over the value that was there before.
    """

    def __init__(self, path: str | Path, owner: dict, changes: Sequence[dict] = ()):
        self.path, self.owner, self.changes = str(path), owner, list(changes)

    def add(self, changes: Sequence[dict]) -> None:
        """Take changes in, on disk before they are made; if that fails, they are not in it."""
        self.changes += changes
        try:
            self.save()
        except BaseException:
            self.drop(changes)
            raise

    def drop(self, changes: Sequence[dict]) -> None:
        """Take changes out.

        On a full disk the longer journal stays: what it names too much needs no undoing.
        """
        self.changes = [mine for mine in self.changes if not any(mine is one for one in changes)]
        with contextlib.suppress(OSError):
            self.save()

    def save(self) -> None:
        """Bring the file up to date; without changes there is none."""
        if self.changes:
            content = self.owner | {"format": FORMAT, "changes": self.changes}
            write_atomically(self.path, json.dumps(content, indent=2))
        else:
            Path(self.path).unlink(missing_ok=True)

    def held(self, changes: Sequence[dict]) -> list[dict]:
        """Those of these changes that are still to be undone."""
        return [change for change in changes if any(change is mine for mine in self.changes)]

    def end(self, changes: Sequence[dict], patience_s: float = kernel.BUSY_FOR_S) -> Account:
        """Undo these changes, the last one first. What fails stays in the journal."""
        account: Account = []
        for change in reversed(self.held(changes)):
            try:
                acted, remark = self._undone(change, account, patience_s)
            except OSError as error:
                reason = error.strerror or os.strerror(error.errno or errno.EIO)
                was = f"; it was {change['old']!r}" if "old" in change else ""
                sentence = f"{change['path']}: {reason}{was}"
                account.append((FAILED, sentence, error.errno or 0))
                continue
            self.drop([change])
            if acted or remark:
                account.append((DONE, change["path"], 0) if acted else (LEFT, remark, 0))
        return account

    def _undone(self, change: dict, account: Account, patience_s: float) -> tuple[bool, str]:
        """Undo a change, unless a later one of the same setting is in force: that one takes over
        what it was.
        """
        same = [one for one in self.changes if one["path"] == change["path"]]
        for one, later in pairwise(same):
            if one is change:
                later["old"] = change["old"]
                return False, ""
        return undone(change, account, patience_s)


def undone(change: dict, account: Account, patience_s: float) -> tuple[bool, str]:
    """Undo a change; first end processes that would hold a control group. See `kernel.UNDO`."""
    path = change["path"]
    if change["kind"] == "rmdir" and run_groups.is_group(path):
        if names := run_groups.end_group(path):
            account.append((ENDED, ", ".join(names), 0))
        with contextlib.suppress(OSError):  # a group that is busy for a moment is tried again
            run_groups.remove(path)
            return True, ""
    return kernel.UNDO[change["kind"]](change, patience_s)


@contextlib.contextmanager
def locked(folder: str | Path) -> Iterator[None]:
    """Hold the folder of journals, so that nobody reads a journal while it is acted on.

    One that has disappeared, or takes no file, needs no lock: nothing is written there.
    """
    handle = -1
    try:
        with contextlib.suppress(OSError):
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
            handle = os.open(os.path.join(folder, "lock"), flags, 0o600)
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        if handle >= 0:
            fcntl.flock(handle, fcntl.LOCK_UN)  # a child may have a copy of it
            os.close(handle)


# ---- the process ---------------------------------------------------------------------------------


def recover(folder: str | Path, whose: tuple[int, int] | None = None) -> Account:
    """Undo the journals of dead owners, or of one owner (pid, start time).

    The last children of that one may still be ending.
    """
    account: Account = []
    with locked(folder):
        _sweep(folder)
        written = [(os.path.getmtime(path), path) for path in journals(folder)]
        for _, path in sorted(written, reverse=True):
            if journal := _of_the_dead(path, whose, account):
                patience_s = kernel.BUSY_FOR_S if whose else run_groups.MOMENT_S
                account.extend(journal.end(journal.changes, patience_s))
    return account


def _of_the_dead(path: str, whose: tuple[int, int] | None, account: Account) -> Journal | None:
    """The journal in a file if it is to be undone now; those of earlier boots are discarded."""
    try:
        owner = read_journal(path)
        if owner["boot"] != kernel.boot_id():
            node = os.uname().nodename
            if owner.get("node", node) == node:  # else on a disk in common
                os.unlink(path)
        elif not kernel.alive(owner) and whose in (None, (owner["pid"], owner["started"])):
            return Journal(path, owner, owner.pop("changes"))
    except (OSError, ValueError, KeyError, TypeError) as error:
        sentence = (
            f"{path}: a journal that cannot be used ({error}); what it names may still be changed:"
            f" look at it, then rm {path}"
        )
        account.append((FAILED, sentence, errno.EINVAL))
    return None


def _sweep(folder: str | Path) -> None:
    """Remove what a killed writer has left; nobody writes while the folder is locked."""
    for name in os.listdir(folder):
        if name.startswith(".") and ".journal." in name:
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(folder, name))


def stand_ready() -> None:
    """Go on when the terminal, the shell or a full CPU would stop others."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    os.chdir("/")
    # Injectors may outlive the owner as SCHED_FIFO hogs with throttling lifted: only a higher
    # priority gets a turn then.
    with contextlib.suppress(OSError):
        os.sched_setaffinity(0, range(os.cpu_count() or 1))
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(99))
    with contextlib.suppress(OSError):  # who waits for this word may be dead already
        os.write(1, b"r")
    os.close(1)


def main(journal: str) -> None:
    """Wait for the owner's end, and undo what it left; it kills us when all is undone."""
    owner = read_journal(journal)
    stand_ready()
    with contextlib.suppress(ProcessLookupError):
        watch = select.poll()  # it uses no CPU
        watch.register(os.pidfd_open(owner["pid"]), select.POLLIN)
        if kernel.alive(owner):  # and no later process of its number
            watch.poll()
    recover(os.path.dirname(journal), (owner["pid"], owner["started"]))
