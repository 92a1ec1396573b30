"""Undoes what a dead process changed: run as `python -I -S guardian.py JOURNAL`, outlives its owner.

Owns the journal and every way of undoing. An owner has one journal, a JSON file that is on disk
before the first change it names: the owner (pid, start time, boot, pid namespace) and its changes
(write, flag, rmdir, umount) in the order made. They are undone in the reverse order; a change
leaves the journal when its undoing was seen. What owners share, the last of them undoes.
Standard library only, since it must work when nothing else does.
"""

import contextlib
import ctypes
import errno
import fcntl
import json
import os
import re
import select
import signal
import sys
import tempfile
import time
from _thread import RLock

BUSY_FOR_S = 2.0
MOMENT_S = 0.1  # in which the children of a process that was killed close their files
FORMAT = "noisebook journal 1"
KERNEL_FOLDERS = ("tracefs", "debugfs")
OURS = "noisebook-"
_FSOPEN, _FSCONFIG, _FSMOUNT, _CLOEXEC = 430, 431, 432, 1  # the same on all architectures
_FSCONFIG_CMD_CREATE = 6
_inside, _holding = RLock(), []


# ---- values -------------------------------------------------------------------------------------------------------

def chosen(text: str) -> str:
    """The selected word of "always [madvise] never" or "none (full)"; other text as it is, blanks collapsed."""
    marked = re.findall(r"(?<!\S)(?:\[([^\[\]\s]+)\]|\(([^()\s]+)\))(?!\S)", text)
    return "".join(marked[0]) if len(marked) == 1 else " ".join(text.split())


def same(one: str, other: str) -> bool:
    """Whether the kernel means the same by two texts: 1 and Y, 0-2 and 0,1,2, mask f and 00000000,0000000f."""
    return _plain(one) == _plain(other)


def _plain(text: str) -> object:
    word = chosen(text)
    if re.fullmatch(r"[0-9a-fA-F]{1,8}(,[0-9a-fA-F]{8})+", word):
        word = word.replace(",", "")
    if re.fullmatch(r"\d+(-\d+)?(,\d+(-\d+)?)+|\d+-\d+", word):
        return _cpus(word)
    if re.fullmatch(r"[0-9a-fA-F]+", word):
        return word.lower().lstrip("0") or "0"
    return {"Y": "1", "y": "1", "N": "0", "n": "0"}.get(word, word)


def _cpus(text: str) -> tuple:
    ranges = (part.partition("-") for part in text.split(","))
    spans = tuple(sorted((int(first), int(last or first)) for first, _, last in ranges))
    joined = []
    for first, last in spans:
        if joined and first <= joined[-1][1] + 1:
            joined[-1][1] = max(joined[-1][1], last)
        else:
            joined.append([first, last])
    return tuple(map(tuple, joined))


def read_value(path: str) -> str:
    """The value a settings file shows, without its decoration."""
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        return chosen(file.read())


def write_value(path: str, value: str) -> None:
    """Write a settings file in one write(2), as the kernel wants it, and never create one."""
    handle = os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)
    try:
        os.write(handle, value.encode("utf-8", "surrogateescape") + b"\n")
    finally:
        os.close(handle)


# ---- who is alive -------------------------------------------------------------------------------------------------

def boot_id() -> str:
    """The random number that the kernel drew at this boot."""
    with open("/proc/sys/kernel/random/boot_id") as file:
        return file.read().strip()


