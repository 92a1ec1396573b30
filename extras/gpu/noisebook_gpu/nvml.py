"""NVIDIA's management library by ctypes, and settings held by it in a process of their own: run as
`python -I -S nvml.py WHAT SHARE`, it undoes them when its input ends.

Standard library only; the library is part of the driver. The driver has no file to put a value back
into, so the holder outlives whoever started it, even after a SIGKILL, just long enough to reset the
GPUs.
"""

import ctypes
import os
import signal
import sys
import time
from contextlib import suppress
from typing import Any

LIBRARY = "libnvidia-ml.so.1"
_GRAPHICS_CLOCK, _SM_CLOCK = 0, 1  # nvmlClockType_t
_CLOCK_STEP_MHZ = 15  # between two clocks that a GPU offers
_NEAR_CAP = 0.9
_FAN_TOLERANCE, _FAN_WAIT_S = 5, 10.0  # per cent; a fan takes seconds
PROVEN, WRONG, LATER, UNSEEN = "proven", "wrong", "later", "unseen"


class CallError(OSError):
    """What NVML answered: its code and its words; or the one text that the driver lacks a call."""


class Nvml:
    """The library, initialised; `devices` are the handles of the GPUs.

    Parameters
    ----------
    library
        Name or path of the library.

    Raises
    ------
    OSError
        There is no such library.
    CallError
        It finds no driver.
    """

    def __init__(self, library: str = LIBRARY):
        self._library = ctypes.CDLL(library)
        self.call("nvmlInit_v2")
        self.devices = [
            self.number(ctypes.c_void_p, "nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(at))
            for at in range(self.number(ctypes.c_uint, "nvmlDeviceGetCount_v2") or 0)
        ]

    def call(self, name: str, *arguments: object) -> None:
        """Call a function of the library.

        Raises
        ------
        CallError
            The driver has no such function, or it answers with an error.
        """
        try:
            code = getattr(self._library, name)(*arguments)
        except AttributeError:
            raise CallError(f"this driver has no {name}") from None
        if code:
            describe = self._library.nvmlErrorString
            describe.restype = ctypes.c_char_p
            raise CallError(code, (describe(code) or b"unknown").decode())

    def number(self, kind: type, name: str, *arguments: object) -> Any:
        """The number of a ctypes kind that a function writes to its last argument."""
        return self.structure(kind, name, *arguments).value

    def structure(self, kind: type, name: str, *arguments: object) -> Any:
        """The ctypes object that a function writes to its last argument."""
        found = kind()
        self.call(name, *arguments, ctypes.byref(found))
        return found

    def close(self) -> None:
        """Give the library back."""
        with suppress(CallError):
            self.call("nvmlShutdown")


class NvmlError(Exception):
    """What NVML answered."""


def _in_words(name: str, error: OSError) -> str:
    """`call: answer of NVML`; the text of a missing call has its name."""
    return str(error) if error.errno is None else f"{name}: {error.strerror}"


class Gpus:
    """All GPUs of the machine; a context in which NVML is initialised."""

    def __init__(self) -> None:
        try:
            self._nvml = Nvml()
        except CallError as error:
            raise NvmlError(_in_words("nvmlInit_v2", error)) from None
        except OSError:
            raise NvmlError(f"there is no {LIBRARY}: no NVIDIA driver is installed") from None
        self._handles = [ctypes.c_void_p(device) for device in self._nvml.devices]
        if not self._handles:
            raise NvmlError("there is no GPU")

    def __enter__(self) -> "Gpus":
        return self

    def __exit__(self, *_: object) -> None:
        self._nvml.close()

    def _call(self, name: str, *arguments: object) -> None:
        try:
            self._nvml.call(name, *arguments)
        except CallError as error:
            raise NvmlError(_in_words(name, error)) from None

    def _number(self, name: str, handle: ctypes.c_void_p, *arguments: object) -> int:
        value = ctypes.c_uint()
        self._call(name, handle, *arguments, ctypes.byref(value))
        return value.value

    def _fans(self, handle: ctypes.c_void_p) -> range:
        return range(self._number("nvmlDeviceGetNumFans", handle))

    def _cap_mhz(self, handle: ctypes.c_void_p, share: float) -> int:
        clock = ctypes.c_uint(_GRAPHICS_CLOCK)
        return round(share * self._number("nvmlDeviceGetMaxClockInfo", handle, clock))

    def set(self, what: str, share: float) -> None:
        """Set clocks, fan or persistence of all GPUs."""
        for handle in self._handles:
            if what == "clocks":
                cap = ctypes.c_uint(self._cap_mhz(handle, share))
                self._call("nvmlDeviceSetGpuLockedClocks", handle, ctypes.c_uint(0), cap)
            elif what == "fan":
                if not self._fans(handle):
                    raise NvmlError("a GPU has no fan")
                speed = ctypes.c_uint(round(100 * share))
                for fan in self._fans(handle):
                    self._call("nvmlDeviceSetFanSpeed_v2", handle, ctypes.c_uint(fan), speed)
            else:
                self._call("nvmlDeviceSetPersistenceMode", handle, ctypes.c_uint(1))

    def persistence(self) -> list[int]:
        """1 for each GPU that stays initialised, else 0."""
        return [self._number("nvmlDeviceGetPersistenceMode", handle) for handle in self._handles]

    def reset(self, what: str, persistence: list[int]) -> None:
        """Clocks and fans under the driver's control again, and the earlier persistence modes."""
        for handle, mode in zip(self._handles, persistence, strict=False):
            if what == "clocks":
                self._call("nvmlDeviceResetGpuLockedClocks", handle)
            elif what == "fan":
                for fan in self._fans(handle):
                    self._call("nvmlDeviceSetDefaultFanSpeed_v2", handle, ctypes.c_uint(fan))
            else:
                self._call("nvmlDeviceSetPersistenceMode", handle, ctypes.c_uint(mode))

    def seen(self, what: str, share: float) -> tuple[str, str]:
        """What shows whether a setting acts: `PROVEN`, `WRONG`, `LATER` or `UNSEEN`, and words."""
        look = {"clocks": self._clock, "fan": self._fan}.get(what, self._persistence)
        answers = [look(number, share) for number in range(len(self._handles))]
        wanted = (WRONG, PROVEN, LATER, UNSEEN) if what == "clocks" else (WRONG, LATER, PROVEN)
        return next(answer for state in wanted for answer in answers if answer[0] == state)

    def _clock(self, number: int, share: float) -> tuple[str, str]:
        """NVML reports the present clock and not the lock.

        A clock above the cap proves that there is none; one near it, of a GPU at work, that there
        is one. An idle GPU is below any cap.
        """
        handle = self._handles[number]
        mhz = self._number("nvmlDeviceGetClockInfo", handle, ctypes.c_uint(_SM_CLOCK))
        cap = self._cap_mhz(handle, share)
        if mhz > cap + _CLOCK_STEP_MHZ:
            return WRONG, f"GPU {number} runs at {mhz} MHz, above {cap} MHz"
        busy = (ctypes.c_uint * 2)()  # of the GPU and of its memory, per cent
        self._call("nvmlDeviceGetUtilizationRates", handle, ctypes.byref(busy))
        if not busy[0]:
            return UNSEEN, f"GPU {number} is idle: a clock of {mhz} MHz shows no cap"
        if mhz < _NEAR_CAP * cap:
            return UNSEEN, f"GPU {number} runs at {mhz} MHz, far below the cap of {cap} MHz"
        return PROVEN, ""

    def _fan(self, number: int, share: float) -> tuple[str, str]:
        handle, wanted = self._handles[number], round(100 * share)
        for fan in self._fans(handle):
            target, speed = (
                self._number(name, handle, ctypes.c_uint(fan))
                for name in ("nvmlDeviceGetTargetFanSpeed", "nvmlDeviceGetFanSpeed_v2")
            )
            if target != wanted:
                return WRONG, f"a fan of GPU {number} is to run at {target} %, not at {wanted} %"
            if speed < wanted - _FAN_TOLERANCE:
                return LATER, f"a fan of GPU {number} runs at {speed} %, not at {wanted} % yet"
        return PROVEN, ""

    def _persistence(self, number: int, share: float) -> tuple[str, str]:
        if self._number("nvmlDeviceGetPersistenceMode", self._handles[number]):
            return PROVEN, ""
        return WRONG, f"GPU {number} is not in persistence mode"

    def await_fans(self, share: float) -> None:
        """Return when the fans run as fast as set, or after some seconds."""
        until = time.monotonic() + _FAN_WAIT_S
        while self.seen("fan", share)[0] == LATER and time.monotonic() < until:
            time.sleep(0.1)


def hold(what: str, share: float) -> None:
    """Set, report it, wait until the input ends, reset."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    try:
        with Gpus() as gpus:
            before = gpus.persistence() if what == "persistence" else [0] * 1024
            try:
                gpus.set(what, share)
                if what == "fan":
                    gpus.await_fans(share)
                os.write(1, b"ready\n")
                os.read(0, 1)
            finally:
                try:
                    gpus.reset(what, before)
                except NvmlError:
                    if what != "fan":
                        raise
    except NvmlError as error:
        with suppress(OSError):
            os.write(1, f"{error}\n".encode())
        sys.exit(1)


if __name__ == "__main__":
    hold(sys.argv[1], float(sys.argv[2]))
