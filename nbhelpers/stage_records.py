"""The record of each notebook, notebooks/stages.yml: whether it measures, what it uses and does
without, how long it took, and what values of its parameters make sense.
"""

from functools import cache
from typing import Any

from .extras import with_notebooks
from .places import shipped
from .reading import read_yaml

PATH = shipped() / "notebooks" / "stages.yml"


@cache
def records() -> dict[str, dict[str, Any]]:
    """Notebook → its record, in the order of the file.

    Examples
    --------
    >>> records()["10-trace-collection"]["measures"]
    True
    """
    files = [PATH, *(folder / PATH.name for folder in with_notebooks())]
    found = [read_yaml(file, "record of the stages") for file in files]
    return {stage: record or {} for part in found for stage, record in part.items()}


def record_of(stage: str) -> dict[str, Any]:
    """The record of one notebook; empty for one that has none, such as the user's own."""
    return records().get(stage, {})
