"""How the output of somebody else's program is read: data only, so that a campaign can write down by what its numbers were found."""

import re
from dataclasses import asdict, dataclass

from ..errors import InputError

UNITS_S = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}


@dataclass(frozen=True)
class Table:
    """Rows of numbers in an output.

    Parameters
    ----------
    row : regular expression of a row (^ and $ are a line's) with named groups.
    columns : pairs (group, column of the runs table); {name} and {section} stand for those groups, in small letters.
    section : regular expression with a group `section`: a heading that holds for the rows after it.
    """

    row: str
    columns: tuple[tuple[str, str], ...]
    section: str | None = None


@dataclass(frozen=True)
class Reader:
    """How the output of a program is read; all patterns are regular expressions in which ^ and $ are a line's.

    Parameters
    ----------
    name : of the adapter.
    seconds : pattern with a group `seconds`; the last match counts. None: timed from the start to the end.
    unit : of that time: s, ms, us or ns.
    passed : must be found, or the run is unverified; failed : must not be found.
    values : pairs (column, pattern with a group `value`); the last match counts.
    tables : see `Table`.
    series : triples (name, unit, pattern with a group `value`): every match is a value.
    files : glob of files that the program writes in its folder; their text is read after its output.
    fresh_folder : each run in an empty folder of its own, deleted afterwards.

    Raises
    ------
    InputError : a pattern that is none, or lacks its group.
    """

    name: str
    seconds: str | None = None
    unit: str = "s"
    passed: str | None = None
    failed: str | None = None
    values: tuple[tuple[str, str], ...] = ()
    tables: tuple[Table, ...] = ()
    series: tuple[tuple[str, str, str], ...] = ()
    files: str | None = None
    fresh_folder: bool = False

    def __post_init__(self):
        if self.unit not in UNITS_S:
            raise InputError(f"the unit of a time is '{self.unit}'", where=self.name, mend=f"choose one of {', '.join(UNITS_S)}")
        if self.files and not self.fresh_folder:
            raise InputError("files are read only from a fresh folder", where=self.name, why="those of an earlier run would be taken for this one's",
                             mend="fresh_folder: true")
        for pattern, groups in self._patterns():
            _check(pattern, groups, self.name)

    def _patterns(self) -> list[tuple[str | None, set[str]]]:
        found = [(self.seconds, {"seconds"}), (self.passed, set()), (self.failed, set())]
        found += [(pattern, {"value"}) for _, pattern in self.values] + [(pattern, {"value"}) for _, _, pattern in self.series]
        for table in self.tables:
            named = {"name"} if any("{name}" in column for _, column in table.columns) else set()
            found += [(table.row, {group for group, _ in table.columns} | named), (table.section, {"section"})]
        return found

    def as_dict(self) -> dict:
        """For a campaign's record."""
        return asdict(self)


def _check(pattern: str | None, groups: set[str], name: str) -> None:
    if pattern is None:
        return
    try:
        lacking = groups - set(re.compile(pattern, re.MULTILINE).groupindex)
    except re.error as error:
        raise InputError(f"the pattern is not a regular expression: {error}", where=f"{name}: {pattern}") from None
    if lacking:
        raise InputError(f"the pattern has no group named '{min(lacking)}'", where=f"{name}: {pattern}",
                         mend=rf"mark what is to be read, for example: (?P<{min(lacking)}>[\d.]+)")
