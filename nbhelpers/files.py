"""Files that survive a crash: written whole or not at all, the same bytes for the same content.

Owns atomic writing, canonical JSON, content digests and putting aside; nothing here knows what is
in a file. `reading` owns what comes from elsewhere, `records` files that are only ever appended to.
"""

import errno
import gzip
import hashlib
import json
import os
import secrets
import shlex
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from .errors import DiskError, InputError, NoisebookError, Unavailable

_NO_ROOM = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "this user's share of the disk (quota) is used up",
    errno.EROFS: "the file system can only be read",
    errno.EFBIG: "the file would be larger than this user may write",
    errno.EIO: "the disk failed, or was taken away",
}


def disk_error(error: OSError, path: str | Path) -> DiskError | None:
    """What a user can fix of a failed writing: no room, or a file system that can only be read.

    None: the error is another one.
    """
    if error.errno not in _NO_ROOM:
        return None
    folder = next(parent for parent in Path(path).absolute().parents if parent.exists())
    fix = f"make room (see df -h {shlex.quote(str(folder))}); then the same command goes on"
    if error.errno == errno.EROFS:
        fix = "use a copy in a place where you may write"
    elif error.errno == errno.EIO:
        fix = "see what the kernel says of it (sudo dmesg | tail); then the same command goes on"
    why = "this file was not written; what is on disk already is whole"
    found = DiskError(_NO_ROOM[error.errno], where=path, why=why, fix=fix)
    found.errno, found.strerror, found.filename = error.errno, error.strerror, str(path)
    return found


_SHORT = {
    errno.EMFILE: "this process may open no more files (ulimit -n)",
    errno.ENFILE: "this machine has no more open files to give",
    errno.ENOMEM: "there is no memory left",
    errno.EAGAIN: "no more processes can be started (ulimit -u)",
}


def shortage(error: OSError | MemoryError | RuntimeError) -> NoisebookError | None:
    """What a user can fix of an error of the system anywhere: no room on disk, or no files, memory
    or processes left. None: the error is another one.

    Python says "can't allocate read lock", a RuntimeError, where it has no memory for a file.
    """
    if isinstance(error, RuntimeError) and not str(error).startswith("can't allocate"):
        return None
    if not isinstance(error, OSError):
        error = OSError(errno.ENOMEM, "")
    if error.errno not in _SHORT:
        return disk_error(error, error.filename or ".")
    fix = "end other programs, or raise that limit; then the same command goes on"
    why = "what is on disk already is whole"
    return Unavailable(_SHORT[error.errno], where=error.filename, why=why, fix=fix)


@contextmanager
def writing(path: str | Path) -> Iterator[None]:
    """An error of the disk names its fix; any other stays as it is."""
    try:
        yield
    except OSError as error:
        if not isinstance(error, DiskError) and (found := disk_error(error, path)):
            raise found from None
        raise


def write_atomically(path: str | Path, content: str | bytes) -> Path:
    """Write a file so that a reader, or a power cut, sees the old content or the new one and
    nothing between.
    """
    with written(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)
    return Path(path)


