"""What `noisebook ab` does: the two sides from the words, the ruling, and what is written."""

import argparse
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from .. import places
from ..errors import InputError
from ._verbs import Answer, _described, _relative, _say

if TYPE_CHECKING:
    import pandas as pd

    from ..referee.ruling import Ruling
    from ..referee.sides import Side

WORSE_STATUS, OPEN_STATUS = 4, 5
FEWEST_PAIRS = 8


def ab(arguments: argparse.Namespace) -> Answer:
    """The ruling on the two sides, or the comment on an earlier one."""
    from ..referee.ruling import decide, read_ruling
    from ..referee.sheet import comment

    if arguments.comment:
        ruling = read_ruling(arguments.comment)
        return Answer(comment(ruling), {"comment": comment(ruling)})
    _check(arguments)
    folder = _folder(arguments)
    with _sides(arguments) as (old, new):
        ruling = decide(
            old,
            new,
            folder,
            margin=arguments.margin / 100,
            level=arguments.level,
            pairs=arguments.pairs,
            seconds=arguments.budget,
            correct=arguments.correct,
        )
    return _written(ruling, folder, arguments)


def _check(arguments: argparse.Namespace) -> None:
    for name, fits, fix in (
        ("margin", 0 < arguments.margin < 100, "a percentage above 0: --margin 2"),
        ("level", 0 < arguments.level < 1, "a probability: --level 0.05"),
        ("pairs", arguments.pairs >= FEWEST_PAIRS, f"--pairs {FEWEST_PAIRS} or more"),
        ("budget", arguments.budget >= 0, "seconds: --budget 60"),
    ):
        if not fits:
            raise InputError(f"--{name} {getattr(arguments, name):g} cannot be used", fix=fix)


def _written(ruling: "Ruling", folder: Path, arguments: argparse.Namespace) -> Answer:
    from ..referee.curve import curve_text
    from ..referee.sheet import write_sheet

    ruling.write(folder / "ruling.json")
    curve, missing = _curve(ruling, folder) if arguments.curve else (None, "")
    page = None if arguments.no_page else write_sheet(folder / "ab.html", ruling, curve)
    _say(
        *([curve_text(curve)] if curve is not None else []),
        *filter(None, [missing]),
        *ruling.notes,
        *([f"page  {_relative(page)}"] if page else []),
        f"data  {_relative(folder)}",
        *([f"to go on: {arguments.continued}"] if ruling.open else []),
    )
    status = WORSE_STATUS if ruling.worse else OPEN_STATUS if ruling.open else 0
    data = ruling.as_dict() | {"page": page}
    if curve is not None:
        data["curve"] = curve.to_dict("records")
    return Answer(ruling.sentence, data, 0 if arguments.curve else status)


def _curve(ruling: "Ruling", folder: Path) -> tuple["pd.DataFrame | None", str]:
    """The operating curve, also as a file; or why there is none."""
    import numpy as np

    from ..files import write_atomically
    from ..referee.curve import operating_curve

    try:
        ratios = np.array(ruling.ratios)
        curve = operating_curve(ratios, margin=ruling.margin, level=ruling.level)
    except InputError as error:
        return None, f"no operating curve: {error.what}; {error.fix}"
    write_atomically(folder / "operating_curve.csv", curve.to_csv(index=False))
    return curve, ""


def _folder(arguments: argparse.Namespace) -> Path:
    """The folder that was named, else a new one: a command may stand for another program by now."""
    name = f"{datetime.now():%Y-%m-%d-%H%M%S}"
    folder = Path(arguments.folder or places.results() / "ab" / name).absolute()
    arguments.data_folder = folder
    arguments.continued = f"the same command with --folder {shlex.quote(_relative(folder))}"
    return folder


@contextmanager
def _sides(arguments: argparse.Namespace) -> Iterator[tuple["Side", "Side"]]:
    """The two sides; built revisions are there for the length of the block."""
    if arguments.git:
        from ..referee.revisions import built_revisions, placed

        if not arguments.command:  # a shell line would be the same for both
            raise InputError(
                "--git needs the program behind --",
                fix="noisebook ab --git REV1 REV2 -- ./program; a line: … -- sh -c '{}/a | {}/b'",
            )
        with built_revisions(arguments.git, arguments.build) as folders:
            commands = [placed(arguments.command, folder) for folder in folders]
            labels = [f"{shlex.join(arguments.command)} of {name}" for name in arguments.git]
            yield _configured(arguments, commands, labels)
        return
    if arguments.build:
        raise InputError("--build without --git", fix="noisebook ab --git REV1 REV2 --build …")
    yield _configured(arguments, _commands(arguments), ["", ""])


def _configured(
    arguments: argparse.Namespace, commands: Sequence[list[str] | str], labels: Sequence[str]
) -> tuple["Side", "Side"]:
    from ..referee.sides import configured
    from ..studies.program_study import program_from_options

    options = _described(arguments)
    watched = bool(arguments.old_mitigation or arguments.new_mitigation)
    old, new = (
        configured(
            program_from_options(**options | {"command": command}),
            _variables(getattr(arguments, f"{side}_env")),
            getattr(arguments, f"{side}_mitigation"),
            watched,
            label,
        )
        for side, command, label in zip(("old", "new"), commands, labels)
    )
    return old, new


def _commands(arguments: argparse.Namespace) -> list[list[str] | str]:
    """Those of the two sides: named, behind two `--`, or one for both."""
    if arguments.old or arguments.new:
        if not (arguments.old and arguments.new) or arguments.command:
            raise InputError(
                "--old and --new name the two sides", fix="give both, and no program behind --"
            )
        return [arguments.old, arguments.new]
    if _is_configured(arguments):
        if not (arguments.command or arguments.shell or arguments.program):
            raise InputError("which program?", fix="noisebook ab … -- ./program arguments")
        return [arguments.command, arguments.command]
    words = arguments.command
    at = words.index("--") if "--" in words else 0
    if not (0 < at < len(words) - 1):
        raise InputError(
            "which two programs?",
            fix="noisebook ab -- ./a arguments -- ./b arguments; more: noisebook ab --help",
        )
    return [words[:at], words[at + 1 :]]


def _is_configured(arguments: argparse.Namespace) -> bool:
    names = ("old_env", "new_env", "old_mitigation", "new_mitigation", "curve")
    several = "--" in arguments.command
    return not several and any(getattr(arguments, name) for name in names)


def _variables(words: Sequence[str]) -> dict[str, str]:
    pairs = [word.partition("=") for word in words]
    for name, equals, _ in pairs:
        if not (name and equals):
            raise InputError(f"'{name}' sets no variable", fix="NAME=VALUE")
    return {name: value for name, _, value in pairs}
