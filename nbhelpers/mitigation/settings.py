"""Actions on the settings of the machine, for the length of a run: sysctls and sysfs, clocks,
routed interrupts and workqueues.

Every value is changed by `nbhelpers.machine.settings`, which puts it back even after a SIGKILL.
"""

import errno
import glob
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from ..errors import InputError, SettingError
from ..machine import allowed, cpu_list, kernel, online_cpus, privileged, settings
from ..machine.kernel import read_value, same
from ..workloads import Workload, format_cpu_list
from . import _proc
from .action import YES, Action, NotYet, Possible, Unproven

_CPUFREQ = "/sys/devices/system/cpu/cpufreq"
_SWAPPINESS = "/proc/sys/vm/swappiness"
NOT_LISTED = "what is not on the list could give a program the rights of root"
_CLOCK_TOLERANCE = 1.02  # the kernel's estimate of a clock is that good


def changeable(values: dict[str, str]) -> Possible:
    """Whether these settings exist, offer the value, have another one now, and may be written by
    this user.
    """
    if not values:
        return Possible(False, "this machine has no such setting")
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
            return Possible(
                False,
                f"{path}: {error.strerror}",
                (
                    f"{privileged.INSTALL}, or run as root, outside of a container"
                    if error.errno != errno.EROFS
                    else "run outside of a container"
                ),
            )
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


def _not_here(path: str, fix: str) -> Possible:
    return Possible(False, f"there is no {path} here, as in most virtual machines", fix)


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
        if not isinstance(self.path, str) or not isinstance(self.value, str):
            raise InputError(f"a path and a value are texts: {self.path!r}, {self.value!r}")
        if refused := allowed.pattern_refusal(self.path, self.value):
            raise InputError(refused, why=NOT_LISTED, fix=allowed.HOW_TO_ADD)

    @property
    def risk(self) -> str:
        return allowed.risk_of(self.path)

    def values(self, workload: Workload | None) -> dict[str, str]:
        paths = sorted(glob.glob(self.path)) if "*" in self.path else [self.path]
        return dict.fromkeys(paths, self.value)

    def possible(self, workload: Workload | None = None) -> Possible:
        if not self.values(workload):
            return _not_here(self.path, "a machine whose kernel controls it")
        own = _group_swappiness(os.getpid()) if self.path == _SWAPPINESS else ""
        if own:
            return Possible(
                False,
                f"programs started here follow {own}, not the machine's setting",
                f"echo {self.value} > {own}",
            )
        return super().possible(workload)

    def followed(self, pid: int) -> str | None:
        seen = _SEEN.get(self.path)
        return seen(pid, self.value) if seen else None


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


def _group_swappiness(pid: int) -> str:
    """The file of the process's control group: in version 1 each has its own; "" elsewhere."""
    path = _proc.groups(pid).get("memory", "/")
    for row in Path("/proc/self/mounts").read_text().splitlines() if path != "/" else ():
        _, place, kind, words, *_ = row.split()
        file = f"{place}{path}/memory.swappiness"
        if kind == "cgroup" and "memory" in words.split(",") and os.path.exists(file):
            return file
    return ""


def _swappiness(pid: int, value: str) -> str | None:
    """Whether the process's control group has the value, too."""
    file = _group_swappiness(pid)
    if file and not _is(file, value):
        return f"the control group of the process has {read_value(file)}, not {value}"
    return None


_SEEN: dict[str, Callable[[int, str], str | None]] = {
    "/sys/kernel/mm/transparent_hugepage/enabled": _huge_pages,
    _SWAPPINESS: _swappiness,
}


