"""What `noisebook ab` does: the two sides from the words, the ruling, and what is written."""

import shlex
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

from .. import places
from ..errors import InputError
from ..files import write_json
from ..statistics.sequential import OPEN, WORSE
from ._verbs import Answer, _described, _relative, _say

if TYPE_CHECKING:
    from ..referee.ruling import Ruling
    from ..referee.sides import Side

_STATUSES = {WORSE: 4, OPEN: 5}


def ab(arguments: SimpleNamespace) -> Answer:
    """The ruling on the two sides."""
    from ..referee.ruling import decide

    folder = _folder(arguments)
    ruling = decide(
        *_sides(arguments),
        folder,
        margin=arguments.margin / 100,
        level=arguments.level,
        pairs=arguments.pairs,
        seconds=arguments.budget,
    )
    return _written(ruling, folder, arguments)


def _written(ruling: "Ruling", folder: Path, arguments: SimpleNamespace) -> Answer:
    write_json(folder / "ruling.json", ruling.as_dict())
    _say(*ruling.notes, f"data  {_relative(folder)}")
    if ruling.verdict == OPEN:
        _say(f"to go on: {arguments.continued}")
    return Answer(ruling.sentence, ruling.as_dict(), _STATUSES.get(ruling.verdict, 0))


def _folder(arguments: SimpleNamespace) -> Path:
    """The folder that was named, else a new one: a command may stand for another program by now."""
    name = f"{datetime.now():%Y-%m-%d-%H%M%S}"
    folder = Path(arguments.folder or places.results() / "ab" / name).absolute()
    arguments.data_folder = folder
    arguments.continued = f"the same command with --folder {shlex.quote(_relative(folder))}"
    return folder


def _sides(arguments: SimpleNamespace) -> tuple["Side", "Side"]:
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
        )
        for side, command in zip(("old", "new"), _commands(arguments))
    )
    return old, new


def _commands(arguments: SimpleNamespace) -> list[list[str] | str]:
    """Those of the two sides: behind two `--`, or one for both."""
    words, before = arguments.command, arguments.before
    names = ("old_env", "new_env", "old_mitigation", "new_mitigation")
    if "--" not in words and any(getattr(arguments, name) for name in names):
        if not (words or arguments.shell or arguments.program):
            raise InputError("which program?", fix=f"{before} -- ./program arguments")
        return [words, words]
    at = words.index("--") if "--" in words else 0
    if not (0 < at < len(words) - 1):
        raise InputError(
            "which two programs?",
            fix=f"{before} -- ./a arguments -- ./b arguments; more: noisebook ab --help",
        )
    return [words[:at], words[at + 1 :]]


def _variables(words: Sequence[str]) -> dict[str, str]:
    pairs = [word.partition("=") for word in words]
    for name, equals, _ in pairs:
        if not (name and equals):
            raise InputError(f"'{name}' sets no variable", fix="NAME=VALUE")
    return {name: value for name, _, value in pairs}
