"""What a program counts itself: such a counter leads to the program's own paths and parameters, not
to the machine.

Owns how these columns are known, and which words of a command may decide what the program does.
"""

import fnmatch
import re
import shlex
from functools import cache

from ..measurement import describe_columns
from ..workloads import Workload
from .knowledge import Factor, factor_of, factors

PATHS = "program-paths"  # the factor of all of them
_DECISIVE = re.compile(r"seed|rand|hash|input|size|order|shuffle", re.IGNORECASE)


def is_of_program(column: str) -> bool:
    """Whether the program itself reports a column: neither we nor a metric layer made it.

    Parameters
    ----------
    column
        Of the runs table; may be a rate.

    Examples
    --------
    >>> is_of_program("probes_per_s"), is_of_program("minor_faults"), is_of_program("softirq_RCU")
    (True, False, False)
    """
    name = column.removesuffix("_per_s")
    if factor_of(name):
        return False
    return not any(fnmatch.fnmatchcase(name, pattern) for pattern in _known_columns())


@cache
def _known_columns() -> tuple[str, ...]:
    return tuple(describe_columns().index)


def factor_behind(column: str) -> Factor | None:
    """The factor that a column shows; of the program's own counters its paths."""
    return factors()[PATHS] if is_of_program(column) else factor_of(column)


def program_parameters(workload: Workload) -> tuple[str, ...]:
    """What of a command may decide which path the program takes: options and variables that speak
    of a seed, a hash, an order, an input or a size.

    Parameters
    ----------
    workload
        The program.

    Examples
    --------
    >>> from nbhelpers.workloads import program
    >>> program_parameters(program(["sleep", "0.01"], env={"HASH_SEED": "7"}))
    ('HASH_SEED=7',)
    """
    words = list(workload.command)
    found = [
        shlex.join(words[place : place + (1 if "=" in word else 2)])
        for place, word in enumerate(words)
        if word.startswith("-") and _DECISIVE.search(word.partition("=")[0])
    ]
    return (*found, *(f"{name}={value}" for name, value in workload.env if _DECISIVE.search(name)))