@contextmanager
def written(path: str | Path) -> Iterator[BinaryIO]:
    """A binary file, for what does not fit into memory, that has its name only once it is complete
    and on disk; see `write_atomically`.
    """
    path = Path(path)
    with writing(path), opened_folder(path.parent) as folder:
        temporary = f".{path.name[:200]}.{secrets.token_hex(4)}"
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        handle = os.open(temporary, flags, 0o600, dir_fd=folder)
        try:
            with os.fdopen(handle, "wb") as file:
                yield file
                file.flush()
                os.fchmod(file.fileno(), 0o644)
                os.fsync(file.fileno())
            os.replace(temporary, path.name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with suppress(FileNotFoundError):  # an interrupt may come when it has its name already
                os.unlink(temporary, dir_fd=folder)
            raise
        os.fsync(folder)


def sync_folder(folder: Path) -> None:
    """Force the names in a folder to disk."""
    with opened_folder(folder) as handle:
        os.fsync(handle)


# ---- folders and links ---------------------------------------------------------------------------

_ON_THE_WAY = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC  # need not be readable
_MOST_LINKS = 40  # as many as Linux follows


@contextmanager
def opened_folder(path: str | Path) -> Iterator[int]:
    """A folder as a descriptor, made where there is none: what is written through it lands there,
    whatever becomes of the names meanwhile.

    Raises
    ------
    InputError
        Root would follow a link that another user made.
    """
    with _naming(path):
        handle = _walk(Path(path).absolute())
    try:
        yield handle
    finally:
        os.close(handle)


@contextmanager
def _naming(path: str | Path) -> Iterator[None]:
    """An error of the system names the whole path, not the part of it that was looked at."""
    try:
        yield
    except OSError as error:
        error.filename = str(path)
        raise


def open_regular_file(path: str | Path, flags: int) -> int:
    """A descriptor of a file in its folder, made where there is none.

    Raises
    ------
    InputError
        Root would follow a link that another user made.
    """
    path = Path(path)
    with opened_folder(path.parent) as folder, _naming(path):
        if path.is_symlink():
            _refuse_foreign_link(os.lstat(path.name, dir_fd=folder), path)
            return open_regular_file(path.parent / os.readlink(path.name, dir_fd=folder), flags)
        flags |= os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.open(path.name, flags, 0o644, dir_fd=folder)


def _walk(path: Path) -> int:
    """Open a folder name by name, each from the descriptor of the one before."""
    names, links = [*reversed(path.parts)], 0
    here = os.open("/", _ON_THE_WAY)
    try:
        while names:
            name = names.pop()
            found = _stat_or_make(name, here)
            if stat.S_ISLNK(found.st_mode):
                _refuse_foreign_link(found, path)
                links += 1
                if links > _MOST_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
                names += reversed(Path(os.readlink(name, dir_fd=here)).parts)
                continue
            there = os.open(name, _ON_THE_WAY, dir_fd=here)
            os.close(here)
            here = there
        return os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=here)
    finally:
        os.close(here)


def _stat_or_make(name: str, folder: int) -> os.stat_result:
    try:
        return os.lstat(name, dir_fd=folder)
    except FileNotFoundError:
        with suppress(FileExistsError):
            os.mkdir(name, dir_fd=folder)
        return os.lstat(name, dir_fd=folder)


def _refuse_foreign_link(found: os.stat_result, path: Path) -> None:
    if os.geteuid() == 0 and found.st_uid != 0:
        raise InputError(
            f"there is a link of user {found.st_uid} on the way to this file",
            where=path,
            why="root would write, or make readable, whatever that user points it at",
            fix=(
                "work as the user who owns the folder (sudo make privileged lets that user measure"
                " what takes root), or in a checkout that belongs to root"
            ),
        )


def to_json(value: object, indent: int | None = 2) -> str:
    """JSON with sorted keys and a final newline: equal values give equal bytes."""
    return json.dumps(value, indent=indent, sort_keys=True, ensure_ascii=False) + "\n"


def write_text(path: str | Path, text: str) -> Path:
    """Write a text whole or not at all, packed where the name ends in .gz: the same bytes for the
    same text.
    """
    content = text.encode()
    if str(path).endswith(".gz"):
        content = gzip.compress(content, mtime=0)
    return write_atomically(path, content)


def write_json(path: str | Path, value: object, indent: int | None = 2) -> Path:
    """Write `to_json(value, indent)` with `write_text`: `read_json` reads it, packed or not."""
    return write_text(path, to_json(value, indent))


def digest(*parts: str | bytes) -> str:
    """First 16 hexadecimal digits of the SHA-256 of the parts, each preceded by its length."""
    state = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        state.update(len(data).to_bytes(8, "little") + data)
    return state.hexdigest()[:16]


def new_aside(folder: str | Path) -> Path:
    """Where what is put aside now goes: ``FOLDER/aside/DATE``; the folder does not exist yet."""
    date = time.strftime("%Y-%m-%dT%H-%M-%S")
    place, number = Path(folder) / "aside" / date, 1
    while place.exists():
        number += 1
        place = place.with_name(f"{date}-{number}")
    return place


def put_aside(path: str | Path, why: str) -> str:
    """Move a file into ``aside/DATE`` next to it, with the reason in ``why.txt``; nothing is
    deleted.

    Returns
    -------
    One line that says what was put where, and why.
    """
    path = Path(path)
    home = new_aside(path.parent)
    write_atomically(home / "why.txt", f"{path.name}: {why}\n")
    # last, so that a crash leaves the file in one place or the other
    os.replace(path, home / path.name)
    sync_folder(path.parent)
    return f"{path.name} was put aside ({path.parent.name}/aside/{home.name}): {why}"


def packed(path: str | Path) -> Path:
    """Where the packed copy of a file lies: PATH.gz."""
    return Path(f"{path}.gz")
