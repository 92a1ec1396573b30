"""Noise that does more than occupy a CPU: what it needs of this machine, how much it may take, and
how much the machine can do.

Owns the limits (memory, disk, addresses), the scratch folder of an injection, and the measurement
of what can be achieved at all. The kinds themselves are in injector_c/kinds*.c, their names and
units in `nbhelpers.noise.stressor_table`.
"""

import contextlib
import ipaddress
import os
import re
import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from ..errors import InputError
from ..machine import online_cpus
from ..noise import NoiseConfig, stressor_noise
from ..noise._vocabulary import STRESSOR_KINDS, STRESSORS

MIB = 2**20
LARGEST_SHARE = 0.5  # of the memory that is available
DISK_SHARE = 0.1  # of what is free on the disk
PREFIX = "noisebook-noise-"
IN_MEMORY = ("tmpfs", "ramfs", "devtmpfs")
_CACHE = "/sys/devices/system/cpu/cpu{}/cache"
_COUNTED = ("LOC", "RES", "CAL", "TLB")


@dataclass(frozen=True)
class KindOptions:
    """What noise of memory, files and the network may use. The limits are for all of an injection's
    processes together.

    Parameters
    ----------
    folder
        Where file noise makes its files, in a folder of its own that is removed at the end,
        whatever the end is. None: a folder for temporary files on a real disk.
    address
        An IPv4 or IPv6 address that network noise is sent to. None: each process sends to itself,
        over the loopback device.
    port
        Of that address; 9 is the one whose traffic is thrown away by whoever listens.
    memory_share
        Of the memory that is available, at most 0.5.
    file_mib
        Size of a process's file; all of them take at most a tenth of what is free on the disk.

    Raises
    ------
    InputError
        a limit beyond these, or an address that is none.
    """

    folder: str | Path | None = None
    address: str | None = None
    port: int = 9
    memory_share: float = 0.25
    file_mib: float = 32.0

    def __post_init__(self):
        if not 0 < self.memory_share <= LARGEST_SHARE:
            raise InputError(
                f"memory_share is {self.memory_share}",
                fix=f"more than 0, at most {LARGEST_SHARE}",
                why="a machine without memory ends processes, and the workload may be the one",
            )
        if not 1 <= self.file_mib <= 1024:
            raise InputError(f"file_mib is {self.file_mib}", fix="1 to 1024")
        if not 1 <= self.port <= 65535:
            raise InputError(f"port {self.port}", fix="1 to 65535")
        _target(self.address)


def _target(address: str | None) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    if address is None:
        return None
    try:
        target = ipaddress.ip_address(address)
    except ValueError:
        raise InputError(
            f"not an IP address: {address!r}", fix="such as 192.0.2.7; None is this machine itself"
        ) from None
    if target.is_multicast or target.is_unspecified or str(target) == "255.255.255.255":
        raise InputError(
            f"noise cannot be sent to {address}",
            why="it would reach everybody on the network",
            fix="choose one host",
        )
    return target


# What the machine has
# --------------------------------------------------------------------------------------------------


def cache_bytes(cpu: int = 0) -> tuple[int, int, int]:
    """Sizes of a CPU's data caches L1, L2, L3, as sysfs tells them; 0 for one that it doesn't have."""
    sizes = [0, 0, 0]
    for index in Path(_CACHE.format(cpu)).glob("index*"):
        with contextlib.suppress(OSError, ValueError):
            level, kind = int((index / "level").read_text()), (index / "type").read_text().strip()
            if kind in ("Data", "Unified") and 1 <= level <= 3:
                sizes[level - 1] = _bytes((index / "size").read_text())
    return tuple(sizes)


def _bytes(text: str) -> int:
    number, unit = re.fullmatch(r"(\d+)([KMG]?)", text.strip()).groups()
    return int(number) * {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}[unit]


def available_memory() -> int:
    """Bytes that can be taken before the machine, or this process's control group, has none left."""
    found = re.search(r"^MemAvailable:\s*(\d+)", Path("/proc/meminfo").read_text(), re.M)
    return min([int(found[1]) * 1024 if found else 0, *_group_memory()])


def _group_memory() -> list[int]:
    """What the limits of the control groups leave: version 2 and 1 name their files differently."""
    left = []
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers in ("", "memory"):
                root, limit, used = (
                    ("", "memory.max", "memory.current")
                    if not controllers
                    else ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes")
                )
                folder = Path("/sys/fs/cgroup", root)
                for group in (folder / path.lstrip("/"), *(folder / path.lstrip("/")).parents):
                    with contextlib.suppress(OSError, ValueError):  # "max": no limit
                        left.append(
                            max(
                                int((group / limit).read_text()) - int((group / used).read_text()),
                                0,
                            )
                        )
                    if group == folder:
                        break
    return left


