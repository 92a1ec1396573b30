"""The checks of the doctor: what this machine can do for a study, what follows, what fixes it.

Each check reads one thing and returns one `Check`; nothing is changed. The full method is that of
Persson et al. 2025, section 4. What real-time scheduling loses since Linux 6.12 was measured on
such a kernel.
"""

import contextlib
import errno
import os
import platform
import sys
from dataclasses import dataclass
from pathlib import Path

from .. import privileged
from .._read import CAP_SYS_ADMIN, CAP_SYS_NICE, may, read, writable
from ..cpus import smt_state, topology
from ..description import governor, virtualisation
from ..kernel_features import features_of
from ._trials import Trials, kernel_folder

TRACEFS = ("/sys/kernel/tracing", "/sys/kernel/debug/tracing")
DEBUGFS = ("/sys/kernel/debug",)
RT_RUNTIME = "/proc/sys/kernel/sched_rt_runtime_us"
PARANOID = "/proc/sys/kernel/perf_event_paranoid"
NEEDED_EVENTS = ("irq/irq_handler_entry", "irq/softirq_entry", "sched/sched_switch")
AS_ROOT = "run as root: sudo -E make paper"
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
    mounted: bool
    found: str
    fix: str = ""


def tracing(root: str | Path) -> Tracing:
    """Look into tracefs: mounted, mountable, permitted, and with which tracers and events."""
    with kernel_folder("tracefs", TRACEFS, root) as (folder, mounted):
        if folder is None:
            return _by_helper(root, False) or _unmounted(root)
        if not os.access(folder / "instances", os.W_OK | os.X_OK):
            refused = Tracing("detours", mounted, "this user may not use tracefs", BY_HELPER)
            return _by_helper(root, mounted) or refused
        tracers = (read("available_tracers", folder) or "").split()
        events = all((folder / "events" / event).is_dir() for event in NEEDED_EVENTS)
        kind = "osnoise" if "osnoise" in tracers else "tracepoints" if events else "detours"
        return Tracing(kind, mounted, f"tracers: {' '.join(tracers)}")


def _by_helper(root: str | Path, mounted: bool) -> Tracing | None:
    """What tracefs offers to this user by the helper; None: nothing."""
    if Path(root) != Path("/"):
        return None
    with contextlib.suppress(OSError):
        privileged.tracepoint("sched", "sched_switch")
        kind = "tracepoints"
        with contextlib.suppress(OSError):
            privileged.osnoise_options()
            kind = "osnoise"
        return Tracing(kind, mounted, "tracefs is used by the helper noisebook-priv")
    return None


def _unmounted(root: str | Path) -> Tracing:
    """Of a tracefs that cannot be opened only this is known: whether it could be mounted."""
    if "tracefs" not in (read("/proc/filesystems", root) or ""):
        return Tracing(
            "detours", False, "the kernel has no tracefs", "boot a kernel with CONFIG_FTRACE=y"
        )
    kind = "tracepoints" if may(CAP_SYS_ADMIN, root) else "detours"
    return Tracing(
        kind,
        False,
        "tracefs is not mounted",
        "sudo mount -t tracefs nodev /sys/kernel/tracing, and run as root",
    )


def fair_server(root: str | Path) -> str:
    """The fair server's state: "absent", "liftable" (debugfs lets us write it) or "locked".

    Linux 6.12 gives SCHED_OTHER 50 ms a second through a deadline server, which sched_rt_runtime_us
    no longer governs.
    """
    with kernel_folder("debugfs", DEBUGFS, root) as (folder, _):
        place = "sched/fair_server/cpu0/runtime"
        if folder is not None and writable(place, folder):
            return "liftable"
        there = folder is not None and os.path.lexists(folder / place)
    return "locked" if there or features_of(root).has("fair server") else "absent"


def stolen_share(root: str | Path) -> float | None:
    """Share of CPU time since boot that the host took away; None where the kernel does not say."""
    words = (read("/proc/stat", root) or "").partition("\n")[0].split()
    ticks = [int(word) for word in words[1:9]]
    total = sum(ticks)
    return ticks[7] / total if len(ticks) == 8 and total else None


def all_checks(root: str | Path, trials: Trials) -> list[Check]:
    """Every check, in the order in which a study meets what it checks."""
    trace = tracing(root)
    return [
        _osnoise(trace),
        _tracepoints(trace),
        _hardware(root, trials),
        _software(root, trials),
        _fifo(root, trials),
        _throttling(root),
        _fair_server(root),
        _smt(root),
        _governor(root),
        _steal(root),
        _virtualisation(root),
        _cpus(root),
        _run_groups(trials),
        _compiler(trials),
        _python(),
    ]


