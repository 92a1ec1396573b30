"""What is measured once on a machine and kept as JSON beside the runs. Owns the rule: read it, or
measure it alone and write it.
"""

import os
from collections.abc import Callable
from pathlib import Path

from ..errors import InputError
from ..files import put_aside, read_json, write_json
from ..machine import measuring
from ..progress import task


def measured_once(
    path: str | Path,
    find: Callable[[], object],
    doing: str,
    recorded_only: bool = False,
    key: str | None = None,
    indent: int | None = 2,
) -> object:
    """What a file keeps, measured first where it is not kept yet.

    Parameters
    ----------
    path
        Of the JSON file; packed where it ends in .gz.
    find
        Measures it, with the machine to itself; gives what JSON can hold.
    doing
        What is measured, told to those who wait for the machine.
    recorded_only
        True: never measure, it must be there.
    key
        The file keeps several such things, this one by this name.
    indent
        Of the file; None: one line.

    Raises
    ------
    InputError
        `recorded_only` is True, and it is not there or not what was written. Where it may be measured, a
        damaged file is put aside and made anew.
    """
    path = Path(path)
    kept = readable(path, doing, recorded_only)
    if not path.exists() or (key is not None and key not in kept):
        if recorded_only:
            raise InputError(
                f"the {doing} was not measured yet",
                where=path,
                fix="run the stage that measures it: make paper",
            )
        with measuring(doing=doing), task(f"measuring once: {doing}", urgent=True):
            found = find()
        kept = found if key is None else kept | {key: found}
        write_json(path, kept, indent)
    return kept if key is None else kept[key]


def readable(path: Path, doing: str, recorded_only: bool) -> dict:
    """What a file keeps; empty where there is none, or where it was damaged and has been put aside."""
    if not path.exists():
        return {}
    try:
        kept = read_json(path)
    except InputError:
        if recorded_only or not os.access(path, os.R_OK):
            raise
        kept = None
    if isinstance(kept, dict):
        return kept
    if recorded_only:
        raise InputError(
            f"not what was kept of the {doing}",
            where=path,
            fix="take the recorded campaign as it came: git checkout data/recorded",
        )
    put_aside(path, f"damaged: not what was kept of the {doing}")
    return {}
