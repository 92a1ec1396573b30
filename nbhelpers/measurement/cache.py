"""Values that are measured once on a machine and cached as JSON with the runs.

Owns the rule: read the value, or measure it with the machine to itself and write it.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..files import put_aside, write_json
from ..machine import measuring
from ..progress import task
from ..reading import read_json


def cached_value(
    path: str | Path,
    find: Callable[[], Any],
    description: str,
    recorded_only: bool = False,
    key: str | None = None,
    indent: int | None = 2,
) -> Any:
    """Return the value that a file caches; measure it first where it is not cached yet.

    Parameters
    ----------
    path
        The JSON file; packed where it ends in .gz.
    find
        Measures the value, with the machine to itself; returns what JSON can hold.
    description
        What is measured, a noun; shown to those who wait for the machine.
    recorded_only
        True: never measure, the file must hold the value.
    key
        Name of this value in a file that caches several.
    indent
        Indentation of the file; None: one line.

    Returns
    -------
    dict, list, str, float, int, bool or None
        The value, as JSON holds it.

    Raises
    ------
    InputError
        `recorded_only` is True, and the file is missing or damaged. Where it may be measured, a
        damaged file is put aside and made anew.
    """
    path = Path(path)
    cached = read_cached(path, description, recorded_only)
    if not path.exists() or (key is not None and key not in cached):
        if recorded_only:
            raise InputError(
                f"the {description} was not measured yet",
                where=path,
                fix="run the stage that measures it: make paper",
            )
        with (
            measuring(),
            task(f"measuring for the cache: {description}", urgent=True),
        ):
            value = find()
        cached = value if key is None else cached | {key: value}
        write_json(path, cached, indent)
    return cached if key is None else cached[key]


def read_cached(path: Path, description: str, recorded_only: bool) -> dict:
    """Return what a file caches; empty where there is none.

    A damaged file is put aside and counts as none, unless `recorded_only` is True.

    Raises
    ------
    InputError
        `recorded_only` is True and the file is damaged, or it cannot be read.
    """
    if not path.exists():
        return {}
    try:
        cached = read_json(path)
    except InputError:
        if recorded_only or not os.access(path, os.R_OK):
            raise
        cached = None
    if isinstance(cached, dict):
        return cached
    if recorded_only:
        raise InputError(
            f"the file does not hold the {description}",
            where=path,
            fix="restore the recorded campaign: git checkout data/recorded",
        )
    put_aside(path, f"damaged: it does not hold the {description}")
    return {}
