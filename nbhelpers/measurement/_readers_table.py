"""Tables of runs from elsewhere: CSV or parquet, thousands of columns, read with pyarrow, with
units from a file in the same folder.

Owns `read_table`; what its columns explain is for `nbhelpers.attribution`.
"""

import difflib
import io
import os
import zlib
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from ..errors import InputError
from ..reading import open_regular, read_bytes, read_json, refusing_no_table, require_parquet

# parsed together: a single row of thousands of columns can be larger than pyarrow's usual megabyte
_BLOCK_BYTES = 64 * 2**20
_MISSING = [
    "",
    "NA",
    "N/A",
    "NaN",
    "nan",
    "null",
    "None",
    "-",
    "<not counted>",
    "<not supported>",
]  # the last two are perf's


def read_table(
    path: str | os.PathLike,
    columns: Sequence[str] | None = None,
    units: str | os.PathLike | None = None,
) -> pd.DataFrame:
    """Read a table of runs that something else wrote.

    Parameters
    ----------
    path
        A .csv, .tsv, .csv.gz or .parquet file with a header, a row a run.
    columns
        Only these.
    units
        A JSON file of {column: unit}; default: the file of the same name with `.units.json` in
        place of its ending, if there is one.

    Returns
    -------
    DataFrame
        Numbers as int64 or float64, other columns unchanged; `attrs["units"]` where units are
        known.

    Raises
    ------
    InputError
        No such file, an unknown ending, not a table (the line is named), two columns of one name,
        or a column that is not there.

    Notes
    -----
    A column of numbers in which perf or a person wrote "<not counted>" or "NA" in some rows is a
    column of numbers with missing values.
    """
    path = Path(path)
    if not path.is_file():
        raise InputError("there is no such file", where=path)
    table = _parquet(path, columns) if path.suffix == ".parquet" else _csv(path, columns)
    with refusing_no_table(path, "table"):  # its metadata, which pandas reads, may be damaged
        # column by column: the two copies never exist together
        frame = table.to_pandas(split_blocks=True, self_destruct=True)
    sidecar = (
        Path(units)
        if units is not None
        else path.with_name(path.name.split(".")[0] + ".units.json")
    )
    if units is not None or sidecar.exists():
        frame.attrs["units"] = _units(sidecar, frame, complete=columns is None)
    return frame


def _csv(path: Path, columns: Sequence[str] | None):
    import pyarrow as arrow
    from pyarrow import csv

    endings = {".csv": ",", ".tsv": "\t", ".txt": "\t"}
    delimiter = endings.get(Path(path.name.removesuffix(".gz")).suffix)
    if delimiter is None:
        raise InputError(
            "an unknown kind of file",
            where=path,
            fix="give a .csv, .tsv, .csv.gz or .parquet file",
        )
    convert = csv.ConvertOptions(
        null_values=_MISSING, include_columns=None if columns is None else list(columns)
    )
    if columns is not None:
        _check_columns(columns, _header(path, delimiter), path)
    try:
        packed = path.suffix == ".gz"
        with arrow.input_stream(io.BytesIO(read_bytes(path)) if packed else str(path)) as stream:
            table = csv.read_csv(
                stream,
                csv.ReadOptions(block_size=_BLOCK_BYTES),
                csv.ParseOptions(delimiter=delimiter),
                convert,
            )
    except (OSError, ValueError) as error:
        raise InputError(
            f"not a readable table: {error}",
            where=path,
            why="each row needs as many values as the header has names",
        ) from None
    try:
        _check_unique(table.column_names, path)
    except UnicodeDecodeError as error:  # pyarrow checks the values only
        raise InputError(f"the header is not UTF-8 text: {error}", where=path) from None
    return table


def _header(path: Path, delimiter: str) -> list[str]:
    import csv

    packed = path.suffix == ".gz"
    source = io.BytesIO(read_bytes(path)) if packed else open_regular(path, "table")
    with io.TextIOWrapper(source, newline="", encoding="utf-8-sig") as file:
        try:
            return next(csv.reader(file, delimiter=delimiter), [])
        except (OSError, EOFError, ValueError, zlib.error, csv.Error) as error:
            raise InputError(f"not a readable table: {error}", where=f"{path}, line 1") from None


def _parquet(path: Path, columns: Sequence[str] | None):
    from pyarrow import parquet

    require_parquet(path, "parquet file")
    with refusing_no_table(path, "parquet file"):
        file = parquet.ParquetFile(path)
        if columns is not None:
            _check_columns(columns, file.schema_arrow.names, path)
        return file.read(columns=columns)


def _check_columns(wanted: Sequence[str], names: Sequence[str], path: Path) -> None:
    known = set(names)
    for name in wanted:
        if name not in known:
            near = difflib.get_close_matches(name, names, 1)
            raise InputError(
                f"no column {name!r} among the {len(names)} of the table",
                where=path,
                fix=f"did you mean {near[0]!r}?" if near else None,
            )


def _check_unique(names: Sequence[str], path: Path) -> None:
    if len(set(names)) < len(names):
        repeated = next(name for at, name in enumerate(names) if name in names[:at])
        raise InputError(
            f"two columns are called {repeated!r}",
            where=path,
            why="a name must mean one column",
            fix="rename one in the header",
        )


def _units(path: Path, frame: pd.DataFrame, complete: bool) -> dict[str, str]:
    content = read_json(path)
    if not isinstance(content, dict) or not all(isinstance(unit, str) for unit in content.values()):
        raise InputError("not a table of units", where=path, fix='write {"column": "unit", …}')
    strangers = set(content) - set(frame.columns)
    if complete and strangers and strangers == set(content):
        raise InputError(
            f"none of its columns is in the table, such as {min(strangers)!r}", where=path
        )
    return {name: unit for name, unit in content.items() if name in frame.columns}
