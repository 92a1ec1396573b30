"""A command line as words; what only a shell can do is an error."""

import re
import shlex

from ..errors import InputError

_SHELL_ONLY = re.compile(r"[|><&;*?$`\n]")
_QUOTED = re.compile(r"\\.|'[^']*'|" + r'"(\\.|[^"\\$`])*"', re.DOTALL)


def split_command(command: str) -> list[str]:
    """The words of a command line, as a shell splits it.

    Raises
    ------
    InputError
        Quotes that do not close; or something that only a shell does, outside of quotes.
    """
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise InputError(
            f"the command cannot be split into words: {error}", where=command
        ) from None
    if found := _SHELL_ONLY.search(_QUOTED.sub(" ", command)):
        operator = found[0]
        raise InputError(
            f"only a shell knows what '{operator}' means",
            where=command,
            why="without one it would be an argument of the program",
            fix=(
                f"program({command!r}, shell=True), or noisebook run --shell"
                f" {shlex.quote(command)}; if it is an argument, quote it: '{operator}'"
            ),
        )
    if words and re.fullmatch(r"[A-Za-z_]\w*=.*", words[0]):
        raise InputError(
            "only a shell sets variables before a command",
            where=command,
            fix="env={…}, or shell=True",
        )
    return words
