"""What data/knowledge says of a column: whether it is a known counter, whether it grows with the
run, and whether its name alone says that it is no cause.

Owns the reading of these facts; what a factor is, and what helps against it, is owned by
`mitigation.knowledge`.
"""

import fnmatch
import os
from functools import cache, lru_cache
from pathlib import Path

from ..places import knowledge, shipped
from ..reading import read_yaml

RATE = "_per_s"
MOST_REMEMBERED = 50_000  # names


def kind_of(column: str) -> str | None:
    """Return the kind of a column, or of the counter that it is the rate of; None: not known.

    Parameters
    ----------
    column
        Name of a column of a runs table.

    Returns
    -------
    "total" (grows with the run), "level" and others as the metric layers have them.

    Examples
    --------
    >>> kind_of("minor_faults_per_s"), kind_of("probes")
    ('total', None)
    """
    return _found(str(column).removesuffix(RATE), os.environ.get("NOISEBOOK_KNOWLEDGE"))


@cache
def known_names(list_name: str) -> frozenset[str]:
    """The names of columns in a list of data/knowledge/columns.yml: bookkeeping, design, run_time.

    Examples
    --------
    >>> "round" in known_names("bookkeeping"), "user_s" in known_names("run_time")
    (True, True)
    """
    path = shipped() / "data" / "knowledge" / "columns.yml"
    return frozenset(read_yaml(path, "columns", fast=True)[list_name])


@lru_cache(MOST_REMEMBERED)
def _found(name: str, chosen: str | None) -> str | None:
    kinds = _kinds(chosen)
    fitting = [name] if name in kinds else [one for one in kinds if fnmatch.fnmatchcase(name, one)]
    return kinds[max(fitting, key=len)] if fitting else None


@cache
def _kinds(chosen: str | None) -> dict[str, str]:
    """Kind of each counter, or family of counters, of the knowledge that was chosen."""
    folder = Path(chosen) if chosen else knowledge()
    files = (folder / "factors").glob("*.yml")
    factors = [row for path in files for row in read_yaml(path, "factors", fast=True)]
    found = {pattern: "total" for row in factors for pattern in row["metrics"]}
    for path in sorted((folder / "metrics").glob("*.yml")):
        layer = read_yaml(path, "metric layer", fast=True)
        described = [metric for source in layer["sources"] for metric in source["metrics"]]
        described += layer.get("derived", ())
        found |= {metric["id"]: metric.get("kind", "total") for metric in described}
    return found
