"""The clock of every CPU while a run lasts, read from a spare core, and the temperature.

Owns the sampling thread and the files that hold a frequency; where a machine has none, a note
has the reason (Cui et al. 2023, sec. 3).
"""

import os
import re
import statistics
import threading
from pathlib import Path

from ..workloads import Workload
from ._clock import BusyClock
from .attachment import Attachment

NO_FREQUENCY = "no frequency here"
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
    noise itself. Frequencies come from cpufreq in sysfs, or from /proc/cpuinfo unless a
    hypervisor runs below, whose number there is the nominal one.

    `busy_mhz`, `busy_min_mhz` and `busy_max_mhz` (mean, slowest, fastest CPU of the workload) are
    the clock that the CPUs really had while they worked. They come from APERF and MPERF, read at
    the start and the end; where this user cannot read them, `clock_note` has the reason.
    """

    def __init__(self, every_ms: float = 10.0, root: str | Path = "/"):
        self._every_s, self._root = every_ms / 1e3, Path(root)
        self.source = frequency_source(root)
        self._clock = BusyClock(self._root)
        self.clock_note = self._clock.lacking
        if self.source == NO_FREQUENCY:
            self.notes += (
                f"{NO_FREQUENCY}: neither cpufreq nor a /proc/cpuinfo that is not a virtual"
                " machine's",
            )
        if self.clock_note:
            self.notes += (f"APERF and MPERF are not read: {self.clock_note}",)
        self._cpus: tuple[int, ...] = ()
        self._spare: int | None = None
        self._samples: list[float] = []
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def reads_frequency(self) -> bool:
        """Whether there is a frequency to be read at all, from cpufreq or /proc/cpuinfo."""
        return self.source != NO_FREQUENCY

    def before(self, workload: Workload) -> None:
        usable = sorted(os.sched_getaffinity(0))
        self._cpus, self._samples = tuple(workload.cpus or usable), []
        self._spare = next((cpu for cpu in usable if cpu not in self._cpus), None)

    def released(self, t0_ns: int) -> None:
        self._clock.start(self._cpus)
        if self.source == NO_FREQUENCY:
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
        self._samples += frequencies_mhz(self._cpus, self.source, self._root)

    def ended(self, pid: int) -> None:
        self._halt()
        self._clock.stop()
        if self.source != NO_FREQUENCY:
            self._sample()

    def after(self, run: dict) -> dict:
        self._halt()
        columns = {
            "temperature_c": temperature_c(self._root),
            "frequency_samples": len(self._samples),
        }
        if self._samples:
            columns |= {
                "frequency_mhz": statistics.fmean(self._samples),
                "frequency_min_mhz": min(self._samples),
                "frequency_max_mhz": max(self._samples),
            }
        return columns | self._clock.columns()

    def _halt(self) -> None:
        if self._thread is not None:
            self._stop.set()
            self._thread.join()
            self._thread = None

    def close(self) -> None:
        self._halt()
        self._clock.close()

    def __repr__(self) -> str:
        return f"FrequencyLogger({self.source})"


def frequency_source(root: str | Path = "/") -> str:
    """Where frequencies are read: "cpufreq", "cpuinfo", or "no frequency here"."""
    root = Path(root)
    if any((root / "sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_cur_freq")):
        return "cpufreq"
    text = _read(root / "proc/cpuinfo")
    flags = re.search(r"^flags\s*:(.*)$", text, re.MULTILINE)
    below = flags is not None and "hypervisor" in flags[1].split()
    return (
        "cpuinfo" if re.search(r"^cpu MHz\s*:", text, re.MULTILINE) and not below else NO_FREQUENCY
    )


def frequencies_mhz(cpus: tuple[int, ...], source: str, root: str | Path = "/") -> list[float]:
    """The frequency of each of the CPUs now, MHz; one without a file is skipped."""
    root = Path(root)
    if source == "cpufreq":
        texts = [_read(root / _CUR_FREQ.format(cpu=cpu)) for cpu in cpus]
        return [int(text) / 1e3 for text in texts if text.strip().isdigit()]
    if source == "cpuinfo":
        pairs = re.findall(
            r"^processor\s*:\s*(\d+)$.*?^cpu MHz\s*:\s*([\d.]+)",
            _read(root / "proc/cpuinfo"),
            re.MULTILINE | re.DOTALL,
        )
        return [float(mhz) for cpu, mhz in pairs if int(cpu) in cpus]
    return []


def temperature_c(root: str | Path = "/") -> float | None:
    """The hottest thermal zone, degrees Celsius; None: there is none."""
    zones = [
        _read(path).strip()
        for path in (Path(root) / "sys/class/thermal").glob("thermal_zone*/temp")
    ]
    return max((int(zone) / 1e3 for zone in zones if zone.lstrip("-").isdigit()), default=None)


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
