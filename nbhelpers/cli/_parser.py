"""The words of the command line: verbs, options, and how a program is described. No verb is
imported here.
"""

import math
import shlex
from functools import partial
from importlib import import_module
from types import SimpleNamespace

import click

from .. import __version__
from ..errors import InputError

_STATUSES = """\
exit status: 0 done, whatever was found; 1 a fault of Noisebook; 2 it cannot be done as requested
(the message has the fix); 3 the program could not be run; 4 verify found damage; 130 stopped by
Ctrl-C (data are kept)."""
_EXAMPLES = """\
examples:
  noisebook doctor
  noisebook why -- ./my_program --size 100
  noisebook run --runs 30 --seconds 'elapsed: (?P<seconds>[0-9.]+)' -- ./my_program
  noisebook run --shell './a | ./b'
  noisebook explain hyperfine.json    or: perf script > trace.txt; noisebook explain trace.txt
  noisebook ab -- ./old --size 100 -- ./new --size 100"""
_AB = """\
what is compared, in one of these ways:
  noisebook ab -- ./a 100 -- ./b 100                two commands, or two builds
  noisebook ab --new-env OMP_NUM_THREADS=1 -- ./program 100
  noisebook ab --new-mitigation aslr-off -- ./program 100
                                                    two settings of one program

The runs alternate, old new new old or new old old new, by a coin. Measuring ends as soon as the
answer is known: better, worse, or within the margin. With --folder the same command goes on where
an earlier one stopped.

exit status of ab: 0 the new one is better, or the change is within the margin; 4 it is worse; 5 it
can't be told yet. Of all verbs:"""
_PROGRAM = ("run", "trace", "inject", "explain", "why", "ab")
VERBS = {
    "doctor": "what this machine can and cannot measure, and what fixes it",
    "run": "run a program some times: how long it takes, and how much that differs",
    "trace": "record what takes the CPU from it, and write its slowest run as a noise config",
    "inject": "run it with and without the noise of a config, in turn",
    "explain": "which counters separate its slow runs, or those of a FILE of another tool",
    "why": "all of these in a bounded time: verdicts, remedies, and a page",
    "ab": "is the new one of two builds, commands or settings better or worse, and by how much",
    "whatif": "how long a traced MPI program takes on another network, on more ranks, under noise",
    "compare": "studies of several machines side by side: what holds on which, and a page",
    "verify": "whether a study, a campaign or an artifact is whole, and which run is damaged",
    "lab": "open the notebooks in JupyterLab",
    "paper": "the whole study on this machine, ending in one page",
}
_OF_MAKE = {
    "pack": "what make artifact does: a study as one zip",
    "unpack": "what make paper DATA=that.zip does first: its data as a profile here",
}


def _text(word: str, metavar: str, what: str) -> click.Option:
    return click.Option([word], default="", metavar=metavar, help=what)


class _Finite(click.FloatRange):
    """A number within limits; `nan` and `inf`, which no limit excludes, are refused."""

    def convert(self, value: object, param: object, ctx: object) -> float:
        number = super().convert(value, param, ctx)  # type: ignore[arg-type]
        if not math.isfinite(number):
            self.fail(f"{value} is no number of finite size.", param, ctx)  # type: ignore[arg-type]
        return number


def _number(
    word: str, metavar: str, what: str, default: float = 0, fits: click.ParamType | None = None
) -> click.Option:
    """A number above 0, unless `fits` allows others; 0 stands for one that is not given."""
    positive = click.IntRange(1) if isinstance(default, int) else _Finite(0, min_open=True)
    return click.Option(
        [word],
        type=fits or positive,
        default=default or None,
        callback=lambda context, option, value: default if value is None else value,
        metavar=metavar,
        help=f"{what} (default: {default:g})" if default else what,
    )


def _share(of: float) -> click.FloatRange:
    return _Finite(0, of, min_open=True, max_open=True)


def _several(word: str, metavar: str, what: str) -> click.Option:
    return click.Option([word], multiple=True, metavar=metavar, help=f"{what}; may be repeated")


