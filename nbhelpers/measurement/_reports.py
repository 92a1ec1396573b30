"""What a program reported in a run: numbers found by pattern, by path in JSON or YAML, in a CSV
table.

Owns the rule that a file counts only if this very run wrote it.
"""

import csv
import glob
import io
import json
import math
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..reading import load_yaml
from ..workloads import Report
from ..workloads.reader import Reader, Table
from ._output import ROOM_FOR_SERIES, NotReported, number


@dataclass(frozen=True)
class Sources:
    """Where a run's numbers may stand: what it printed, and the files that it wrote."""

    folder: Path  # in which it ran
    before: dict[Path, tuple]  # files as they were before the run (`snapshot`)
    output: str
    errors: str

    def written(self, pattern: str) -> list[Path]:
        """The files of this name or glob that the run wrote.

        Raises
        ------
        NotReported
            They are there, and older than the run.
        """
        found = _files(self.folder, pattern)
        fresh = [path for path in found if _state(path) != self.before.get(path)]
        if found and not fresh:
            written = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(found[0].stat().st_mtime))
            raise NotReported(
                f"the file {found[0].name} was not written by this run: it is of {written}"
            )
        return fresh

    def text(self, reader: Reader, file: str | None) -> str:
        """The text of a file of the run; None: what it printed, and the files of the reader."""
        if file is None:
            files = [path for pattern in reader.files for path in self.written(pattern)]
            return "\n".join([self.output, self.errors, *map(_content, files)])
        files = self.written(file)
        if len(files) != 1:
            names = ", ".join(path.name for path in files[:4])
            raise NotReported(
                f"it wrote {f'{len(files)} files' if files else 'no file'} {file}"
                + (f" ({names}), one is expected" if files else f" in {self.folder}")
            )
        return _content(files[0])


def snapshot(folder: str | Path, reader: Reader | None) -> dict[Path, tuple]:
    """The state of the files of a reader now, to see later which ones a run wrote."""
    patterns = () if reader is None else reader.globs
    return {path: _state(path) for one in patterns for path in _files(Path(folder), one)}


def _files(folder: Path, pattern: str) -> list[Path]:
    """Those of this name or glob; one that is absolute does not begin at the folder."""
    found = glob.glob(pattern, root_dir=folder, recursive=True, include_hidden=True)
    return sorted(path for name in found if (path := folder / name).is_file())


def _state(path: Path) -> tuple:
    """Differs after anybody wrote the file: the time of the change of its inode cannot be set."""
    status = path.stat()
    return status.st_ino, status.st_ctime_ns, status.st_mtime_ns, status.st_size


def _content(path: Path) -> str:
    with open(path, "rb") as file:
        return file.read(ROOM_FOR_SERIES).decode(errors="replace")


def find_reports(reader: Reader, sources: Sources, needed: set[str]) -> dict:
    """The numbers of a run, by column.

    Parameters
    ----------
    needed
        Reports that must be there, and be positive numbers; others are left out where they are not
        found.

    Raises
    ------
    NotReported
        One that is needed is not found; the message has what was sought.
    """
    columns: dict[str, int | float | str] = {}
    for report in reader.reports:
        try:
            value = _value_of(report, reader, sources)
        except NotReported as error:
            if report.name in needed:
                raise NotReported(f"the report '{report.name}' was not found: {error}") from None
            continue
        if report.name in needed and not (isinstance(value, (int, float)) and value > 0):
            raise NotReported(
                f"the report '{report.name}' is no positive number: {value!r}, by {report.sought}"
            )
        if report.factor != 1.0 and not isinstance(value, str):
            value *= report.factor
        columns[report.name] = value
    return columns


def _value_of(report: Report, reader: Reader, sources: Sources) -> int | float | str:
    text = sources.text(reader, report.file)
    if report.pattern is not None:
        return _by_pattern(report, report.pattern, text)
    text = sources.output if report.file is None else text
    if report.path is None:
        value: int | float | str = _by_column(report, text)
    else:
        value = _by_path(report, report.path, text)
    return number(value.strip()) if isinstance(value, str) else value


