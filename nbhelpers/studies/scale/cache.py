"""Tables of long simulations, kept as CSV: the recorded campaign shows them at full size on any
machine, without the minutes that they took.

Owns the files, and the words that say what a table was asked for: one that was asked for something
else is not shown.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from ...files import digest, write_atomically
from ...progress import task
from ...simulation.noise import Detours

Table = Callable[..., pd.DataFrame]


@dataclass(frozen=True)
class Cache:
    """The kept tables of a stage.

    Parameters
    ----------
    folder
        Where they lie, NAME.csv each.
    recorded_only
        False: every table is computed and kept. True (a recorded campaign): it is read where it was
        asked for the same, and else computed and not kept. Seeds are given, so that both are the
        same, but for a trace that one machine has and another has not.
    """

    folder: Path
    recorded_only: bool = False

    def table(self, name: str, study: Table, *given: object, **options: object) -> pd.DataFrame:
        """What `study(*given, **options)` gives: a table of numbers, texts and booleans, without an
        index of its own.
        """
        path, asked = Path(self.folder) / f"{name}.csv", cache_key(study, *given, **options)
        if not self.recorded_only:
            with task(f"simulating {name}"):
                table = study(*given, **options)
            write_atomically(path, f"# asked: {asked}\n" + table.to_csv(index=False, na_rep="nan"))
        elif not path.exists() or _asked_for(path) != asked:
            return study(*given, **options)
        return _read(path)


def _asked_for(path: Path) -> str:
    return path.read_text().split("\n", 1)[0].split()[-1]


def _read(path: Path) -> pd.DataFrame:
    """As it was written, to the last bit: an empty text is no missing number."""
    return pd.read_csv(path, skiprows=1, engine="python", keep_default_na=False, na_values=["nan"])


def cache_key(study: Table, *given: object, **options: object) -> str:
    """A digest of the study and of all it was given; of noise only the name, because the last bits
    of a synthetic trace differ between machines.
    """
    return digest(
        _said(study),
        *map(_said, given),
        *(f"{name}={_said(value)}" for name, value in sorted(options.items())),
    )


def _said(value: object) -> str:
    if isinstance(value, Detours):
        return value.name
    if isinstance(value, partial):
        return f"{_said(value.func)}({', '.join(map(_said, value.args))} {_said(value.keywords)})"
    if isinstance(value, Path):
        return value.name
    if callable(value):
        return value.__name__
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_said(item)}" for key, item in value.items()) + "}"
    if isinstance(value, Sequence | np.ndarray) and not isinstance(value, str):
        return f"[{', '.join(map(_said, value))}]"
    return repr(value.item() if isinstance(value, np.generic) else value)