def interrupt_counts() -> pd.DataFrame:
    """How many interrupts each CPU has had, by kind, since the machine was started.

    Returns
    -------
    One row a CPU, columns LOC (local timer), RES (rescheduling), CAL (function calls), TLB
    (shootdowns; on x86 they count as function calls, too); those that the kernel doesn't tell are
    missing.
    """
    lines = Path("/proc/interrupts").read_text().splitlines()
    cpus = [int(name.removeprefix("CPU")) for name in lines[0].split()]
    rows = {
        line.split(":")[0].strip(): line.split(":")[1].split()[: len(cpus)] for line in lines[1:]
    }
    return pd.DataFrame(
        {name: np.array(rows[name], np.int64) for name in _COUNTED if name in rows},
        index=pd.Index(cpus, name="cpu"),
    )


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


# What an injection may use
# ---------------------------------------------------------------------------------------------


def check_kinds(events: pd.DataFrame, options: KindOptions) -> None:
    """Refuse noise that this machine cannot make, or should not be given.

    Parameters
    ----------
    events
        Columns cpu, kind, intensity.

    Raises
    ------
    InputError
        More memory than the limit, a cache or a second CPU that isn't there, a folder in memory for
        noise of the disk, a share beyond 1.
    """
    events = events[events["kind"].isin(STRESSOR_KINDS)]
    asked = events.groupby(events["kind"].astype(str))["intensity"].max()
    for kind, intensity in asked.items():
        _check_kind(kind, float(intensity), options)
    if asked.get("memory_hold", 0) > (each := lane_memory(events, options)):
        raise InputError(
            f"memory_hold of {asked['memory_hold'] / MIB:.0f} MiB",
            why=(
                f"a process may hold {each / MIB:.0f} MiB: {options.memory_share:.0%} of what is"
                " available, divided by the processes that need memory"
            ),
            fix=f"ask for less, or pass KindOptions(memory_share=…), at most {LARGEST_SHARE}",
        )


def _check_kind(kind: str, intensity: float, options: KindOptions) -> None:
    if kind == "duty" and intensity > 1:
        raise InputError(f"a duty of {intensity:g}", fix="a share of the CPU's time, 0 to 1")
    if kind.startswith("cache_") and not cache_bytes(online_cpus()[0])[int(kind[-1]) - 1]:
        raise InputError(
            f"this machine tells of no {kind[-2:].upper()} cache",
            where="/sys/devices/system/cpu/cpu0/cache",
        )
    if STRESSORS[kind].needs == "cpus" and len(online_cpus()) < 2:
        raise InputError(
            f"{kind} noise needs a second CPU", why="interrupts of this kind come from another one"
        )
    if STRESSORS[kind].needs == "folder":
        scratch_base(options, direct=kind in ("io_read", "io_write"))


def kind_notes(events: pd.DataFrame) -> list[str]:
    """What a reader of the results must know: what this user may not do, and what is done in its
    place.
    """
    if "ipi" in set(events["kind"].unique()) and not _may_count_cpus():
        return [
            "reading another CPU's counters is not permitted here: ipi noise comes from a helper"
            " thread that must have the CPU itself, so it also occupies it; run as root, or set"
            " kernel.perf_event_paranoid to 0"
        ]
    return []


def _may_count_cpus() -> bool:
    """Whether perf events of a whole CPU are open to this user: to all, or to CAP_PERFMON (38) and
    CAP_SYS_ADMIN (21).
    """
    effective = re.search(r"^CapEff:\s*(\w+)", Path("/proc/self/status").read_text(), re.M)
    with contextlib.suppress(OSError, ValueError):
        return (
            bool(int(effective[1], 16) & (1 << 38 | 1 << 21))
            or int(Path("/proc/sys/kernel/perf_event_paranoid").read_text()) < 1
        )
    return False


def scratch_base(options: KindOptions, direct: bool = False) -> Path:
    """The folder in which scratch folders are made.

    Raises
    ------
    InputError
        There is none, it is full, or lies in memory although a disk is to be disturbed.
    """
    given = (
        [Path(options.folder)]
        if options.folder
        else [Path(tempfile.gettempdir()), Path("/var/tmp"), Path.home(), Path.cwd()]
    )
    writable = [folder for folder in given if folder.is_dir() and os.access(folder, os.W_OK)]
    if not writable:
        raise InputError(
            "no folder for file noise",
            where=", ".join(map(str, given)),
            fix="KindOptions(folder=…) of a folder that exists",
        )
    on_disk = [folder for folder in writable if disk_kind(folder) not in IN_MEMORY]
    if direct and not on_disk:
        raise InputError(
            "the folder for file noise lies in memory",
            where=writable[0],
            fix="KindOptions(folder=…) of a folder on a disk",
            why="past the page cache there is no disk that could be disturbed",
        )
    return (on_disk or writable)[0]