def _flag(word: str, what: str) -> click.Option:
    return click.Option([word], is_flag=True, help=what)


_OF_PROGRAM = (
    _text("--shell", "LINE", "a line for /bin/sh, pipes and all"),
    _text("--program", "NAME|FILE.yml", "a known program, or the file of a description"),
    _text("--region", "KIND", "what is timed: process (from main to its end), marks, symbols, mpi"),
    click.Option(
        ["--lines"],
        nargs=2,
        metavar="BEGIN END",
        help="timed between two lines that it prints (patterns)",
    ),
    _text("--seconds", "REGEX", "the time that it prints: a pattern with (?P<seconds>…)"),
    _several(
        "--report",
        "NAME=REGEX[:UNIT[:higher|lower]]",
        "another number that it prints: a pattern with (?P<value>…)",
    ),
    _text("--outcome", "NAME", "what runs are judged by: seconds, or a report"),
    _number("--threads", "N", "OMP_NUM_THREADS"),
    _number("--timeout", "SECONDS", "a run that takes longer is killed (default: 60)", 0.0),
    _text("--folder", "FOLDER", "keeps everything, so that the same command goes on"),
)
_RUNS = _number("--runs", "N", "how many runs, at least 2", 0, click.IntRange(2))
_PROFILE = click.Option(["--profile"], required=True)
_OF_VERB: dict[str, tuple[click.Parameter, ...]] = {
    "run": (_RUNS,),
    "trace": (_RUNS,),
    # fewer can't be searched (`nbhelpers.attribution.cutoff.FEWEST_VALUES`)
    "explain": (_number("--runs", "N", "how many runs, at least 12", 0, click.IntRange(12)),),
    "inject": (_RUNS, click.Argument(["config"])),
    "why": (
        _RUNS,
        _number("--budget", "SECONDS", "time for measuring (default: 180, or 9 runs)", 0.0),
        click.Option(
            ["--risk"],
            type=click.Choice(("none", "low", "high")),
            default="none",
            help="the highest risk of a remedy that is tried; none: on the program alone (default);"
            " low: on the whole machine, and undone",
        ),
        _flag("--no-page", "leave the page out"),
    ),
    "ab": (
        _several("--old-env", "NAME=VALUE", "a variable of the old side"),
        _several("--new-env", "NAME=VALUE", "a variable of the new side"),
        _several("--old-mitigation", "NAME", "in force on the old side"),
        _several("--new-mitigation", "NAME", "in force on the new side"),
        _number("--margin", "PERCENT", "a smaller change counts as none", 1.0, _share(100)),
        _number("--level", "SHARE", "probability of a false answer in all", 0.01, _share(1)),
        _number("--pairs", "N", "at most", 500, click.IntRange(8)),
        _number("--budget", "SECONDS", "time for measuring", 300.0, _Finite(0)),
    ),
    "doctor": (click.Option(["--profile"], default="quick", help="what it will do here"),),
    "lab": (
        _text("--profile", "NAME", "whose parameters the copies have: recorded, quick, …"),
        click.Argument(["options"], nargs=-1, metavar="[-- OPTION OF JUPYTERLAB ...]"),
    ),
    "whatif": (
        click.Argument(["traces"], nargs=-1, required=True, metavar="TRACE ..."),
        _number("--times", "K", "times as many ranks (folders of MPI calls)", 1),
        _flag("--drawn", "computations as traced, not their medians (folders)"),
        _text(
            "--network",
            "NAME",
            "whose LogGOPS parameters: a known machine's, or here, measured between two ranks now"
            " (default: the reference simulator's)",
        ),
        _text(
            "--noise",
            "NOISE",
            "here (this machine, recorded now for 10 s; default), none, a recording's file, or"
            " Hz x µs: 10x2500",
        ),
        _number("--seeds", "N", "replicates, each with other phases", 10),
        _text("--perfetto", "FILE", "the run in the middle, for https://ui.perfetto.dev"),
    ),
    "compare": (click.Argument(["paths"], nargs=-1, metavar="A.zip B.zip ..."),),
    "verify": (click.Argument(["path"]),),
    "paper": (_text("--profile", "NAME", "smoke, quick or full (default: quick)"),),
    "pack": (_PROFILE, _text("--names", "NAMES", "keep, or further names to replace")),
    "unpack": (_PROFILE, click.Argument(["path"])),
}


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
        arguments = _group().main(words or ["--help"], "noisebook", standalone_mode=False)
    except click.UsageError as error:
        program = error.ctx.command_path if error.ctx else "noisebook"
        raise InputError(error.format_message(), fix=f"{program} --help") from None
    if not isinstance(arguments, SimpleNamespace):
        return None
    _check(arguments, words)
    module = "_ab" if arguments.name == "ab" else "_verbs"
    arguments.verb = getattr(import_module(f"{__package__}.{module}"), arguments.name)
    return arguments


