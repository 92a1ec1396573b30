"""Bounded reading of files from elsewhere: how many bytes, packed and unpacked, how deep, and that
they are regular files; an error names the file and what to do.

Owns how a file from elsewhere is opened, the child that reads what could grow, and JSON, YAML, CSV
and Parquet; nothing here knows what is in a file.
"""

import gc
import gzip
import io
import json
import os
import pickle  # nosec B403 (of ourselves)
import resource
import signal
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NoReturn

from .errors import InputError, NoisebookError

if TYPE_CHECKING:
    import pandas as pd

MOST_BYTES = 2 << 30  # of a file of data, after unpacking: a damaged one must not fill the memory
# Bytes unpacked for one packed; our data have 3 to 20, and small files may be anything.
MOST_RATIO, SMALL_BYTES = 50, 8 << 20
MOST_YAML_BYTES = 256 << 10  # ours have up to 50 KiB
MOST_YAML_DEPTH = 50
_CHUNK = 1 << 22
_HARMLESS = 256 << 10  # bytes of JSON, which become some 20 times as many in memory
_GZIP = b"\x1f\x8b"


def read_bytes(path: str | Path, what: str = "file", most: int = MOST_BYTES) -> bytes:
    """Read a regular file whole, unpacked if it is gzip (by its name or its first bytes).

    Parameters
    ----------
    path
        The file; one of the kernel's (/proc, /sys) is regular too.
    what
        What it is, for the message.
    most
        Bytes that it may have, packed and unpacked; no more than 50 unpacked for one packed, but
        always 8 MiB.

    Raises
    ------
    InputError
        It is missing, unreadable, a pipe, device or folder, damaged, or larger than `most`.
    """
    with refusing(f"cannot read the {what}", path), open_regular(path, what, most) as file:
        content = _at_most(file, path, what, most)
    if Path(path).suffix != ".gz" and content[:2] != _GZIP:
        return content
    most = min(most, max(MOST_RATIO * len(content), SMALL_BYTES))
    with refusing("a damaged packed file", path):
        return _at_most(gzip.GzipFile(fileobj=io.BytesIO(content)), path, what, most)


@contextmanager
def refusing(problem: str, path: str | Path, fix: str | None = None) -> Iterator[None]:
    """Whatever the system or a parser says of a file becomes an InputError that names it."""
    try:
        yield
    except NoisebookError:
        raise
    except MemoryError:
        raise too_much("reading it takes more memory than there is for it", path) from None
    except Exception as error:
        said = getattr(error, "strerror", None)
        reason = said or " ".join(str(error).split())[:300] or type(error).__name__
        fix = fix or (None if said else "get the file again, it is probably damaged or cut short")
        raise InputError(f"{problem}: {reason}", where=path, fix=fix) from None


