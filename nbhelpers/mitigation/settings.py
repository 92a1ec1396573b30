"""Actions on the machine, for the length of a run: sysctls and sysfs, routed interrupts, a request
for fast wake-ups; and before a run: what is dirty written out, a pause.

Every value is changed by `nbhelpers.machine.settings`, which puts it back even after a SIGKILL; the
request ends with our process.
"""

import errno
import glob
import os
import struct
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from ..errors import InputError, SettingError
from ..machine import allowed, cpu_list, kernel, online_cpus, privileged, settings
from ..machine.kernel import read_value, same
from ..workloads import Workload, format_cpu_list
from . import _proc
from .action import YES, Action, NotYet, Possible, Prepared, Unproven

NOT_LISTED = "what is not on the list could give a program the rights of root"
_HUGE_PAGES = "/sys/kernel/mm/transparent_hugepage/enabled"
_NO_REQUEST_US = 2_000_000_000  # longer than any wake-up: it changes nothing


def changeable(values: dict[str, str]) -> Possible:
    """Whether these settings exist, offer the value, have another one now, and may be written by
    this user.
    """
    if not values:
        reason = "there is no such setting here, as in most virtual machines"
        return Possible(False, reason, "a machine whose kernel controls it")
    for path, value in values.items():
        if not os.path.exists(path):
            return Possible(
                False, f"there is no {path} here", "a kernel, or a machine, that has it"
            )
        offered = _offered(path)
        if offered and value not in offered:
            return Possible(False, f"{path} does not offer {value!r}, but {', '.join(offered)}")
        try:
            kernel.check_writable(path)
        except OSError as error:
            fix = "run outside of a container"
            if error.errno != errno.EROFS:
                fix = f"{privileged.INSTALL}, or run as root, outside of a container"
            return Possible(False, f"{path}: {error.strerror}", fix)
    if all(_is(path, value) for path, value in values.items()):
        return Possible(False, f"{next(iter(values))} is {next(iter(values.values()))} already")
    return YES


def _offered(path: str) -> list[str]:
    """The words of a selection, or of the list that cpufreq has in another file."""
    lists = {
        "scaling_governor": "scaling_available_governors",
        "energy_performance_preference": "energy_performance_available_preferences",
    }
    with suppress(OSError):
        text = Path(path).read_text()
        if "[" in text:
            return text.replace("[", "").replace("]", "").split()
        if name := lists.get(os.path.basename(path)):
            return Path(path).with_name(name).read_text().split()
        if path.endswith("smt/control"):
            return ["on", "off"] if text.strip() in ("on", "off") else [text.strip()]
    return []


def _is(path: str, value: str) -> bool:
    with suppress(OSError):
        return same(read_value(path), value)
    return False


def not_as_wanted(values: dict[str, str]) -> str | None:
    """The first setting that has another value, in words."""
    for path, value in values.items():
        if not _is(path, value):
            has = read_value(path) if os.path.exists(path) else "gone"
            return f"{path} is {has}, not {value}"
    return None


class MachineSetting(Action, ABC):
    """Settings of the machine that have certain values during the run; subclasses say which."""

    @property
    def risk(self) -> str:
        return "low"

    @abstractmethod
    def values(self, workload: Workload | None) -> dict[str, str]:
        """Path to value."""

    def possible(self, workload: Workload | None = None) -> Possible:
        return changeable(self.values(workload))

    @contextmanager
    def held(self, workload: Workload) -> Iterator[None]:
        with settings.apply({Path(path): value for path, value in self.values(workload).items()}):
            yield

    def check(self, pid: int) -> str | None:
        return not_as_wanted(self.values(None)) or self.followed(pid)

    def followed(self, pid: int) -> str | None:
        """What shows that the program does not follow the settings; None: it does, or the kernel's
        own state is all there is to see.
        """
        return None


@dataclass(frozen=True)
class Setting(MachineSetting):
    """One value in a file, or in all files that a path of the list with its * finds.

    Raises
    ------
    InputError
        The path is not on the list of `nbhelpers.machine.allowed`, or the value is out of range.
    """

    path: str
    value: str

    def __post_init__(self) -> None:
        if refused := allowed.refusal(self.path, self.value, pattern=True):
            raise InputError(refused, why=NOT_LISTED, fix=allowed.HOW_TO_ADD)

    @property
    def risk(self) -> str:
        return allowed.risk_of(self.path)

    def values(self, workload: Workload | None) -> dict[str, str]:
        paths = sorted(glob.glob(self.path)) if "*" in self.path else [self.path]
        return dict.fromkeys(paths, self.value)

    def followed(self, pid: int) -> str | None:
        return _huge_pages(pid, self.value) if self.path == _HUGE_PAGES else None


def _huge_pages(pid: int, value: str) -> str | None:
    """Whether the process has huge pages, or none."""
    if value == "always" and _proc.status(pid, "THP_enabled") == "0":
        return "the process may not get transparent huge pages"
    has_kb = _proc.huge_kb(pid)
    if has_kb is None:
        return Unproven("the kernel does not tell whether the process has huge pages")
    if value == "never":
        return f"the process has {has_kb} kB of huge pages" if has_kb else None
    return None if has_kb else NotYet("the process has no huge page")


