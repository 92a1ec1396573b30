"""Looks at a running process now and then: a thread that sleeps in between."""

import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress

# after the start; then after twice the time each, so that a long run is hardly disturbed
_FIRST_LOOK_S = 0.002


class Watch:
    """A thread that looks at a process while it runs, at doubling intervals, until `end`.

    Parameters
    ----------
    pid
        The process, which waits at the barrier.
    look
        Called with it.
    """

    def __init__(self, pid: int, look: Callable[[int], None]):
        self._pid = pid
        self._look = look
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._pidfd = os.pidfd_open(pid)

    def begin(self, t0_ns: int) -> None:
        """The process starts at t0."""
        self._thread = threading.Thread(
            target=self._go, args=(t0_ns,), name="watch of a run", daemon=True
        )
        self._thread.start()

    def _go(self, t0_ns: int) -> None:
        after_s = _FIRST_LOOK_S
        while True:
            wait_s = (t0_ns - time.monotonic_ns()) * 1e-9 + after_s
            if self._stop.wait(max(0.0, wait_s)) or not self._exists():
                return
            self._look(self._pid)
            after_s = max(2 * after_s, (time.monotonic_ns() - t0_ns) * 1e-9 + _FIRST_LOOK_S)

    def _exists(self) -> bool:
        """By the pidfd, since a pid may be somebody else's by now."""
        with suppress(PermissionError):
            try:
                signal.pidfd_send_signal(self._pidfd, 0)
            except ProcessLookupError:
                return False
        return True

    def end(self) -> None:
        """No look follows."""
        self._stop.set()
        if self._thread:
            self._thread.join()
        os.close(self._pidfd)
