"""The table inside a noise config, in one fixed form, so that equal configs are equal bytes.

Owns its column types and the plain form of the provenance.
"""

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from ..errors import InputError
from ._merge import POLICY_NAMES, Columns
from ._vocabulary import ALL_KINDS, KINDS

FORMAT = "noisebook noise config 1"
COLUMNS = ("start_ns", "duration_ns", "policy", "priority", "kind", "source")
INTENSITY = "intensity"  # a seventh column, where an event does more than occupy a CPU


def config_table(columns: Columns, sources: list[str]) -> pd.DataFrame:
    """Columns that are sorted by CPU and start, as the table of a config; sources that don't occur
    are dropped.

    A config in which every event occupies a CPU has no column `intensity`, and knows of no other
    kinds.
    """
    used = np.bincount(columns.source, minlength=len(sources)) > 0
    source = (np.cumsum(used) - 1)[columns.source]
    names = [name for name, is_used in zip(sources, used) if is_used]
    stressing = columns.intensity is not None and bool((columns.kind >= len(KINDS)).any())
    kinds, more = (ALL_KINDS, {INTENSITY: columns.intensity}) if stressing else (KINDS, {})
    return pd.DataFrame(
        {
            "cpu": columns.cpu.astype(np.int64),
            "event": _place_on_cpu(columns.cpu),
            "start_ns": columns.start_ns.astype(np.int64),
            "duration_ns": columns.duration_ns.astype(np.int64),
            "policy": pd.Categorical.from_codes(columns.policy, pd.Index(POLICY_NAMES, dtype=str)),
            "priority": columns.priority.astype(np.int16),
            "kind": pd.Categorical.from_codes(columns.kind, pd.Index(kinds, dtype=str)),
            "source": pd.Categorical.from_codes(source, pd.Index(names, dtype=str)),
            **more,
        },
        copy=False,
    )


def without_needless(table: pd.DataFrame) -> pd.DataFrame:
    """The table without intensities and their kinds, if no event is left that has one."""
    if INTENSITY not in table.columns or table[INTENSITY].notna().any():
        return table
    return table.drop(columns=INTENSITY).assign(
        kind=table["kind"].cat.set_categories(pd.Index(KINDS, dtype=str))
    )


def _place_on_cpu(cpu: np.ndarray) -> np.ndarray:
    first = np.flatnonzero(np.diff(cpu, prepend=-1))
    return np.arange(len(cpu)) - np.repeat(first, np.diff(np.append(first, len(cpu))))


def plain_provenance(provenance: Mapping) -> dict:
    """The same as JSON can hold it: NumPy numbers and paths become plain, tuples lists, keys
    strings.

    Raises
    ------
    InputError
        Something that JSON can't hold.
    """
    try:
        return json.loads(json.dumps(dict(provenance), allow_nan=False, default=_plain))
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(
            f"not a provenance that JSON can hold: {error}",
            where="argument provenance",
            fix="use texts, finite numbers, lists and dictionaries",
        ) from None


def _plain(value: object) -> object:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} {value!r}")
