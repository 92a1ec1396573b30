"""What proves that a variable of the environment acts in a running process: who reads it is there,
and what can be seen from outside shows that it was followed.

Owns one proof for each variable that a mitigation sets, and one for all of OpenMP's; without one
nothing counts as proven.
"""

import os
import re
import struct
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from ..machine.parts import LIBRARIES
from . import _proc
from .action import Momentary, NotYet, Unproven

Answer = str | None
_DYNSYM = 11  # type of a section, elf.h
_OPENMP = ("libgomp", "libomp", "libiomp")
_OPENMP_VARIABLES = ("OMP_", "GOMP_", "KMP_")  # how their names begin


def proof(pid: int, name: str, value: str) -> Answer:
    """Whether a variable acts in a process that has it in its environment.

    Parameters
    ----------
    pid
        The process.
    name, value
        Name and value of the variable.

    Returns
    -------
    None: it does; `NotYet`: not now; `Unproven`: that cannot be seen from outside.
    """
    known = proof_of(name)
    return known(pid, value) if known else Unproven(f"nothing shows whether anybody follows {name}")


def proof_of(name: str) -> Callable[[int, str], Answer] | None:
    """What proves that a variable acts in a process; None: nothing does."""
    return _openmp_variable if name.startswith(_OPENMP_VARIABLES) else PROOFS.get(name)


def openmp_missing(pid: int) -> Answer:
    """`NotYet`, where no OpenMP runtime is loaded."""
    if any(name.startswith(_OPENMP) for name in _mapped_names(pid)):
        return None
    return NotYet("no OpenMP runtime is loaded by the process, so nobody reads it")


def follows_display(name: str, value: str, errors: str) -> bool:
    """Whether an OpenMP runtime printed, as OMP_DISPLAY_ENV requests, that it follows a variable.

    Examples
    --------
    >>> follows_display("OMP_WAIT_POLICY", "passive", "  [host] OMP_WAIT_POLICY='PASSIVE'")
    True
    """
    told = re.search(rf"^\s*(\[\w+\] )?{name} ?= ?'([^']*)'", errors, re.M)
    return bool(told and told[2].lower().split(",")[0] == value.lower().split(",")[0])


def program_malloc(pid: int) -> Answer:
    """Where the program brings a malloc of its own, which no library and no variable replaces."""
    if "malloc" in symbols(f"/proc/{pid}/exe"):
        name = os.path.basename(_proc.executable(pid))
        return f"{name} has a malloc of its own"
    return None


def _mapped_names(pid: int) -> set[str]:
    return {os.path.basename(name) for name in _proc.mapped_files(pid)}


# ---- glibc's malloc ------------------------------------------------------------------------------


def _glibc(pid: int, value: str = "") -> Answer:
    """Whether malloc is glibc's."""
    files = _mapped_names(pid)
    if not any(name.startswith(("libc.so", "libc-")) for name in files):
        return NotYet("glibc is not loaded by the process, so nobody reads it")
    rivals = (name for name in sorted(files) if any(library in name for library in LIBRARIES))
    if rival := next(rivals, None):
        return f"malloc is that of {rival}, not glibc's"
    return program_malloc(pid)


def _top_pad(pid: int, value: str) -> Answer:
    """The heap has grown by at least the padding."""
    if wrong := _glibc(pid):
        return wrong
    heap_b = _proc.heap_bytes(pid)
    if heap_b >= int(value):
        return None
    return NotYet(f"the heap of the process has {heap_b} bytes, less than {value}")


def _arenas(pid: int, value: str) -> Answer:
    """Threads enough to have more arenas; malloc follows the limit always."""
    if wrong := _glibc(pid):
        return wrong
    threads = len(_proc.tasks(pid))
    if threads <= int(value):
        return Unproven(f"{threads} threads have no more arenas, which no limit holds back")
    return None


def _huge_advice(pid: int, value: str) -> Answer:
    """Memory of the process is advised for huge pages (the flag hg), at this moment or before: a
    program may give back each block.
    """
    if wrong := _glibc(pid):
        return wrong
    if "malloc.hugetlb=1" not in value:
        return Unproven(f"nothing shows whether glibc follows {value}")
    with suppress(OSError):
        rows = Path(f"/proc/{pid}/smaps").read_text(errors="replace").splitlines()
        if any("hg" in row.split() for row in rows if row.startswith("VmFlags:")):
            return None
    return Momentary("malloc advises no memory of the process for huge pages")


# ---- OpenMP ------------------------------------------------------------------------------------


def _openmp_variable(pid: int, value: str) -> Answer:
    """The runtime prints what it follows; see `follows_display`."""
    return openmp_missing(pid) or Unproven("the OpenMP runtime did not print that it follows it")


PROOFS: dict[str, Callable[[int, str], Answer]] = {
    "MALLOC_TOP_PAD_": _top_pad,
    # read by malloc together with MALLOC_TOP_PAD_, which shows in the size of the heap
    "MALLOC_MMAP_MAX_": _glibc,
    "MALLOC_TRIM_THRESHOLD_": _glibc,
    "MALLOC_ARENA_MAX": _arenas,
    "GLIBC_TUNABLES": _huge_advice,
}


# ---- which names a library or program defines ----------------------------------------------------


def symbols(path: str) -> frozenset[str]:
    """Names that a dynamic 64-bit little-endian ELF file defines; none where it cannot be read."""
    with suppress(OSError, ValueError, struct.error, IndexError):
        found = os.stat(path)
        return _symbols(path, found.st_mtime_ns, found.st_size)
    return frozenset()


@lru_cache(maxsize=64)
def _symbols(path: str, changed_ns: int, size: int) -> frozenset[str]:
    data = Path(path).read_bytes()
    if data[:6] != b"\x7fELF\x02\x01":
        raise ValueError(f"{path} is no 64-bit little-endian ELF file")
    (table_at,) = struct.unpack_from("<Q", data, 40)
    size, count = struct.unpack_from("<HH", data, 58)
    rows = [struct.unpack_from("<IIQQQQII", data, table_at + size * n) for n in range(count)]
    names: set[str] = set()
    for _, kind, _, _, at, length, link, _ in rows:
        if kind == _DYNSYM:
            table, texts = data[at : at + length // 24 * 24], data[rows[link][4] :]
            entries = struct.iter_unpack("<IBBHQQ", table)
            defined = [name for name, _, _, index, _, _ in entries if name and index]
            names |= {texts[name : texts.index(b"\0", name)].decode() for name in defined}
    return frozenset(names)
