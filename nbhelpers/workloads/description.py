"""Descriptions of programs: what data/knowledge/programs/*.yml, or a file of one's own, says of
each.

Owns the reading of these files, and finding out which variant a program at hand is. How a number is
found in an output, `nbhelpers.measurement` knows.
"""

import difflib
import os
import re
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ..errors import InputError
from ..files import read_json
from ..places import knowledge
from ..schemas import place_of, schema_error
from .reader import Reader, Report, Table
from .region import Region

FOLDER = knowledge() / "programs"
_OPTION = re.compile(r"\{([a-z][a-z0-9_]*)\}")
_PROBE_LIMIT_S = 20


@dataclass(frozen=True)
class Variant:
    """A version of a program that is started in another way.

    Parameters
    ----------
    probe
        Arguments that the program is tried with, once.
    found, absent
        Patterns that its output must have, and must not have; None: whichever.
    command
        Words, or the shell line as the only word, of this variant.
    """

    probe: tuple[str, ...]
    found: str | None
    absent: str | None
    command: tuple[str, ...]


@dataclass(frozen=True)
class Description:
    """What is known of a program.

    Parameters
    ----------
    name, title, source
        What it is, and of which version this holds.
    seen
        "run": recorded from the program itself; "described": written after its documentation.
    command
        Its words, or its shell line as the only word; {option} stands for an option.
    shell
        Whether it is a shell line.
    variants
        Other ways of starting it; the first whose probe agrees is taken.
    options
        Their defaults.
    model, env, region, outcome, timeout_s
        See `program`.
    reader
        How its output is read.
    """

    name: str
    title: str
    source: str
    seen: str
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
            near = difflib.get_close_matches(min(unknown), self.options, 1)
            raise InputError(
                f"'{min(unknown)}' is no option of the program '{self.name}'"
                + (f"; did you mean '{near[0]}'?" if near else ""),
                fix=f"options: {', '.join(self.options) or 'none'}",
            )
        values = {**self.options, **options}
        command = self.command
        for variant in self.variants:
            if _agrees(variant, program or command[0], values):
                command = variant.command
                break
        words = tuple(_filled(word, values) for word in command)
        return words if program is None else (program, *words[1:])


def descriptions() -> dict[str, Description]:
    """All descriptions of programs that come with Noisebook, by name.

    Examples
    --------
    >>> descriptions()["babelstream"]
    Description(babelstream: BabelStream 5.0 (any model, CSV output))
    """
    return {path.stem: read_description(path) for path in sorted(FOLDER.glob("*.yml"))}


def find_description(name: str | os.PathLike) -> Description:
    """A description by name, or by the path of a file of one's own.

    Raises
    ------
    InputError
        There is none, or the file is not one.
    """
    text = os.fspath(name)
    if os.sep in text or text.endswith((".yml", ".yaml")):
        return read_description(text)
    names = sorted(path.stem for path in FOLDER.glob("*.yml"))
    if text in names:
        return read_description(FOLDER / f"{text}.yml")
    near = difflib.get_close_matches(text, names, 1)
    raise InputError(
        f"no program '{text}' is described" + (f"; did you mean '{near[0]}'?" if near else ""),
        fix=f"choose from {', '.join(names)}, or give the path of a .yml file",
    )


def read_description(path: str | os.PathLike) -> Description:
    """Read the description of a program.

    Raises
    ------
    InputError
        No such file, not YAML, or not as data/knowledge/programs/program.schema.json has it; the
        message names the field.
    """
    import yaml

    path = Path(path)
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(
            f"cannot read the description of a program: {error.strerror}", where=path
        ) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InputError(f"the description of a program is not YAML: {error}", where=path) from None
    _check(content, path)
    return _description(path.stem, content)


def _description(name: str, content: dict) -> Description:
    return Description(
        name,
        content.get("title", name),
        content.get("source", ""),
        content.get("seen", "described"),
        _command(content),
        "shell" in content,
        tuple(
            Variant(
                tuple(map(str, own["probe"])), own.get("found"), own.get("absent"), _command(own)
            )
            for own in content.get("variants", ())
        ),
        content.get("options", {}),
        content.get("model", "external"),
        {key: str(value) for key, value in content.get("env", {}).items()},
        _region(content.get("region")),
        _reader(name, content),
        content.get("outcome", "seconds"),
        float(content.get("timeout_s", 120)),
    )


def _command(content: dict) -> tuple[str, ...]:
    return (
        (content["shell"],) if "shell" in content else tuple(map(str, content.get("command", ())))
    )


def _region(value: object) -> Region | None:
    if isinstance(value, dict):
        return Region(value.get("kind", "lines"), value.get("begin"), value.get("end"))
    return None if value is None else Region(str(value))


def _reader(name: str, content: dict) -> Reader:
    verification = content.get("verification", {})
    tables = tuple(
        Table(own["row"], tuple(own["columns"].items()), own.get("section"))
        for own in content.get("tables", ())
    )
    series = tuple((own["name"], own["unit"], own["pattern"]) for own in content.get("series", ()))
    return Reader(
        name,
        tuple(Report(**own) for own in content.get("reports", ())),
        verification.get("passed"),
        verification.get("failed"),
        tables,
        series,
        content.get("files", ()),
        content.get("fresh_folder", False),
    )


def _check(content: object, path: Path) -> None:
    """Against the schema, and that the command names no option that is not there."""
    if error := schema_error(_schema(), content):
        raise InputError(
            f"not the description of a program: {error.message}",
            where=f"{path}, at {place_of(error)}",
            fix="compare with program.schema.json and the files beside it",
        )
    words = [
        word for own in (content, *content.get("variants", ())) for word in own.get("command", ())
    ]
    named = {name for word in words for name in _OPTION.findall(str(word))}
    if lacking := named - set(content.get("options", {})):
        raise InputError(
            f"the command names an option '{min(lacking)}' without a default",
            where=f"{path}, at options",
        )


@cache
def _schema() -> dict:
    return read_json(FOLDER / "program.schema.json")


def _filled(word: str, options: Mapping[str, object]) -> str:
    """With options put in; other braces stay, as a shell line has them."""
    return _OPTION.sub(lambda match: str(options.get(match[1], match[0])), word)


def _agrees(variant: Variant, program: str, options: Mapping[str, object]) -> bool:
    output = _said(program, tuple(_filled(word, options) for word in variant.probe))
    wanted = variant.found is None or re.search(variant.found, output, re.MULTILINE)
    return bool(wanted and not (variant.absent and re.search(variant.absent, output, re.MULTILINE)))


@cache
def _said(program: str, arguments: tuple[str, ...]) -> str:
    """What a program answers; nothing if it does not in time."""
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
