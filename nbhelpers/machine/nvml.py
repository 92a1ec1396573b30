"""NVIDIA's management library by ctypes: no package, no process; the library is part of the driver.

Owns the binding: opening it, calling it, its errors. It imports the standard library only, for a
process without this package loads it by its path, too.
"""

import ctypes
from contextlib import suppress
from typing import Any

LIBRARY = "libnvidia-ml.so.1"


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
