"""What a running stage shows: one line of its number, time and doings. Owns the pipe from its
kernel and the words of the line.

The kernel writes into the pipe between two runs only; the thread that reads it sleeps until then.
"""

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .minutes import Place
from .progress import FIFO, Reporter, Stream, readable

_BYTES = 1 << 16


class StageLine:
    """A reporter: the line of whatever runs, behind the stage's number, name and time.

    Parameters
    ----------
    stage
        Its name.
    place
        Where it stands in the plan; None: alone.
    out
        Where the line goes; None: standard error, as a terminal or as a log.
    """

    after_s = 0.0

    def __init__(self, stage: str, place: Place | None = None, out: Reporter | None = None):
        self.stage, self.place = stage, place or Place()
        self.out = out or Stream(sys.stderr, 0.0)
        self.began_s, self.cell = time.monotonic(), "starting"

    def show(self, line: str, urgent: bool = False) -> None:
        """Show what it does now."""
        self.out.show(f"{self._head()}  {line}", urgent)

    def end(self, line: str) -> None:
        """Something in it is over: the cell goes on."""
        self.show(self.cell)

    def at(self, cell: str) -> None:
        """The cell that begins."""
        self.cell = cell
        self.show(cell)

    def clear(self) -> None:
        """The stage is over."""
        self.out.end("")

    def _head(self) -> str:
        spent_s = time.monotonic() - self.began_s
        numbered = f"[{self.place.number}/{self.place.total}] {self.stage} {spent_s:.0f} s"
        if self.place.seconds is None:
            return numbered
        left_s = (self.place.seconds_after or 0.0) + max(0.0, self.place.seconds - spent_s)
        return (
            f"{numbered} of about {readable(self.place.seconds)}, {readable(left_s)} left in all:"
        )


@contextmanager
def listening(line: StageLine, folder: str | Path) -> Iterator[None]:
    """Within the block, what a kernel reports is shown; the pipe lies in `folder`."""
    path = Path(folder) / "progress"
    os.mkfifo(path, 0o600)
    # both ends: opening it waits for nobody, and a kernel's end is not the end
    pipe = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    thread = threading.Thread(target=_listen, args=(pipe, line), daemon=True)
    thread.start()
    os.environ[FIFO] = str(path)
    try:
        yield
    finally:
        os.environ.pop(FIFO, None)
        os.write(pipe, b"\n")  # an empty line: the last
        thread.join()
        os.close(pipe)


def _listen(pipe: int, line: StageLine) -> None:
    rest = b""
    while True:
        *whole, rest = (rest + os.read(pipe, _BYTES)).split(b"\n")
        for text in (one.decode(errors="replace") for one in whole):
            if not text:
                return
            line.end("") if text[0] == "." else line.show(text[1:], text[0] == "!")


def engine(line: StageLine) -> str:
    """Register papermill's engine once more, with a line for each cell that begins; its name."""
    from papermill.engines import NBClientEngine, papermill_engines

    class ShowsCells(NBClientEngine):
        @classmethod
        def execute_managed_notebook(cls, nb_man, kernel_name, **options):
            texts, begin = headings(nb_man.nb.cells), nb_man.cell_start
            nb_man.cell_start = lambda cell, cell_index=None, **more: (
                line.at(texts[cell_index]),
                begin(cell, cell_index, **more),
            )
            return super().execute_managed_notebook(nb_man, kernel_name, **options)

    papermill_engines.register("noisebook", ShowsCells)
    return "noisebook"


def headings(cells: list) -> list[str]:
    """For each cell the heading that it stands under, and which of the code cells it is."""
    texts, heading, number = [], "", 0
    total = sum(cell["cell_type"] == "code" for cell in cells)
    for cell in cells:
        lines = "".join(cell["source"]).splitlines()
        if cell["cell_type"] == "markdown":
            heading = next((one.lstrip("# ") for one in lines if one.startswith("#")), heading)
        number += cell["cell_type"] == "code"
        texts.append(f"{heading} (cell {number} of {total})")
    return texts
