"""GPUs of NVIDIA by their management library: clocks, temperature, power, what slowed the clock
down, utilisation.

Owns which calls of the library give which reading; the binding is in `nvml`.
"""

import ctypes
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from nbhelpers.measurement._knowledge import Source

from .nvml import LIBRARY, Nvml

_SM, _MEMORY = 1, 2  # nvmlClockType_t
_POLICIES = {
    "power": 0,
    "thermal": 1,
    "sync_boost": 2,
    "board_limit": 3,
    "low_utilization": 4,
    "reliability": 5,
}  # nvmlPerfPolicyType_t
_SAMPLES = {
    "power_w": (0, 1e-3),
    "utilisation": (1, 1e-2),
    "memory_utilisation": (2, 1e-2),
    "clock_mhz": (5, 1),
    "memory_clock_mhz": (6, 1),
}
_REASONS = {
    "idle": 0x1,
    "applications_clock": 0x2,
    "power_cap": 0x4,
    "hardware": 0x8,
    "sync_boost": 0x10,
    "software_thermal": 0x20,
    "hardware_thermal": 0x40,
    "power_brake": 0x80,
    "display_clock": 0x100,
}  # nvmlClocksEventReasons


class _Sample(ctypes.Structure):
    _fields_ = [("time_us", ctypes.c_ulonglong), ("value", ctypes.c_ulonglong)]


class _Memory(ctypes.Structure):
    _fields_ = [
        ("total", ctypes.c_ulonglong),
        ("free", ctypes.c_ulonglong),
        ("used", ctypes.c_ulonglong),
    ]


class _Violation(ctypes.Structure):
    _fields_ = [("time_us", ctypes.c_ulonglong), ("violation_ns", ctypes.c_ulonglong)]


class GpuReadings(Nvml):
    """What is read of the GPUs of the machine, by their handles."""

    def now(self, device: int) -> dict[str, float]:
        """The readings of a GPU now; those that it does not have are left out."""
        handle = ctypes.c_void_p(device)
        queries: dict[str, Callable[[], float]] = {
            "clock_mhz": lambda: self.number(ctypes.c_uint, "nvmlDeviceGetClockInfo", handle, _SM),
            "memory_clock_mhz": lambda: self.number(
                ctypes.c_uint, "nvmlDeviceGetClockInfo", handle, _MEMORY
            ),
            "temperature_c": lambda: self.number(
                ctypes.c_uint, "nvmlDeviceGetTemperature", handle, 0
            ),
            "power_w": lambda: self.number(ctypes.c_uint, "nvmlDeviceGetPowerUsage", handle) * 1e-3,
            "energy_j": lambda: (
                self.number(ctypes.c_ulonglong, "nvmlDeviceGetTotalEnergyConsumption", handle)
                * 1e-3
            ),
            "fan_share": lambda: self.number(ctypes.c_uint, "nvmlDeviceGetFanSpeed", handle) * 1e-2,
            "memory_used_mb": lambda: (
                self.structure(_Memory, "nvmlDeviceGetMemoryInfo", handle).used / 2**20
            ),
            "pstate": lambda: self.number(ctypes.c_uint, "nvmlDeviceGetPerformanceState", handle),
        }
        for name, policy in _POLICIES.items():
            queries[f"{name}_limited_ns"] = partial(self._limited_ns, handle, policy)
        found = {}
        for name, query in queries.items():
            with suppress(OSError):
                found[name] = query()
        return found | self._reasons(handle)

    def _limited_ns(self, handle: ctypes.c_void_p, policy: int) -> int:
        found = self.structure(_Violation, "nvmlDeviceGetViolationStatus", handle, policy)
        return found.violation_ns

    def _reasons(self, handle: ctypes.c_void_p) -> dict[str, int]:
        for name in (
            "nvmlDeviceGetCurrentClocksEventReasons",
            "nvmlDeviceGetCurrentClocksThrottleReasons",
        ):  # the newer name, the older
            with suppress(OSError):
                bits = self.number(ctypes.c_ulonglong, name, handle)
                return {
                    f"slowed_by_{reason}": int(bool(bits & bit)) for reason, bit in _REASONS.items()
                }
        return {}

    def since(self, device: int, start_us: int) -> dict[str, float]:
        """Means over the samples that the driver itself took since a time (µs since 1970): nothing
        of ours runs meanwhile.
        """
        found = {}
        for name, (kind, scale) in _SAMPLES.items():
            with suppress(OSError):
                values = self._samples(ctypes.c_void_p(device), kind, start_us)
                if values:
                    found[f"mean_{name}"] = sum(values) / len(values) * scale
        return found

    def _samples(self, handle: ctypes.c_void_p, kind: int, start_us: int) -> list[int]:
        value_type, count = ctypes.c_uint(), ctypes.c_uint()
        query = (
            "nvmlDeviceGetSamples",
            handle,
            kind,
            ctypes.c_ulonglong(start_us),
            ctypes.byref(value_type),
            ctypes.byref(count),
        )
        self.call(*query, None)
        samples = (_Sample * count.value)()
        self.call(*query, samples)
        # nvmlValueType_t 1 and 5 have 32 bits: the rest of the union is not written
        mask = 0xFFFFFFFF if value_type.value in (1, 5) else 0xFFFFFFFFFFFFFFFF
        return [
            sample.value & mask for sample in samples[: count.value] if sample.time_us >= start_us
        ]


class NvmlReader:
    """The metrics of a source of NVML.

    `field` of a metric is a name of `GpuReadings.now` or `GpuReadings.since`.

    With several GPUs a column is their sum, mean, least or largest (`combine`), or one each (`*` in
    the id is the number).
    """

    def __init__(self, source: Source, root: object = "/", library: str = LIBRARY):
        self._source = source
        self._library = library
        self._nvml: GpuReadings | None = None
        self._start_us = 0

    def lacking(self) -> str:
        """Why nothing can be read here; "" if something can."""
        try:
            return "" if self._opened().devices else "the driver finds no GPU"
        except OSError as error:
            return (
                f"NVML does not answer: {error.args[-1] if error.args else error} (it comes with"
                " NVIDIA's driver)"
            )
        finally:
            self.close()

    def _opened(self) -> GpuReadings:
        self._nvml = self._nvml or GpuReadings(self._library)
        return self._nvml

    def open(self, pid: int) -> None:
        """A run is about to start."""
        self._start_us = time.time_ns() // 1000
        with suppress(OSError):
            self._opened()

    def read(self) -> dict[str, float]:
        """Column: value, as it is now, and means since `open`."""
        if self._nvml is None:
            return {}
        found = {
            number: self._nvml.now(device) | self._nvml.since(device, self._start_us)
            for number, device in enumerate(self._nvml.devices)
        }
        columns: dict[str, float] = {}
        for metric in self._source.metrics:
            values = {
                number: known[metric.where["field"]]
                for number, known in found.items()
                if metric.where["field"] in known
            }
            if "*" in metric.id:
                columns |= {
                    metric.id.replace("*", str(number)): value for number, value in values.items()
                }
            elif values:
                columns[metric.id] = _COMBINE[metric.where.get("combine", "mean")](
                    list(values.values())
                )
        return columns

    def shut(self) -> None:
        """The run is over; the library stays open, to open it takes milliseconds."""

    def close(self) -> None:
        """Give the library back."""
        if self._nvml is not None:
            self._nvml.close()
            self._nvml = None


_COMBINE: dict[str, Callable[[list[float]], float]] = {
    "sum": sum,
    "mean": lambda values: sum(values) / len(values),
    "min": min,
    "max": max,
}