def _osnoise(trace: Tracing) -> Check:
    name = "osnoise tracer"
    if trace.tracer == "osnoise":
        return Check(name, "yes", trace.found, "noise is recorded as in the paper")
    instead = {
        "tracepoints": "ordinary tracepoints are recorded and turned into the same events",
        "detours": "only a user-space detour loop sees noise: start and length, no name",
    }[trace.tracer]
    return Check(
        name,
        "no",
        trace.found,
        instead,
        trace.fix
        or "boot a kernel with CONFIG_OSNOISE_TRACER=y: grep OSNOISE /boot/config-$(uname -r)",
    )


def _tracepoints(trace: Tracing) -> Check:
    name = "tracepoints"
    if trace.tracer == "detours":
        return Check(
            name,
            "no",
            trace.found,
            "noise cannot be attributed to interrupts, softirqs and threads",
            trace.fix or "boot a kernel with CONFIG_FTRACE=y and CONFIG_TRACING=y",
        )
    found = (
        "tracefs is mounted"
        if trace.mounted
        else "tracefs is not mounted; it is mounted for the time of a trace"
    )
    return Check(name, "yes", found, "every event has a name, a policy and a priority")


def _hardware(root: str | Path, trials: Trials) -> Check:
    trial, name = trials.hardware, "hardware counters"
    if trial.state == "yes":
        return Check(
            name, "yes", trial.message, "cycles, cache misses and the like can explain slow runs"
        )
    virtual = virtualisation(root) != "none"
    fix = _paranoia_fix(root, trial.state, trial.errno) or (
        "give the virtual machine a PMU (e.g. qemu -cpu host,pmu=on), or use bare metal"
        if virtual
        else "see what the kernel found: dmesg | grep -i perf"
    )
    consequence = {
        "limited": "the kernel's share is missing from the counts",
        "no": (
            "slow runs are explained by resource usage, software events and the kernel's counters"
        ),
    }
    return Check(name, trial.state, trial.message, consequence[trial.state], fix)


def _software(root: str | Path, trials: Trials) -> Check:
    trial, name = trials.software, "software counters"
    if trial.state == "yes":
        return Check(
            name, "yes", trial.message, "context switches, migrations and page faults are counted"
        )
    return Check(
        name,
        trial.state,
        trial.message,
        "switches and migrations are taken from resource usage and /proc",
        _paranoia_fix(root, trial.state, trial.errno) or "boot a kernel with CONFIG_PERF_EVENTS=y",
    )


def _paranoia_fix(root: str | Path, state: str, number: int) -> str:
    """The fix for a refusal; empty where it was no refusal."""
    if state != "limited" and number not in (errno.EPERM, errno.EACCES):
        return ""
    return f"sudo sysctl kernel.perf_event_paranoid=1  (it is {read(PARANOID, root) or 'unknown'})"


def _fifo(root: str | Path, trials: Trials) -> Check:
    trial, name = trials.fifo, "real-time scheduling"
    if trial.state == "yes":
        return Check(
            name,
            "yes",
            trial.message,
            "interrupt noise is injected above the workload, as it comes in life",
        )
    fix = (
        f"let the helper do it: {privileged.INSTALL}; or "
        'echo "$USER - rtprio 99" | sudo tee /etc/security/limits.d/noisebook.conf  (then log in'
        " again)"
    )
    if may(CAP_SYS_NICE, root):
        fix = (
            "the control group has no real-time budget: echo $$ | sudo tee /sys/fs/cgroup/cpu/tasks"
        )
    return Check(
        name,
        "no",
        trial.message,
        "all noise is injected with SCHED_OTHER: the workload gives way only by halves",
        fix,
    )


def _throttling(root: str | Path) -> Check:
    value, name = read(RT_RUNTIME, root), "real-time throttling"
    if value == "-1":
        return Check(
            name,
            "yes",
            f"{RT_RUNTIME.rpartition('/')[2]} is -1",
            "SCHED_FIFO noise is not throttled",
        )
    if value is not None and writable(RT_RUNTIME, root):
        return Check(
            name,
            "yes",
            f"{value} of each 1 000 000 µs; may be lifted",
            "it is lifted while noise is injected, then put back",
        )
    return Check(
        name,
        "limited",
        f"{value} of each 1 000 000 µs; may not be changed" if value else "not visible",
        "SCHED_FIFO noise of more than 0.95 s in a second is cut",
        AS_ROOT,
    )


