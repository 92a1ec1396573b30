"""Measuring in a process of its own, so that the notebook neither waits nor disturbs it.

Owns starting, stopping and going on. Each run is reported through a pipe: nothing polls
while a program is measured. The campaign takes the measuring lock, and keeps every finished run.
"""

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from ..errors import NoisebookError
from .session import FIRST, Session

PATIENCE_S = 10.0  # after a signal; and for what an ended process left in its pipe
_LAST_LINES = 12  # of what a failed process wrote


@dataclass(frozen=True)
class Progress:
    """How far a measurement is.

    Attributes
    ----------
    done, most
        Finished runs, and the most there can be.
    says
        What the stopping rule says.
    ended
        Nothing more will come.
    error
        Why it ended before it was done; empty if it did not.
    """

    done: int = 0
    most: int = 0
    says: str = ""
    ended: bool = False
    error: str = ""


OnProgress = Callable[[Progress], object]


class Measuring:
    """A measurement that runs beside the notebook.

    Parameters
    ----------
    session
        What is measured.
    step
        As in `Session.measure`.
    on_run
        Called with a `Progress` after each run and at the end, from a thread.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     session = Session(folder, "sleep 0.01", runs=3, layers=())
    ...     Measuring(session).wait().done
    3
    """

    def __init__(self, session: Session, step: str = FIRST, on_run: OnProgress = lambda at: None):
        self.progress = Progress(most=session.most_runs(step))
        self._on_run, self._stopped = on_run, False
        choices = session.save()
        self._errors = choices.with_suffix(".err")
        words = [sys.executable, "-m", "nbhelpers.workbench", step, str(choices)]
        pipe: dict[str, Any] = {"stdout": subprocess.PIPE, "text": True, "encoding": "utf-8"}
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(words, stderr=errors, start_new_session=True, **pipe)
        self._reports = threading.Thread(target=self._lines, daemon=True)
        self._end = threading.Thread(target=self._ended, daemon=True)
        self._reports.start()
        self._end.start()

    @property
    def is_running(self) -> bool:
        """Whether it still measures."""
        return not self.progress.ended

    def stop(self) -> None:
        """End it: the run that is being made is lost, the finished ones stay."""
        self._stopped = True
        threading.Thread(target=self._insist, daemon=True).start()

    def _insist(self) -> None:
        """A signal may be lost where Python cannot raise: in a destructor, in a callback."""
        for number in (signal.SIGINT, signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            self._process.send_signal(number)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(PATIENCE_S)
                return

    def wait(self) -> Progress:
        """Wait for the end."""
        self._end.join()
        return self.progress

    def _lines(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._update(**json.loads(line))

    def _ended(self) -> None:
        """The end is that of the process: what it left running may hold its pipe open."""
        status = self._process.wait()
        self._reports.join(PATIENCE_S)
        error = self.progress.error
        if not error and status and not self._stopped:
            written = self._errors.read_text(errors="replace").splitlines()
            error = "\n".join(written[-_LAST_LINES:]) or f"status {status}"
        self._update(ended=True, error=error)

    def _update(self, **changed: Any) -> None:
        self.progress = replace(self.progress, **changed)
        self._on_run(self.progress)


def measure_here(step: str, session: Session) -> int:
    """What the process does: measure, and print a line after each run.

    Returns
    -------
    Exit status: 0, also where it was stopped; 1 for an error, which the last line has.
    """

    def report(**changed: object) -> None:
        print(json.dumps(changed), flush=True)

    try:
        session.measure(step, lambda done, most, says: report(done=done, most=most, says=says))
        says = session.rule_says().reason if step == FIRST else ""
    except KeyboardInterrupt:
        says = "stopped; every finished run is on disk"
    except NoisebookError as error:
        report(error=str(error))
        return 1
    # a run may have been written and not yet reported
    report(done=len(session.recorded(session.name_of(step))), says=says)
    return 0
