"""Reads what the kernel shows of the machine in sysfs and procfs.

Every reading goes through `read`, whose `root` can point to a recorded tree; the rest are pure
parsers of kernel text.
"""

import os
import re
from pathlib import Path

from .kernel import chosen as chosen
from .kernel import cpu_list as cpu_list

CAP_SYS_ADMIN, CAP_SYS_NICE = 21, 23


def located(path: str, root: str | Path = "/") -> Path:
    """The place of an absolute path of the machine inside a recorded tree."""
    return Path(root) / path.lstrip("/")


def read(path: str, root: str | Path = "/") -> str | None:
    """The stripped text of a kernel file; None where it cannot be read."""
    try:
        return located(path, root).read_text(errors="replace").strip()
    except OSError:
        return None


def names(path: str, root: str | Path = "/") -> list[str]:
    """The sorted names in a folder; empty where there is none."""
    try:
        return sorted(os.listdir(located(path, root)))
    except OSError:
        return []


def fields(text: str | None) -> dict[str, str]:
    """The lines "key : value" of /proc/cpuinfo and /proc/meminfo; the first of a key counts."""
    found: dict[str, str] = {}
    for line in (text or "").splitlines():
        key, colon, value = line.partition(":")
        if colon:
            found.setdefault(key.strip(), value.strip())
    return found


def boot_words(root: str | Path = "/") -> dict[str, str]:
    """The kernel's command line as name: value, up to the "--" before init's arguments."""
    words: dict[str, str] = {}
    for word in (read("/proc/cmdline", root) or "").split():
        if word == "--":
            break
        name, _, value = word.partition("=")
        words[name] = value
    return words


def kernel_version(root: str | Path = "/") -> tuple[int, int]:
    """(6, 18) of the release "6.18.44-fc"; (0, 0) where there is none."""
    match = re.match(r"(\d+)\.(\d+)", read("/proc/sys/kernel/osrelease", root) or "")
    return (int(match[1]), int(match[2])) if match else (0, 0)


def may(capability: int, root: str | Path = "/") -> bool:
    """Whether this process holds a capability (bit number of linux/capability.h) in effect."""
    mask = fields(read("/proc/self/status", root)).get("CapEff", "0")
    return bool(int(mask, 16) >> capability & 1)


def writable(path: str | Path, root: str | Path = "/") -> bool:
    """Whether the file opens for writing; nothing is written.

    Opening says more than access(2), which knows neither lockdown nor a read-only /proc in a
    container.
    """
    try:
        os.close(os.open(located(str(path), root), os.O_WRONLY))
    except OSError:
        return False
    return True
