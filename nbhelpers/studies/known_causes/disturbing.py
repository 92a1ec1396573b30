"""A thread of ours that does something to a program while it runs.

Owns when it begins and that it has ended before the program's pid can be somebody else's.
"""

import threading

from ...measurement import Attachment


class Disturbing(Attachment):
    """From the common start until the program has ended, a thread runs `_disturb`."""

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._pid = 0

    def armed(self, pid: int) -> None:
        self.close()
        self._stop.clear()
        self._pid = pid

    def released(self, t0_ns: int) -> None:
        self._thread = threading.Thread(
            target=self._disturb, args=(t0_ns,), name=type(self).__name__, daemon=True
        )
        self._thread.start()

    def _disturb(self, t0_ns: int) -> None:
        """Ends soon after `_stop` is set, or the process `_pid` has ended."""
        raise NotImplementedError

    def ended(self, pid: int) -> None:
        """Stops while the process is not reaped yet, so that its pid cannot be somebody else's."""
        self.close()

    def close(self) -> None:
        self._stop.set()
        if self._thread:
            self._thread.join()
            self._thread = None
