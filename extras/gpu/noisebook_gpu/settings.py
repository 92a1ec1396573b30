"""Actions on NVIDIA GPUs: a cap of the clock, a fan speed, persistence mode; set and reset by the
holder in `nvml`.
"""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from nbhelpers.errors import InputError, SettingError
from nbhelpers.mitigation import _proc
from nbhelpers.mitigation.action import YES, Action, NotYet, Possible, Unproven
from nbhelpers.workloads import Workload

from . import nvml


@dataclass(frozen=True)
class GpuSetting(Action):
    """A setting of all GPUs.

    Afterwards the driver controls clocks and fans again. An earlier lock of the clocks is lost, as
    NVML does not report it.

    Parameters
    ----------
    what
        "clocks", "fan" or "persistence".
    share
        Share of the highest clock that is the upper limit, or of the fan's full speed; above 0, at
        most 1.
    """

    what: str
    share: float = 1.0

    def __post_init__(self):
        number = type(self.share) in (int, float) and 0 < self.share <= 1
        if self.what not in ("clocks", "fan", "persistence") or not number:
            raise InputError(
                f"no setting of a GPU: {self.what!r}, {self.share}",
                fix="clocks, fan or persistence; a share above 0 and at most 1",
            )

    @property
    def risk(self) -> str:
        return "low"

    def possible(self, workload: Workload | None = None) -> Possible:
        try:
            with nvml.Gpus() as gpus:
                if self.what == "persistence" and all(gpus.persistence()):
                    return Possible(False, "persistence mode is on already")
        except nvml.NvmlError as error:
            return Possible(False, str(error), "nvidia-smi")
        return YES

    @contextmanager
    def held(self, workload: Workload) -> Iterator[None]:
        with subprocess.Popen(
            [sys.executable, "-I", "-S", nvml.__file__, self.what, str(self.share)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        ) as holder:
            assert holder.stdin and holder.stdout  # both are pipes
            try:
                answer = holder.stdout.readline().decode().strip()
                if answer != "ready":
                    raise SettingError(
                        f"the GPU's {self.what} cannot be set: {answer or 'the holder ended'}",
                        fix="run as root: sudo -E; see nvidia-smi -q",
                    )
                yield
            finally:
                holder.stdin.close()
                holder.wait()

    def check(self, pid: int) -> str | None:
        """The clock counts while a GPU works, fan and persistence mode whenever one is used."""
        if not uses_gpu(pid):
            return NotYet("the process uses no GPU of NVIDIA")
        try:
            with nvml.Gpus() as gpus:
                state, words = gpus.seen(self.what, self.share)
        except nvml.NvmlError as error:
            return Unproven(f"NVML does not answer: {error}")
        return _ANSWERS[state](words)


def uses_gpu(pid: int) -> bool:
    """Whether the process has CUDA or a device of NVIDIA's driver mapped."""
    mapped = _proc.mapped_files(pid)
    return any(name.startswith("/dev/nvidia") or "/libcuda.so" in name for name in mapped)


_ANSWERS: dict[str, Callable[[str], str | None]] = {
    nvml.PROVEN: lambda words: None,
    nvml.WRONG: str,
    nvml.LATER: NotYet,
    nvml.UNSEEN: Unproven,
}
