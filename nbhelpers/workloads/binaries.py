"""What the file of a program shows: whether this machine can execute it, and how it is loaded."""

import os
import shlex
import struct
from pathlib import Path

from ..errors import RunError


def runnable(path: Path) -> Path:
    """The path of a program that this machine can execute.

    Raises
    ------
    RunError
        It was built for another architecture, or the interpreter of a script is not there.
    """
    try:
        head = _head(path)
    except OSError:  # one that may be executed and not be read
        return path
    ours = _head("/proc/self/exe")  # its path may lie where this user cannot look
    # class, byte order and machine of the ELF header
    if head[:4] == b"\x7fELF" and head[4:6] + head[18:20] != ours[4:6] + ours[18:20]:
        raise RunError(
            "the program was built for another kind of machine",
            where=path,
            why=f"this machine is {os.uname().machine}",
            fix=f"file {shlex.quote(str(path))}; build it here",
        )
    if head[:2] == b"#!":
        interpreter = head[2:].split(b"\n")[0].split()[:1]
        if interpreter and not os.access(interpreter[0], os.X_OK):
            raise RunError(
                "the interpreter of the script is not here:"
                f" {interpreter[0].decode(errors='replace')}",
                where=path,
                fix="correct its first line, or install the interpreter",
            )
    return path


def _head(path: str | Path) -> bytes:
    with open(path, "rb") as file:
        return file.read(256)


def takes_preload(path: str | Path) -> bool:
    """Return whether a program can wait before its main(): the dynamic loader of our preload
    library loads it, too.

    Parameters
    ----------
    path
        Path of the program.
    """
    try:
        mode = os.stat(path).st_mode
        interpreter = elf_interpreter(path)
    except OSError:
        return False
    privileged = mode & 0o6000  # the loader of a set-user-ID program ignores LD_PRELOAD
    ours = elf_interpreter("/proc/self/exe")
    return interpreter is not None and interpreter == ours and not privileged


def elf_interpreter(path: str | Path) -> str | None:
    """Return the dynamic loader that a 64-bit ELF program names (PT_INTERP).

    Parameters
    ----------
    path
        Path of the program.

    Returns
    -------
    str or None
        None: it is linked statically, or no 64-bit ELF program.

    Raises
    ------
    OSError
        The file cannot be read.
    """
    with open(path, "rb") as file:
        header = file.read(64)
        if len(header) < 64 or header[:5] != b"\x7fELF\x02":
            return None
        order = "<" if header[5] == 1 else ">"
        (table_at,) = struct.unpack_from(order + "Q", header, 32)
        entry_size, entries = struct.unpack_from(order + "HH", header, 54)
        file.seek(table_at)
        table = file.read(entry_size * entries)
        for at in range(0, len(table) - 55, entry_size or 56):
            (kind,) = struct.unpack_from(order + "I", table, at)
            offset = struct.unpack_from(order + "Q", table, at + 8)[0]
            size = struct.unpack_from(order + "Q", table, at + 32)[0]
            if kind == 3 and size <= 4096:
                file.seek(offset)
                return file.read(size).rstrip(b"\0").decode(errors="replace") or None
    return None
