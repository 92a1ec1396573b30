"""Which runs of a campaign that grew may be compared: those of the epochs that all cells share."""

import pandas as pd


def same_epochs(*tables: pd.DataFrame) -> tuple[pd.DataFrame, ...]:
    """Of each table the runs of those epochs that all of them have runs of: what may be compared.

    A campaign that grew holds runs of some cells from before the others were added. Those were not
    measured in turn with the others, so they would compare two times of the machine. Tables without
    the column, or with no epoch in common, are given back as they are.

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