def _check(arguments: SimpleNamespace, words: list[str]) -> None:
    if arguments.name not in _PROGRAM:
        return
    arguments.command = list(arguments.command)
    arguments.words, arguments.before = words, _before_program(arguments, words)
    given = arguments.command or arguments.shell or arguments.program
    if not given and arguments.name != "ab":  # which asks for two
        raise InputError("which program?", fix=f"{arguments.before} -- ./program arguments")
    if "--" not in words:
        _refuse_options_behind(arguments)


def _refuse_options_behind(arguments: SimpleNamespace) -> None:
    """An option of ours behind the program's name is the program's, which few who write so mean."""
    params = (*_OF_PROGRAM, *_OF_VERB.get(arguments.name, ()))
    ours = {word for one in params for word in one.opts if word.startswith("--")} | {"--json"}
    command, before = arguments.command, arguments.before
    at = next((at for at, word in enumerate(command) if word.partition("=")[0] in ours), None)
    if at is not None:
        moved = f"{before} {shlex.join(command[at:])} -- {shlex.join(command[:at])}"
        raise InputError(
            f"'{command[at]}' stands behind the program: is it the program's?",
            fix=f"{moved}; or, if it is: {before} -- {shlex.join(command)}",
        )


def _before_program(arguments: SimpleNamespace, words: list[str]) -> str:
    """The command line before the program's own words: what a suggested one keeps."""
    ours = words[: len(words) - len(arguments.command)]
    return shlex.join(["noisebook", *(ours[:-1] if ours[-1] == "--" else ours)])


def _group() -> click.Group:
    group = click.Group(
        "noisebook",
        commands=[_command(name, what) for name, what in (VERBS | _OF_MAKE).items()],
        help="Why does a parallel program not take the same time twice?",
        epilog=_as_it_is(f"{_EXAMPLES}\n\n{_STATUSES}"),
    )
    return click.version_option(__version__, message="noisebook %(version)s")(group)


def _command(name: str, what: str) -> click.Command:
    takes = name in _PROGRAM
    params: list[click.Parameter] = [*(_OF_PROGRAM if takes else ()), *_OF_VERB.get(name, ())]
    params.append(_flag("--json", "print the answer as JSON"))
    if takes:
        words = click.Argument(["command"], nargs=-1, metavar="[--] PROGRAM [ARGUMENT ...]")
        params.append(words)
    return click.Command(
        name,
        params=params,
        callback=partial(SimpleNamespace, name=name),
        help=what[0].upper() + what[1:] + ".",
        short_help=what,
        hidden=name in _OF_MAKE,
        epilog=_as_it_is(f"{_AB}\n{_STATUSES}" if name == "ab" else _STATUSES),
        # the program's own options are not ours; a config stands before them
        context_settings={"allow_interspersed_args": name not in _PROGRAM or name == "inject"},
    )


def _as_it_is(text: str) -> str:
    """Text whose lines click does not wrap anew."""
    return "\n\n".join(f"\b\n{part}" for part in text.split("\n\n"))
