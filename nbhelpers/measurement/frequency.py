"""The clock of every CPU while a run lasts, read from a spare core, and the temperature.

Owns the sampling thread and the files that hold a frequency; where a machine has none, a note
has the reason (Cui et al. 2023, sec. 3). The clock that CPUs had while they worked is
`frequency_ghz` of the metric layer `hardware`: cycles over CPU time.
"""

import os
import statistics
import threading
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from ..workloads import Workload
from .attachment import Attachment

_CUR_FREQ = "sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq"


class FrequencyLogger(Attachment):
    """Samples the frequency of every CPU during each run, on a CPU that the workload does not use.

    Parameters
    ----------
    every_ms
        Between two samples of all CPUs.
    root
        Folder of a recorded tree of /proc and /sys; "/" is this machine.

    Notes
    -----
    Adds the columns `frequency_mhz` (mean over CPUs of the workload and samples),
    `frequency_min_mhz`, `frequency_max_mhz`, `frequency_samples`, and `temperature_c` (the hottest
    zone at the end). Where the workload takes every CPU there is no spare one, and only the
    beginning of the timed region and the end are sampled: a logger on a CPU of the program would be
    noise itself. Frequencies come from cpufreq in sysfs; where there is none, `reads_frequency` is
    False.
    """

    def __init__(self, every_ms: float = 10.0, root: str | Path = "/"):
        self._every_s, self._root = every_ms / 1e3, Path(root)
        self.reads_frequency = any(self._root.glob(_CUR_FREQ.format(cpu="[0-9]*")))
        if not self.reads_frequency:
            self.notes = ("no frequency here: this machine has no cpufreq",)
        self._cpus: tuple[int, ...] = ()
        self._spare: int | None = None
        self._samples: list[float] = []
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def before(self, workload: Workload) -> None:
        usable = sorted(os.sched_getaffinity(0))
        self._cpus, self._samples = tuple(workload.cpus or usable), []
        self._spare = next((cpu for cpu in usable if cpu not in self._cpus), None)

    def released(self, t0_ns: int) -> None:
        if not self.reads_frequency:
            return
        self._sample()
        if self._spare is not None:
            self._stop.clear()
            self._thread = threading.Thread(target=self._log, args=(self._spare,), daemon=True)
            self._thread.start()

    def _log(self, cpu: int) -> None:
        os.sched_setaffinity(0, {cpu})  # of this thread only
        while not self._stop.wait(self._every_s):
            self._sample()

    def _sample(self) -> None:
        self._samples += _thousandths(self._root / _CUR_FREQ.format(cpu=cpu) for cpu in self._cpus)

    def ended(self, pid: int) -> None:
        self.close()
        if self.reads_frequency:
            self._sample()

    def after(self, run: dict) -> dict:
        self.close()
        samples = self._samples
        columns = {"temperature_c": temperature_c(self._root), "frequency_samples": len(samples)}
        if samples:
            columns["frequency_mhz"] = statistics.fmean(samples)
            columns |= {"frequency_min_mhz": min(samples), "frequency_max_mhz": max(samples)}
        return columns

    def close(self) -> None:
        if self._thread is not None:
            self._stop.set()
            self._thread.join()
            self._thread = None

    def __repr__(self) -> str:
        return f"FrequencyLogger({'cpufreq' if self.reads_frequency else 'no frequency here'})"


def temperature_c(root: str | Path = "/") -> float | None:
    """The hottest thermal zone, degrees Celsius; None: there is none."""
    zones = (Path(root) / "sys/class/thermal").glob("thermal_zone*/temp")
    return max(_thousandths(zones), default=None)


def _thousandths(paths: Iterable[Path]) -> list[float]:
    """The numbers in files of sysfs; one that cannot be read is skipped."""
    found = []
    for path in paths:
        with suppress(OSError, ValueError):
            found.append(int(path.read_text()) / 1e3)
    return found