def _by_pattern(report: Report, pattern: str, text: str) -> int | float | str:
    groups: dict[str, str | None] = {}
    for match in re.finditer(pattern, text, re.MULTILINE):
        groups = match.groupdict()  # the last match counts
    value = groups.get("value", groups.get(report.name))
    if value is None:
        raise NotReported(f"nothing matches {report.sought}")
    return number(value)


def _by_path(report: Report, path: str | tuple[str, ...], text: str) -> int | float | str:
    place = _parsed(report, text)
    keys = tuple(path.split(".")) if isinstance(path, str) else path
    for at, key in enumerate(keys):
        try:
            place = place[int(key)] if isinstance(place, list) else place[key]
        except (KeyError, IndexError, ValueError, TypeError):
            raise NotReported(
                f"no {key!r} at {'.'.join(keys[:at]) or 'the top'} of"
                f" {report.file or 'its output'}, which has: {_contents(place)[:200]}"
            ) from None
    if isinstance(place, bool) or not isinstance(place, (int, float, str)):
        raise NotReported(f"{report.sought} is {type(place).__name__}, not a number")
    return place


def _contents(place: object) -> str:
    if isinstance(place, dict):
        return ", ".join(map(str, place))
    return f"{len(place)} items" if isinstance(place, list) else repr(place)


def _parsed(report: Report, text: str) -> Any:
    form = report.form or ("yaml" if (report.file or "").endswith((".yml", ".yaml")) else "json")
    try:
        if form == "yaml":
            import yaml

            return load_yaml(text, yaml.SafeLoader, report.file or "its output", "report")
        begins = re.search(r"^\s*[\[{]", text, re.MULTILINE)  # programs print notes before it
        return json.JSONDecoder().raw_decode(text[begins.start() :].lstrip() if begins else text)[0]
    except Exception as error:  # of yaml, which is imported only where it is needed, or of json
        reason = str(error).splitlines()[0]
        what = report.file or "its output"
        raise NotReported(f"{what} is not {form.upper()}: {reason}") from None


def _by_column(report: Report, text: str) -> str:
    rows = list(csv.DictReader(io.StringIO(text), skipinitialspace=True))
    if not rows or report.column not in rows[0]:
        raise NotReported(
            f"no column {report.column!r}; the table has:"
            f" {', '.join(map(str, rows[0] if rows else ()))}"
        )
    chosen = [
        row
        for row in rows
        if all((row.get(key) or "").strip() == wanted for key, wanted in report.where)
    ]
    try:
        return chosen[report.row][report.column] or ""
    except IndexError:
        raise NotReported(f"no {report.sought}: {len(chosen)} rows are left") from None


def tables_and_series(reader: Reader, text: str) -> tuple[dict, dict]:
    """The columns and the series that a reader finds in an output; a column without a match is left
    out.
    """
    columns: dict[str, int | float | str] = {}
    for table in reader.tables:
        columns |= _table_columns(table, text)
    series = {}
    for name, unit, pattern in reader.series:
        values = [number(match["value"]) for match in re.finditer(pattern, text, re.MULTILINE)]
        if values and all(
            isinstance(value, (int, float)) and math.isfinite(value) for value in values
        ):
            series[name] = {"unit": unit, "values": [float(value) for value in values]}
    return columns, series


def _table_columns(table: Table, text: str) -> dict[str, int | float | str]:
    found = re.finditer(table.section, text, re.MULTILINE) if table.section else ()
    headings = [(match.start(), match["section"]) for match in found]
    columns: dict[str, int | float | str] = {}
    for row in re.finditer(table.row, text, re.MULTILINE):
        section = next((name for at, name in reversed(headings) if at < row.start()), "")
        named = {"name": row.groupdict().get("name"), "section": section}
        words = {
            key: re.sub(r"[^a-z0-9]+", "_", (text or "").lower()).strip("_")
            for key, text in named.items()
        }
        columns |= {
            column.format_map(words): number(row[group])
            for group, column in table.columns
            if row[group] is not None
        }
    return columns
