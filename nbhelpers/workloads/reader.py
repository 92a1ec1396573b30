"""How the output of a program that is not ours is read: data only, so that a campaign can record
how its numbers were found.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ..errors import InputError, check_choice
from ..outcomes import DIRECTIONS, Outcome

UNITS_S = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9, "min": 60.0}
NEITHER = "neither"
FORMS = ("json", "yaml", "csv")
_NAME = re.compile(r"[a-z][a-z0-9_]*")


@dataclass(frozen=True)
class Report:
    """A number that a program reports, and where it stands.

    Parameters
    ----------
    name
        Column of the runs table, in small letters; ``seconds`` is the run time.
    pattern
        Regular expression (^ and $ are a line's) with a group `value`, or one named as the report;
        the last match counts.
    unit
        Such as ``"s"`` or ``"MB/s"``; of ``seconds``: s, ms, us, ns or min.
    direction
        "lower" or "higher", whichever is better; "neither": a fact such as a count of iterations,
        by which no run is judged.
    file
        Name or glob of the file that it stands in, written by the program; None: standard output,
        standard error and `Reader.files`.
    path
        In place of a pattern: the place in JSON or YAML, keys and numbers of items joined by dots,
        ``"results.total.seconds"``; or a tuple of them, where keys have dots.
    column
        In place of a pattern: of a CSV table with a head.
    row
        Row of that table, from 0; −1 is the last.
    where
        Pairs (column, text) that choose the row instead.
    form
        "json", "yaml" or "csv"; None: by the file's ending; of an output, json for a path and csv
        for a column.

    Raises
    ------
    InputError
        None or several of pattern, path and column; a wrong pattern, or one without its group.

    Examples
    --------
    >>> Report("events", r"events per second: +(?P<value>\\S+)", "1/s", "higher")
    Report(events (1/s, higher is better))
    """

    name: str
    pattern: str | None = None
    unit: str = ""
    direction: str = "lower"
    file: str | None = None
    path: str | tuple[str, ...] | None = None
    column: str | None = None
    row: int = -1
    where: tuple[tuple[str, str], ...] = ()
    form: str | None = None

    def __post_init__(self):
        if isinstance(self.path, list):
            object.__setattr__(self, "path", tuple(self.path))
        pairs = self.where.items() if isinstance(self.where, Mapping) else self.where
        object.__setattr__(self, "where", tuple((str(key), str(text)) for key, text in pairs))
        if not _NAME.fullmatch(self.name):
            raise InputError(
                f"'{self.name}' is no name of a report",
                why="it becomes a column",
                fix="small letters, digits and _, a letter first",
            )
        if sum(place is not None for place in (self.pattern, self.path, self.column)) != 1:
            raise InputError(
                f"where the report '{self.name}' stands is not described, or in two ways",
                fix="give one of pattern, path (JSON, YAML) and column (CSV)",
            )
        units = UNITS_S if self.name == "seconds" else (self.unit or "s",)
        for field, value, choices in (
            ("unit", self.unit or "s", units),
            ("form", self.form or FORMS[0], FORMS),
            ("direction", self.direction, (*DIRECTIONS, NEITHER)),
        ):
            check_choice(field, value, choices, f"the report '{self.name}'")
        named = {self.name, "value"}
        if self.pattern is not None and not named & {*_groups(self.pattern, self.name)}:
            group = self.name if self.name == "seconds" else "value"
            _check(self.pattern, {group}, self.name)

    def __repr__(self) -> str:
        fact = self.direction == NEITHER
        return f"Report({self.name}: a fact)" if fact else f"Report({self.outcome})"

    @property
    def outcome(self) -> Outcome:
        """What it is when runs are judged by it."""
        return Outcome(self.name, "s" if self.name == "seconds" else self.unit, self.direction)

    @property
    def factor(self) -> float:
        """What its number is multiplied by: times become seconds."""
        return UNITS_S[self.unit or "s"] if self.name == "seconds" else 1.0

    @property
    def sought(self) -> str:
        """Where it stands, in words."""
        rows = ", ".join(f"{key} {text}" for key, text in self.where) or f"row {self.row}"
        place = f"column {self.column!r}, {rows}"
        if self.column is None:
            place = f"the path {self.path!r}" if self.path else f"the pattern {self.pattern!r}"
        return f"{place} in {f'the file {self.file}' if self.file else 'its output'}"


@dataclass(frozen=True)
class Table:
    """Rows of numbers in an output.

    Parameters
    ----------
    row
        Regular expression of a row (^ and $ are a line's) with named groups.
    columns
        Pairs (group, column of the runs table); {name} and {section} stand for those groups, in
        small letters.
    section
        Regular expression with a group `section`: a heading that holds for the rows after it.
    """

    row: str
    columns: tuple[tuple[str, str], ...]
    section: str | None = None


@dataclass(frozen=True)
class Reader:
    """How the output of a program is read; all patterns are regular expressions in which ^ and $
    are a line's.

    Parameters
    ----------
    name
        Name of the program, for errors.
    reports
        Its numbers; one named ``seconds`` is the run time, in place of the length of its timed
        region.
    passed
        Must be found, or the run is unverified.
    failed
        Must not be found.
    tables
        Rows of numbers in the output; see `Table`.
    series
        Triples (name, unit, pattern with a group `value`): every match is a value.
    files
        Globs of files that the program writes, whose text is read after its output; only those that
        this run wrote.
    fresh_folder
        Each run in an empty folder, deleted afterwards.

    Raises
    ------
    InputError
        A wrong pattern, or one without its group; two reports of one name.
    """

    name: str
    reports: tuple[Report, ...] = ()
    passed: str | None = None
    failed: str | None = None
    tables: tuple[Table, ...] = ()
    series: tuple[tuple[str, str, str], ...] = ()
    files: tuple[str, ...] = ()
    fresh_folder: bool = False

    def __post_init__(self):
        object.__setattr__(self, "reports", tuple(self.reports))
        files = (self.files,) if isinstance(self.files, str) else self.files or ()
        object.__setattr__(self, "files", tuple(files))
        names = [report.name for report in self.reports]
        if repeated := {name for name in names if names.count(name) > 1}:
            raise InputError(f"two reports are named '{min(repeated)}'", where=self.name)
        for pattern, groups in self._patterns():
            _check(pattern, groups, self.name)

    def _patterns(self) -> list[tuple[str | None, set[str]]]:
        found: list[tuple[str | None, set[str]]] = [(self.passed, set()), (self.failed, set())]
        found += [(pattern, {"value"}) for _, _, pattern in self.series]
        for table in self.tables:
            named = {"name"} if any("{name}" in column for _, column in table.columns) else set()
            groups = {group for group, _ in table.columns}
            found += [(table.row, groups | named), (table.section, {"section"})]
        return found

    @property
    def globs(self) -> tuple[str, ...]:
        """All files that something is read from."""
        return tuple(
            dict.fromkeys((*self.files, *(report.file for report in self.reports if report.file)))
        )


def _check(pattern: str | None, groups: set[str], name: str) -> None:
    lacking = groups - set(_groups(pattern, name)) if pattern is not None else None
    if lacking:
        raise InputError(
            f"the pattern has no group named '{min(lacking)}'",
            where=f"{name}: {pattern}",
            fix=rf"mark what is to be read, for example: (?P<{min(lacking)}>[\d.]+)",
        )


def _groups(pattern: str, name: str) -> list[str]:
    try:
        return list(re.compile(pattern, re.MULTILINE).groupindex)
    except re.error as error:
        raise InputError(
            f"the pattern is not a regular expression: {error}", where=f"{name}: {pattern}"
        ) from None
