"""Tables of long simulations, cached as CSV: the recorded campaign shows them at full size on any
machine, without the minutes that they took.

Owns the files, and the key that says what was asked for: a table with another key is not used. A
second line says by which state of the code it was computed (`nbhelpers.code_state`).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from ...code_state import KEY, code_line, head_of
from ...files import digest, write_atomically
from ...progress import task
from ...reading import read_csv
from ...simulation.noise import Detours

Study = Callable[..., pd.DataFrame]


@dataclass(frozen=True)
class Cache:
    """The cached tables of a stage.

    Seeds are arguments, so a table that is read and one that is computed are the same, but for a
    trace that one machine has and another has not.

    Parameters
    ----------
    folder
        Of the tables, NAME.csv each.
    recorded_only
        False: every table is computed and cached. True (a recorded campaign): a table of the same
        key is read, whatever the code that computed it; the top of the page says which tables are
        of another state of the code. Any other is computed, and not cached.
    """

    folder: Path
    recorded_only: bool = False

    def table(self, name: str, study: Study, *arguments: object, **options: object) -> pd.DataFrame:
        """The table `study(*arguments, **options)`.

        Parameters
        ----------
        name
            Of the file.
        study
            Returns a table of numbers, texts and booleans, without an index of its own.
        arguments, options
            Of `study`.
        """
        path, key = Path(self.folder) / f"{name}.csv", cache_key(study, *arguments, **options)
        if not self.recorded_only:
            with task(f"simulating {name}"):
                table = study(*arguments, **options)
            code = code_line(_modules_of([study, arguments, options]))
            rows = table.to_csv(index=False, na_rep="nan")
            write_atomically(path, f"{KEY}{key}\n{code}\n{rows}")
        elif not path.exists() or head_of(path)[:1] != [f"{KEY}{key}"]:
            return study(*arguments, **options)
        return read_table(path)


def read_table(path: Path) -> pd.DataFrame:
    """A cached table as it was written, to the last bit: an empty text is no missing number."""
    head = len(head_of(path))
    return read_csv(path, skiprows=head, engine="python", keep_default_na=False, na_values=["nan"])


def _modules_of(value: object) -> Iterator[str]:
    """The modules that define a function, or what it is given."""
    if isinstance(value, partial):
        yield from _modules_of([value.func, value.args, value.keywords])
    elif isinstance(value, Mapping):
        yield from _modules_of(list(value.values()))
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _modules_of(one)
    else:
        yield str(getattr(value if callable(value) else type(value), "__module__", ""))


def cache_key(study: Study, *arguments: object, **options: object) -> str:
    """A digest of a study's name and all its arguments; of noise only the name, because the last
    bits of a synthetic trace differ between machines.
    """
    return digest(
        _text_of(study),
        *map(_text_of, arguments),
        *(f"{name}={_text_of(value)}" for name, value in sorted(options.items())),
    )


def _text_of(value: object) -> str:
    if isinstance(value, Detours):
        return value.name
    if isinstance(value, partial):
        arguments = ", ".join(map(_text_of, value.args))
        return f"{_text_of(value.func)}({arguments} {_text_of(value.keywords)})"
    if isinstance(value, Path):
        return value.name
    if callable(value):
        return str(getattr(value, "__name__", value))
    if isinstance(value, Mapping):
        items = ", ".join(f"{key}: {_text_of(item)}" for key, item in value.items())
        return "{" + items + "}"
    if isinstance(value, Sequence | np.ndarray) and not isinstance(value, str):
        return f"[{', '.join(map(_text_of, value))}]"
    return repr(value.item() if isinstance(value, np.generic) else value)
