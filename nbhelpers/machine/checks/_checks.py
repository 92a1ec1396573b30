"""The checks of the doctor: what this machine can do for a study, what follows, what fixes it.

Each check looks at one thing and says which case of data/knowledge/doctor.yml it is; nothing is
changed. What real-time scheduling loses since Linux 6.12 was measured on such a kernel.
"""

import contextlib
import errno
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ...places import shipped
from ...reading import read_yaml
from .. import privileged, run_groups
from .._read import CAP_SYS_ADMIN, CAP_SYS_NICE, kernel_version, located, may, read, writable
from ..cpus import smt_state, topology
from ..description import compiler, governor, virtualisation
from ..kernel import TRACEFS, file_system
from ._trials import Trials

DEBUGFS = "/sys/kernel/debug"
RT_RUNTIME = "/proc/sys/kernel/sched_rt_runtime_us"
PARANOID = "/proc/sys/kernel/perf_event_paranoid"
NEEDED_EVENTS = ("irq/irq_handler_entry", "irq/softirq_entry", "sched/sched_switch")
AS_ROOT = "run as root, in a checkout that belongs to root"
FAIR_SERVER_SINCE = (6, 12)
BY_HELPER = f"let the helper do it: {privileged.INSTALL}; or {AS_ROOT}"


@dataclass(frozen=True)
class Check:
    """One line of the doctor's report.

    `state` is "yes", "limited" or "no"; `fix` is empty where nothing is wrong.
    """

    name: str
    state: str
    found: str
    consequence: str
    fix: str = ""


@dataclass(frozen=True)
class Tracing:
    """What tracefs offers: the best tracer, what was found, and how tracefs gets within reach."""

    tracer: str
    found: str
    fix: str = ""


def tracing(root: str | Path) -> Tracing:
    """Look into tracefs: mounted, mountable, permitted, and with which tracers and events."""
    folder = _folder(TRACEFS, root)
    if folder is None:
        return _by_helper(root) or _unmounted(root)
    if not os.access(folder / "instances", os.W_OK | os.X_OK):
        refused = Tracing("detours", "this user may not use tracefs", BY_HELPER)
        return _by_helper(root) or refused
    tracers = (read("available_tracers", folder) or "").split()
    events = all((folder / "events" / event).is_dir() for event in NEEDED_EVENTS)
    kind = "osnoise" if "osnoise" in tracers else "tracepoints" if events else "detours"
    return Tracing(kind, f"tracers: {' '.join(tracers)}")


def _folder(place: str, root: str | Path) -> Path | None:
    """Where a file system of the kernel is reached; None: nowhere."""
    if Path(root) == Path("/"):
        with contextlib.suppress(OSError):
            return Path(file_system(place))
        return None
    return there if (there := located(place, root)).is_dir() else None


def _by_helper(root: str | Path) -> Tracing | None:
    """What tracefs offers to this user by the helper; None: nothing."""
    if Path(root) != Path("/"):
        return None
    with contextlib.suppress(OSError):
        privileged.tracepoint("sched", "sched_switch")
        kind = "tracepoints"
        with contextlib.suppress(OSError):
            privileged.osnoise_options()
            kind = "osnoise"
        return Tracing(kind, "tracefs is used by the helper noisebook-priv")
    return None


def _unmounted(root: str | Path) -> Tracing:
    if "tracefs" not in (read("/proc/filesystems", root) or ""):
        found, fix = "the kernel has no tracefs", "boot a kernel with CONFIG_FTRACE=y"
    else:
        found, fix = "tracefs is not mounted", BY_HELPER
    return Tracing("detours", found, fix)


def fair_server(root: str | Path) -> str:
    """The fair server's state: "absent", "liftable" (debugfs lets us write it) or "locked".

    Linux 6.12 gives SCHED_OTHER 50 ms a second through a deadline server, which sched_rt_runtime_us
    no longer governs.
    """
    folder, place = _folder(DEBUGFS, root), "sched/fair_server/cpu0/runtime"
    if folder is not None and writable(place, folder):
        return "liftable"
    if folder is not None and os.path.isdir(folder / "sched"):  # seen, whatever the version
        return "locked" if os.path.lexists(folder / place) else "absent"
    return "locked" if kernel_version(root) >= FAIR_SERVER_SINCE else "absent"