def _others(workload: Workload | None) -> tuple[int, ...]:
    """The CPUs that a workload leaves free; the first of the machine if it leaves none."""
    used = workload.cpus if workload is not None and workload.cpus else ()
    online = online_cpus()
    return tuple(cpu for cpu in online if used and cpu not in used) or online[:1]


class InterruptsAway(MachineSetting):
    """Device interrupts go to the CPUs that the workload leaves free, or to the first one.

    Proof: since the program waits none of them came to another CPU more than once; an interrupt is
    moved when it comes next.
    """

    def __init__(self) -> None:
        self._routed: dict[str, str] = {}
        self._before: dict[str, int] = {}

    def values(self, workload: Workload | None) -> dict[str, str]:
        files = sorted(glob.glob("/proc/irq/[0-9]*/smp_affinity_list"))
        return self._routed or dict.fromkeys(files, format_cpu_list(_others(workload)))

    def possible(self, workload: Workload | None = None) -> Possible:
        if len(online_cpus()) < 2:
            return Possible(False, "there is one CPU only")
        return super().possible(workload)

    @contextmanager
    def held(self, workload: Workload) -> Iterator[None]:
        wanted = self.values(workload)
        self._routed = {path: cpus for path, cpus in wanted.items() if _takes_a_value(path)}
        if not self._routed:
            raise SettingError(
                "no interrupt can be routed here: the kernel manages all of them", where="/proc/irq"
            )
        try:
            with super().held(workload):
                yield
        finally:
            self._routed = {}

    def arm(self, pid: int) -> None:
        self._before = self._elsewhere()

    def check(self, pid: int) -> str | None:
        return super().check(pid) if self._routed else "no interrupt is routed"

    def followed(self, pid: int) -> str | None:
        for number, count in self._elsewhere().items():
            if count > self._before.get(number, count) + 1:
                return f"interrupt {number} still comes to other CPUs"
        return None

    def _elsewhere(self) -> dict[str, int]:
        """How often each routed interrupt came to a CPU where it should not."""
        wanted = {
            Path(path).parent.name: set(cpu_list(cpus)) for path, cpus in self._routed.items()
        }
        head, *rows = Path("/proc/interrupts").read_text().splitlines()
        cpus = [int(word[3:]) for word in head.split()]
        found = {}
        for row in rows:
            number, *counts = row.split()[: len(cpus) + 1]
            number = number.rstrip(":")
            if number in wanted:
                pairs = zip(cpus, counts)
                found[number] = sum(int(n) for cpu, n in pairs if cpu not in wanted[number])
        return found


def _takes_a_value(path: str) -> bool:
    """Writing the value that it has: the kernel answers EIO or EPERM for an interrupt that it
    places itself.
    """
    with suppress(OSError):
        kernel.write_value(path, Path(path).read_text().strip())
        return True
    return False


class Flush(Prepared):
    """What is dirty is written out before the run (sync(2), which returns when it is done)."""

    def prepare(self) -> None:
        os.sync()


@dataclass(frozen=True)
class CoolDown(Prepared):
    """A pause before the run, s; nothing of it is timed."""

    seconds: float = 2.0

    def prepare(self) -> None:
        time.sleep(self.seconds)


@dataclass(frozen=True)
class Latency(Action):
    """No idle state with a longer wake-up than this, µs: a request that holds while its file is
    open, and ends with our process whatever happens.

    Proof: the strictest request on the machine, which the kernel obeys.
    """

    us: int = 0
    _path = "/dev/cpu_dma_latency"

    @property
    def risk(self) -> str:
        return "low"

    def possible(self, workload: Workload | None = None) -> Possible:
        states = glob.glob("/sys/devices/system/cpu/cpu[0-9]*/cpuidle/state[1-9]*")
        if not states:
            return Possible(
                False,
                "the kernel has no idle states to choose from, as in most virtual machines",
                "a machine with cpuidle, or the host",
            )
        try:
            self._strictest()
        except OSError as error:
            return Possible(False, f"{self._path}: {error.strerror}", "run as root")
        return YES

    @contextmanager
    def held(self, workload: Workload) -> Iterator[None]:
        handle = self._requested()
        try:
            yield
        finally:
            os.close(handle)

    def _requested(self) -> int:
        """The file that holds the request while it is open."""
        try:
            handle = os.open(self._path, os.O_RDWR)
        except PermissionError:
            return privileged.latency(self.us)
        os.write(handle, struct.pack("=i", self.us))
        return handle

    def _strictest(self) -> int:
        """Reading a fresh file tells the strictest request on the machine."""
        try:
            handle = os.open(self._path, os.O_RDONLY)
        except PermissionError:
            handle = privileged.latency(_NO_REQUEST_US)
        with open(handle, "rb", buffering=0) as file:
            return struct.unpack("=i", file.read(4))[0]

    def check(self, pid: int) -> str | None:
        has = self._strictest()
        if has > self.us:
            return f"the wake-up latency requested is {has} µs, not {self.us} µs"
        return None
