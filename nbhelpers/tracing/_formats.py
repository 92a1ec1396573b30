"""Event formats: where the fields of a tracepoint lie in its record, from the kernel's
description.

Owns the reading of events/SYSTEM/NAME/format and the extraction of fields from many records at
once.
"""

import re
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..errors import InputError
from ._files import damaged

_FIELD = re.compile(r"field:([^;]+);\s*offset:(\d+);\s*size:(\d+);\s*signed:(\d);")
_ID = re.compile(r"^ID:\s*(\d+)", re.MULTILINE)
_LARGEST_RECORD = 4096


@dataclass(frozen=True)
class Field:
    """One field of a record: offset and size in bytes; `located` fields hold offset and length of a
    text, the offset from the record ("data"), or from the end of the field ("relative").
    """

    offset: int
    size: int
    signed: bool
    located: str


@dataclass(frozen=True)
class EventFormat:
    """A tracepoint's number and fields."""

    name: str
    number: int
    fields: dict

    @classmethod
    def parse(cls, name: str, text: str, where: object = None) -> "EventFormat":
        """Read a format file.

        Raises
        ------
        InputError
            No ID, or fields outside of any record.
        """
        number = _ID.search(text)
        fields = {
            _name(declared): _field(declared, offset, size, signed)
            for declared, offset, size, signed in _FIELD.findall(text)
            if len(offset) < 6 and len(size) < 6
        }
        if (
            not number
            or len(number[1]) > 5
            or "common_pid" not in fields
            or any(f.offset + f.size > _LARGEST_RECORD for f in fields.values())
        ):
            raise InputError(f"the format of the event {name} is not understood", where=where)
        return cls(name, int(number[1]), fields)

    def field(self, name: str, where: object = None) -> Field:
        """A field, or an error that names the event."""
        if name not in self.fields:
            raise InputError(
                f"the event {self.name} has no field '{name}'",
                where=where,
                why="this kernel's format is not known to Noisebook",
            )
        return self.fields[name]


def _name(declared: str) -> str:
    return declared.split()[-1].split("[")[0].lstrip("*")


def _field(declared: str, offset: str, size: str, signed: str) -> Field:
    kinds = {"__data_loc": "data", "__rel_loc": "relative"}
    located = kinds.get(declared.partition(" ")[0], "")
    return Field(int(offset), int(size), signed == "1", located)


def integers(
    data: np.ndarray, at: np.ndarray, size: np.ndarray, field: Field, where: object = None
) -> np.ndarray:
    """An integer field of many records as int64.

    Parameters
    ----------
    data
        uint8, the buffer.
    at, size
        Where each record begins and how long it is.
    """
    if field.size not in (1, 2, 4, 8) or (size < field.offset + field.size).any():
        raise damaged("a record shorter than its format says", where)
    kind = f"<{'i' if field.signed else 'u'}{field.size}"
    if (
        field.size <= 4 and field.offset % field.size == 0 and len(data) % 4 == 0
    ):  # records begin at multiples of 4 bytes
        return data.view(kind)[(at + field.offset) // field.size].astype(np.int64)
    return _windows(data, at + field.offset, field.size).view(kind).ravel().astype(np.int64)


def texts(
    data: np.ndarray, at: np.ndarray, size: np.ndarray, field: Field, where: object = None
) -> pd.Categorical:
    """A text field of many records: a fixed array of characters, or one located elsewhere in the
    record.
    """
    if field.located:
        return _located_texts(data, at, size, field, where)
    if (size < field.offset + field.size).any():
        raise damaged("a record shorter than its format says", where)
    return _as_texts(_windows(data, at + field.offset, field.size))


def _located_texts(
    data: np.ndarray, at: np.ndarray, size: np.ndarray, field: Field, where: object
) -> pd.Categorical:
    place = integers(data, at, size, Field(field.offset, 4, False, ""), where)
    begin = (place & 0xFFFF) + (field.offset + 4 if field.located == "relative" else 0)
    length = place >> 16
    if (begin + length > size).any():
        raise damaged("a text outside of its record", where)
    if not len(at):
        return _as_texts(np.zeros((0, 1), np.uint8))
    width = int(length.max(initial=1)) or 1
    padded = np.concatenate([data, np.zeros(width, np.uint8)])
    characters = _windows(padded, at + begin, width)
    characters[np.arange(width) >= length[:, None]] = 0
    return _as_texts(characters)


def _windows(data: np.ndarray, begin: np.ndarray, width: int) -> np.ndarray:
    """Rows of `width` bytes, a copy."""
    if not len(begin):
        return np.zeros((0, width), np.uint8)
    return np.ascontiguousarray(np.lib.stride_tricks.sliding_window_view(data, width)[begin])


def _as_texts(characters: np.ndarray) -> pd.Categorical:
    """Rows of bytes up to the first NUL; what follows it is left-over memory of the kernel."""
    rows, columns = characters.shape
    padded = np.zeros((rows, -(-columns // 8) * 8), np.uint8)
    padded[:, :columns] = characters
    codes = np.zeros(rows, np.int64)
    for part in padded.view("<u8").T:
        part_codes, values = pd.factorize(part)
        codes = pd.factorize(codes * max(len(values), 1) + part_codes)[0]
    _, first = np.unique(codes, return_index=True)
    names = [padded[row].tobytes().split(b"\0")[0].decode(errors="replace") for row in first]
    renamed, categories = pd.factorize(np.array(names, dtype=object), sort=True)
    return pd.Categorical.from_codes(renamed[codes] if rows else codes, categories=list(categories))
