"""Descriptions of programs: data/knowledge/programs/*.yml, or a user's file.

Owns the reading of these files, and finding out which variant a program at hand is. How a number is
found in an output is in `nbhelpers.measurement`.
"""

import os
import re
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ..errors import InputError, check_choice, nearest
from ..places import knowledge
from ..reading import read_json, read_yaml
from ..schemas import place_of, schema_error
from .reader import Reader, Report, Table
from .region import Region

FOLDER = knowledge() / "programs"
_OPTION = re.compile(r"\{([a-z][a-z0-9_]*)\}")
_PROBE_LIMIT_S = 20


@dataclass(frozen=True)
class Variant:
    """A version of a program that is started in another way."""

    probe: tuple[str, ...]  # arguments with which the program is tried
    found: str | None  # a pattern that its output must have; None: any output
    absent: str | None  # a pattern that its output must not have
    command: tuple[str, ...]  # words, or the shell line as the only word


@dataclass(frozen=True)
class Description:
    """What is known of a program.

    Parameters
    ----------
    name, title, source
        What it is, and which version was run, with its licence.
    command
        Its words, or its shell line as the only word; {option} stands for an option.
    shell
        Whether it is a shell line.
    variants
        Other ways of starting it; the first whose probe agrees is taken.
    options
        Their defaults.
    model, env, region, outcome, timeout_s, run
        What `program` takes under these names, unless its caller says otherwise.
    reader
        How its output is read.
    """

    name: str
    title: str
    source: str
    command: tuple[str, ...]
    shell: bool
    variants: tuple[Variant, ...]
    options: Mapping[str, object]
    model: str
    env: Mapping[str, str]
    region: Region | None
    reader: Reader
    outcome: str
    timeout_s: float
    run: str

    def __repr__(self) -> str:
        return f"Description({self.name}: {self.title})"

    def words(self, options: Mapping[str, object], program: str | None = None) -> tuple[str, ...]:
        """The command with options put in.

        Parameters
        ----------
        options
            Those that differ from the defaults.
        program
            Path of the program at hand, in place of the command's first word.

        Raises
        ------
        InputError
            An option that it does not have.
        """
        if unknown := set(options) - set(self.options):
            what = f"'{min(unknown)}' is no option of the program '{self.name}'"
            raise InputError(what, fix=nearest(min(unknown), self.options))
        values = {**self.options, **options}
        command = self.command
        for variant in self.variants:
            if _agrees(variant, program or command[0], values):
                command = variant.command
                break
        words = tuple(_filled(word, values) for word in command)
        return words if program is None else (program, *words[1:])


def nothing_known() -> Description:
    """Stands for the description of a program that has none."""
    return _description("", {"timeout_s": 60})


def descriptions() -> dict[str, Description]:
    """Return the descriptions of programs that come with Noisebook.

    Returns
    -------
    dict
        Name to `Description`.

    Examples
    --------
    >>> descriptions()["babelstream"]
    Description(babelstream: BabelStream 5.0 (any model, CSV output))
    """
    return {path.stem: read_description(path) for path in sorted(FOLDER.glob("*.yml"))}


def find_description(name: str | os.PathLike) -> Description:
    """Return a description by name, or by the path of a user's file.

    Parameters
    ----------
    name
        Name of a file of data/knowledge/programs without its ending, or the path of a .yml file.

    Raises
    ------
    InputError
        No program of that name is described, or the file is no description.
    """
    text = os.fspath(name)
    if os.sep in text or text.endswith((".yml", ".yaml")):
        return read_description(text)
    names = sorted(path.stem for path in FOLDER.glob("*.yml"))
    more = "; or give the path of a .yml file"
    check_choice("description of a program", text, names, FOLDER, more)
    return read_description(FOLDER / f"{text}.yml")


def read_description(path: str | os.PathLike) -> Description:
    """Read the description of a program.

    Parameters
    ----------
    path
        Path of a YAML file as data/knowledge/programs/program.schema.json demands it.

    Raises
    ------
    InputError
        No such file; the message names the field that is wrong.
    """
    path = Path(path)
    content = read_yaml(path, "description of a program")
    _check(content, path)
    return _description(path.stem, content)


def _description(name: str, content: dict) -> Description:
    variants = tuple(
        Variant(tuple(map(str, one["probe"])), one.get("found"), one.get("absent"), _command(one))
        for one in content.get("variants", ())
    )
    region = content.get("region")
    if isinstance(region, str):
        region = {"kind": region}
    return Description(
        name,
        content.get("title", name),
        content.get("source", ""),
        _command(content),
        "shell" in content,
        variants,
        content.get("options", {}),
        content.get("model", "external"),
        {key: str(value) for key, value in content.get("env", {}).items()},
        Region(**{"kind": "lines", **region}) if region else None,
        _reader(name, content),
        content.get("outcome", "seconds"),
        float(content.get("timeout_s", 120)),
        content.get("run", ""),
    )


def _command(content: dict) -> tuple[str, ...]:
    if "shell" in content:
        return (content["shell"],)
    return tuple(map(str, content.get("command", ())))


def _reader(name: str, content: dict) -> Reader:
    verification = content.get("verification", {})
    tables = tuple(
        Table(table["row"], tuple(table["columns"].items()), table.get("section"))
        for table in content.get("tables", ())
    )
    series = tuple((one["name"], one["unit"], one["pattern"]) for one in content.get("series", ()))
    return Reader(
        name,
        tuple(Report(**report) for report in content.get("reports", ())),
        verification.get("passed"),
        verification.get("failed"),
        tables,
        series,
        content.get("files", ()),
        content.get("fresh_folder", False),
    )


def _check(content: Any, path: Path) -> None:
    """Against the schema, and that the command names no option that is not there."""
    if error := schema_error(read_json(FOLDER / "program.schema.json"), content):
        raise InputError(
            f"not the description of a program: {error.message}",
            where=f"{path}, at {place_of(error)}",
            fix="compare with program.schema.json and the files in its folder",
        )
    commands = [content, *content.get("variants", ())]
    words = [word for command in commands for word in command.get("command", ())]
    named = {name for word in words for name in _OPTION.findall(str(word))}
    if lacking := named - set(content.get("options", {})):
        raise InputError(
            f"the command names an option '{min(lacking)}' without a default",
            where=f"{path}, at options",
        )


def _filled(word: str, options: Mapping[str, object]) -> str:
    """With options put in; other braces stay, as a shell line has them."""
    return _OPTION.sub(lambda match: str(options.get(match[1], match[0])), word)


def _agrees(variant: Variant, program: str, options: Mapping[str, object]) -> bool:
    output = _output_of(program, tuple(_filled(word, options) for word in variant.probe))
    wanted = variant.found is None or re.search(variant.found, output, re.MULTILINE)
    return bool(wanted and not (variant.absent and re.search(variant.absent, output, re.MULTILINE)))


@cache
def _output_of(program: str, arguments: tuple[str, ...]) -> str:
    """What a program prints; nothing if it does not end in time."""
    with tempfile.TemporaryDirectory(prefix="noisebook-probe-") as folder:
        try:
            done = subprocess.run(
                [os.path.abspath(program) if os.sep in program else program, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                timeout=_PROBE_LIMIT_S,
                stderr=subprocess.STDOUT,
                cwd=folder,
            )
        except (OSError, subprocess.TimeoutExpired):
            return ""
    return done.stdout.decode(errors="replace")
