"""Actions on the settings of the machine, for the length of a run: sysctls and sysfs, clocks,
routed interrupts and workqueues.

Every value is changed by `nbhelpers.machine.settings`, which puts it back even after a SIGKILL.
"""

import errno
import glob
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from ..errors import SettingError
from ..machine import online_cpus, settings
from ..machine.kernel import read_value, same
from ..workloads import Workload, format_cpu_list
from .action import YES, Action, Possible

_CPUFREQ = "/sys/devices/system/cpu/cpufreq"


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
            os.close(os.open(path, os.O_WRONLY))
        except OSError as error:
            return Possible(
                False,
                f"{path}: {error.strerror}",
                (
                    "run as root, outside of a container"
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
        return not_as_wanted(self.values(None))


def _not_here(path: str, fix: str) -> Possible:
    return Possible(False, f"there is no {path} here, as in most virtual machines", fix)


@dataclass(frozen=True)
class Setting(MachineSetting):
    """One value in a file, or in all files that a pattern with * finds."""

    path: str
    value: str

    def values(self, workload: Workload | None) -> dict[str, str]:
        paths = sorted(glob.glob(self.path)) if "*" in self.path else [self.path]
        return dict.fromkeys(paths, self.value)

    def possible(self, workload: Workload | None = None) -> Possible:
        if not self.values(workload):
            return _not_here(self.path, "a machine whose kernel controls it")
        return super().possible(workload)


@dataclass(frozen=True)
class FrequencyCap(MachineSetting):
    """A cap of the clock: the nominal one, or if that is unknown this share of the highest."""

    share: float = 0.8

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


def _numbers(path: Path) -> list[int]:
    with suppress(OSError, ValueError):
        return [int(word) for word in path.read_text().split()]
    return []


class TurboOff(MachineSetting):
    """No clocks above the nominal one."""

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
    """Device interrupts go to the CPUs that the workload leaves free, or to the first one."""

    def __init__(self) -> None:
        self._routed: dict[str, str] = {}

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
            yield

    def check(self, pid: int) -> str | None:
        return not_as_wanted(self._routed) if self._routed else "no interrupt is routed"


def _irq_files() -> list[str]:
    return sorted(glob.glob("/proc/irq/[0-9]*/smp_affinity_list"))


def _takes_a_value(path: str) -> bool:
    """Writing the value that it has: the kernel answers EIO or EPERM for an interrupt that it
    places itself.
    """
    with suppress(OSError):
        value = Path(path).read_text().strip()
        handle = os.open(path, os.O_WRONLY)
        try:
            os.write(handle, value.encode())
            return True
        finally:
            os.close(handle)
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
