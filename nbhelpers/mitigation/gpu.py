"""Actions on NVIDIA GPUs: a cap of the clock, a fan speed, persistence mode; set and reset by the
holder in `_nvml`.
"""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ..errors import InputError, SettingError
from ..workloads import Workload
from . import _nvml, verification
from .action import YES, Action, NotYet, Possible, Unproven


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
        Of the highest clock, at most; or of the fan's full speed.
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
            with _nvml.Gpus() as gpus:
                if self.what == "persistence" and all(gpus.persistence()):
                    return Possible(False, "persistence mode is on already")
        except _nvml.NvmlError as error:
            return Possible(False, str(error), "nvidia-smi")
        return YES

    @contextmanager
    def held(self, workload: Workload) -> Iterator[None]:
        with subprocess.Popen(
            [sys.executable, "-I", "-S", _nvml.__file__, self.what, str(self.share)],
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
        if not verification.uses_gpu(pid):
            return NotYet("the process uses no GPU of NVIDIA")
        try:
            with _nvml.Gpus() as gpus:
                state, words = gpus.seen(self.what, self.share)
        except _nvml.NvmlError as error:
            return Unproven(f"NVML does not answer: {error}")
        return _ANSWERS[state](words)


_ANSWERS: dict[str, Callable[[str], str | None]] = {
    _nvml.PROVEN: lambda words: None,
    _nvml.WRONG: str,
    _nvml.LATER: NotYet,
    _nvml.UNSEEN: Unproven,
}
