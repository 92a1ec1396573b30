"""Noise events of a trace as Parquet, written when the trace is first read.

Owns where these files lie and when they hold. A file belongs to the content of its trace and to the
code that read it, both by digest; the trace stays what counts, and the file may be deleted.
"""

import hashlib
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from ..errors import NoisebookError
from ..files import written
from ..places import results, shipped
from ._table import COLUMNS

FOLDER = ".events"  # hidden: what is recorded or packed for others leaves it out
_TEXTS = ("kind", "source", "policy", "interrupted")
_NUMBERS = tuple(name for name in COLUMNS if name not in (*_TEXTS, "run"))
_ABOUT = "noisebook"  # the key of the file's metadata
_CHUNK = 1 << 20


def events_of(path: Path, reader: Callable[..., pd.DataFrame], run: int) -> pd.DataFrame:
    """What `reader(path, run=run)` returns: read from the Parquet file, or from the trace, which
    then gets one.

    Where the file cannot be written, the trace is read each time.
    """
    key = _key(path)
    file = _place(path, key)
    events = _load(file, key, run)
    if events is None:
        events = reader(path, run=run)
        _save(events, file, key)
    return events


def is_cached(path: Path) -> bool:
    """Whether the events of a trace need not be read from it."""
    key = _key(path)
    return bool(key) and _known(_place(path, key), key) is not None


def _place(path: Path, key: str) -> Path:
    """Beside the trace; for one of the shipped data, which stay as they are, with the results."""
    if _within(path, shipped() / "data"):
        return results() / "events" / f"{key}.parquet"
    return path.parent / FOLDER / f"{path.name.removesuffix('.gz')}.parquet"


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


def _save(events: pd.DataFrame, file: Path, key: str) -> None:
    import polars

    about = _about(events, key)
    if about is None:
        return
    columns = {name: events[name].to_numpy() for name in _NUMBERS}
    codes = {name: events[name].cat.codes.to_numpy().astype(np.int32) for name in _TEXTS}
    try:
        with written(file) as target:
            polars.DataFrame(columns | codes).write_parquet(
                target, compression="zstd", compression_level=1, metadata={_ABOUT: about}
            )
    except (OSError, NoisebookError):
        return  # a folder that can only be read, a full disk: the trace is there


def _about(events: pd.DataFrame, key: str) -> str | None:
    """Key, categories and attributes as JSON; None for a table that JSON and whole numbers cannot
    hold exactly.
    """
    if not key or list(events.columns) != list(COLUMNS):
        return None
    categories = {name: events[name].cat.categories for name in _TEXTS}
    exact = all(index.dtype == "str" for index in categories.values()) and all(
        events[name].dtype == np.int64 for name in _NUMBERS
    )
    about = {
        "key": key,
        "categories": {name: index.tolist() for name, index in categories.items()},
        "attrs": events.attrs,
    }
    try:
        text = json.dumps(about)
    except (TypeError, ValueError):
        return None
    return text if exact and json.loads(text) == about else None


def _load(file: Path, key: str, run: int) -> pd.DataFrame | None:
    """The table of a file; None if there is none, or it is of another trace or damaged."""
    import polars

    about = _known(file, key)
    if not about:
        return None
    try:
        columns = polars.read_parquet(file)
    except (OSError, polars.exceptions.PolarsError):
        return None
    table = pd.DataFrame({name: columns[name].to_numpy() for name in _NUMBERS}, copy=True)
    table["run"] = run
    for name in _TEXTS:
        categories = pd.Index(about["categories"][name], dtype="str")
        table[name] = pd.Categorical.from_codes(columns[name].to_numpy(), categories=categories)
    table = table[list(COLUMNS)]
    table.attrs = about["attrs"]
    return table


def _known(file: Path, key: str) -> dict | None:
    """What the file says about its table; None if it is not of this key."""
    import polars

    if not key or not file.exists():
        return None
    try:
        about = json.loads(polars.read_parquet_metadata(file)[_ABOUT])
    except (OSError, KeyError, ValueError, polars.exceptions.PolarsError):
        return None
    return about if about.get("key") == key else None
