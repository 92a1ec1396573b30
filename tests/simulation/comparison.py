"""Schedules compared column by column."""

from dataclasses import fields

import numpy as np

from nbhelpers.simulation.schedule import Schedule

COLUMNS = [field.name for field in fields(Schedule) if field.name not in ("line", "name")]


def same(one: Schedule, other: Schedule) -> None:
    """Fails where the two differ in a column or its type."""
    for column in COLUMNS:
        a, b = getattr(one, column), getattr(other, column)
        assert a.dtype == b.dtype and np.array_equal(a, b), column
