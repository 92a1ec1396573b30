"""What differs between kernels, on trees of six of them, and on the kernel that runs this.

The trees of 6.18 (a hybrid of both control groups, no osnoise) and of 6.12 (the emulated PC) were
recorded. Those of 5.10, 5.15, 6.1 and 6.6 were written from the kernel's own documentation
(trace/osnoise-tracer, cgroup-v2, scheduler/sched-deadline) of these versions.
"""

import os
import platform
import re
from pathlib import Path

import pytest

from nbhelpers.machine.kernel_features import OLDEST, SINCE, features_of

OPTIONS = {
    "6.6": "NO_PANIC_ON_STOP OSNOISE_WORKLOAD NO_OSNOISE_PREEMPT_DISABLE NO_OSNOISE_IRQ_DISABLE",
    "6.12": "NO_DEFAULTS OSNOISE_WORKLOAD NO_PANIC_ON_STOP NO_OSNOISE_PREEMPT_DISABLE"
    " NO_OSNOISE_IRQ_DISABLE",
}
V2 = "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n"
V1 = "cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n"
HYBRID = V1 + "cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n"
EVERYWHERE = ["cgroup.procs", "cgroup.freeze", "cgroup.events"]
# version: (tracers, options, mounts, files of a group, fair server; None: debugfs is not mounted)
TREES = {
    "5.10": ("function nop", None, V1, None, False),
    "5.15": ("osnoise timerlat nop", None, V2, [*EVERYWHERE, "cgroup.kill"], False),
    "6.1": ("osnoise nop", None, V2, [*EVERYWHERE, "cgroup.kill", "memory.peak"], None),
    "6.6": ("osnoise nop", OPTIONS["6.6"], V2, [*EVERYWHERE, "cgroup.kill", "memory.peak"], False),
    "6.12": ("timerlat osnoise nop", OPTIONS["6.12"], "", None, True),
    "6.18": ("blk function nop", None, HYBRID, [*EVERYWHERE, "cgroup.kill"], None),
}
EXPECTED = {
    "5.10": (1, set()),
    "5.15": (2, {"osnoise tracer", "cgroup.kill"}),
    "6.1": (2, {"osnoise tracer", "cgroup.kill", "memory.peak"}),
    "6.6": (2, {"osnoise tracer", "cgroup.kill", "memory.peak", "osnoise that only watches"}),
    "6.12": (0, set(SINCE)),
    "6.18": (12, {"cgroup.kill", "fair server"}),
}


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def tree(folder: Path, version: str) -> Path:
    tracers, options, mounts, files, fair = TREES[version]
    write(folder / "proc/sys/kernel/osrelease", f"{version}.3-test\n")
    write(folder / "proc/version", f"Linux version {version}.3-test\n")
    write(folder / "proc/self/mounts", mounts)
    write(folder / "sys/kernel/tracing/available_tracers", f"{tracers}\n")
    if options:
        write(folder / "sys/kernel/tracing/osnoise/options", f"{options}\n")
    place = "unified/a" if version == "6.18" else "a"
    for name in files or ():
        write(folder / "sys/fs/cgroup" / place / name, "")
    if fair is not None:
        (folder / "sys/kernel/debug/sched").mkdir(parents=True)
    if fair:
        write(folder / "sys/kernel/debug/sched/fair_server/cpu0/runtime", "50000000\n")
    return folder


@pytest.mark.parametrize("version", TREES)
def test_what_each_kernel_has(tmp_path: Path, version: str) -> None:
    found = features_of(tree(tmp_path, version))
    cgroups, names = EXPECTED[version]
    assert found.version == tuple(map(int, version.split(".")))
    assert found.cgroups == cgroups
    assert {name for name in SINCE if found.has(name)} == names
    assert f"{version}: " in repr(found)


def test_what_is_seen_counts_and_not_the_version(tmp_path: Path) -> None:
    """A kernel into which the tracer was taken back, and one that was built without it."""
    old, new = tree(tmp_path / "old", "5.10"), tree(tmp_path / "new", "6.12")
    write(old / "sys/kernel/tracing/available_tracers", "osnoise nop")
    write(new / "sys/kernel/tracing/available_tracers", "nop")
    assert features_of(old).has("osnoise tracer")
    assert not features_of(new).has("osnoise tracer")
    assert not features_of(new).has("osnoise that only watches")


def test_this_kernel() -> None:
    found = features_of()
    release = tuple(map(int, re.findall(r"\d+", platform.release())[:2]))
    assert found.version == release >= OLDEST
    groups = Path("/proc/self/mounts").read_text()
    assert (found.cgroups in (2, 12)) == (" cgroup2 " in groups)
    if found.found["cgroup.kill"] is not None and os.geteuid() == 0:
        assert found.has("cgroup.kill") == (release >= (5, 14))
