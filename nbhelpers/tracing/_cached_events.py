"""Tables of a trace as Parquet, written when the trace is first read: its noise events, and what
the hypervisor took.

Owns where these files lie and when they hold. A file belongs to the content of its trace and to the
code that read it, both by digest; the trace stays what counts, and the file may be deleted.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ..errors import NoisebookError
from ..files import written
from ..places import results, shipped
from ..reading import require_parquet
from ._table import COLUMNS

if TYPE_CHECKING:
    import polars

FOLDER = ".events"  # hidden: what is recorded or packed for others leaves it out
EVENTS, STOLEN = "", ".stolen"  # tables of a trace: what their files' names end with
Reader = Callable[[Path, int], Mapping[str, pd.DataFrame]]  # path, run: all tables of a trace
_COLUMNS = {EVENTS: COLUMNS, STOLEN: (*COLUMNS, "slack_ns")}
_TEXTS = ("kind", "source", "policy", "interrupted")
_ABOUT = "noisebook"  # the key of the file's metadata
_CHUNK = 1 << 20
# what a file raises that is damaged where neither polars nor we look
_DAMAGED = (LookupError, ValueError, TypeError, AttributeError)


def table_of(path: Path, reader: Reader, run: int, which: str = EVENTS) -> pd.DataFrame:
    """A table of what `reader(path, run)` returns: read from its Parquet file, or from the trace,
    all of whose tables are then cached.

    Where the files cannot be written, the trace is read each time.
    """
    key = _key(path)
    found = _load(_place(path, key, which), key, run, which)
    if found is not None:
        return found
    tables = reader(path, run)
    for name, table in tables.items():
        _save(table, _place(path, key, name), key, name)
    return tables[which]


def is_cached(path: Path) -> bool:
    """Whether the events of a trace need not be read from it."""
    key = _key(path)
    return bool(key) and _known(_place(path, key, EVENTS), key) is not None


def _place(path: Path, key: str, which: str) -> Path:
    """Beside the trace; for one of the shipped data, which stay as they are, with the results."""
    if _within(path, shipped() / "data"):
        return results() / "events" / f"{key}{which}.parquet"
    return path.parent / FOLDER / f"{path.name.removesuffix('.gz')}{which}.parquet"


def _within(path: Path, folder: Path) -> bool:
    return path.resolve().is_relative_to(folder.resolve())


def _key(path: Path) -> str:
    """Digest of the trace and of the code that reads it; empty for what cannot be read."""
    digest = hashlib.sha256(_code())
    try:
        with open(path, "rb") as file:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
    except OSError:
        return ""
    return digest.hexdigest()


@cache
def _code() -> bytes:
    digest = hashlib.sha256()
    for module in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(module.read_bytes())
    return digest.digest()


def _numbers(which: str) -> list[str]:
    return [name for name in _COLUMNS[which] if name not in (*_TEXTS, "run")]


def _save(table: pd.DataFrame, file: Path, key: str, which: str) -> None:
    import polars

    about = _about(table, key, which)
    if about is None:
        return
    columns = {name: table[name].to_numpy() for name in _numbers(which)}
    codes = {name: table[name].cat.codes.to_numpy().astype(np.int32) for name in _TEXTS}
    try:
        with written(file) as target:
            polars.DataFrame(columns | codes).write_parquet(
                target, compression="zstd", compression_level=1, metadata={_ABOUT: about}
            )
    except (OSError, NoisebookError):
        return  # a folder that can only be read, a full disk: the trace is there


def _about(table: pd.DataFrame, key: str, which: str) -> str | None:
    """Key, categories and attributes as JSON; None for a table that JSON and whole numbers cannot
    hold exactly.
    """
    if not key or list(table.columns) != list(_COLUMNS[which]):
        return None
    categories = {name: table[name].cat.categories for name in _TEXTS}
    exact = all(index.dtype == "str" for index in categories.values()) and all(
        table[name].dtype == np.int64 for name in _numbers(which)
    )
    about = {
        "key": key,
        "categories": {name: index.tolist() for name, index in categories.items()},
        "attrs": table.attrs,
    }
    try:
        text = json.dumps(about)
    except (TypeError, ValueError):
        return None
    return text if exact and json.loads(text) == about else None


def _load(file: Path, key: str, run: int, which: str) -> pd.DataFrame | None:
    """The table of a file; None if there is none, or it is of another trace or damaged."""
    import polars

    about = _known(file, key)
    if not about:
        return None
    try:
        require_parquet(file)
        return _table(polars.read_parquet(file), about, run, which)
    except (NoisebookError, OSError, polars.exceptions.PolarsError, *_DAMAGED):
        return None


def _table(columns: "polars.DataFrame", about: dict, run: int, which: str) -> pd.DataFrame:
    numbers = {name: columns[name].to_numpy() for name in _numbers(which)}
    table = pd.DataFrame(numbers, copy=True)
    table["run"] = run
    for name in _TEXTS:
        categories = pd.Index(about["categories"][name], dtype="str")
        table[name] = pd.Categorical.from_codes(columns[name].to_numpy(), categories=categories)
    table = table[list(_COLUMNS[which])]
    table.attrs = about["attrs"]
    return table


def _known(file: Path, key: str) -> dict | None:
    """What the file says about its table; None if it is not of this key."""
    import polars

    if not key or not file.exists():
        return None
    try:
        about = json.loads(polars.read_parquet_metadata(file)[_ABOUT])
        return about if about["key"] == key else None
    except (OSError, polars.exceptions.PolarsError, *_DAMAGED):
        return None
