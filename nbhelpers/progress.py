"""What long work shows: what it does, how far it is, what is left. Owns the tasks and the
places where their line is shown.

Library code begins a `task` and says how far it is; only the reporter in use writes anything. There
is no thread and no timer: a line changes only when the work says something, and work that measures
says something only between two runs.
"""

import contextlib
import html
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from operator import length_hint
from typing import TypeVar, Union

from .errors import printable

HEAD = "NOISEBOOK_PROGRESS"  # the argument of `stage_head`, in a stage's kernel's environment
EVERY_S = 0.5
LONG_S = 2.0  # what takes longer is shown
PLAIN_EVERY_S = 30.0
_PLAIN_COLUMNS = 160
_Item = TypeVar("_Item")
_Seconds = Callable[[], float] | float | None
Reporter = Union["Stream", "Notebook"]  # where the line is shown


class Task:
    """Something that takes a while.

    Parameters
    ----------
    title
        What is being done.
    total
        How many of `unit` there are; None: not known.
    unit
        Plural, "runs"; empty: only the numbers are shown.
    """

    def __init__(self, title: str, total: int | None = None, unit: str = ""):
        self.title, self.total, self.unit = title, total, unit
        self.done, self.began_s = 0, time.monotonic()
        self._left: _Seconds = None

    def at(self, done: int, seconds_left: _Seconds = None, title: str = "") -> None:
        """Say how far it is.

        Parameters
        ----------
        done
            Number that is done of the total.
        seconds_left
            Or what works it out, called only when the line is shown; None: in proportion to the
            time so far.
        title
            Where it changed.
        """
        self.done, self._left = done, seconds_left
        changed, self.title = title not in ("", self.title), title or self.title
        _show(self, urgent=changed)

    def advance(self, by: int = 1) -> None:
        """So many more are done."""
        self.at(self.done + by)

    def line(self) -> str:
        """Title, how far, and the time left; "nbody: 34 of 100 runs, 12 s left"."""
        left = self._seconds_left() if self.done != self.total else None
        text = self.title
        if self.total is not None:
            text += f": {self.done:,} of {self.total:,}{self.unit and f' {self.unit}'}"
        return text if left is None else f"{text}, {readable(left)} left"

    def summary(self) -> str:
        """What it was and how long it took; "nbody: 100 runs in 41 s"."""
        took = readable(time.monotonic() - self.began_s)
        if not self.done:
            return f"{self.title}: {took}"
        return f"{self.title}: {self.done:,}{self.unit and f' {self.unit}'} in {took}"

    def _seconds_left(self) -> float | None:
        if self._left is not None:
            left = self._left() if callable(self._left) else self._left
            return left if left == left else None  # NaN: nothing is known yet
        spent_s = time.monotonic() - self.began_s
        if not self.total or not 0 < self.done < self.total or spent_s <= EVERY_S:
            return None
        return spent_s / self.done * (self.total - self.done)


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


def stage_head(stage: str) -> str:
    """What stands before each line of a stage: its name, and how long it takes; of one that takes
    longer, how long it has taken.

    Parameters
    ----------
    stage
        Name; and behind blanks the expected seconds, and when it began (CLOCK_MONOTONIC), in s.

    Examples
    --------
    >>> now = time.monotonic()
    >>> stage_head(f"15-account 90 {now}"), stage_head(f"15-account 90 {now - 7200}")
    ('15-account (about 90 s): ', '15-account (2.0 h, of 90 s expected): ')
    >>> stage_head("15-account")
    '15-account: '
    """
    name, *expected = stage.split()
    if not expected:
        return f"{name}: "
    seconds, began_s = map(float, expected)
    spent_s = time.monotonic() - began_s
    if spent_s > seconds:
        return f"{name} ({readable(spent_s)}, of {readable(seconds)} expected): "
    return f"{name} (about {readable(seconds)}): "


@contextlib.contextmanager
def task(
    title: str, total: int | None = None, unit: str = "", urgent: bool = False
) -> Iterator[Task]:
    """Show something for as long as a `with` block takes; tasks within it are shown behind it.

    If it took two seconds or more, a short line of what it was stays.

    Parameters
    ----------
    title, total, unit
        The arguments of `Task`.
    urgent
        Show it at once: nothing can be said for an unknown time, as in a measured run or a wait.

    Examples
    --------
    >>> with task("reading", total=3, unit="files") as reading:
    ...     for name in ("a", "b", "c"):
    ...         reading.advance()
    """
    new = Task(title, total, unit)
    # lines of several threads would overwrite each other
    if threading.current_thread() is threading.main_thread():
        if not _state.is_known:
            _state.is_known, _state.reporter = True, _found()
        if not _state.stack and _state.reporter:
            _state.next_s = new.began_s + _state.reporter.after_s
        _state.stack.append(new)
        _show(new, urgent)
    try:
        yield new
    finally:
        _end(new)


def each(
    items: Iterable[_Item], title: str, unit: str = "", total: int | None = None
) -> Iterator[_Item]:
    """The items, one by one, as a task."""
    with task(title, total or length_hint(items) or None, unit) as new:
        for item in items:
            yield item
            new.advance()


