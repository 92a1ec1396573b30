"""The many values of one run: the time of each repetition, in a table besides the runs table."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from ..errors import InputError
from ._store import Store

COLUMNS = {"run": "int64", "name": "str", "unit": "str", "index": "int64", "value": "float64"}


def series_table(records: Sequence[dict]) -> pd.DataFrame:
    """Records of a campaign's store as a table: one row a value; `run` as in the runs table,
    `index` from 0 in the order of the run.
    """
    parts = [
        pd.DataFrame(
            {
                "run": record["run"],
                "name": name,
                "unit": one["unit"],
                "index": range(len(one["values"])),
                "value": one["values"],
            }
        )
        for record in records
        for name, one in record["series"].items()
    ]
    if not parts:
        return pd.DataFrame({name: pd.Series(dtype=kind) for name, kind in COLUMNS.items()})
    return pd.concat(parts, ignore_index=True).astype(
        {"run": "int64", "index": "int64", "value": "float64"}
    )


def series(folder: str | Path) -> pd.DataFrame:
    """Return the series of a campaign's folder, of all runs that printed any.

    Parameters
    ----------
    folder
        Of the campaign.

    Returns
    -------
    DataFrame
        One row a value: `run`, `name`, `unit`, `index` (from 0) and `value`; see `Campaign.series`.

    Raises
    ------
    InputError
        Nothing was recorded there, or a record is damaged.
    """
    store = Store(folder)
    if not store.rows():
        raise InputError(
            "no runs were recorded here",
            where=folder,
            fix="run the stage that measures them first: make paper",
        )
    return series_table(store.series())
