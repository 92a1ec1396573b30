"""Where the timed region of a program begins and ends, and by which means that is observed.

Owns the `Region` record; the library that the program calls is `workloads/nbpreload.c`, the stamps
are collected by `nbhelpers.measurement`.
"""

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from ..errors import InputError, check_choice

REGION_KINDS = ("process", "marks", "symbols", "lines", "mpi")
# Kinds whose begin is the barrier itself: the program waits there for the common start.
ARMED_KINDS = ("marks", "symbols", "mpi")


@dataclass(frozen=True)
class Region:
    """Where the timed region of a program begins and ends.

    Parameters
    ----------
    kind
        Means by which it is observed. process: from the common start, which comes just before
        main(), or before exec where the program takes no preload library, to the end of the
        process; marks: `nb_region_begin()` and `nb_region_end()` of workloads/noisebook.h; symbols:
        `noisebook_begin()` and `noisebook_end()`, which Noisebook's library provides; lines: two
        lines that the program prints, time-stamped as they are written; mpi: from the first end of
        MPI_Init to the last begin of MPI_Finalize of all ranks.
    begin, end
        Regular expressions of the two lines (kind "lines" only).

    Raises
    ------
    InputError
        No such kind; patterns that are missing, wrong or of no use.

    Examples
    --------
    >>> Region("lines", begin="^Start", end="^Stop")
    Region(lines: '^Start' to '^Stop')
    """

    kind: str = "process"
    begin: str | None = None
    end: str | None = None

    def __post_init__(self):
        check_choice("kind of region", self.kind, REGION_KINDS)
        patterns = (self.begin, self.end)
        if self.kind != "lines" and patterns != (None, None):
            raise InputError(
                f"a region of kind '{self.kind}' has no patterns",
                fix='kind="lines" for a pair of lines that it prints',
            )
        if self.kind == "lines":
            for which, pattern in zip(("begin", "end"), patterns):
                _check_line(which, pattern)

    def __repr__(self) -> str:
        return (
            f"Region({self.kind}: {self.begin!r} to {self.end!r})"
            if self.begin
            else f"Region({self.kind})"
        )

    @property
    def armed(self) -> bool:
        """Whether the program waits for the common start where its region begins."""
        return self.kind in ARMED_KINDS

    @property
    def begins_at_start(self) -> bool:
        """Whether its begin is the common start; else it is seen only when it happens."""
        return self.armed or self.kind == "process"

    def as_dict(self) -> dict:
        """For a campaign's record."""
        return {key: value for key, value in asdict(self).items() if value is not None}


def as_region(region: "Region | str | Sequence[str]") -> Region:
    """A region, from a record, the name of a kind, or a pair of patterns of printed lines.

    Raises
    ------
    InputError
        Neither of them.

    Examples
    --------
    >>> as_region("mpi"), as_region(("^Start", "^Stop"))
    (Region(mpi), Region(lines: '^Start' to '^Stop'))
    """
    if isinstance(region, Region):
        return region
    if isinstance(region, str):
        return Region(region)
    if isinstance(region, Sequence) and len(region) == 2:
        return Region("lines", *region)
    raise InputError(
        f"no region: {region!r}",
        fix="give a Region, a kind, or a pair (begin, end) of regular expressions",
    )


def _check_line(which: str, pattern: str | None) -> None:
    wrong, why = "", None
    if not isinstance(pattern, str) or not pattern:
        raise InputError(
            f"the {which} of a region of kind 'lines' is missing",
            fix='Region("lines", begin="^Starting", end="^Time")',
        )
    try:
        if re.compile(pattern, re.MULTILINE).match(""):
            wrong, why = "matches an empty text", "it would be found everywhere"
    except re.error as error:
        wrong = f"is not a regular expression: {error}"
    if wrong:
        raise InputError(f"the {which} of the region {wrong}", where=pattern, why=why)
