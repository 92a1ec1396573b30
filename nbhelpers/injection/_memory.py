"""How much memory a machine has for noise: sizes of its caches, memory that can be taken, the part
of one process.
"""

import contextlib
import re
from pathlib import Path

import pandas as pd

from ..noise._vocabulary import STRESSORS

MIB = 2**20
_CACHE = "/sys/devices/system/cpu/cpu{}/cache"


def cache_bytes(cpu: int = 0) -> tuple[int, int, int]:
    """Sizes of a CPU's data caches L1, L2, L3 as sysfs states them; 0 for one that it has not."""
    sizes = [0, 0, 0]
    for index in Path(_CACHE.format(cpu)).glob("index*"):
        with contextlib.suppress(OSError, ValueError):
            level, kind = int((index / "level").read_text()), (index / "type").read_text().strip()
            if kind in ("Data", "Unified") and 1 <= level <= 3:
                sizes[level - 1] = _bytes((index / "size").read_text())
    return sizes[0], sizes[1], sizes[2]


def _bytes(text: str) -> int:
    found = re.fullmatch(r"(\d+)([KMG]?)", text.strip())
    if not found:
        raise ValueError(f"not a size: {text!r}")
    return int(found[1]) * {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}[found[2]]


def available_memory() -> int:
    """Bytes that are left to the machine, or to this process's control group if that is less."""
    found = re.search(r"^MemAvailable:\s*(\d+)", Path("/proc/meminfo").read_text(), re.M)
    return min([int(found[1]) * 1024 if found else 0, *_left_in_groups()])


def _left_in_groups() -> list[int]:
    """What the limits of this process's control groups leave, from the innermost to the root."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return []
    left: list[int] = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":  # version 2
            left += _left_above(Path("/sys/fs/cgroup"), path, "memory.max", "memory.current")
        elif controllers == "memory":  # version 1
            root = Path("/sys/fs/cgroup/memory")
            left += _left_above(root, path, "memory.limit_in_bytes", "memory.usage_in_bytes")
    return left


def _left_above(root: Path, path: str, limit: str, used: str) -> list[int]:
    left = []
    group = root / path.lstrip("/")
    for folder in (group, *group.parents):
        with contextlib.suppress(OSError, ValueError):  # "max": no limit
            most, taken = int((folder / limit).read_text()), int((folder / used).read_text())
            left.append(max(most - taken, 0))
        if folder == root:
            break
    return left


def lane_memory(events: pd.DataFrame, share: float) -> int:
    """Bytes that one process of an injection may hold: a share of the available memory, divided by
    the processes that need memory.
    """
    needing = [kind for kind, stressor in STRESSORS.items() if stressor.needs == "memory"]
    lanes = len(events.loc[events["kind"].isin(needing), ["cpu", "kind"]].drop_duplicates())
    return int(available_memory() * share / max(lanes, 1))
