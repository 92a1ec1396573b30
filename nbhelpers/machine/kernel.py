"""What the kernel holds for us: values of its files, file systems, who made them, and undoing.

Owns every way of undoing a change, and the names that identify the maker of an instance or of a
control group. Nothing is mounted: a tracefs or debugfs that nobody has mounted is opened attached
nowhere.
"""

import contextlib
import ctypes
import errno
import functools
import os
import re
import time
from collections.abc import Callable, Iterator

from . import privileged

BUSY_FOR_S = 2.0
TRACEFS = "/sys/kernel/tracing"
KERNEL_FOLDERS = {TRACEFS: "tracefs", "/sys/kernel/debug": "debugfs"}
OURS = "noisebook-"
_FSOPEN, _FSCONFIG, _FSMOUNT, _CLOEXEC = 430, 431, 432, 1  # the same on all architectures
_FSCONFIG_CMD_CREATE = 6


# ---- values --------------------------------------------------------------------------------------


def chosen(text: str) -> str:
    """The selected word of "always [madvise] never" or "none (full)".

    Other text is returned as it is, with single blanks.
    """
    marked = re.findall(r"(?<!\S)(?:\[([^\[\]\s]+)\]|\(([^()\s]+)\))(?!\S)", text)
    return "".join(marked[0]) if len(marked) == 1 else " ".join(text.split())


def cpu_list(text: str | None) -> tuple[int, ...]:
    """The kernel's list form as numbers: "0-2,8" is (0, 1, 2, 8)."""
    cpus: set[int] = set()
    for part in filter(None, (text or "").replace("\n", ",").replace(" ", "").split(",")):
        first, _, last = part.partition("-")
        cpus.update(range(int(first), int(last or first) + 1))
    return tuple(sorted(cpus))


def same(one: str, other: str) -> bool:
    """Whether the kernel means the same by two texts.

    1 and Y, 0-2 and 0,1,2, mask f and 00000000,0000000f are each the same.
    """
    return _plain(one) == _plain(other)


def _plain(text: str) -> object:
    word = chosen(text)
    if re.fullmatch(r"[0-9a-fA-F]{1,8}(,[0-9a-fA-F]{8})+", word):
        word = word.replace(",", "")
    if re.fullmatch(r"\d+(-\d+)?(,\d+(-\d+)?)+|\d+-\d+", word):
        return cpu_list(word)
    if re.fullmatch(r"[0-9a-fA-F]+", word):
        return word.lower().lstrip("0") or "0"
    return {"Y": "1", "y": "1", "N": "0", "n": "0"}.get(word, word)


def read_value(path: str, like: str = "") -> str:
    """The value a settings file shows, without its decoration.

    A file of flags, as in tracefs, has as its value the flag that `like` names, or its opposite.
    """
    value = chosen(_text(path))
    flags = (like, opposite(like)) if like.isidentifier() and " " in value else ()
    return next((flag for flag in flags if flag in value.split()), value)


def _text(path: str) -> str:
    try:
        with open(reachable(path), encoding="utf-8", errors="surrogateescape") as file:
            return file.read()
    except OSError as error:
        if path != privileged.OSNOISE_OPTIONS or not privileged.may_help(path, error):
            raise
        return privileged.osnoise_options()


def opposite(flag: str) -> str:
    """What unsets a flag in tracefs: OVERWRITE and NO_OVERWRITE, overwrite and nooverwrite."""
    no = "NO_" if flag.isupper() else "no"
    return flag.removeprefix(no) if flag.startswith(no) else no + flag


def write_value(path: str, value: str) -> None:
    """Write a settings file in one write(2), as the kernel wants it, and never create one.

    What this user may not write the helper may, if it is on its list.
    """
    handle = _open_to_write(path, os.O_TRUNC)
    if handle < 0:
        privileged.write(path, value)
        return
    try:
        os.write(handle, value.encode("utf-8", "surrogateescape") + b"\n")
    finally:
        os.close(handle)


def check_writable(path: str) -> None:
    """Raise the OSError of opening a settings file, unless this user or the helper may write it."""
    if (handle := _open_to_write(path)) >= 0:
        os.close(handle)


def _open_to_write(path: str, flags: int = 0) -> int:
    """A descriptor; −1: the helper may be able to write it."""
    try:
        return os.open(reachable(path), os.O_WRONLY | os.O_CLOEXEC | flags)
    except OSError as error:
        if not privileged.may_help(path, error):
            raise
        return -1


def make_folder(path: str) -> None:
    """Make a folder, or by the helper a tracefs instance."""
    try:
        os.mkdir(reachable(path))
    except OSError:
        if not privileged.is_hidden_instance(path):
            raise
        privileged.make_instance(path)


# ---- who is alive --------------------------------------------------------------------------------


@contextlib.contextmanager
def passing_over() -> Iterator[None]:
    """What is gone or forbidden is passed over; without memory or descriptors nobody knows whether
    it is.
    """
    try:
        yield
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOMEM):
            raise


def boot_id() -> str:
    """The random number that the kernel drew at this boot."""
    with open("/proc/sys/kernel/random/boot_id") as file:
        return file.read().strip()


