"""Does a progress bar disturb the runs it tells of? Interleaved runs with and without a bar, and
who woke during them.

A short program runs N times (default 60) without a bar and N times with one on a terminal
(a pty that another process reads), as commands and stages have it. Printed: ratio of mean run times
with a 95 % bootstrap interval, updates, and how often the reading process and the threads of this
one were switched to between `armed` and the end of a run. A wake-up there is a fault.
"""

import os
import pty
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd

from nbhelpers import progress
from nbhelpers.measurement import Attachment, Campaign, Cell, finished
from nbhelpers.progress import reporting
from nbhelpers.statistics import bootstrap_ratio
from nbhelpers.workloads import nbody

RUNS, BLOCK, BODIES = int(sys.argv[1]) if sys.argv[1:] else 60, 5, 4000


class Switches(Attachment):
    """Context switches of other threads than the run's, from `armed` to the end: of the reader,
    and of this process but its main thread.
    """

    def __init__(self, reader: int | None):
        self.reader, self.at_start = reader, (0, 0)

    def armed(self, pid: int) -> None:
        self.at_start = self._now()

    def ended(self, pid: int) -> None:
        self.gone = tuple(after - before for before, after in zip(self.at_start, self._now()))

    def after(self, run: dict) -> dict:
        return {"reader_switches": self.gone[0], "own_switches": self.gone[1]}

    def _now(self) -> tuple[int, int]:
        return switches(self.reader) if self.reader else 0, switches(os.getpid(), but=os.getpid())


def switches(pid: int, but: int = 0) -> int:
    """Of all threads of a process."""
    texts = (
        (thread / "status").read_text()
        for thread in Path(f"/proc/{pid}/task").iterdir()
        if int(thread.name) != but
    )
    return sum(
        int(line.split()[1])
        for text in texts
        for line in text.splitlines()
        if "voluntary_ctxt_switches" in line
    )


class Counted:
    """A terminal that counts what is shown on it."""

    def __init__(self, terminal):
        self.terminal, self.shown = terminal, 0

    def __getattr__(self, name: str):
        return getattr(self.terminal, name)

    def write(self, text: str) -> int:
        self.shown += text.startswith("\r")
        return self.terminal.write(text)


def measure(terminal, reader: int | None, count: int) -> pd.DataFrame:
    with reporting(terminal):
        return finished(
            Campaign(
                None, [Cell("run", nbody(BODIES))], count, attachments=[Switches(reader)]
            ).run()
        )


def main() -> None:
    ours, theirs = pty.openpty()
    cat = subprocess.Popen(
        ["cat"], stdin=ours, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    places = {"none": (None, None), "terminal": (Counted(os.fdopen(theirs, "w")), cat.pid)}
    random, parts = np.random.default_rng(1), []
    measure(None, None, 3)  # warm
    for _ in range(RUNS // BLOCK):
        for name in random.permutation(list(places)):
            parts.append(measure(*places[name], BLOCK).assign(place=name))
    cat.kill()
    runs = pd.concat(parts, ignore_index=True)
    base = runs[runs.place == "none"]
    for name, (terminal, _) in list(places.items())[1:]:
        shown = runs[runs.place == name]
        ratio, (low, high) = (
            shown.seconds.mean() / base.seconds.mean(),
            bootstrap_ratio(shown.seconds, base.seconds),
        )
        print(
            f"{name:9} {len(shown)} runs and {len(base)} without: ratio of means {ratio:.4f} (95 %"
            f" {low:.4f} to {high:.4f}); {terminal.shown} updates (at most every {progress.EVERY_S}"
            f" s, and at the ends of each of {RUNS // BLOCK} campaigns); wake-ups during the runs:"
            f" reader {shown.reader_switches.sum()} in {(shown.reader_switches > 0).sum()} runs,"
            f" our other threads {shown.own_switches.sum()} (without a bar"
            f" {base.own_switches.sum()})"
        )


if __name__ == "__main__":
    main()