def lane_memory(events: pd.DataFrame, options: KindOptions) -> int:
    """Bytes that one process of an injection may hold."""
    needing = [kind for kind, stressor in STRESSORS.items() if stressor.needs == "memory"]
    lanes = len(events.loc[events["kind"].isin(needing), ["cpu", "kind"]].drop_duplicates())
    return int(available_memory() * options.memory_share / max(lanes, 1))


def lane_file_bytes(events: pd.DataFrame, options: KindOptions, folder: Path) -> int:
    """Size of one process's file."""
    lanes = len(
        events.loc[
            events["kind"].isin(["io_read", "io_write", "io_sync"]), ["cpu", "kind"]
        ].drop_duplicates()
    )
    return int(
        min(options.file_mib * MIB, shutil.disk_usage(folder).free * DISK_SHARE / max(lanes, 1))
    )


def fill_options(run, events: pd.DataFrame, options: KindOptions) -> Path | None:
    """Write the options of an injection into its C structure; make its scratch folder if it needs
    one.

    Returns
    -------
    The scratch folder; to be given to `remove_scratch` when the injection has ended. (The
    supervisor removes it, too.)
    """
    used = set(events["kind"].unique()) & set(STRESSOR_KINDS)
    if not used:
        return None
    own = run.options
    own.memory_bytes = lane_memory(events, options)
    for level, size in enumerate(cache_bytes(online_cpus()[0])):
        own.cache_bytes[level] = size
    _fill_target(own, options)
    if not any(STRESSORS[kind].needs == "folder" for kind in used):
        return None
    folder = make_scratch(scratch_base(options, bool(used & {"io_read", "io_write"})))
    own.folder = os.fsencode(folder)
    own.file_bytes = lane_file_bytes(events, options, folder)
    return folder


def _fill_target(own, options: KindOptions) -> None:
    target = _target(options.address)
    own.family, own.port = target.version if target else 0, options.port
    for place, byte in enumerate(target.packed if target else b""):
        own.address[place] = byte


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


# What can be achieved
# --------------------------------------------------------------------------------------------------


def capacity(
    kinds: tuple[str, ...] = STRESSOR_KINDS,
    cpu: int | None = None,
    seconds: float = 0.1,
    options: KindOptions | None = None,
) -> pd.DataFrame:
    """How much of each kind this machine can do, each alone: the calibration of intensities.

    Each kind is asked for more than any machine can do (duty: all of a CPU). Of memory_hold it is
    what one process may hold; that is not taken.

    Parameters
    ----------
    kinds
        Names of `stressor_table`.
    cpu
        The CPU to disturb; None: the last one that is online.
    seconds
        For each kind.

    Returns
    -------
    One row a kind: `kind`, `unit`, `achieved` (in that unit), `cpu_share` (CPU time that the
    process used itself, of its duration), and for the whole machine in the meantime `LOC_per_s`,
    `RES_per_s`, `CAL_per_s`, `TLB_per_s`: interrupts counted by the kernel.
    """
    options, cpu = options or KindOptions(), online_cpus()[-1] if cpu is None else cpu
    rows = [_capacity(kind, cpu, seconds, options) for kind in kinds if kind != "memory_hold"]
    if "memory_hold" in kinds:
        limit = available_memory() * options.memory_share
        rows.insert(
            kinds.index("memory_hold"),
            {"kind": "memory_hold", "unit": STRESSORS["memory_hold"].unit, "achieved": limit},
        )
    return pd.DataFrame(rows)


def _capacity(kind: str, cpu: int, seconds: float, options: KindOptions) -> dict:
    from .plan import make_plan
    from .replay import Replay
    from .rules import Rules

    events = stressor_noise(kind, 1.0 if kind == "duty" else 1e15, seconds, [cpu])
    rules = Rules(
        exit_cost_us=0, shortest_us=0, give_up_ms=10_000
    )  # alone on the time line, it may begin late
    replay = Replay(
        make_plan(NoiseConfig.from_events(events), "origin", rules=rules, kinds=options)
    )
    try:
        replay.start()
        before = interrupt_counts().sum()
        replay.release(time.monotonic_ns() + 1_000_000)
        replay.wait(seconds + 30)
        counted = interrupt_counts().sum() - before
    finally:
        replay.close()
    log = {name: column[0] for name, column in replay.log.items()}
    lasted_ns = max(int(log["end_ns"] - log["start_ns"]), 1)
    return {
        "kind": kind,
        "unit": STRESSORS[kind].unit,
        "achieved": float(log["achieved"]),
        "cpu_share": int(log["cpu_time_ns"]) / lasted_ns,
        **{f"{name}_per_s": value / seconds for name, value in counted.items()},
    }