def open_regular(path: str | Path, what: str, most: int = MOST_BYTES) -> BinaryIO:
    """A regular file of at most `most` bytes, open; it waits for nobody who may write into a pipe.

    Raises
    ------
    InputError
        It is a pipe, a device or a folder, or larger.
    OSError
        It cannot be opened.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    status = os.fstat(handle)
    if stat.S_ISREG(status.st_mode) and status.st_size <= most:
        return os.fdopen(handle, "rb")
    os.close(handle)
    if stat.S_ISREG(status.st_mode):
        raise too_much(f"the {what} is larger than {most:,} bytes", path)
    raise InputError(
        f"cannot read the {what}: this is no regular file",
        where=path,
        why="a pipe, a device or a folder may never end",
        fix="copy the content into a file and give its path",
    )


def pieces(file: Any, path: str | Path, what: str, most: int) -> Iterator[bytes]:
    """A file piece by piece, and an error in place of what is more than `most` bytes of it."""
    left = most
    while part := file.read(min(_CHUNK, left + 1)):
        left -= len(part)
        if left < 0:
            raise too_much(f"the {what} is larger than {most:,} bytes", path)
        yield part


def _at_most(file: Any, path: str | Path, what: str, most: int) -> bytes:
    whole = io.BytesIO()
    whole.writelines(pieces(file, path, what, most))
    return whole.getvalue()


def in_child(read: Callable[[], Any], path: str | Path, what: str, grows: int = MOST_BYTES) -> Any:
    """What `read()` returns, which reads a file in a forked child: whatever is in the file, it does
    not fill this process's memory, take its time or end it. The child may do what this process may.

    The child may have 128 MiB and 20 bytes for each that `grows`, but no more than 100 for each on
    disk; 10 s of CPU time and 10 s for each MB on disk; and ten times as long by the clock.

    Parameters
    ----------
    read
        Returns what can be pickled.
    path, what
        The file, and what it is, for messages.
    grows
        Bytes that may grow, unpacked. Up to 256 KiB there is no child: one takes 0.02 s to make.

    Raises
    ------
    InputError
        It took more, or the reader crashed; and what `read` raises.
    """
    if grows <= _HARMLESS:
        return read()
    size, found = os.stat(path).st_size, None
    memory, cpu_s = (128 << 20) + min(20 * grows, 100 * size), 10 + size // 100_000
    receiving, sending = os.pipe()
    if not (child := os.fork()):
        os.close(receiving)  # without a parent nothing is written
        _answer(read, sending, memory, cpu_s)
    os.close(sending)
    try:
        with suppress(EOFError, pickle.UnpicklingError), open(receiving, "rb") as pipe:
            found = pickle.load(pipe)  # nosec B301 (of ourselves)
    finally:
        os.kill(child, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if found is None or isinstance(found[1], MemoryError):
        by = "lack of memory" if status in (1, -signal.SIGKILL) else signal.Signals(-status).name
        bounds = f"it may take {cpu_s} s and {memory >> 20} MiB"
        raise too_much(f"reading the {what} was ended by {by}: {bounds}", path)
    if found[1]:
        raise found[1]
    return found[0]


def _answer(read: Callable[[], Any], sending: int, memory: int, cpu_s: int) -> NoReturn:
    """What the child does: it writes (answer, error), or nothing."""
    try:
        gc.disable()  # what the parent's objects do at their end is the parent's
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM):
            signal.signal(number, signal.SIG_DFL)
        if arrow := sys.modules.get("pyarrow"):  # its own pool reserves a GiB of addresses
            arrow.set_memory_pool(arrow.system_memory_pool())
        with suppress(OSError):
            Path("/proc/self/oom_score_adj").write_text("1000")  # it ends before its parent
        taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        limits = {resource.RLIMIT_AS: taken + memory, resource.RLIMIT_CPU: cpu_s}
        for kind, most in (limits | {resource.RLIMIT_CORE: 0}).items():
            hard = resource.getrlimit(kind)[1]
            resource.setrlimit(kind, (min(most, hard) if hard >= 0 else most, hard))
        signal.setitimer(signal.ITIMER_REAL, 10 * cpu_s)
        answer: tuple[Any, Exception | None]
        try:
            answer = read(), None
        except Exception as error:
            answer = None, error
        with open(sending, "wb") as pipe:
            pickle.dump(answer, pipe, pickle.HIGHEST_PROTOCOL)
    finally:
        os._exit(1)


def too_much(problem: str, path: str | Path) -> InputError:
    """The error of a file that would grow."""
    why = "it would fill the memory, or take for ever"
    fix = "give a smaller file, or split it; gzip -l says how large a packed one becomes"
    return InputError(problem, where=path, why=why, fix=fix)


def read_json(path: str | Path, what: str = "file", most: int = MOST_BYTES) -> Any:
    """Read JSON, packed or not; an error names the file, line and column.

    Raises
    ------
    InputError
        The file is missing, unreadable, larger than `most` bytes or not JSON.
    """
    content = read_bytes(path, what, most)
    return in_child(lambda: parsed_json(content, path, what), path, what, len(content))


def parsed_json(content: bytes, path: str | Path, what: str = "file", **options: Any) -> Any:
    """The value of JSON in UTF-8; `options` are those of `json.loads`.

    Raises
    ------
    InputError
        Not JSON, nested too deeply, or with a number of too many digits.
    """
    text = decoded(content, path, what)
    with refusing("not JSON", path):
        return json.loads(text, **options)


def decoded(content: bytes, path: str | Path, what: str = "file", encoding: str = "utf-8") -> str:
    """The text of a file; an error names the byte that is no UTF-8."""
    with refusing(f"the {what} is not UTF-8 text", path):
        return content.decode(encoding)


def read_yaml(path: str | Path, what: str, fast: bool = False) -> Any:
    """Read YAML; `fast`: by the parser in C, if it is here, which says less of where an error is.

    Raises
    ------
    InputError
        The file is missing, unreadable, larger than 256 KiB, not YAML, or too deep (see
        `load_yaml`); `what` is its name in the message.
    """
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader) if fast else yaml.SafeLoader
    text = decoded(read_bytes(path, what, MOST_YAML_BYTES), path, what)

    def load() -> Any:
        with refusing(f"the {what} is not YAML", path):
            return load_yaml(text, loader, path, what)

    return in_child(load, path, what, 16 * len(text))


def load_yaml(text: str, loader_class: Any, path: str | Path, what: str) -> Any:
    """The value of YAML, which whoever asked for it can walk: it is small, not deep, and has no
    aliases. Errors of YAML stay as they are.

    Raises
    ------
    InputError
        More than 256 KiB or 50 levels; an alias.
    """
    import yaml

    level = 0
    if len(text) > MOST_YAML_BYTES:
        raise too_much(f"the {what} is larger than {MOST_YAML_BYTES:,} bytes", path)
    with suppress(yaml.YAMLError):  # the loader says where
        for event in yaml.parse(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            if isinstance(event, yaml.AliasEvent):
                problem = f"the {what} has an alias (*{event.anchor}): write out what it stands for"
                raise too_much(problem, path)
            level += isinstance(event, yaml.CollectionStartEvent)
            level -= isinstance(event, yaml.CollectionEndEvent)
            if level > MOST_YAML_DEPTH:
                raise too_much(f"the {what} has more than {MOST_YAML_DEPTH} levels", path)
    return yaml.load(text, loader_class)  # nosec B506 (a SafeLoader)


def read_csv(
    path: str | Path, what: str = "table", most: int = MOST_BYTES, **options: Any
) -> "pd.DataFrame":
    """Read a CSV file, packed or not, in a child: pandas takes the square of the columns in time.

    `options` are those of `pandas.read_csv`.

    Raises
    ------
    InputError
        The file is missing, unreadable, larger than `most` bytes, no such table, or takes too much
        (see `in_child`).
    """
    import pandas as pd

    content = read_bytes(path, what, most)
    decoded(content, path, what)  # the byte, where pandas names none
    grows = 16 * len(content)  # 16 KiB of commas take a second: no child
    with refusing(f"not a readable {what}", path):
        return in_child(partial(pd.read_csv, io.BytesIO(content), **options), path, what, grows)


def read_parquet(
    path: str | Path, what: str = "table", columns: list[str] | None = None
) -> "pd.DataFrame":
    """Read a Parquet file, or columns of it, in a child.

    400 bytes of such a file may hold one text of 18 kB 65,000 times. What its footer says of its
    size need not be true.

    Raises
    ------
    InputError
        The file is missing, unreadable, larger than 2 GiB, no such table, or takes too much (see
        `in_child`).
    """
    from pyarrow import BufferReader, parquet

    content = read_bytes(path, what)

    def table() -> "pd.DataFrame":
        # threads have a stack each
        options: Any = {"columns": columns, "use_threads": False, "pre_buffer": False}
        found = parquet.read_table(BufferReader(content), **options)
        return found.to_pandas(use_threads=False, split_blocks=True, self_destruct=True)

    with refusing(f"not a readable {what}", path):
        return in_child(table, path, what)