@dataclass(frozen=True)
class FrequencyCap(MachineSetting):
    """A cap of the clock: the nominal one, or if that is unknown this share of the highest.

    Proof: the clock of a CPU while a thread of the program runs there.
    """

    share: float = 0.8

    def followed(self, pid: int) -> str | None:
        return _clock_under_load(pid, {path: int(cap) for path, cap in self.values(None).items()})

    def values(self, workload: Workload | None) -> dict[str, str]:
        return {
            str(folder / "scaling_max_freq"): str(cap)
            for folder in sorted(Path(_CPUFREQ).glob("policy*"))
            if (cap := self._cap_khz(folder))
        }

    def possible(self, workload: Workload | None = None) -> Possible:
        if not self.values(workload):
            return _not_here(f"{_CPUFREQ}/policy*", "a machine whose kernel controls the frequency")
        return super().possible(workload)

    def _cap_khz(self, folder: Path) -> int | None:
        with suppress(OSError, ValueError):
            return int((folder / "base_frequency").read_text())
        with suppress(OSError, ValueError):
            wanted = self.share * int((folder / "cpuinfo_max_freq").read_text())
            steps = _numbers(folder / "scaling_available_frequencies")
            return max(
                (step for step in steps if step <= wanted),
                default=min(steps, default=int(wanted) // 1000 * 1000),
            )
        return None


def _clock_under_load(pid: int, caps_khz: Mapping[str, int]) -> str | None:
    """Whether CPUs on which the process runs at this moment keep to the caps of their policies."""
    running, clocks = _proc.running_on(pid), []
    for path, cap in caps_khz.items():
        folder = Path(path).parent
        has = next(iter(_numbers(folder / "scaling_cur_freq")), 0)
        if running & set(_numbers(folder / "affected_cpus")) and has:
            clocks.append((has, cap))
    wrong = next((pair for pair in clocks if pair[0] > pair[1] * _CLOCK_TOLERANCE), None)
    if wrong:
        return f"a CPU of the program runs at {wrong[0] // 1000} MHz, above {wrong[1] // 1000} MHz"
    return None if clocks else Unproven("no CPU was seen while the program ran on it")


def _numbers(path: Path) -> list[int]:
    with suppress(OSError, ValueError):
        return [int(word) for word in path.read_text().split()]
    return []


class TurboOff(MachineSetting):
    """No clocks above the nominal one.

    Proof: the clock of a CPU while a thread of the program runs there, where the nominal one is
    known; elsewhere what the driver says of itself.
    """

    def followed(self, pid: int) -> str | None:
        files = sorted(Path(_CPUFREQ).glob("policy*/base_frequency"))
        nominal = {str(file): number for file in files for number in _numbers(file)[:1]}
        return _clock_under_load(pid, nominal) if nominal else None

    def values(self, workload: Workload | None) -> dict[str, str]:
        known = {"/sys/devices/system/cpu/intel_pstate/no_turbo": "1", f"{_CPUFREQ}/boost": "0"}
        return dict(
            [
                next(
                    ((path, value) for path, value in known.items() if os.path.exists(path)),
                    (f"{_CPUFREQ}/boost", "0"),
                )
            ]
        )


def _others(workload: Workload | None) -> tuple[int, ...]:
    """The CPUs that a workload leaves free; the first of the machine if it leaves none."""
    used = workload.cpus if workload is not None and workload.cpus else ()
    online = online_cpus()
    return tuple(cpu for cpu in online if used and cpu not in used) or online[:1]


class InterruptsAway(Action):
    """Device interrupts go to the CPUs that the workload leaves free, or to the first one.

    Proof: since the program waits none of them came to another CPU more than once; an interrupt is
    moved when it comes next.
    """

    @property
    def risk(self) -> str:
        return "low"

    def __init__(self) -> None:
        self._routed: dict[str, str] = {}
        self._before: dict[str, int] = {}

    def arm(self, pid: int) -> None:
        self._before = self._elsewhere()

    def _elsewhere(self) -> dict[str, int]:
        """Of each routed interrupt: how often it came to a CPU where it should not."""
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

    def possible(self, workload: Workload | None = None) -> Possible:
        files = _irq_files()
        if not files:
            return Possible(False, "there are no interrupts to route", "look into /proc/irq")
        if len(online_cpus()) < 2:
            return Possible(False, "there is one CPU only")
        return changeable(dict.fromkeys(files, format_cpu_list(_others(workload))))

    @contextmanager
    def held(self, workload: Workload) -> Iterator[None]:
        movable = [path for path in _irq_files() if _takes_a_value(path)]
        if not movable:
            raise SettingError(
                "no interrupt can be routed here: the kernel manages all of them", where="/proc/irq"
            )
        wanted = dict.fromkeys(movable, format_cpu_list(_others(workload)))
        with settings.apply({Path(path): value for path, value in wanted.items()}):
            self._routed = wanted
            try:
                yield
            finally:
                self._routed = {}

    def check(self, pid: int) -> str | None:
        if not self._routed:
            return "no interrupt is routed"
        if wrong := not_as_wanted(self._routed):
            return wrong
        for number, count in self._elsewhere().items():
            if count > self._before.get(number, count) + 1:
                return f"interrupt {number} still comes to other CPUs"
        return None


def _irq_files() -> list[str]:
    return sorted(glob.glob("/proc/irq/[0-9]*/smp_affinity_list"))


def _takes_a_value(path: str) -> bool:
    """Writing the value that it has: the kernel answers EIO or EPERM for an interrupt that it
    places itself.
    """
    with suppress(OSError):
        kernel.write_value(path, Path(path).read_text().strip())
        return True
    return False


class WorkqueuesAway(MachineSetting):
    """Unbound workqueues of the kernel run on the CPUs that the workload leaves free, or on the
    first one.
    """

    def __init__(self) -> None:
        self._workload: Workload | None = None

    def values(self, workload: Workload | None) -> dict[str, str]:
        mask = sum(1 << cpu for cpu in _others(workload or self._workload))
        words = f"{mask:x}"
        text = ",".join(
            reversed([words[max(0, end - 8) : end] for end in range(len(words), 0, -8)])
        )
        return {"/sys/devices/virtual/workqueue/cpumask": text}

    @contextmanager
    def held(self, workload: Workload) -> Iterator[None]:
        self._workload = workload
        with super().held(workload):
            yield