def started(pid: int) -> int | None:
    """Start time of a live process in clock ticks since boot, which tells it from a later one of the same pid; else None."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            after_name = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if after_name[0] in (b"Z", b"X") else int(after_name[19])


def namespace() -> int:
    """The number of the pid namespace that this process is in: pids mean something only inside it."""
    return os.stat("/proc/self/ns/pid").st_ino


def identity(pid: int) -> dict:
    """Who owns a change: the pid, what tells it from later processes of that pid, and where it counts."""
    return {"pid": pid, "started": started(pid), "boot": boot_id(), "namespace": namespace()}


def alive(owner: dict) -> bool:
    """Whether an owner still lives; one of another pid namespace cannot be looked at, and counts as living."""
    if owner["boot"] != boot_id():
        return False
    if owner.get("namespace", namespace()) != namespace():
        return True
    return started(owner["pid"]) == owner["started"]


def owned_name(suffix: str = "") -> str:
    """A name that tells who made a thing, so that it is found when all else is lost: noisebook-PID-START-NAMESPACE-SUFFIX."""
    pid = os.getpid()
    return f"{OURS}{pid}-{started(pid)}-{namespace()}{suffix and f'-{suffix}'}"


def owner_of(name: str) -> dict | None:
    """The owner that a name tells; None: it is no name of ours."""
    match = re.fullmatch(rf"{OURS}(\d+)-(\d+)-(\d+)(-.*)?", name)
    if match is None:
        return None
    pid, start, inside = map(int, match.groups()[:3])
    return {"pid": pid, "started": start, "boot": boot_id(), "namespace": inside}


# ---- journals -----------------------------------------------------------------------------------------------------

def read_journal(path: str, user: int | None = None) -> dict:
    """The journal in a file: owner and changes; one of another user than `user`, us by default, is refused: it could name any path."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    with open(handle, encoding="utf-8", errors="surrogateescape") as file:
        if os.fstat(file.fileno()).st_uid != (os.geteuid() if user is None else user):
            raise ValueError("belongs to another user")
        journal = json.load(file)
    whole = isinstance(journal, dict) and {"pid", "started", "boot", "changes"} <= set(journal)
    if not whole or journal.get("format") != FORMAT:
        raise ValueError("not a whole journal")
    return journal


def journals(folder: str) -> list[str]:
    """Paths of the journals in a folder."""
    with contextlib.suppress(OSError):
        return sorted(os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".journal"))
    return []


class Account:
    """What came of undoing: paths put back, sentences on what was left alone, pairs (errno, sentence) of what failed."""

    def __init__(self):
        self.undone, self.left, self.failed = [], [], []

    def take(self, other: "Account") -> None:
        """Add another account to this one."""
        self.undone += other.undone
        self.left += other.left
        self.failed += other.failed

    def sentences(self) -> list:
        """One for each thing."""
        return [*(f"put back: {path}" for path in self.undone), *(f"left alone: {remark}" for remark in self.left),
                *(f"not undone: {sentence}" for _, sentence in self.failed)]


class Journal:
    """What one owner has changed, in the order made.

    Every method is called with the folder `locked`. Several changes of a process may be ended in any order; each is
    undone as soon as nothing that was made later stands on it.
    """

    def __init__(self, path: str, owner: dict, changes: list | tuple = ()):
        self.path, self.owner, self.changes = str(path), owner, list(changes)

    @classmethod
    def read(cls, path: str) -> "Journal":
        """The journal in a file, to undo it in its owner's place: all of it is over."""
        content = read_journal(path)
        changes = [change | {"over": True} for change in content.pop("changes")]
        if not all(change["kind"] in UNDO and isinstance(change["path"], str) for change in changes):
            raise ValueError("names changes of an unknown kind")
        return cls(path, content, changes)

    def add(self, changes: list) -> None:
        """Take changes in, on disk before they are made; if that fails, they are not in it."""
        self.changes += changes
        try:
            self.save()
        except BaseException:
            self.drop(changes)
            raise

    def drop(self, changes: list) -> None:
        """Take changes out. A disk that is full keeps the longer journal: what it names too much finds nothing to undo."""
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
        kept = [{key: value for key, value in change.items() if key != "over"} for change in self.changes]
        content = json.dumps(self.owner | {"format": FORMAT, "changes": kept}, indent=2) + "\n"
        handle, temporary = tempfile.mkstemp(dir=folder, prefix=f".{name}.")
        try:
            with open(handle, "w", encoding="utf-8", errors="surrogateescape") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(temporary, 0o644)
            os.replace(temporary, self.path)
        except BaseException:
            remove(temporary)
            raise

    def holds(self, changes: list | tuple) -> bool:
        """Whether one of these changes is still to be undone."""
        return any(mine is change for mine in self.changes for change in changes)

    def end(self, changes: list | tuple, patience_s: float = BUSY_FOR_S) -> "Account":
        """Undo these changes, and what waited for them, the last one first; what fails stays in the journal."""
        for change in changes:
            change["over"] = True
        account = Account()
        for change in [change for change in reversed(self.changes) if change.get("over")]:
            if not self._carries(change):
                self._undo(change, account, patience_s)
        return account

    def _undo(self, change: dict, account: "Account", patience_s: float) -> None:
        try:
            shared_still = self._asked_again(change) or partners(os.path.dirname(self.path), change, self.path)
            acted, remark = (False, "") if shared_still else undo(change, patience_s)
        except OSError as error:
            account.failed.append((error.errno, f"{change['path']}: {_reason(error)}{_for_root(change, error)}"))
            return
        self.drop([change])
        account.undone += [change["path"]] if acted else []
        account.left += [remark] if remark else []

    def _carries(self, change: dict) -> bool:
        """Whether what was made later stands on a change: the same path again, or one below it."""
        at = next(number for number, mine in enumerate(self.changes) if mine is change)
        below = change["path"].rstrip("/") + "/"
        return any(f"{later['path']}/".startswith(below) and not is_shared(later, change) for later in self.changes[at + 1:])

    def _asked_again(self, change: dict) -> bool:
        """Whether another part of the same process shares the change and has not ended it."""
        return any(mine is not change and is_shared(mine, change) for mine in self.changes)


