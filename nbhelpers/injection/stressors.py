"""What noise that does more than occupy a CPU needs of this machine, and what must be refused.

Owns the limits of memory and disk, the scratch folder, and their way into the C core. The kinds are
made in injector_c/kinds*.c; their names and units are in `nbhelpers.noise.STRESSORS`.
"""

import contextlib
import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pandas as pd

from ..errors import InputError, Unavailable
from ..machine import online_cpus
from ..noise._vocabulary import STRESSORS

MIB = 2**20
MEMORY_SHARE = 0.25  # of the available memory, all processes of an injection together
FILE_BYTES = 32 * MIB  # of a process's file
DISK_SHARE = 0.1  # of what is free on the disk, all files of an injection together
PREFIX = "noisebook-noise-"
IN_MEMORY = ("tmpfs", "ramfs", "devtmpfs")
_DIRECT = "io_read"  # past the page cache
_CAP_SYS_ADMIN = 1 << 21
_CAP_PERFMON = 1 << 38


def check_stressors(events: pd.DataFrame, scratch: str | Path | None) -> None:
    """Refuse noise that this machine cannot make, or should not be given.

    Parameters
    ----------
    events
        Columns cpu, kind, intensity.
    scratch
        Where file noise makes its files; None: a folder for temporary files.

    Raises
    ------
    InputError
        A cache or a second CPU that isn't there, a folder in memory for noise of the disk, a share
        beyond 1.
    Unavailable
        No other CPU may be interrupted here.
    """
    requested = events.groupby(events["kind"].astype(str))["intensity"].max()
    for kind, intensity in requested.items():
        if kind == "duty" and intensity > 1:
            raise InputError(f"a duty of {intensity:g}", fix="a share of the CPU's time, 0 to 1")
        if kind == "cache_l3" and not cache_bytes():
            raise InputError(
                "this machine states no L3 cache", where="/sys/devices/system/cpu/cpu0/cache"
            )
        if kind == "ipi":
            _check_second_cpu()
            check_interrupts()
        if kind in STRESSORS and STRESSORS[kind].needs == "folder":
            scratch_base(scratch, direct=kind == _DIRECT)


def _check_second_cpu() -> None:
    if len(online_cpus()) < 2:
        raise InputError(
            "ipi noise needs a second CPU", why="interrupts of this kind come from another one"
        )


def check_interrupts() -> None:
    """Check that this user may interrupt another CPU, whatever runs there.

    Raises
    ------
    Unavailable
        The counters of other CPUs may not be read, which is what makes the kernel interrupt them.
    """
    if not may_count_cpus():
        raise Unavailable(
            "no other CPU can be interrupted here: its counters may not be read",
            fix="run as root, or: sysctl kernel.perf_event_paranoid=0",
        )


def may_count_cpus() -> bool:
    """Whether this user may open perf events of a whole CPU: everybody may, or it has CAP_PERFMON
    or CAP_SYS_ADMIN.
    """
    with contextlib.suppress(OSError, ValueError):
        status = Path("/proc/self/status").read_text()
        effective = re.search(r"^CapEff:\s*(\w+)", status, re.M)
        if effective and int(effective[1], 16) & (_CAP_PERFMON | _CAP_SYS_ADMIN):
            return True
        return int(Path("/proc/sys/kernel/perf_event_paranoid").read_text()) < 1
    return False


def fill_options(run: Any, events: pd.DataFrame, scratch: str | Path | None) -> Path | None:
    """Write the options of an injection into its C structure; make its scratch folder if it needs
    one.

    Returns
    -------
    The scratch folder; to be given to `remove_scratch` when the injection has ended. (The
    supervisor removes it, too.)
    """
    used = set(events["kind"].unique()) & set(STRESSORS)
    if not used:
        return None
    run.options.memory_bytes = int(available_memory() * MEMORY_SHARE / _lanes(events, "memory"))
    run.options.cache_bytes = cache_bytes()
    if not any(STRESSORS[kind].needs == "folder" for kind in used):
        return None
    folder = make_scratch(scratch_base(scratch, direct=_DIRECT in used))
    run.options.folder = os.fsencode(folder)
    free = shutil.disk_usage(folder).free
    run.options.file_bytes = int(min(FILE_BYTES, free * DISK_SHARE / _lanes(events, "folder")))
    return folder


