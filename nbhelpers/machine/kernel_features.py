"""What differs between the kernels from 5.10 to 6.18, and since when.

Owns the table of what came with which version, and how it is found by looking. The version only
explains: distributions take things back into older kernels, and leave others out.
"""

from dataclasses import dataclass
from pathlib import Path

from ._read import kernel_version, located, read

Version = tuple[int, int]
OLDEST: Version = (5, 10)
SINCE: dict[str, Version] = {
    "osnoise tracer": (5, 14),
    "cgroup.kill": (5, 14),
    "memory.peak": (5, 19),
    "osnoise that only watches": (6, 2),
    "fair server": (6, 12),
}
_TRACEFS, _FAIR_SERVER = "/sys/kernel/tracing", "/sys/kernel/debug/sched/fair_server"


@dataclass(frozen=True)
class KernelFeatures:
    """What a kernel offers of what not all do.

    Attributes
    ----------
    version
        Major and minor.
    found
        Name (those of `SINCE`) to whether it was seen; None where it cannot be looked at here.
    cgroups
        2 where only version 2 is mounted, 1 where only version 1 is, 12 with both, 0 without.
    """

    version: Version
    found: dict[str, bool | None]
    cgroups: int

    def has(self, name: str) -> bool:
        """Whether it is here: as seen, or where it cannot be looked at by the version."""
        seen = self.found[name]
        return self.version >= SINCE[name] if seen is None else seen

    def __repr__(self) -> str:
        here = ", ".join(name for name in self.found if self.has(name))
        return f"KernelFeatures({self.version[0]}.{self.version[1]}: {here or 'none of them'})"


def features_of(root: str | Path = "/") -> KernelFeatures:
    """Look at a kernel.

    Parameters
    ----------
    root
        Folder of a recorded sysfs and procfs tree; "/" is this machine.

    Examples
    --------
    >>> features_of().version >= OLDEST
    True
    """
    group = _some_group(root)
    return KernelFeatures(
        kernel_version(root),
        {
            "osnoise tracer": _has_tracer(root),
            "cgroup.kill": _exists(group, "cgroup.kill"),
            "memory.peak": _exists(group, "memory.peak"),
            "osnoise that only watches": _only_watches(root),
            "fair server": _has_fair_server(root),
        },
        _cgroups(root),
    )


def _has_tracer(root: str | Path) -> bool | None:
    tracers = read(f"{_TRACEFS}/available_tracers", root)
    return None if tracers is None else "osnoise" in tracers.split()


def _only_watches(root: str | Path) -> bool | None:
    """Before 6.2 the tracer has no file of options."""
    if not (tracer := _has_tracer(root)):
        return tracer
    flags = (read(f"{_TRACEFS}/osnoise/options", root) or "").split()
    return any(flag.removeprefix("NO_") == "OSNOISE_WORKLOAD" for flag in flags)


def _has_fair_server(root: str | Path) -> bool | None:
    """Debugfs is for root only, and mounted by some."""
    debugfs = located("/sys/kernel/debug/sched", root)
    try:
        return located(_FAIR_SERVER, root).is_dir() if debugfs.is_dir() else None
    except OSError:
        return None


def _mounted(root: str | Path) -> list[tuple[str, str]]:
    rows = (line.split() for line in (read("/proc/self/mounts", root) or "").splitlines())
    return [(row[1], row[2]) for row in rows if len(row) > 2 and row[2] in ("cgroup", "cgroup2")]


def _cgroups(root: str | Path) -> int:
    kinds = {kind for _, kind in _mounted(root)}
    return {frozenset(): 0, frozenset({"cgroup"}): 1, frozenset({"cgroup2"}): 2}.get(
        frozenset(kinds), 12
    )


def _some_group(root: str | Path) -> Path | None:
    """A group below the top of version 2, which alone has the files; None: there is none."""
    for place, kind in _mounted(root):
        if kind == "cgroup2":
            folders = (path for path in located(place, root).glob("*") if path.is_dir())
            return next(folders, None)
    return None


def _exists(group: Path | None, name: str) -> bool | None:
    return None if group is None else (group / name).exists()
