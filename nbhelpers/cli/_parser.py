"""How the words of the command line are declared: verbs, their options, and what describes a
program.
"""

import math
import shlex
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace

import click

from .. import __version__
from ..errors import InputError

Verb = Callable[[SimpleNamespace], object]
_STATUSES = """\b
exit status: 0 done, whatever was found; 1 a fault of Noisebook; 2 it cannot be done as requested
(the message has the fix); 3 the program could not be run; 4 verify found damage; 130 stopped by
Ctrl-C (data are kept)."""


@click.group(epilog=_STATUSES)
@click.version_option(__version__, message="noisebook %(version)s")
def noisebook() -> None:
    """Why does a parallel program not take the same time twice?

    \b
    examples:
      noisebook doctor
      noisebook why -- ./my_program --size 100
      noisebook run --runs 30 --seconds 'elapsed: (?P<seconds>[0-9.]+)' -- ./my_program
      noisebook run --shell './a | ./b'
      noisebook explain hyperfine.json    or: perf script > trace.txt; noisebook explain trace.txt
      noisebook ab -- ./old --size 100 -- ./new --size 100
    """


def option(words: str, metavar: str | None, what: str, **more: object) -> click.Option:
    """An option: its word, and the name of its value where that is another."""
    return click.Option(words.split(), metavar=metavar, help=what, **more)  # type: ignore[arg-type]


def _counted(context: object, parameter: object, value: float | None) -> float:
    """A number; 0 stands for one that is not given."""
    if value is not None and not math.isfinite(value):
        raise click.BadParameter(f"{value} is no number of finite size.")
    return value or 0


text = partial(option, default="")
flag = partial(option, metavar=None, is_flag=True)
listed = partial(option, callback=lambda context, parameter, values: list(values or ()))
number = partial(option, show_default=True, callback=_counted)
COUNT, SECONDS = click.IntRange(1), click.FloatRange(0, min_open=True)

# their names are those of the notebook's parameters
OF_PROGRAM = (
    text("--shell", "LINE", "a line for /bin/sh, pipes and all"),
    text("--program description", "NAME|FILE.yml", "a known program, or a description's file"),
    text("--region", "KIND", "what is timed: process (from main to its end), marks, symbols, mpi"),
    listed("--lines", "BEGIN END", "timed between two lines that it prints (patterns)", nargs=2),
    text("--seconds", "REGEX", "the time that it prints: a pattern with (?P<seconds>…)"),
    listed(
        "--report reports",
        "NAME=REGEX[:UNIT[:higher|lower]]",
        "another number that it prints: a pattern with (?P<value>…); may be repeated",
        multiple=True,
    ),
    text("--outcome", "NAME", "what runs are judged by: seconds, or a report"),
    number("--threads", "N", "OMP_NUM_THREADS", type=COUNT),
    number(
        "--timeout timeout_s",
        "SECONDS",
        "a run that takes longer is killed (default: 60)",
        type=SECONDS,
    ),
)
_FOLDER = text("--folder", "FOLDER", "keeps everything, so that the same command goes on")
_COMMAND = click.Argument(["command"], nargs=-1, metavar="[--] PROGRAM [ARGUMENT ...]")


def verb(
    *options: click.Parameter, of_program: bool = False, hidden: bool = False
) -> Callable[[Verb], Verb]:
    """Make a function a verb of its name. Its docstring is the help; what was typed are attributes
    of its argument.
    """

    def declared(function: Verb) -> Verb:
        name, what = function.__name__, function.__doc__ or ""
        before, after = ((*OF_PROGRAM, _FOLDER), [_COMMAND]) if of_program else ((), [])
        command = click.Command(
            name,
            params=[*before, *options, flag("--json", what="print the answer as JSON"), *after],
            callback=partial(SimpleNamespace, verb=function, of_program=of_program),
            help=what,
            short_help=what.split("\n\n")[0],
            hidden=hidden,
            epilog=_STATUSES,
            # the program's own options are not ours; a config stands before them
            context_settings={"allow_interspersed_args": not of_program or name == "inject"},
        )
        noisebook.add_command(command)
        return function

    return declared


def parsed(words: list[str]) -> SimpleNamespace | None:
    """The arguments, with `verb`, the function that does it, and `command`, the program's words.

    Returns
    -------
    None: help was requested, and is shown.

    Raises
    ------
    InputError
        a verb or an option that there is not; the message names the nearest.
    """
    try:
        arguments = noisebook.main(words or ["--help"], "noisebook", standalone_mode=False)
    except click.UsageError as error:
        program = error.ctx.command_path if error.ctx else "noisebook"
        raise InputError(error.format_message(), fix=f"{program} --help") from None
    if not isinstance(arguments, SimpleNamespace):
        return None
    if arguments.of_program:
        _check(arguments, words)
    return arguments


def _check(arguments: SimpleNamespace, words: list[str]) -> None:
    """Note the words before the program's own, which a suggested command keeps; is there one?"""
    command = arguments.command = list(arguments.command)
    ours = words[: len(words) - len(command)]
    before = shlex.join(["noisebook", *(ours[:-1] if ours[-1] == "--" else ours)])
    arguments.before, name = before, arguments.verb.__name__
    given = command or arguments.shell or arguments.description
    if not given:
        raise InputError("which program?", fix=f"{before} -- ./program arguments")
    if "--" in words:
        return
    # an option of ours behind the program's name is the program's, which few who write so mean
    known = {word for one in noisebook.commands[name].params for word in one.opts}
    options = (at for at, word in enumerate(command) if word.startswith("--"))
    at = next((at for at in options if command[at].partition("=")[0] in known), None)
    if at is not None:
        moved = f"{before} {shlex.join(command[at:])} -- {shlex.join(command[:at])}"
        raise InputError(
            f"'{command[at]}' stands behind the program: is it the program's?",
            fix=f"{moved}; or, if it is: {before} -- {shlex.join(command)}",
        )
