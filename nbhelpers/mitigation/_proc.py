"""What the kernel says of a live process: what it executes, has mapped, may run on, and whether it
is on its way out.

Owns all reading of /proc/PID; nothing here changes anything.
"""

import os
from contextlib import suppress
from pathlib import Path

from ..machine import cpu_list

_EXITING = 0x4  # PF_EXITING of linux/sched.h, in field 9 of /proc/PID/stat


def alive(pid: int) -> bool:
    """Whether the process runs its program: neither a zombie nor about to end, when its maps and
    environment are gone already.
    """
    with suppress(OSError, ValueError, IndexError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return fields[0] not in "ZX" and not int(fields[6]) & _EXITING
    return False


def executable(pid: int) -> str:
    """The file that the process executes; empty if it has ended."""
    with suppress(OSError):
        return os.readlink(f"/proc/{pid}/exe")
    return ""


def tasks(pid: int) -> list[int]:
    """The threads of the process; none if it has ended."""
    with suppress(OSError):
        return sorted(int(name) for name in os.listdir(f"/proc/{pid}/task"))
    return []


def environment(pid: int) -> dict[str, str]:
    """The environment that the program was executed with."""
    with suppress(OSError):
        text = Path(f"/proc/{pid}/environ").read_text(errors="surrogateescape")
        return dict(pair.split("=", 1) for pair in text.split("\0") if "=" in pair)
    return {}


def mapped_files(pid: int) -> set[str]:
    """The files mapped into the process: program, libraries, data."""
    with suppress(OSError):
        lines = Path(f"/proc/{pid}/maps").read_text(errors="surrogateescape").splitlines()
        return {
            line.split(None, 5)[5].removesuffix(" (deleted)")
            for line in lines
            if line.count("/") and len(line.split(None, 5)) == 6
        }
    return set()


def status(pid: int, key: str, task: int | None = None) -> str | None:
    """A line of /proc/PID/status, or of one of its threads."""
    return _field(f"/proc/{pid}/{'' if task is None else f'task/{task}/'}status", key)


def _field(path: str, key: str) -> str | None:
    with suppress(OSError):
        for line in Path(path).read_text(errors="replace").splitlines():
            if line.startswith(f"{key}:"):
                return line.partition(":")[2].strip()
    return None


def allowed(pid: int, task: int) -> frozenset[int]:
    """The CPUs that a thread may run on; empty if it has ended."""
    return frozenset(cpu_list(status(pid, "Cpus_allowed_list", task)))


def groups(pid: int) -> dict[str, str]:
    """The control groups of a process: controllers as listed ("" for version 2) to the path in that
    hierarchy.
    """
    with suppress(OSError):
        rows = (line.split(":", 2) for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines())
        return {name: path for _, names, path in rows for name in names.split(",")}
    return {}


def heap_bytes(pid: int) -> int:
    """The length of the heap that brk(2) made; 0 if there is none."""
    with suppress(OSError, ValueError):
        for line in Path(f"/proc/{pid}/maps").read_text(errors="surrogateescape").splitlines():
            if line.endswith("[heap]"):
                start, _, end = line.split()[0].partition("-")
                return int(end, 16) - int(start, 16)
    return 0


def huge_kb(pid: int) -> int | None:
    """Transparent huge pages of the process, kB; None: the kernel does not tell."""
    text = _field(f"/proc/{pid}/smaps_rollup", "AnonHugePages")
    return int(text.split()[0]) if text else None
