"""In what do two records of the circumstances differ? Owns the comparison of nested records."""

from collections.abc import Mapping

import pandas as pd


def differing(before: Mapping, after: Mapping) -> pd.DataFrame:
    """The entries in which two (nested) records differ: index what (keys joined by dots), columns
    before, after; None = not there.
    """
    old, new = _flat(before), _flat(after)
    names = [name for name in dict.fromkeys([*old, *new]) if old.get(name) != new.get(name)]
    return pd.DataFrame(
        {"before": [old.get(name) for name in names], "after": [new.get(name) for name in names]},
        dtype=object,
        index=pd.Index(names, name="what", dtype=object),
    )


def _flat(record: Mapping, prefix: str = "") -> dict[str, object]:
    flat: dict[str, object] = {}
    for key, value in record.items():
        flat |= (
            _flat(value, f"{prefix}{key}.")
            if isinstance(value, Mapping)
            else {f"{prefix}{key}": value}
        )
    return flat