@contextlib.contextmanager
def locked(folder: str):
    """Hold the folder of journals for oneself, so that nobody reads a journal while it is acted on; may be nested."""
    with _inside:
        if _holding:  # a change that the collector finds dropped is undone wherever its process is just now, here too
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
    """Whether two changes make the same of the same thing, and both owners share it."""
    same_thing = (one["kind"], one["path"]) == (other["kind"], other["path"]) and same(one.get("new", ""), other.get("new", ""))
    return same_thing and bool(one.get("shared") and other.get("shared"))


def partners(folder: str, change: dict, own: str | None = None) -> list:
    """This change in the journals of the living, but for one's own: who shares a change undoes it only as the last. Call it `locked`."""
    found = []
    for path in journals(folder) if change.get("shared") else []:
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            journal = read_journal(path)
            found += [other for other in journal["changes"] if path != own and is_shared(change, other) and alive(journal)]
    return found


def remove(path: str) -> None:
    """Delete a file that may be gone already."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def _reason(error: OSError) -> str:
    return error.strerror or os.strerror(error.errno or errno.EIO)


def _for_root(change: dict, error: OSError) -> str:
    """What root can type where this user may not undo a change (any more)."""
    if error.errno not in (errno.EPERM, errno.EACCES, errno.EROFS) or os.geteuid() == 0:
        return ""
    command = {"write": "echo '{old}' | sudo tee {path}", "rmdir": "sudo rmdir {path}", "umount": "sudo umount {path}"}
    wanted = change | ({"old": opposite(change["new"])} if change["kind"] == "flag" else {})
    return "; only root can put it back: " + command.get(change["kind"], command["write"]).format(**wanted)


# ---- undoing; each tells whether there was something to undo, and remarks on what others had changed -----------------

def undo(change: dict, patience_s: float) -> tuple:
    """Undo a change, and see that it is undone.

    A file system of the kernel that it lies in and that is not mounted any more is looked into all the same.

    Returns
    -------
    (acted, remark) : whether something had to be undone; what was found changed by others and left alone, or "".
    """
    if "on" not in change:
        return UNDO[change["kind"]](change, patience_s)
    fstype, place = change["on"]
    with looked_into(fstype, place) as folder:
        here = change | {"path": folder + change["path"].removeprefix(place)}
        acted, remark = UNDO[change["kind"]](here, patience_s)
        return acted, remark.replace(here["path"], change["path"])


def undo_write(change: dict, patience_s: float) -> tuple:
    """Write the old value back, if the current one is ours."""
    path, old, new = change["path"], change["old"], change["new"]
    try:
        current = read_value(path)
    except FileNotFoundError:
        return False, f"{path} is gone"
    if same(current, old):
        return False, ""
    if not same(current, new):
        return False, f"{path} is {current!r}, set by somebody else meanwhile; it was {old!r} before"
    write_value(path, old)
    if not same(read_value(path), old):
        raise OSError(errno.EINVAL, "the old value was not taken")
    return True, ""


def opposite(flag: str) -> str:
    """What unsets a flag of a file of flags, as tracefs has them: OVERWRITE and NO_OVERWRITE, overwrite and nooverwrite."""
    no = "NO_" if flag.isupper() else "no"
    return flag.removeprefix(no) if flag.startswith(no) else no + flag


def has_flag(path: str, flag: str) -> bool:
    """Whether a file of flags names this one."""
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        return flag in file.read().split()


def undo_flag(change: dict, patience_s: float) -> tuple:
    """Unset the flag, if it is still set."""
    path, flag = change["path"], change["new"]
    try:
        if not has_flag(path, flag):
            return False, ""
    except FileNotFoundError:
        return False, f"{path} is gone"
    write_value(path, opposite(flag))
    if has_flag(path, flag):
        raise OSError(errno.EINVAL, "the flag was not unset")
    return True, ""


def undo_folder(change: dict, patience_s: float) -> tuple:
    """Remove a folder; a tracefs instance stays busy for a moment after its last reader closed it."""
    path = change["path"]
    if not os.path.isdir(path):
        return False, ""
    with contextlib.suppress(OSError):
        write_value(os.path.join(path, "tracing_on"), "0")
    try:
        _patiently(lambda: os.rmdir(path), patience_s)
    except OSError as error:
        if error.errno != errno.ENOTEMPTY:
            raise
        return False, f"{path} was kept: somebody put files into it"
    if os.path.lexists(path):
        raise OSError(errno.EBUSY, "it was removed and is there again")
    return True, ""


def undo_mount(change: dict, patience_s: float) -> tuple:
    """Unmount what we have mounted; whoever uses it holds it open, and the kernel says busy."""
    path, fstype = change["path"], change["fstype"]
    sources = [source for source, place, kind in mounts() if (place, kind) == (path, fstype)]
    if not sources:
        return False, ""
    if owner_of(sources[-1]) is None:
        return False, f"{path} was mounted by somebody else meanwhile"
    _patiently(lambda: _unmount(path), patience_s)
    if sum((place, kind) == (path, fstype) for _, place, kind in mounts()) >= len(sources):
        raise OSError(errno.EBUSY, "it is mounted again")
    return True, ""


def instances(tracefs: str) -> list:
    """Pairs (name, owner) of the tracefs instances of Noisebook, whoever's; empty where they may not be listed."""
    try:
        names = os.listdir(os.path.join(tracefs, "instances"))
    except OSError:
        return []
    return [(name, owner) for name in sorted(names) if (owner := owner_of(name))]