def stolen_share(root: str | Path) -> float | None:
    """Share of CPU time since boot that the host took away; None where the kernel does not say."""
    words = (read("/proc/stat", root) or "").partition("\n")[0].split()
    ticks = [int(word) for word in words[1:9]]
    total = sum(ticks)
    return ticks[7] / total if len(ticks) == 8 and total else None


# A check, which case of data/knowledge/doctor.yml the machine is, and the words of its texts.
Case = tuple[str, str, dict[str, object]]


@cache
def texts() -> dict[str, dict]:
    """The doctor's texts: of each check its cases, and what replaces which part of the method."""
    return read_yaml(shipped() / "data/knowledge/doctor.yml", "doctor's texts", fast=True)


def all_checks(root: str | Path, trials: Trials) -> list[Check]:
    """Every check, in the order in which a study meets what it checks."""
    cases = (_recording(root, trials), _scheduling(root, trials), _hardware(root), _tools())
    return [_check(*case) for group in cases for case in group]


def _check(name: str, case: str, words: dict) -> Check:
    """The texts of a case with its words; a word `fix` replaces the usual fix."""
    said = texts()[name][case]
    words = {"as_root": AS_ROOT, "install": privileged.INSTALL, **words}
    found, consequence = (said[which].format(**words) for which in ("found", "consequence"))
    fix = words.get("fix") or said.get("fix", "").format(**words)
    return Check(name, said["state"], found, consequence, "" if said["state"] == "yes" else fix)


def _recording(root: str | Path, trials: Trials) -> Iterator[Case]:
    trace = tracing(root)
    found: dict[str, object] = {"found": trace.found, "fix": trace.fix}
    yield "osnoise tracer", trace.tracer, found
    yield "tracepoints", "none" if trace.tracer == "detours" else "yes", found
    virtual = trials.hardware.state == "no" and virtualisation(root) != "none"
    for name, trial, case in (
        ("hardware counters", trials.hardware, "virtual" if virtual else trials.hardware.state),
        ("software counters", trials.software, trials.software.state),
    ):
        fix = ""  # how a counter was refused says what allows it
        if trial.state == "limited" or trial.errno in (errno.EPERM, errno.EACCES):
            now = read(PARANOID, root) or "unknown"
            fix = f"sudo sysctl kernel.perf_event_paranoid=1  (it is {now})"
        yield name, case, {"found": trial.message, "fix": fix}


def _scheduling(root: str | Path, trials: Trials) -> Iterator[Case]:
    refused = "no budget" if may(CAP_SYS_NICE, root) else "refused"
    case = "yes" if trials.fifo.state == "yes" else refused
    yield "real-time scheduling", case, {"found": trials.fifo.message}
    value = read(RT_RUNTIME, root)
    case = "liftable" if writable(RT_RUNTIME, root) else "locked"
    case = "lifted" if value == "-1" else case if value else "hidden"
    yield "real-time throttling", case, {"value": value}
    state = fair_server(root)
    to_root = state == "locked" and may(CAP_SYS_ADMIN, root)
    yield "fair server", "locked for root" if to_root else state, {}


def _hardware(root: str | Path) -> Iterator[Case]:
    yield "SMT", smt_state(root), {}
    kind, found, share = virtualisation(root), governor(root), stolen_share(root)
    bare = kind == "none"
    none = "none" if bare else "none, virtual"
    case = "performance" if found == "performance" else "other"
    yield "CPU frequency", case if found else none, {"governor": found}
    case = "much" if (share or 0) >= 1e-4 else "little" if share else "none"
    case = "bare metal" if bare else "not reported" if share is None else case
    yield "stolen time", case, {"share": share}
    yield "virtualisation", "none" if bare else "virtual", {"kind": kind}
    layout = topology(root)
    case = "many" if layout.cores >= 8 else "few" if layout.cores >= 2 else "one"
    cpus = f"{len(layout.cpus)} ({layout.cores} cores, {layout.numa_nodes} NUMA nodes)"
    yield "CPUs", case, {"found": cpus, "one": 1 / layout.cores}


def _tools() -> Iterator[Case]:
    place = run_groups.base()
    yield "ending of runs", "yes" if place else "limited", {"place": place}
    name = compiler()
    yield "C compiler", "yes" if name else "no", {"found": name or "none"}
