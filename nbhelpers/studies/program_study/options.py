"""A program from plain texts and numbers, as a command line or a notebook's parameters name it."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ... import places
from ...errors import InputError
from ...files import digest
from ...workloads import Report, Workload, program

_UNIT = re.compile(r"[^\s()\[\]\\|?+*^$]*")


def program_from_options(
    command: str | Sequence[str] = "",
    *,
    shell: str | bool = "",
    lines: Sequence[str] = (),
    reports: Sequence[str] = (),
    **options: Any,
) -> Workload:
    """A workload from plain texts and numbers, as a command line or a notebook's parameters have
    them.

    Parameters
    ----------
    command
        Words, or one string of them.
    shell
        A line for /bin/sh in place of the command; or True: the command is one.
    lines
        The two patterns of printed lines between which it is timed.
    reports
        Each ``NAME=REGEX[:UNIT[:higher|lower]]``; see `parse_report`.
    options
        Keywords of `nbhelpers.workloads.program`: `description`, `region`, `seconds`, `outcome`,
        `threads`, `timeout_s`. What is empty or 0 is left to it.

    Raises
    ------
    InputError, RunError
        An option that cannot be used, or a program that cannot be run; see `program`.

    Examples
    --------
    >>> program_from_options("sleep 0.01").name
    'sleep'
    """
    if shell and command and not isinstance(shell, bool):
        raise InputError("both a command and a shell line", fix="give one of them")
    if lines and len(lines) != 2:
        raise InputError(
            f"{len(lines)} patterns of lines; a region has two",
            fix="the line that opens it, and the line that closes it",
        )
    if lines:
        options["region"] = tuple(lines)
    options |= {"reports": tuple(map(parse_report, reports)), "shell": bool(shell)}
    line = shell if isinstance(shell, str) else ""
    known = {name: value for name, value in options.items() if value}
    return program(line or command or None, **known)


def study_folder(workload: Workload) -> Path:
    """The folder of a program's study where none is named: one for each command.

    Parameters
    ----------
    workload
        The program.

    Examples
    --------
    >>> study_folder(program_from_options("sleep 0.01")).parent.name
    'programs'
    """
    what = digest(*workload.command, *(f"{name}={value}" for name, value in workload.env))
    return places.results() / "programs" / f"{workload.name}-{what[:6]}"


def parse_report(text: str) -> Report:
    """A number that a program reports, from ``NAME=REGEX[:UNIT[:higher|lower]]``.

    The pattern may hold colons: the part after the last one is a unit only if it has neither spaces
    nor any of ``()[]\\|?+*^$``.

    Raises
    ------
    InputError
        There is no name or no pattern, or `Report` refuses them.

    Examples
    --------
    >>> parse_report(r"rate=rate: (?P<value>[0-9.]+):MB/s:higher")
    Report(rate (MB/s, higher is better))
    """
    name, equals, rest = text.partition("=")
    if not (name and equals and rest):
        raise InputError(
            f"'{text}' is no report",
            fix=r"NAME=REGEX:UNIT:higher, such as " r"'rate=rate: (?P<value>[0-9.]+):MB/s:higher'",
        )
    pattern, direction = rest, "lower"
    if rest.rpartition(":")[2] in ("higher", "lower"):
        pattern, _, direction = rest.rpartition(":")
    before, colon, unit = pattern.rpartition(":")
    if colon and before and _UNIT.fullmatch(unit):
        return Report(name, before, unit, direction)
    return Report(name, pattern, "", direction)
