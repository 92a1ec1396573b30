"""Bounded reading of files from elsewhere: how many bytes, packed and unpacked, how deep, and that
they are regular files; an error names the file and what to do.

Owns how a file from elsewhere is opened, and JSON, YAML, CSV and Parquet from it; nothing here
knows what is in a file.
"""

import gzip
import io
import json
import os
import resource
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from .errors import InputError, NoisebookError

if TYPE_CHECKING:
    import pandas as pd

MOST_BYTES = 2 << 30  # of a file of data, after unpacking: a damaged one must not fill the memory
MOST_TABLE_BYTES = 512 << 20  # of a table of Parquet, in memory
# Bytes unpacked for one packed; our data have 3 to 20, and small files may be anything.
MOST_RATIO, SMALL_BYTES, SMALL_TABLE_BYTES = 50, 8 << 20, 64 << 20
MOST_VALUES = 2_000_000  # of JSON: see `few`
MOST_COLUMNS = 20_000  # pandas takes seconds for so many, and their square for more
MOST_YAML_BYTES = 256 << 10  # ours have up to 50 KiB
MOST_YAML_DEPTH, MOST_YAML_WORD = 50, 10_000
_CHUNK = 1 << 22
_ROWS = 1 << 16  # of a batch
_SPARE = 160 << 20
_LIMITED = threading.RLock()  # a limit holds for all threads
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
def refusing(problem: str, path: str | Path) -> Iterator[None]:
    """Whatever the system or a parser says of a file becomes an InputError that names it."""
    try:
        yield
    except NoisebookError:
        raise
    except Exception as error:
        said = getattr(error, "strerror", None)
        reason = said or " ".join(str(error).split())[:300] or type(error).__name__
        fix = None if said else "get the file again, it is probably damaged or cut short"
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


def few(content: bytes, path: str | Path, what: str, *marks: bytes) -> bytes:
    """The content of a file in which there are not many more of these marks than its size suggests:
    of packed JSON each begins a value of up to 240 bytes.

    Raises
    ------
    InputError
        More than 2 million, and more than three for each byte on disk.
    """
    most = max(MOST_VALUES, 3 * Path(path).stat().st_size)
    if sum(map(content.count, marks)) > most:
        raise too_much(f"the {what} has more than {most:,} values", path)
    return content


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
    return parsed_json(few(content, path, what, b"[", b"{", b","), path, what)


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
    with refusing(f"the {what} is not YAML", path):
        return load_yaml(text, loader, path, what)


def load_yaml(text: str, loader_class: Any, path: str | Path, what: str) -> Any:
    """The value of YAML that is small and has no aliases; errors of YAML stay as they are.

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
            quoted = isinstance(event, yaml.ScalarEvent) and event.implicit[1]  # and without !!int
            plain = "" if quoted else getattr(event, "value", "")
            if len(plain) > MOST_YAML_WORD:  # 1:59:59:… is a number, which takes its square in time
                raise too_much(f"the {what} has a word of {len(plain):,} letters", path)
            level += isinstance(event, yaml.CollectionStartEvent)
            level -= isinstance(event, yaml.CollectionEndEvent)
            if level > MOST_YAML_DEPTH:
                raise too_much(f"the {what} has more than {MOST_YAML_DEPTH} levels", path)
    return yaml.load(text, loader_class)  # nosec B506 (a SafeLoader)


def read_csv(
    path: str | Path, what: str = "table", most: int = MOST_BYTES, **options: Any
) -> "pd.DataFrame":
    """Read a CSV file, packed or not; `options` are those of `pandas.read_csv`.

    Raises
    ------
    InputError
        The file is missing, unreadable, larger than `most` bytes, of more than 20,000 columns or no
        such table.
    """
    import pandas as pd

    content = read_bytes(path, what, most)
    decoded(content, path, what)  # the byte, where pandas names none
    columns = _columns(content, options.get("sep", ","), options.get("comment"))
    if columns > MOST_COLUMNS:
        raise too_much(f"the {what} has {columns:,} columns, more than {MOST_COLUMNS:,}", path)
    with refusing(f"not a readable {what}", path):
        return pd.read_csv(io.BytesIO(content), **options)


def _columns(content: bytes, separator: str, comment: str | None) -> int:
    """How many names the first line has that is no comment."""
    for line in io.BytesIO(content):
        if line.strip() and not (comment and line.startswith(comment.encode())):
            return line.count(separator.encode()) + 1
    return 0


def read_parquet(
    path: str | Path, what: str = "table", most: int = MOST_TABLE_BYTES
) -> "pd.DataFrame":
    """Read a Parquet file.

    It is unpacked batch by batch, and no further than `most` or 50 times its size (but always
    64 MiB); meanwhile this process finds no more memory than twice that and 160 MiB. 600 bytes of
    such a file may hold one text of 18 kB 60,000 times, and what its footer says of its size need
    not be true.

    Raises
    ------
    InputError
        The file is missing, unreadable, larger than `most` bytes, packed or unpacked, or no such
        table.
    """
    with refusing(f"not a readable {what}", path):
        most = min(most, max(MOST_RATIO * Path(path).stat().st_size, SMALL_TABLE_BYTES))
        with _little_memory(path, what, most):
            table = unpacked_parquet(path, what, most)
            return table.to_pandas(split_blocks=True, self_destruct=True)


def unpacked_parquet(
    path: str | Path,
    what: str = "table",
    most: int = MOST_TABLE_BYTES,
    columns: list[str] | None = None,
) -> Any:
    """The `pyarrow.Table` of a Parquet file, or of columns of it, that becomes no larger than
    `most` bytes in memory.
    """
    from pyarrow import Table, parquet

    with (
        refusing(f"not a readable {what}", path),
        open_regular(path, what, most) as file,
        _little_memory(path, what, most),
    ):
        size, batches = 0, []
        with parquet.ParquetFile(file, pre_buffer=False) as packed:
            for batch in packed.iter_batches(_ROWS, columns=columns, use_threads=False):
                as_pandas = 8 * batch.num_rows * batch.num_columns
                size += max(batch.nbytes, as_pandas)
                if size > most:
                    raise too_much(f"the {what} is larger than {most:,} bytes in memory", path)
                batches.append(batch)
            empty = packed.schema_arrow.empty_table().select(columns or packed.schema_arrow.names)
            return Table.from_batches(batches, empty.schema).unify_dictionaries()


@contextmanager
def _little_memory(path: str | Path, what: str, most: int) -> Iterator[None]:
    """This process finds no more memory than for a table of `most` bytes and its copy."""
    import pyarrow

    with _LIMITED:
        before, pool = resource.getrlimit(resource.RLIMIT_AS), pyarrow.default_memory_pool()
        pyarrow.allocate_buffer(64)  # with the first, this pool reserves a GiB of addresses
        taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        limits = [taken + 2 * most + _SPARE, *(one for one in before if one >= 0)]
        pyarrow.set_memory_pool(pyarrow.system_memory_pool())
        resource.setrlimit(resource.RLIMIT_AS, (min(limits), before[1]))
        try:
            yield
        except MemoryError:
            raise too_much(f"the {what} is larger than {most:,} bytes in memory", path) from None
        finally:
            resource.setrlimit(resource.RLIMIT_AS, before)
            pyarrow.set_memory_pool(pool)