def _fair_server(root: str | Path) -> Check:
    state, name = fair_server(root), "fair server"
    if state == "absent":
        return Check(
            name,
            "yes",
            "none (Linux before 6.12)",
            "real-time throttling is all that limits SCHED_FIFO noise",
        )
    if state == "liftable":
        return Check(
            name,
            "yes",
            "debugfs lets its budget be set",
            "it is lifted while noise is injected, then put back",
        )
    refused = "refused even to root" if may(CAP_SYS_ADMIN, root) else "for root only"
    return Check(
        name,
        "limited",
        f"/sys/kernel/debug/sched/fair_server: {refused}",
        "SCHED_FIFO noise that fills a CPU for 0.95 s is interrupted for up to 54 ms",
        "boot a kernel with debugfs and without lockdown" if may(CAP_SYS_ADMIN, root) else AS_ROOT,
    )


def _smt(root: str | Path) -> Check:
    state, name = smt_state(root), "SMT"
    if state == "on":
        return Check(
            name,
            "limited",
            "on",
            "threads of a core slow each other down; ST and MT are separate configurations",
            "echo off | sudo tee /sys/devices/system/cpu/smt/control",
        )
    return Check(name, "yes", state, "a CPU is a core")


def _governor(root: str | Path) -> Check:
    found, name = governor(root), "CPU frequency"
    if found is None:
        return Check(
            name,
            "limited",
            "no governor: set by the host or the firmware",
            "changes of frequency cannot be seen or ruled out",
            (
                "on bare metal, enable the driver: intel_pstate or amd_pstate"
                if virtualisation(root) == "none"
                else "use bare metal, where it matters"
            ),
        )
    if found == "performance":
        return Check(name, "yes", f"governor {found}", "the frequency follows heat and boost only")
    return Check(
        name,
        "limited",
        f"governor {found}",
        "runs that begin on an idle CPU begin slowly",
        "echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor",
    )


def _steal(root: str | Path) -> Check:
    share, name = stolen_share(root), "stolen time"
    if virtualisation(root) == "none":
        return Check(name, "yes", "none on bare metal", "nobody takes the CPUs away")
    if not share:
        return Check(
            name,
            "limited",
            "the host does not report it"
            if share is None
            else "0 since boot: none or not reported",
            "runs slowed by other guests look slow without a cause",
            "rent dedicated CPUs",
        )
    return Check(
        name,
        "yes" if share < 1e-4 else "limited",
        f"{share:.2%} of CPU time since boot",
        "it is recorded with each run, and can explain slow ones",
        "" if share < 1e-4 else "rent dedicated CPUs",
    )


def _virtualisation(root: str | Path) -> Check:
    kind, name = virtualisation(root), "virtualisation"
    if kind == "none":
        return Check(name, "yes", "bare metal", "all noise there is can be seen")
    return Check(
        name,
        "limited",
        kind,
        "the host disturbs runs and leaves no kernel event; wake-ups take 30 to 50 µs",
        "use bare metal for figures to publish; here, more runs: PROFILE=full",
    )


def _cpus(root: str | Path) -> Check:
    layout, name = topology(root), "CPUs"
    found = f"{len(layout.cpus)} ({layout.cores} cores, {layout.numa_nodes} NUMA nodes)"
    if layout.cores >= 8:
        return Check(
            name,
            "yes",
            found,
            "housekeeping can get 12.5 and 25 % of the cores, as in the paper",
        )
    if layout.cores >= 2:
        return Check(
            name,
            "limited",
            found,
            f"one housekeeping core is {1 / layout.cores:.0%} of the machine (paper: 12.5 and"
            " 25 %)",
            "use a machine of 8 cores or more to compare with the paper's tables",
        )
    return Check(
        name,
        "no",
        found,
        "no core can be left to housekeeping, and injectors share the workload's",
        "use two cores or more",
    )


def _run_groups(trials: Trials) -> Check:
    name = "ending of runs"
    if trials.groups.state == "yes":
        return Check(
            name,
            "yes",
            trials.groups.message,
            "what a run starts ends with it, however it hides, and if Noisebook is killed",
        )
    return Check(
        name,
        "limited",
        trials.groups.message,
        "processes of a run are known by marks: one that removes both marks outlives a killed"
        " Noisebook",
        "as a user of systemd: systemd-run --user --scope -p Delegate=yes make paper",
    )


def _compiler(trials: Trials) -> Check:
    trial, name = trials.openmp, "C compiler, OpenMP"
    if trial.state == "yes":
        return Check(name, "yes", trial.message, "the workloads and the injector can be built")
    return Check(
        name,
        trial.state,
        trial.message,
        "neither the workloads nor the injector can be built",
        "sudo apt-get install gcc libc6-dev  (or: sudo dnf install gcc)",
    )


def _python() -> Check:
    if sys.version_info >= (3, 11):  # noqa: UP036 (who starts it with an older one reads the line)
        return Check("Python", "yes", platform.python_version(), "the library runs")
    return Check(
        "Python",
        "no",
        platform.python_version(),
        "the library does not run",
        "install Python 3.11 or later",
    )