def _patiently(action, patience_s: float) -> None:
    """Try again while the kernel says busy; after that it is somebody else who uses it."""
    deadline = time.monotonic() + patience_s
    while True:
        try:
            action()
            return None
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno != errno.EBUSY or time.monotonic() > deadline:
                raise
        time.sleep(0.02)


def mount(fstype: str, path: str) -> None:
    """Mount a file system of the kernel; its source in /proc/mounts tells who did."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(os.fsencode(owned_name()), os.fsencode(path), fstype.encode(), 0, None) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _unmount(path: str) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.umount2(os.fsencode(path), 0) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def mounts() -> list:
    """What is mounted, as (source, place, type), the last on top."""
    with open("/proc/self/mounts", encoding="utf-8", errors="surrogateescape") as file:
        rows = [line.split(" ")[:3] for line in file]
    return [tuple(re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), word) for word in row) for row in rows]


def is_mounted(fstype: str, path: str) -> bool:
    """Whether a file system of this type is mounted at the path."""
    return any((place, kind) == (path, fstype) for _, place, kind in mounts())


def mount_below(path: str) -> tuple | None:
    """(type, place) of the tracefs or debugfs that a path lies in; None: in neither."""
    found = [(kind, place) for _, place, kind in mounts() if f"{path}/".startswith(place.rstrip("/") + "/")]
    deepest = max(found, key=lambda mount: len(mount[1]), default=None)
    return deepest if deepest and deepest[0] in KERNEL_FOLDERS else None


@contextlib.contextmanager
def looked_into(fstype: str, place: str):
    """The folder of a file system of the kernel: where it is mounted or, where nobody has mounted it, for this block only.

    Then it is a mount that is attached nowhere: no process can see it, and it is gone with its file descriptor (fsopen(2),
    Linux 5.2; before, it is mounted at its place and unmounted again).
    """
    if is_mounted(fstype, place):
        yield place
        return
    handle, number = detached(fstype)
    if handle >= 0:
        try:
            yield f"/proc/self/fd/{handle}"
        finally:
            os.close(handle)
        return
    if number != errno.ENOSYS:
        raise OSError(number, f"{fstype} is not mounted, and cannot be: {os.strerror(number)}")
    mount(fstype, place)
    try:
        yield place
    finally:
        _patiently(lambda: _unmount(place), BUSY_FOR_S)


def detached(fstype: str) -> tuple:
    """(file descriptor, 0) of a mount that is attached nowhere, or (-1, errno)."""
    libc = ctypes.CDLL(None, use_errno=True)
    context = libc.syscall(_FSOPEN, fstype.encode(), _CLOEXEC)
    if context < 0:
        return -1, ctypes.get_errno()
    try:
        if libc.syscall(_FSCONFIG, context, _FSCONFIG_CMD_CREATE, None, None, 0) == 0:
            handle = libc.syscall(_FSMOUNT, context, _CLOEXEC, 0)
            return (handle, 0) if handle >= 0 else (-1, ctypes.get_errno())
        return -1, ctypes.get_errno()
    finally:
        os.close(context)


UNDO = {"write": undo_write, "flag": undo_flag, "rmdir": undo_folder, "umount": undo_mount}


# ---- the process --------------------------------------------------------------------------------------------------

def recover(folder: str, whose: tuple | None = None) -> Account:
    """Undo the journals of dead owners, or of one owner (pid, started) whose last children may still be ending."""
    account = Account()
    with locked(folder):
        _sweep(folder)
        dead = [journal for path in journals(folder) if (journal := _of_the_dead(path, whose, account))]
        for journal in sorted(dead, key=_made_at, reverse=True):
            account.take(journal.end(journal.changes, BUSY_FOR_S if whose else MOMENT_S))
    return account


def _of_the_dead(path: str, whose: tuple | None, account: Account) -> Journal | None:
    """The journal in a file if it is to be undone now; those of earlier boots are discarded."""
    try:
        journal = Journal.read(path)
        if journal.owner["boot"] != boot_id():
            remove(path)
        elif not alive(journal.owner) and whose in (None, (journal.owner["pid"], journal.owner["started"])):
            return journal
    except (OSError, ValueError, KeyError, TypeError) as error:
        account.failed.append((errno.EINVAL, f"{path}: a journal that cannot be used ({error}); what it names may still be changed: "
                                             f"look at it, then rm {path}"))
    return None


def _made_at(journal: Journal) -> tuple:
    return max((change.get("at", 0) for change in journal.changes), default=0), os.path.basename(journal.path).partition("-")[2]


def _sweep(folder: str) -> None:
    """Remove what a writer killed in the middle has left; nobody writes while the folder is locked."""
    for name in os.listdir(folder):
        if name.startswith(".") and ".journal." in name:
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(folder, name))


def wait_for_end(owner: dict) -> None:
    """Return when the owner is dead, or has said through the pipe that all is undone. Uses no CPU.

    The pidfd, not the end of the pipe, tells of death: children that the owner forked hold the pipe open and may outlive
    it, and a dying process closes its files a moment before it counts as dead.
    """
    watch, patience_ms = select.poll(), None
    watch.register(0, select.POLLIN)
    try:
        watch.register(os.pidfd_open(owner["pid"]), select.POLLIN)
    except (OSError, AttributeError):
        patience_ms = 500
    while alive(owner):
        if any(handle == 0 for handle, _ in watch.poll(patience_ms)):
            if os.read(0, 1):
                return
            watch.unregister(0)


def stand_ready() -> None:
    """Go on when the terminal, the shell or a full CPU would stop others."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    os.chdir("/")
    # Injectors may outlive the owner as SCHED_FIFO hogs with throttling lifted: only a higher priority gets a turn then.
    with contextlib.suppress(OSError):
        os.sched_setaffinity(0, range(os.cpu_count() or 1))
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(os.sched_get_priority_max(os.SCHED_FIFO)))
    with contextlib.suppress(OSError):  # who waits for this word may be dead already
        os.write(1, b"r")
    os.close(1)


def main(journal: str) -> None:
    """Wait for the owner's end; if it was not a good one, undo all that the owner had changed, the last first."""
    owner = read_journal(journal)
    stand_ready()
    wait_for_end(owner)
    if not alive(owner):
        recover(os.path.dirname(journal), (owner["pid"], owner["started"]))


def recover_as(folder: str, user: int, group: int) -> None:
    """Undo what a user's dead processes left, with that user's rights only: a user's journal may name any path."""
    os.setgroups([])
    os.setgid(group)
    os.setuid(user)
    print(json.dumps(recover(folder).__dict__))


if __name__ == "__main__":
    if len(sys.argv) == 2:
        main(sys.argv[1])
    else:
        recover_as(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
