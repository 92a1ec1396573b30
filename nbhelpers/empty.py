"""Why a table has no rows: a sentence that travels with it, and is printed where the rows would
stand.

Owns its place in `DataFrame.attrs`. The part that makes a table knows why it is empty; the page
that prints it does not.
"""

import pandas as pd

_PLACE = "why empty"
UNKNOWN = "nothing to show"


def because(table: pd.DataFrame, why: str) -> pd.DataFrame:
    """Give a table without rows the reason; any other is left as it is.

    Parameters
    ----------
    table
        Any table.
    why
        What is missing and, where there is one, the command that gets it.

    Returns
    -------
    The same table.

    Examples
    --------
    >>> import pandas as pd
    >>> why_empty(because(pd.DataFrame(columns=["x"]), "no run was traced"))
    'no run was traced'
    """
    if not len(table):
        table.attrs[_PLACE] = why
    return table


def why_empty(*tables: object) -> str:
    """The reason of the first of the tables that has one; "" if none has."""
    found = (
        table.attrs.get(_PLACE, "")
        for table in tables
        if isinstance(table, pd.DataFrame) and not len(table)
    )
    return next(filter(None, found), "")
