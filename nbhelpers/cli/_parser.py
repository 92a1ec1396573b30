"""The words of the command line: verbs, options, and how a program is described. No verb is
imported here.
"""

import argparse
import difflib
import re
import shlex
from collections.abc import Callable
from importlib import import_module

from .. import __version__
from ..errors import InputError
from ._ab_options import AB_EPILOG, of_ab

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
  noisebook ab -- ./old --size 100 -- ./new --size 100
"""
_PROGRAM = ("run", "trace", "worst", "inject", "explain", "why", "ab", "simulate")
_WITHOUT_PROGRAM = ("simulate", "ab")  # may be called without one
VERBS = {
    "doctor": "what this machine can and cannot measure, and what fixes it",
    "run": "run a program some times: how long it takes, and how much that differs",
    "trace": "record what takes the CPU from it: interrupts, softirqs, threads",
    "worst": "write down the noise of its slowest run, less the average, as a noise config",
    "inject": "run it with and without the noise of a config, in turn",
    "explain": "which counters separate its slow runs from the others",
    "why": "all of these in a bounded time: verdicts, remedies, and a page",
    "ab": "is the new one of two builds, commands or settings better or worse, and by how much",
    "simulate": "what the noise would do to a program on very many CPUs",
    "verify": "whether a study, a campaign or an artifact is whole, and which run is damaged",
    "lab": "open the notebooks in JupyterLab",
    "paper": "the whole study on this machine, ending in one page",
}


class _Parser(argparse.ArgumentParser):
    """One message in place of a usage and an exit."""

    def error(self, message: str):
        choice = re.search(r"invalid choice: '(.*?)' \(choose from (.*)\)", message)
        if choice:
            raise unknown(choice[1], re.findall(r"[\w-]+", choice[2]), "verb", self.prog)
        raise InputError(message, fix=f"{self.prog} --help")


def parsed(words: list[str]) -> argparse.Namespace:
    """The arguments, with `verb`, the function that does it, and `command`, the words after `--`.

    Raises
    ------
    InputError
        a verb or an option that there is not; the message names the nearest.
    """
    at = words.index("--") if "--" in words else len(words)
    options, command = words[:at], words[at + 1 :]
    parser = _parser()
    arguments, others = parser.parse_known_args(options)
    _check(arguments, others, command, at < len(words), parser)
    arguments.command = command
    arguments.verb = _verb(arguments.name)
    return arguments


def unknown(word: str, known: list[str], what: str, program: str) -> InputError:
    """The error for a word that is not known, with the nearest that is."""
    near = difflib.get_close_matches(word, known, 1)
    return InputError(
        f"'{word}' is no {what}", fix=f"did you mean {near[0]}?" if near else f"{program} --help"
    )


def _verb(name: str) -> Callable:
    module = "_ab" if name == "ab" else "_verbs"
    return getattr(import_module(f"{__package__}.{module}"), name)


def _check(
    arguments: argparse.Namespace,
    others: list[str],
    command: list[str],
    dashes: bool,
    parser: argparse.ArgumentParser,
) -> None:
    takes = arguments.name in _PROGRAM
    if others and others[0].startswith("-"):
        raise unknown(
            others[0].split("=")[0],
            _options(arguments.name),
            "option",
            f"noisebook {arguments.name}",
        )
    if others:
        raise InputError(
            f"'{others[0]}' was not expected",
            fix=_meant(arguments.name, others, command),
            why="a program and its arguments stand behind --" if takes else None,
        )
    if dashes and not takes:
        raise InputError(f"'{arguments.name}' takes no program", fix=f"noisebook {arguments.name}")
    programs = bool(command) + bool(takes and arguments.shell)
    if programs > 1:
        raise InputError("both a command and a shell line were given", fix="give one of them")
    if takes and not programs and not arguments.program and arguments.name not in _WITHOUT_PROGRAM:
        raise InputError(
            "which program?",
            fix=(
                f"noisebook {arguments.name} -- ./program arguments; "
                "or --shell 'LINE', or --program NAME"
            ),
        )


def _meant(name: str, others: list[str], command: list[str]) -> str:
    """What was probably meant by words that were not expected."""
    if name not in _PROGRAM:
        return f"noisebook {name} --help"
    if name == "ab" and len(others) == 2 and not command:
        old, new = map(shlex.quote, others)
        return f"noisebook ab --old {old} --new {new}"
    second = ["--", *(command or ["./new", "arguments"])] if name == "ab" else []
    return f"noisebook {name} [options] -- {shlex.join([*others, *second])}"


def _options(name: str) -> list[str]:
    choices = next(
        action for action in _parser()._actions if isinstance(action, argparse._SubParsersAction)
    ).choices
    return [option for action in choices[name]._actions for option in action.option_strings]


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="noisebook",
        allow_abbrev=False,
        epilog=f"{_EXAMPLES}\n{_STATUSES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Why does a parallel program not take the same time twice?",
    )
    parser.add_argument("--version", action="version", version=f"noisebook {__version__}")
    verbs = parser.add_subparsers(dest="name", required=True, metavar="VERB", title="verbs")
    for name, what in VERBS.items():
        verb = verbs.add_parser(
            name,
            help=what,
            description=what[0].upper() + what[1:] + ".",
            epilog=_EPILOGS.get(name, "") + _STATUSES,
            allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            usage=f"noisebook {name} [options]"
            + (" -- PROGRAM [ARGUMENT ...]" if name in _PROGRAM else ""),
        )
        if name in _PROGRAM:
            _describe_program(verb)
        if name in _PROGRAM and name != "ab":
            verb.add_argument("--runs", type=int, default=0, metavar="N", help="how many runs")
        _FURTHER.get(name, lambda verb: None)(verb)
        verb.add_argument("--json", action="store_true", help="print the answer as JSON")
    return parser


def _describe_program(verb: argparse.ArgumentParser) -> None:
    """The options of `nbhelpers.workloads.program`."""
    group = verb.add_argument_group("the program (or: its words behind --)")
    _describe_start(group)
    _describe_outcome(group)
    group.add_argument("--threads", type=int, default=0, metavar="N", help="OMP_NUM_THREADS")
    group.add_argument(
        "--timeout",
        type=float,
        default=0,
        metavar="SECONDS",
        help="a run that takes longer is killed (default: 60)",
    )
    verb.add_argument(
        "--folder", metavar="FOLDER", help="keeps everything, so that the same command goes on"
    )


def _describe_start(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--shell", default="", metavar="LINE", help="a line for /bin/sh, pipes and all"
    )
    group.add_argument(
        "--program",
        default="",
        metavar="NAME|FILE.yml",
        help="a known program, or the file of a description",
    )
    group.add_argument(
        "--region",
        default="",
        metavar="KIND",
        help="what is timed: process, marks, symbols, mpi or roi",
    )
    group.add_argument(
        "--lines",
        nargs=2,
        default=(),
        metavar=("BEGIN", "END"),
        help="timed between two lines that it prints (patterns)",
    )


def _describe_outcome(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--seconds",
        default="",
        metavar="REGEX",
        help="the time that it prints: a pattern with (?P<seconds>…)",
    )
    group.add_argument(
        "--report",
        action="append",
        default=[],
        metavar="NAME=REGEX[:UNIT[:higher|lower]]",
        help="another number that it prints: a pattern with (?P<value>…); may be repeated",
    )
    group.add_argument(
        "--outcome",
        default="",
        metavar="NAME",
        help="what runs are judged by: seconds, or a report",
    )


def _of_why(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "--budget",
        type=float,
        default=0,
        metavar="SECONDS",
        help="time for measuring (default: 300, or 90 runs)",
    )
    verb.add_argument(
        "--risk",
        choices=("none", "low", "high"),
        default="low",
        help="the highest risk of a remedy that is tried (default: low)",
    )
    verb.add_argument("--no-page", action="store_true", help="leave the page out")


def _of_simulate(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "--ranks", type=int, default=4096, metavar="P", help="simulated CPUs (default: 4096)"
    )
    verb.add_argument("--seeds", type=int, default=10, metavar="N", help="replicates (default: 10)")


def _of_paper(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--profile", default="quick", help="smoke, quick or full (default: quick)")


_EPILOGS = {"ab": AB_EPILOG}
_FURTHER = {
    "why": _of_why,
    "ab": of_ab,
    "simulate": _of_simulate,
    "paper": _of_paper,
    "verify": lambda verb: verb.add_argument(
        "path", metavar="PATH", help="the folder of a campaign or study, or a zip of make artifact"
    ),
    "inject": lambda verb: verb.add_argument(
        "config", metavar="CONFIG", help="a noise config, as `noisebook worst` writes"
    ),
}
