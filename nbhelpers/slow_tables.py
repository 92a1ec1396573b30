"""Tables that take minutes, kept as CSV beside the data of a stage; a notebook asks for one by
`study.cached`.

Owns the file and its first lines: the key says what was asked for, and a table with another key is
not read.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from .files import digest, write_atomically
from .progress import task
from .reading import open_regular, read_csv

KEY, CODE = "# key: ", "# code: "  # the latter in tables recorded before version 0.4


def cached_table(
    path: str | Path,
    function: Callable[..., pd.DataFrame],
    *arguments: Any,
    recorded_only: bool = False,
    **options: Any,
) -> pd.DataFrame:
    """The table ``function(*arguments, **options)``, computed and written to a file.

    Parameters
    ----------
    path
        The CSV file.
    function
        Returns a table of numbers, texts and booleans, without an index of its own.
    recorded_only
        True (a recorded campaign): a table of the same key is read, whatever the code that computed
        it; any other is computed, and not written.
    arguments, options
        What the function is called with. They make the key. Of a schedule, noise or network the key
        has all fields, of their arrays shape and sums in four digits: the last bits of what is
        drawn at random differ between machines. A function counts by its name.

    Examples
    --------
    >>> import tempfile
    >>> squares = lambda most: pd.DataFrame({"square": np.arange(most) ** 2})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     cached_table(Path(folder) / "squares.csv", squares, 4)["square"].tolist()
    [0, 1, 4, 9]
    """
    path = Path(path)
    words = [(name, value) for name, value in sorted(options.items())]
    key = KEY + digest(*map(_text, [function, *arguments, *words]))
    if recorded_only and not (path.exists() and _head(path)[:1] == [key]):
        return function(*arguments, **options)
    if not recorded_only:
        with task(f"computing {path.stem}"):
            table = function(*arguments, **options)
        rows = table.to_csv(index=False, na_rep="nan")
        write_atomically(path, f"{key}\n{rows}")
    return read_csv(
        path, skiprows=len(_head(path)), engine="python", keep_default_na=False, na_values=["nan"]
    )


def _head(path: Path) -> list[str]:
    """The lines at the top of a table that are none of it."""
    with open_regular(path, "table") as file:
        lines = (line.decode(errors="replace").rstrip("\n") for line in file)
        return list(takewhile(lambda line: line.startswith((KEY, CODE)), lines))


def _text(value: object) -> str:
    """What a value says in the key: the same on every machine."""
    if isinstance(value, pd.DataFrame):
        return value.to_csv(index=False)
    if isinstance(value, partial):
        return _text([value.func, *value.args, value.keywords])
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_text(key)}: {_text(one)}" for key, one in value.items()) + "}"
    if isinstance(value, Sequence | np.ndarray) and not isinstance(value, str):
        return f"[{', '.join(map(_text, value))}]"
    if isinstance(value, np.generic):
        return repr(value.item())
    if is_dataclass(value) and not isinstance(value, type):
        parts = [_summary(getattr(value, one.name)) for one in fields(value) if one.compare]
        return f"{type(value).__name__}({', '.join(parts)})"
    name = getattr(value, "name", None) or getattr(value, "__name__", None)
    return str(name) if name else repr(value)


def _summary(value: object) -> str:
    """An array by its shape, sum and sum of squares; anything else as `_text` has it."""
    if isinstance(value, float):
        return f"{value:.9g}"
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "biuf":
        return _text(value)
    numbers = value.astype(float)
    return f"{value.shape} {numbers.sum():.4g} {np.square(numbers).sum():.4g}"
