"""What long work shows: what it does, how far it is, what is left. Owns where bars of tqdm are
shown: on a terminal, in a notebook, and as lines in a log.

Library code begins a `task` and says how far it is. There is no thread and no timer: a bar changes
only when the work says something, and work that measures says something only between two runs.
"""

import contextlib
import html
import os
import sys
import threading
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from operator import length_hint
from typing import Any, TypeVar

from .errors import printable

HEAD = "NOISEBOOK_PROGRESS"  # what stands before each line of a stage, for its kernel
EVERY_S = 0.5
LONG_S = 2.0  # what takes longer is shown
_Item = TypeVar("_Item")
_Place = tuple[Any, str]  # a file for tqdm, None: nowhere; and what stands before each line
_NOWHERE: _Place = (None, "")
_places: list[_Place] = []  # the last counts; where there is none, it is found
os.register_at_fork(after_in_child=lambda: _places.append(_NOWHERE))


def readable(seconds: float) -> str:
    """A length of time for people.

    >>> readable(81), readable(600), readable(7800), readable(172800)
    ('81 s', '10 min', '2.2 h', '2.0 days')
    """
    if seconds < 120:
        return f"{seconds:.{int(seconds < 9.5)}f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 172_800 else f"{seconds / 86_400:.1f} days"


@contextlib.contextmanager
def task(
    title: str, total: int | None = None, unit: str = "", urgent: bool = False
) -> Iterator[Any]:
    """Show something for as long as a `with` block takes, as a bar of tqdm: `update(1)` says that
    one more is done, `set_description_str` that another step of it begins.

    If it took two seconds or more, a short line of what it was stays.

    Parameters
    ----------
    title
        What is being done.
    total
        How many of `unit` there are; None: not known.
    unit
        Plural, "runs"; empty: only the numbers are shown.
    urgent
        Show it at once: nothing can be said for an unknown time, as in a measured run or a wait.

    Examples
    --------
    >>> with task("reading", total=3, unit="files") as reading:
    ...     for name in ("a", "b", "c"):
    ...         reading.update(1)
    """
    # lines of several threads would overwrite each other
    own = threading.current_thread() is threading.main_thread()
    file, head = (_places[-1] if _places else _found()) if own else _NOWHERE
    counted, other = "{l_bar}{bar}| {n_fmt}/{total_fmt}{unit} [{elapsed}<{remaining}]", "{desc}"
    if isinstance(file, _Log):
        counted = "{desc}: {total_fmt}{unit}"
    elif unit:
        other = "{desc}: {n_fmt}{unit}"
    bar = _tqdm()(
        desc=printable(title),
        total=total,
        unit=unit and f" {unit}",
        bar_format=head + (counted if total else other),
        file=file,
        disable=file is None,
        ncols=_columns(file),
        nrows=20,
        mininterval=EVERY_S,
        miniters=1,
        delay=0 if urgent else LONG_S,
        leave=False,
    )
    try:
        yield bar
    finally:
        if bar.format_dict["elapsed"] >= LONG_S and not head:
            bar.set_description_str(printable(title), refresh=False)
            bar.bar_format = "{desc}: {n_fmt}{unit} in {elapsed}" if bar.n else "{desc}: {elapsed}"
            if isinstance(file, _Log):
                bar.refresh()
            else:
                bar.leave = None  # stays, where it is no part of another
        bar.close()


def each(
    items: Iterable[_Item], title: str, unit: str = "", total: int | None = None
) -> Iterator[_Item]:
    """The items, one by one, as a task."""
    with task(title, total or length_hint(items) or None, unit) as bar:
        for item in items:
            yield item
            bar.update(1)


@contextlib.contextmanager
def reporting(stream: Any, head: str = "") -> Iterator[None]:
    """Show progress there, for the length of a `with` block.

    Parameters
    ----------
    stream
        A terminal or a log; None: nowhere.
    head
        What stands before each line; with it no line stays when something is over.
    """
    _places.append((stream if stream is None or _columns(stream) else _Log(stream), head))
    try:
        yield
    finally:
        _places.pop()


def for_command() -> contextlib.AbstractContextManager[None]:
    """Show progress as a command does: on standard error, a terminal or a log."""
    return reporting(sys.stderr)


def _found() -> _Place:
    """The terminal or log of `make paper`, the notebook, the terminal, or nowhere."""
    # taken out: the programs that are measured get the same environment with and without
    if head := os.environ.pop(HEAD, None):
        log = sys.__stderr__  # sys.stderr is the notebook's
        _places.append((log if _columns(log) else _Log(log), head))
        return _places[-1]
    shell: Any = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if getattr(shell, "kernel", None) is not None:
        return _cell(shell.execution_count), ""
    return (sys.stderr, "") if _columns(sys.stderr) else _NOWHERE


def _columns(file: Any) -> int | None:
    """Columns that a terminal has for a bar, 79 where it does not say; None: it is none."""
    try:
        return (os.get_terminal_size(file.fileno()).columns or 80) - 1
    except (OSError, ValueError, AttributeError):
        return None


@cache
def _tqdm() -> Any:
    """The class of bars, without the thread that would look at them during runs, and with a lock
    that is no semaphore of the system.
    """
    from tqdm import tqdm

    tqdm.monitor_interval = 0
    tqdm.set_lock(threading.RLock())
    return tqdm


class _Screen:
    """What tqdm takes for a terminal."""

    encoding, _row = "utf-8", 0

    def write(self, text: str) -> None:
        """Rows are left by line feeds and cursor keys, and written after a carriage return."""
        self._row += text.count("\n") - text.count("\x1b[A")
        if text.startswith("\r"):
            self.show(self._row, text.strip())

    def show(self, row: int, line: str) -> None:
        """Show a row's new text."""

    def flush(self) -> None:
        """What is written is shown already."""


class _Log(_Screen):
    """A log: what is no part of another task gets a line when it begins, and when it has ended."""

    def __init__(self, stream: Any):
        self.stream, self._last = stream, ""

    def show(self, row: int, line: str) -> None:
        if row or line in ("", self._last):
            return
        self._last = line
        # a log that was closed must not end a measurement
        with contextlib.suppress(OSError, ValueError):
            self.stream.write(f"{line}\n")
            self.stream.flush()


class _Cell(_Screen):
    """The output of a notebook's cell, in HTML that needs no script: tqdm's own bars for notebooks
    are blank where one is only read.
    """

    def __init__(self) -> None:
        self._rows: dict[int, str] = {}
        self._output: Any = None

    def show(self, row: int, line: str) -> None:
        from IPython.display import HTML, display

        self._rows[row] = html.escape(line)
        lines = "\n".join(line for _, line in sorted(self._rows.items()) if line)
        shown = HTML(f"<pre class='noisebook-progress'>{lines}</pre>")
        if self._output is None:
            self._output = display(shown, display_id=True)
        else:
            self._output.update(shown)


@lru_cache(1)
def _cell(number: int) -> _Cell:
    """The output of the cell that runs now."""
    return _Cell()
