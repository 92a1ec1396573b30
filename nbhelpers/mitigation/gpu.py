"""Actions on NVIDIA GPUs: a cap of the clock, a fan speed, persistence mode; set and reset by the
holder in `_nvml`.
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ..errors import InputError, SettingError
from ..workloads import Workload
from . import _nvml
from .action import YES, Action, Possible


@dataclass(frozen=True)
class GpuSetting(Action):
    """Of all GPUs: `what` is clocks (at most `share` of the highest), fan (`share` of full speed)
    or persistence.

    The driver's own control of clocks and fans is what it goes back to: a lock of the clocks that
    was there before is gone, as NVML cannot tell it.
    """

    what: str
    share: float = 1.0

    def __post_init__(self):
        if self.what not in ("clocks", "fan", "persistence") or not 0 < self.share <= 1:
            raise InputError(
                f"no setting of a GPU: {self.what!r}, {self.share}",
                fix="clocks, fan or persistence; a share above 0 and at most 1",
            )

    def possible(self, workload: Workload | None = None) -> Possible:
        try:
            with _nvml.Gpus() as gpus:
                if self.what == "persistence" and all(gpus.persistence()):
                    return Possible(False, "persistence mode is on already")
        except _nvml.NvmlError as error:
            return Possible(False, str(error), "nvidia-smi")
        return YES

    @contextmanager
    def held(self, workload: Workload) -> Iterator[None]:
        holder = subprocess.Popen(
            [sys.executable, "-I", "-S", _nvml.__file__, self.what, str(self.share)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            said = holder.stdout.readline().decode().strip()
            if said != "ready":
                raise SettingError(
                    f"the GPU's {self.what} cannot be set: {said or 'the holder ended'}",
                    fix="run as root: sudo -E; see nvidia-smi -q",
                )
            yield
        finally:
            holder.stdin.close()
            holder.wait()
            holder.stdout.close()

    def check(self, pid: int) -> str | None:
        try:
            with _nvml.Gpus() as gpus:
                return gpus.wrong(self.what, self.share)
        except _nvml.NvmlError as error:
            return str(error)
