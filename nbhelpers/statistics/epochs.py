"""Which runs of a campaign that grew may be compared: those of the epochs that all cells share."""

import pandas as pd


def same_epochs(*tables: pd.DataFrame) -> tuple[pd.DataFrame, ...]:
    """The runs of each table from epochs that all tables have: what may be compared.

    A campaign that grew has runs of some cells from before the others were added. They were not
    measured in turn with the others, and would compare two times of the machine.

    Parameters
    ----------
    tables
        Runs tables, a cell each.

    Returns
    -------
    The tables, in the same order; unchanged if one lacks `epoch`, or if no epoch is shared.

    Examples
    --------
    >>> old = pd.DataFrame({"epoch": [0, 0, 1], "seconds": [1.0, 1.1, 2.0]})
    >>> added = pd.DataFrame({"epoch": [1, 1], "seconds": [1.9, 2.1]})
    >>> [table["seconds"].tolist() for table in same_epochs(old, added)]
    [[2.0], [1.9, 2.1]]
    """
    if not all("epoch" in table for table in tables):
        return tables
    shared = set.intersection(*(set(table["epoch"]) for table in tables))
    return tuple(table[table["epoch"].isin(shared)] for table in tables) if shared else tables
