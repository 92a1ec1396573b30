"""Undoes what a dead process changed on the machine: run as `python -I -S guardian.py JOURNAL`, it outlives its owner.

Owns the journal's format and every way of undoing. A journal is a JSON file that is on disk before the first change it
names: the owner (pid, start time, boot) and its changes (write, flag, rmdir, umount) in the order made; what owners share, the
last of them undoes. Standard library only, since it must work when nothing else does.
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
import time
from _thread import RLock

BUSY_FOR_S = 2.0
FORMAT = "noisebook journal 1"
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


def alive(owner: dict) -> bool:
    """Whether the process that keeps a journal is still the one that began it."""
    return owner["boot"] == boot_id() and started(owner["pid"]) == owner["started"]


# ---- journals -----------------------------------------------------------------------------------------------------

def read_journal(path: str) -> dict:
    """The journal in a file: owner (pid, started, boot) and changes; another user's is refused, it could name any path."""
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        if os.fstat(file.fileno()).st_uid != os.geteuid():
            raise ValueError("belongs to another user")
        journal = json.load(file)
    whole = isinstance(journal, dict) and {"pid", "started", "boot", "changes"} <= set(journal)
    if not whole or journal.get("format") != FORMAT:
        raise ValueError("not a whole journal")
    return journal


def journals(folder: str) -> list[str]:
    """Paths of the journals in a folder, the newest first: changes are undone in reverse."""
    with contextlib.suppress(OSError):
        found = [name for name in os.listdir(folder) if name.endswith(".journal")]
        return [os.path.join(folder, name) for name in sorted(found, key=lambda name: name.partition("-")[2], reverse=True)]
    return []


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


def settle(path: str, changes: list, patience_s: float = BUSY_FOR_S) -> tuple[list, list]:
    """Undo changes, the last one first, unless somebody else who shares one is there still; remove the journal unless something failed.

    Returns (left, failed): sentences on what was left alone, and a pair (errno, sentence) for each failure.
    """
    left, failed = [], []
    for change in reversed(changes):
        if partners(os.path.dirname(path), change, str(path)):
            continue
        try:
            remark = UNDO[change["kind"]](change, patience_s)
            left += [remark] if remark else []
        except OSError as error:
            failed.append((error.errno, f"{change['path']}: {os.strerror(error.errno or errno.EIO)}"))
    if not failed:
        remove(path)
    return left, failed


# ---- undoing; each returns a remark on what it found changed by others and left alone ------------------------------

def undo_write(change: dict, patience_s: float) -> str | None:
    """Write the old value back, if the current one is ours."""
    path, old, new = change["path"], change["old"], change["new"]
    try:
        current = read_value(path)
    except FileNotFoundError:
        return f"{path} is gone"
    if same(current, old):
        return None
    if not same(current, new):
        return f"{path} is {current!r}, set by somebody else meanwhile; it was {old!r} before"
    write_value(path, old)
    if not same(read_value(path), old):
        raise OSError(errno.EINVAL, "the old value was not taken")
    return None


def opposite(flag: str) -> str:
    """What unsets a flag of a file of flags, as tracefs has them: OVERWRITE and NO_OVERWRITE, overwrite and nooverwrite."""
    no = "NO_" if flag.isupper() else "no"
    return flag.removeprefix(no) if flag.startswith(no) else no + flag


def has_flag(path: str, flag: str) -> bool:
    """Whether a file of flags names this one."""
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        return flag in file.read().split()


def undo_flag(change: dict, patience_s: float) -> str | None:
    """Unset the flag, if it is still set."""
    path, flag = change["path"], change["new"]
    try:
        if not has_flag(path, flag):
            return None
    except FileNotFoundError:
        return f"{path} is gone"
    write_value(path, opposite(flag))
    if has_flag(path, flag):
        raise OSError(errno.EINVAL, "the flag was not unset")
    return None


def undo_folder(change: dict, patience_s: float) -> str | None:
    """Remove a folder; a tracefs instance stays busy for a moment after its last reader closed it."""
    path = change["path"]
    if not os.path.isdir(path):
        return None
    with contextlib.suppress(OSError):
        write_value(os.path.join(path, "tracing_on"), "0")
    try:
        return _patiently(lambda: os.rmdir(path), patience_s)
    except OSError as error:
        if error.errno != errno.ENOTEMPTY:
            raise
        return f"{path} was kept: somebody put files into it"


def undo_mount(change: dict, patience_s: float) -> str | None:
    """Unmount, if it is still mounted."""
    path = change["path"]
    return _patiently(lambda: _unmount(path), patience_s) if is_mounted(change["fstype"], path) else None


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


def _unmount(path: str) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.umount2(os.fsencode(path), 0) != 0:
        raise OSError(ctypes.get_errno(), "umount", path)


def is_mounted(fstype: str, path: str) -> bool:
    """Whether a file system of this type is mounted at the path."""
    with open("/proc/self/mounts", encoding="utf-8", errors="surrogateescape") as file:
        mounts = [line.split(" ")[1:3] for line in file]
    return [re.sub(r"([\\ \t\n])", lambda match: f"\\{ord(match[1]):03o}", path), fstype] in mounts


UNDO = {"write": undo_write, "flag": undo_flag, "rmdir": undo_folder, "umount": undo_mount}


# ---- the process --------------------------------------------------------------------------------------------------

def recover(folder: str, whose: tuple | None = None) -> tuple[list, list, list]:
    """Undo the journals of dead owners, or of one owner (pid, started) whose last children may still be ending.

    Returns (undone, left, failed): paths put back, and sentences on what was left alone and on what failed.
    """
    undone, left, failed = [], [], []
    with locked(folder):
        for path in journals(folder):
            try:
                journal = read_journal(path)
                if journal["boot"] != boot_id():
                    remove(path)
                elif not alive(journal) and whose in (None, (journal["pid"], journal["started"])):
                    remarks, errors = settle(path, journal["changes"], BUSY_FOR_S if whose else 0)
                    undone += [] if errors else [change["path"] for change in journal["changes"]]
                    left, failed = left + remarks, failed + [sentence for _, sentence in errors]
            except (OSError, ValueError, KeyError, TypeError) as error:
                failed.append(f"{path}: a journal that cannot be used ({error})")
    return undone, left, failed


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
    os.write(1, b"r")
    os.close(1)


def main(journal: str) -> None:
    """Wait for the owner's end; if it was not a good one, undo all that the owner had changed, the last first."""
    owner = read_journal(journal)
    stand_ready()
    wait_for_end(owner)
    if not alive(owner):
        recover(os.path.dirname(journal), (owner["pid"], owner["started"]))


if __name__ == "__main__":
    main(sys.argv[1])