def _lanes(events: pd.DataFrame, need: str) -> int:
    """How many processes of an injection share something of the machine; at least 1."""
    needing = [kind for kind, stressor in STRESSORS.items() if stressor.needs == need]
    return max(len(events.loc[events["kind"].isin(needing), ["cpu", "kind"]].drop_duplicates()), 1)


def cache_bytes() -> int:
    """Size of the L3 cache as sysfs states it; 0 where there is none."""
    for index in Path(f"/sys/devices/system/cpu/cpu{online_cpus()[0]}/cache").glob("index*"):
        with contextlib.suppress(OSError, ValueError):
            if int((index / "level").read_text()) == 3:
                return int((index / "size").read_text().strip().removesuffix("K")) * 1024
    return 0


def available_memory() -> int:
    """Bytes that are left to the machine, or to this process's control groups if that is less."""
    found = re.search(r"^MemAvailable:\s*(\d+)", Path("/proc/meminfo").read_text(), re.M)
    left = [int(found[1]) * 1024 if found else 0]
    with contextlib.suppress(OSError):
        path = re.search(r"^0::/(.*)$", Path("/proc/self/cgroup").read_text(), re.M)
        group = Path("/sys/fs/cgroup", path[1] if path else "")
        for folder in (group, *group.parents[: len(group.parts) - 4]):
            with contextlib.suppress(OSError, ValueError):  # "max": no limit
                most = int((folder / "memory.max").read_text())
                left.append(max(most - int((folder / "memory.current").read_text()), 0))
    return min(left)


def disk_kind(folder: str | Path) -> str:
    """The type of the file system that a folder lies on (ext4, tmpfs, …); empty if unknown."""
    path, best, kind = os.path.realpath(folder), "", ""
    for line in Path("/proc/self/mountinfo").read_text(errors="replace").splitlines():
        fields, _, rest = line.partition(" - ")
        place = re.sub(r"\\(\d{3})", lambda match: chr(int(match[1], 8)), fields.split()[4])
        inside = path == place or path.startswith(place.rstrip("/") + "/")
        if inside and len(place) >= len(best):
            best, kind = place, rest.split()[0]
    return kind


def scratch_base(folder: str | Path | None = None, direct: bool = False) -> Path:
    """The folder in which scratch folders are made.

    Parameters
    ----------
    folder
        Make them there; None: a folder for temporary files, on a real disk if there is one.
    direct
        The noise bypasses the page cache, so the folder must lie on a disk.

    Raises
    ------
    InputError
        There is none, it is full, or lies in memory although a disk is to be disturbed.
    """
    # in them mkdtemp makes a folder of its own
    spare = Path("/var/tmp")  # nosec B108
    candidates = [Path(tempfile.gettempdir()), spare, Path.home(), Path.cwd()]
    if folder:
        candidates = [Path(folder)]
    writable = [place for place in candidates if place.is_dir() and os.access(place, os.W_OK)]
    if not writable:
        raise InputError(
            "no folder for file noise",
            where=", ".join(map(str, candidates)),
            fix="scratch=… of a folder that exists",
        )
    on_disk = [place for place in writable if disk_kind(place) not in IN_MEMORY]
    if direct and not on_disk:
        raise InputError(
            "the folder for file noise lies in memory",
            where=writable[0],
            fix="scratch=… of a folder on a disk",
            why="past the page cache there is no disk that could be disturbed",
        )
    return (on_disk or writable)[0]


def make_scratch(base: Path) -> Path:
    """A folder for one injection, named for this process; those of processes that are no more are
    removed.
    """
    for old in base.glob(f"{PREFIX}*"):
        owner = re.fullmatch(rf"{PREFIX}(\d+)-\w+", old.name)
        if owner and not Path("/proc", owner[1]).exists():
            remove_scratch(old)
    return Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=base))


def remove_scratch(folder: Path | None) -> None:
    """Remove a scratch folder, if it is still there."""
    if folder:
        shutil.rmtree(folder, ignore_errors=True)