def start_time(pid: int) -> int | None:
    """Start time of a live process in clock ticks since boot; None: there is none.

    It distinguishes the process from a later one with the same pid.
    """
    with passing_over(), open(f"/proc/{pid}/stat", "rb") as file:
        after_name = file.read().rpartition(b")")[2].split()
        return None if after_name[0] in (b"Z", b"X") else int(after_name[19])
    return None


def namespace() -> int:
    """The number of this process's pid namespace: pids mean something only inside it."""
    return os.stat("/proc/self/ns/pid").st_ino


def identity(pid: int) -> dict:
    """Who owns a change: pid and start time, with the boot, namespace and node where they count."""
    return {
        "pid": pid,
        "started": start_time(pid),
        "boot": boot_id(),
        "namespace": namespace(),
        "node": os.uname().nodename,
    }


def alive(owner: dict) -> bool:
    """Whether an owner still lives.

    One of another pid namespace cannot be seen from here, and counts as living.
    """
    if owner["boot"] != boot_id():
        return False
    if owner.get("namespace", namespace()) != namespace():
        return True
    return start_time(owner["pid"]) == owner["started"]


def owned_name(suffix: str = "") -> str:
    """A name with its maker in it, noisebook-PID-START-NAMESPACE-SUFFIX.

    So a thing is found when all else is lost.
    """
    pid = os.getpid()
    return f"{OURS}{pid}-{start_time(pid)}-{namespace()}{suffix and f'-{suffix}'}"


def owner_of(name: str) -> dict | None:
    """The owner in a name; None: the name is not one of ours."""
    match = re.fullmatch(rf"{OURS}(\d+)-(\d+)-(\d+)(-.*)?", name)
    if match is None:
        return None
    pid, start, inside = map(int, match.groups()[:3])
    return {"pid": pid, "started": start, "boot": boot_id(), "namespace": inside}


# ---- undoing; each returns whether something had to be undone, and a remark on changes by others


def undo_write(change: dict, patience_s: float) -> tuple[bool, str]:
    """Write the old value back, if the current one is ours."""
    path, old, new = change["path"], change["old"], change["new"]
    try:
        current = read_value(path, new)
    except FileNotFoundError:
        return False, f"{path} is gone"
    if same(current, old):
        return False, ""
    if not same(current, new):
        return (
            False,
            f"{path} is {current!r}, set by somebody else meanwhile; it was {old!r} before",
        )
    write_value(path, old)
    if not same(read_value(path, new), old):
        raise OSError(errno.EINVAL, "the old value was not taken")
    return True, ""


def undo_folder(change: dict, patience_s: float) -> tuple[bool, str]:
    """Remove a folder; a tracefs instance is busy for a moment after its last reader has ended."""
    path = change["path"]
    if privileged.is_hidden_instance(path):
        patiently(lambda: privileged.remove_instance(path), patience_s)
        return True, ""
    here = reachable(path)
    if not os.path.isdir(here):
        return False, ""
    with contextlib.suppress(OSError):
        write_value(os.path.join(here, "tracing_on"), "0")
    patiently(lambda: os.rmdir(here), patience_s)
    return True, ""


def patiently(action: Callable[[], object], patience_s: float) -> None:
    """Try again while the kernel says busy; after that it is somebody else who uses it."""
    deadline = time.monotonic() + patience_s
    with contextlib.suppress(FileNotFoundError):
        while True:
            try:
                action()
                return
            except OSError as error:
                if error.errno != errno.EBUSY or time.monotonic() > deadline:
                    raise
            time.sleep(0.02)


def unescaped(word: str) -> str:
    """A blank in a name is \\040 in /proc/mounts."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), word)


def reachable(path: str) -> str:
    """How a path is reached, also one below a tracefs or debugfs that nobody has mounted."""
    for place in KERNEL_FOLDERS:
        if f"{path}/".startswith(f"{place}/"):
            return file_system(place) + path.removeprefix(place)
    return path


def file_system(place: str) -> str:
    """The folder of the tracefs or debugfs that is, or would be, mounted at a place."""
    if os.path.ismount(place):
        return place
    return f"/proc/self/fd/{_detached(KERNEL_FOLDERS[place])}"


@functools.cache
def _detached(fstype: str) -> int:
    """A mount that is attached nowhere: no process can see it, and it is gone with its descriptor,
    at the end of this process (fsopen(2), Linux 5.2).
    """
    libc = ctypes.CDLL(None, use_errno=True)
    context = libc.syscall(_FSOPEN, fstype.encode(), _CLOEXEC)
    made = context >= 0 and not libc.syscall(
        _FSCONFIG, context, _FSCONFIG_CMD_CREATE, None, None, 0
    )
    handle = libc.syscall(_FSMOUNT, context, _CLOEXEC, 0) if made else -1
    number = ctypes.get_errno()
    if context >= 0:
        os.close(context)
    if handle < 0:
        raise OSError(number, f"{fstype} is not mounted, and cannot be: {os.strerror(number)}")
    return handle


UNDO = {"write": undo_write, "rmdir": undo_folder}