@contextlib.contextmanager
def reporting(reporter: Reporter | None) -> Iterator[None]:
    """Show progress there, for the length of a `with` block; None: nowhere."""
    before = _state.is_known, _state.reporter
    _state.is_known, _state.reporter = True, reporter
    try:
        yield
    finally:
        _state.is_known, _state.reporter = before


def for_command() -> contextlib.AbstractContextManager[None]:
    """Show progress as a command does: one line on a terminal's standard error, else a plain line
    every half minute.
    """
    return reporting(Stream(sys.stderr))


class _State:
    """The tasks that are under way in this process, and where they are shown."""

    def __init__(self) -> None:
        self.stack: list[Task] = []
        self.is_known = False  # the reporter: chosen by `reporting`, or found at the first task
        self.reporter: Reporter | None = None
        self.next_s, self.visible = 0.0, False  # when a line may be shown; whether one is

    def forked(self) -> None:
        """A child that goes on without exec() says nothing."""
        self.stack, self.is_known, self.reporter, self.visible = [], True, None, False


_state = _State()
os.register_at_fork(after_in_child=_state.forked)


def _show(shown: Task, urgent: bool) -> None:
    """At most twice a second, unless it is urgent; nothing before it has taken long enough."""
    reporter, now_s = _state.reporter, time.monotonic()
    if reporter is None or shown not in _state.stack or (now_s < _state.next_s and not urgent):
        return
    # a terminal that was closed must not end a measurement
    with contextlib.suppress(OSError, ValueError):
        reporter.show(" › ".join(one.line() for one in _state.stack), urgent)
    _state.next_s, _state.visible = time.monotonic() + EVERY_S, True


def _end(shown: Task) -> None:
    if shown not in _state.stack:  # another thread's, or of our parent before a fork
        return
    del _state.stack[_state.stack.index(shown) :]
    if _state.stack or not _state.visible or _state.reporter is None:
        return
    _state.visible = False
    long = time.monotonic() - shown.began_s >= LONG_S
    with contextlib.suppress(OSError, ValueError):
        _state.reporter.end(shown.summary() if long else "")


def _found() -> Reporter | None:
    """The terminal or log of `make paper`, the notebook, the terminal, or nowhere."""
    # taken out: the programs that are measured get the same environment with and without
    if head := os.environ.pop(HEAD, None):
        # sys.stderr is the notebook's
        return Stream(sys.__stderr__, 0.0, head=partial(stage_head, head))
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if getattr(shell, "kernel", None) is not None:
        return Notebook(shell)
    return Stream(sys.stderr) if _columns(sys.stderr) else None


class Stream:
    """One line at the bottom of a terminal, overwritten in place; elsewhere a line every
    `PLAIN_EVERY_S`, as a log wants it.

    Parameters
    ----------
    stream
        The terminal or the log.
    after_s
        How long something takes before it is shown.
    head
        Says what stands before each line; with it no line stays when something is over.
    """

    def __init__(self, stream, after_s: float = LONG_S, head: Callable[[], str] | None = None):
        self.stream, self.after_s, self.head = stream, after_s, head
        self._last_s, self._line = -PLAIN_EVERY_S, ""

    def show(self, line: str, urgent: bool = False) -> None:
        """Overwrite the line; or write it, if the last is long ago, or if it will stay."""
        head = self.head() if self.head else ""
        now_s, line = time.monotonic(), printable(head + line)
        if width := _columns(self.stream):
            line = line[: max(width - 1, 1)]
            self._write(f"\r{line.ljust(len(self._line))}")
        elif line == self._line or (now_s - self._last_s < PLAIN_EVERY_S and not urgent):
            return
        else:
            self._write(f"{line[:_PLAIN_COLUMNS]}\n")
        self._last_s, self._line = now_s, line

    def end(self, line: str) -> None:
        """Leave this line, or none."""
        line = "" if self.head else printable(line)
        if _columns(self.stream):
            self.show(line)
            self._write("\n" if line else "\r")
        elif line:
            self._write(f"{line[:_PLAIN_COLUMNS]}\n")
        self._line = ""

    def _write(self, text: str) -> None:
        self.stream.write(text)
        self.stream.flush()


def _columns(stream) -> int:
    """Columns of the terminal behind a stream, 80 where it does not say; 0: it is none."""
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError, AttributeError):
        return 0


class Notebook:
    """One output of a notebook's cell; at its end it holds a short line for each long task, and no
    HTML that needs a script.
    """

    after_s = LONG_S

    def __init__(self, shell):
        self.shell = shell
        self._cell, self._output, self._over = 0, None, ""  # number, output, what is over in it

    def show(self, line: str, urgent: bool = False) -> None:
        """Replace the line in the cell's output."""
        from IPython.display import HTML, display

        if self._cell != self.shell.execution_count:
            self._cell, self._output, self._over = self.shell.execution_count, None, ""
        shown = HTML(self._over + _as_html(line))
        if self._output is None:
            self._output = display(shown, display_id=True)
        else:
            self._output.update(shown)

    def end(self, line: str) -> None:
        """Leave this line, or none."""
        self._over += _as_html(line)
        self.show("")


def _as_html(line: str) -> str:
    small = f"<small>{html.escape(line)}</small>"
    return f"<div class='noisebook-progress'>{small}</div>" if line else ""
