"""Programs as workloads: where our own lie, and anybody's command line.

Owns how to tell from a file in which way it can wait at the barrier.
"""

import os
import shlex
import shutil
import struct
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from ..errors import InputError, RunError
from .workload import Workload

_HOW_TO_BUILD = {"clang": "apt-get install clang libomp-dev && make env", "sycl": "make sycl ACCEPT_LICENCE=yes"}
_REPOSITORY = Path(__file__).resolve().parents[2]


def binary_folder() -> Path:
    """Where our programs lie: $NOISEBOOK_BIN, or build/bin of this repository."""
    chosen = os.environ.get("NOISEBOOK_BIN")
    return Path(chosen).resolve() if chosen else _REPOSITORY / "build" / "bin"


def program_path(name: str | Path) -> Path:
    """The file that a program's name stands for.

    Raises
    ------
    RunError : it does not exist; the message says what was searched and what to do.
    """
    path = Path(name)
    if path.is_relative_to(binary_folder()) and not path.is_file():
        raise RunError(f"the program '{path.name}' is not built", where=path, mend=_HOW_TO_BUILD.get(path.parent.name, "make env"))
    found = shutil.which(str(name))
    if found:
        return Path(found).absolute()
    if path.is_file():
        raise RunError("the file is not executable", where=path, mend=f"chmod +x {shlex.quote(str(path))}")
    if os.sep in str(name):
        raise RunError("there is no such program", where=path.absolute())
    raise RunError(f"no program '{name}' was found", where=f"PATH, that is {os.environ.get('PATH', '(not set)')}",
                   mend="check the spelling, or give its path")


def external(command: str | Sequence[str], pattern: str | None = None, name: str | None = None, start: str | None = None,
             model: str = "external", env: Mapping[str, str] | None = None, timeout_s: float = 60.0) -> Workload:
    """Anybody's command line, unchanged, as a workload.

    Parameters
    ----------
    command : one string, split as a shell splits it (no pipes, no wildcards), or the words.
    pattern : regular expression with a group `seconds` for a time that the program prints; None: timed from the start to its end.
    name : for tables; default: the program's file name.
    start : "main" waits just before main() through a preload library; "exec" waits before the program is executed, for
        scripts and statically linked programs; default: by looking at the file; "mark": a program that includes noisebook.h.
    model, env, timeout_s : see `Workload`.

    Raises
    ------
    RunError : the program does not exist.
    InputError : the command or the pattern cannot be used.
    """
    words = split_command(command) if isinstance(command, str) else [str(word) for word in command]
    if not words or not words[0]:
        raise InputError("the command is empty")
    program = program_path(words[0])
    return Workload(name or program.name, model, (str(program), *words[1:]), env=env or (), pattern=pattern,
                    start=start or ("main" if takes_preload(program) else "exec"), timeout_s=timeout_s)


def split_command(command: str) -> list[str]:
    """The words of a command line, as a shell splits it."""
    try:
        return shlex.split(command)
    except ValueError as error:
        raise InputError(f"the command cannot be split into words: {error}", where=command) from None


def takes_preload(path: str | Path) -> bool:
    """Whether a program is loaded by the same dynamic loader as our preload library, and so can wait before its main()."""
    try:
        mode = os.stat(path).st_mode
        interpreter = elf_interpreter(path)
    except OSError:
        return False
    privileged = mode & 0o6000  # the loader of a set-user-ID program ignores LD_PRELOAD
    return interpreter is not None and interpreter == _own_interpreter() and not privileged


@cache
def _own_interpreter() -> str | None:
    return elf_interpreter(sys.executable)


def elf_interpreter(path: str | Path) -> str | None:
    """The dynamic loader that a 64-bit ELF program names (PT_INTERP); None: static, or not such a program at all."""
    with open(path, "rb") as file:
        header = file.read(64)
        if len(header) < 64 or header[:5] != b"\x7fELF\x02":
            return None
        order = "<" if header[5] == 1 else ">"
        table_at, = struct.unpack_from(order + "Q", header, 32)
        entry_size, entries = struct.unpack_from(order + "HH", header, 54)
        file.seek(table_at)
        table = file.read(entry_size * entries)
        for at in range(0, len(table) - 55, entry_size or 56):
            kind, = struct.unpack_from(order + "I", table, at)
            offset, size = struct.unpack_from(order + "Q", table, at + 8)[0], struct.unpack_from(order + "Q", table, at + 32)[0]
            if kind == 3 and size <= 4096:
                file.seek(offset)
                return file.read(size).rstrip(b"\0").decode(errors="replace") or None
    return None
