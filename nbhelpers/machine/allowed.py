"""Which settings of the machine may be changed, to which values, and at which risk.

Owns how workloads/allowed_settings.h is read, the one list that the program with privileges is
compiled with. Whatever is not on it is refused, whoever asks.
"""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ..errors import InputError, printable
from ..places import shipped
from ..reading import decoded, read_bytes

HEADER = Path("workloads", "allowed_settings.h")
HOW_TO_ADD = f"propose a further one as a line of {HEADER}, then build again: make env"
_LINE = re.compile(
    r'^ALLOWED\("([^"]+)",\s+(NUMBER|WORD|CPUS|MASK),\s+"([^"]*)",\s+(LOW|HIGH)\)$', re.MULTILINE
)
_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,18}")
_LETTERS = {"CPUS": re.compile(r"[0-9,-]{1,4000}"), "MASK": re.compile(r"[0-9a-f,]{1,4000}")}


@dataclass(frozen=True)
class Allowed:
    """One line of the list.

    Attributes
    ----------
    path
        A star stands for one decimal number.
    kind
        NUMBER, WORD, CPUS or MASK.
    range
        Least and most, or the words; "" for CPUs.
    risk
        "low" or "high".
    """

    path: str
    kind: str
    range: str
    risk: str

    def covers(self, path: str) -> bool:
        """Whether the text of a path is this one; nothing is resolved."""
        pattern = "[0-9]{1,6}".join(map(re.escape, self.path.split("*")))
        return re.fullmatch(pattern, path, re.ASCII) is not None

    def takes(self, value: str) -> bool:
        """Whether a value lies in the range; which CPUs there are the kernel knows."""
        if self.kind == "NUMBER":
            least, most = map(int, self.range.split())
            return _NUMBER.fullmatch(value) is not None and least <= int(value) <= most
        if self.kind == "WORD":
            return value in self.range.split()
        return _LETTERS[self.kind].fullmatch(value) is not None

    @property
    def values(self) -> str:
        """The range in words."""
        if self.kind == "NUMBER":
            return "a number from {} to {}".format(*self.range.split())
        if self.kind == "WORD":
            return f"one of {', '.join(self.range.split())}"
        return f"{'a list' if self.kind == 'CPUS' else 'a mask'} of CPUs"


def refusal(path: str, value: object, pattern: bool = False) -> str | None:
    """Why a setting may not be changed to a value, in words; None: it may.

    Parameters
    ----------
    path
        Path of one file, written as on the list: nothing is resolved, and a star is no number.
    value
        The value as it is written; True and False count as 1 and 0.
    pattern
        The path may have the list's own star in it, and stands for all files that it finds.

    Examples
    --------
    >>> refusal("/proc/sys/vm/swappiness", 1)
    >>> refusal("/proc/sys/kernel/core_pattern", "core")
    '/proc/sys/kernel/core_pattern is not on the list of settings that may be changed'
    """
    entry = _entry_of_pattern(path) if pattern else _entry(path)
    if entry is None:
        return f"{_shown(path)} is not on the list of settings that may be changed"
    text = str(int(value)) if isinstance(value, bool) else str(value)
    if entry.takes(text):
        return None
    return f"{path} may be {entry.values}, and not {_shown(text)!r}"


def _shown(text: str) -> str:
    """Printable, and not longer than a line."""
    line = printable(text.replace("\n", "�").replace("\t", "�"))
    return line if len(line) <= 120 else line[:117] + "…"


def risk_of(path: object) -> str:
    """The risk of changing a setting, "low" or "high"; the path may have the list's own star.

    Raises
    ------
    InputError
        It is not on the list.

    Examples
    --------
    >>> risk_of("/sys/devices/system/cpu/smt/control")
    'high'
    """
    entry = _entry_of_pattern(str(path))
    if entry is None:
        raise InputError(
            "this setting may not be changed",
            where=_shown(str(path)),
            why="what is not on the list could give a program the rights of root",
            fix=HOW_TO_ADD,
        )
    return entry.risk


def _entry(path: str) -> Allowed | None:
    return next((entry for entry in entries() if entry.covers(path)), None)


def _entry_of_pattern(pattern: str) -> Allowed | None:
    """The `_entry` of a path that may be written as on the list, with its star."""
    same = (entry for entry in entries() if entry.path == pattern)
    return next(same, _entry(pattern))


@cache
def entries() -> tuple[Allowed, ...]:
    """The lines of the list; what is not understood is not on it.

    Raises
    ------
    InputError
        The file is missing: then nothing is allowed.
    """
    file = shipped() / HEADER
    found = _LINE.findall(decoded(read_bytes(file, "list of settings"), file))
    return tuple(Allowed(path, kind, limits, risk.lower()) for path, kind, limits, risk in found)
