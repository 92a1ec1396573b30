"""Programs as workloads: where ours lie, and any other (`program`)."""

import os
import re
import shlex
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from .. import places
from ..errors import InputError, RunError
from ._command_line import split_command
from .binaries import runnable, takes_preload
from .description import Description, find_description, nothing_known
from .reader import Reader, Report
from .region import Region, as_region
from .workload import Workload

_HOW_TO_BUILD = {
    "mpi": "make mpi",
    "clang": "apt-get install clang libomp-dev && make env",
    "sycl": "make sycl ACCEPT_LICENCE=yes",
}


binary_folder = places.programs


def program_path(name: str | Path) -> Path:
    """Return the file that a program's name stands for.

    Parameters
    ----------
    name
        A path, or a name that is looked up in PATH.

    Returns
    -------
    Path

    Raises
    ------
    RunError
        It does not exist; the message has the places that were searched and the fix.
    """
    path = Path(name)
    if path.is_relative_to(binary_folder()) and not path.is_file():
        raise RunError(
            f"the program '{path.name}' is not built",
            where=path,
            fix=_HOW_TO_BUILD.get(path.parent.name, "make env"),
        )
    found = shutil.which(str(name))
    if found:
        return Path(found).absolute()
    if path.is_file():
        raise RunError(
            "the file is not executable", where=path, fix=f"chmod +x {shlex.quote(str(path))}"
        )
    if path.is_dir():
        raise RunError(
            "a folder is no program", where=path.absolute(), fix="give the path of a file in it"
        )
    if os.sep in str(name):
        raise RunError(
            "there is no such program", where=path.absolute(), fix="check the path's spelling"
        )
    raise RunError(
        f"no program '{name}' was found",
        where=f"PATH, that is {os.environ.get('PATH', '(not set)')}",
        fix=(
            "leave out the quotes: a program and its arguments are words of their own"
            if " " in str(name)
            else "check the spelling, or give its path"
        ),
    )


def program(
    command: str | Sequence[str] | None = None,
    *,
    description: str | os.PathLike | None = None,
    shell: bool = False,
    name: str | None = None,
    model: str | None = None,
    region: Region | str | Sequence[str] | None = None,
    seconds: str | Report | None = None,
    reports: Sequence[Report] = (),
    outcome: str | None = None,
    files: str | Sequence[str] | None = None,
    threads: int | None = None,
    env: Mapping[str, str] | None = None,
    timeout_s: float | None = None,
    start: str | None = None,
    fresh_folder: bool | None = None,
    run: str | None = None,
    **options: object,
) -> Workload:
    """Return any program, unchanged, as a workload: how it starts, where it is timed, what it
    reports.

    Parameters
    ----------
    command
        Words; or one string, split into words as a shell splits it. With `shell` a real line of
        /bin/sh, pipes and all. With a description the path of the program at hand, or its whole
        command.
    description
        Name of a file of data/knowledge/programs (`descriptions`), or the path of a .yml file of
        a user's file. The other arguments replace what it holds.
    shell
        Whether `command` is a line for /bin/sh.
    name
        For tables; default: the description's, else the program's file name.
    model
        "omp", "sycl", "mpi" or "external".
    region
        Where its timed region begins and ends: a `Region`, the name of its kind, or a pair of
        patterns of lines that it prints. Default: the whole process.
    seconds
        Regular expression with a group `seconds` for the time that the program prints, or a
        `Report` of it. Default: the length of the region.
    reports
        Further numbers that it reports.
    outcome
        Which number runs are judged by: ``"seconds"``, or the name of a report.
    files
        Name or globs of files that it writes, in which `seconds` and `reports` are sought, besides
        its output. A report by path or column without a file stands in the first.
    threads
        OMP_NUM_THREADS, and the option {threads} of a description; None: the program's choice.
    env
        Variables added to its environment.
    timeout_s
        It is killed when it takes longer; default 60.
    start
        "main" waits just before main() through a preload library; "exec" waits before the program
        is executed, for scripts and statically linked programs; default: by looking at the file.
    fresh_folder
        Each run in an empty folder, deleted afterwards.
    run
        How it is started here: a command line that holds {command}, such as ``"nice -n 5
        {command}"``; see docs/programs.md. Default: by itself, or as the description says.
    options
        Options of the description, for example elements=2**25.

    Returns
    -------
    Workload

    Raises
    ------
    RunError
        The program does not exist, or cannot be executed on this machine.
    InputError
        An argument that cannot be used; the message has what to write.

    Examples
    --------
    >>> program("sleep 0.01")
    Workload(sleep, external, Rm: /usr/bin/sleep 0.01)
    >>> program("seq 3 | tail -1", shell=True).command
    ('/bin/sh', '-c', 'seq 3 | tail -1')
    >>> program("sleep 0.01", run="nice -n 5 {command}").command
    ('/usr/bin/nice', '-n', '5', 'sleep', '0.01')
    >>> rate = Report("rate", r"(?P<value>\\S+) per s", "1/s", "higher")
    >>> program(["echo", "5 per s"], reports=[rate], outcome="rate").judged
    Outcome(name='rate', unit='1/s', direction='higher')
    """
    known = nothing_known() if description is None else find_description(description)
    if options and description is None:
        raise InputError(
            f"'{min(options)}' is neither a keyword of program(...) nor an option",
            why="options are named by a description",
            fix="a time by a pattern: seconds=r'… (?P<seconds>[0-9.]+)'; see help(program)",
        )
    if threads is not None and "threads" in known.options:
        options["threads"] = int(threads)
    built, run = original_path(description or ""), run or known.run
    command = [str(built)] if command is None and built.is_file() else command
    words = _words(command, shell, known, options, is_here=not run)
    if region is None:
        region = known.region or ("marks" if start == "mark" else "process")
    timed_region = as_region(region)
    model = model or known.model
    name = name or known.name or _name_of(command, shell, words)
    words = _wrapped(run, words) if run else words
    variables = {"OMP_PROC_BIND": "false"} if known.name and model == "omp" else {}
    variables |= known.env
    variables |= {} if threads is None else {"OMP_NUM_THREADS": str(int(threads))}
    return Workload(
        name,
        model,
        words,
        env=tuple((variables | dict(env or {})).items()),
        reader=_reader(name, known, seconds, reports, files, fresh_folder),
        region=timed_region,
        start=start or _start(words[0], timed_region, is_wrapped=bool(run)),
        timeout_s=known.timeout_s if timeout_s is None else timeout_s,
        outcome=outcome or known.outcome,
    )


def as_workload(command: "Workload | str | Sequence[str] | None", **keywords: Any) -> Workload:
    """Return a workload unchanged, or what `program` makes of a command and its keywords.

    Parameters
    ----------
    command
        A workload, or a command of `program`.
    keywords
        Keywords of `program`; those that are None count as missing.

    Returns
    -------
    Workload

    Raises
    ------
    InputError
        Keywords with a workload, which has them already; see `program`.
    RunError
        The program does not exist, or cannot be executed on this machine.
    """
    keywords = {key: value for key, value in keywords.items() if value is not None}
    if not isinstance(command, Workload):
        return program(command, **keywords)
    if keywords:
        raise InputError(
            f"{', '.join(sorted(keywords))}: not possible with a workload, which has its values",
            fix="pass them to program(...) where the workload is made",
        )
    return command


def _words(
    command: str | Sequence[str] | None,
    shell: bool,
    known: Description,
    options: Mapping[str, object],
    is_here: bool = True,
) -> tuple[str, ...]:
    """What is executed, its first word a path; or a name, where the program need not be here."""
    if command is None:
        if not known.command:
            lacking = f"the description '{known.name}' has no command" if known.name else ""
            raise InputError(lacking or "the command is empty", fix="pass the command")
        words = known.words(options)
        if known.shell:
            return ("/bin/sh", "-c", words[0])
        return (_path_of(words[0], is_here), *words[1:])
    if shell:
        if not isinstance(command, str) or not command.strip():
            raise InputError(
                f"a shell line is one string, and not empty: {command!r}",
                fix="program('a | b', shell=True)",
            )
        return ("/bin/sh", "-c", command)
    given = split_command(command) if isinstance(command, str) else [str(word) for word in command]
    if not given or not given[0]:
        raise InputError("the command is empty", where=known.name or None)
    path = _path_of(given[0], is_here)
    if known.name and len(given) == 1:
        if known.shell:
            raise InputError(
                f"'{known.name}' is a shell line, which takes no other program",
                fix="leave the command out",
            )
        return known.words(options, path)
    if options:
        raise InputError(
            f"options ({', '.join(options)}) and arguments ({' '.join(given[1:])}) exclude each"
            " other",
            where=known.name,
            fix="pass the program alone with options, or its whole command line",
        )
    return (path, *given[1:])


def _path_of(word: str, is_here: bool) -> str:
    """The path of a program; a name that another machine or a container looks up stays a name."""
    if is_here:
        return str(runnable(program_path(word)))
    return os.path.abspath(word) if os.sep in word and os.path.exists(word) else word


def _wrapped(run: str, words: tuple[str, ...]) -> tuple[str, ...]:
    """The words of a wrapper with those of the program in place of {command}; ssh hands its words
    to a shell, for which they are quoted.

    Raises
    ------
    InputError
        {command} is no word of it.
    RunError
        The wrapper does not exist here.
    """
    wrapper = split_command(run)
    if wrapper.count("{command}") != 1 or wrapper[0] == "{command}":
        raise InputError(
            "the wrapper does not say where the command stands",
            where=f"run: {run}",
            fix="{command} is a word of its own: run: ssh node {command}",
        )
    at = wrapper.index("{command}")
    path = str(runnable(program_path(wrapper[0])))
    quoted = map(shlex.quote, words) if Path(path).name == "ssh" else words
    return (path, *wrapper[1:at], *quoted, *wrapper[at + 1 :])


def original_path(name: str | os.PathLike) -> Path:
    """Where `make originals` puts a program of data/knowledge/programs; it need not be there.

    Parameters
    ----------
    name
        Name of its description; of a user's file there is none.
    """
    return binary_folder() / "originals" / Path(name).name


def _name_of(command: object, shell: bool, words: tuple[str, ...]) -> str:
    """The program's file name; of a shell line that of its first word."""
    if shell:
        first = re.split(r"[\s|;&<>()]+", str(command).strip(), maxsplit=1)[0]
        return Path(first.strip("'\"")).name or "sh"
    return Path(words[0]).name


def _reader(
    name: str,
    known: Description,
    seconds: str | Report | None,
    reports: Sequence[Report],
    files: str | Sequence[str] | None,
    fresh_folder: bool | None,
) -> Reader | None:
    """The reader of the description, with the arguments in place of its fields; None where there is
    nothing to read.
    """
    new_reports = list(reports)
    if isinstance(seconds, Report):
        new_reports.insert(0, replace(seconds, name="seconds"))
    elif seconds:
        new_reports.insert(0, Report("seconds", seconds, "s"))
    for report in new_reports:
        if not isinstance(report, Report):
            raise InputError(
                f"not a report: {report!r}",
                fix="Report('name', r'… (?P<value>[0-9.]+)', unit='MB/s', direction='higher')",
            )
    files = (files,) if isinstance(files, str) else tuple(files or ())
    if files:
        new_reports = [
            replace(report, file=files[0])
            if report.pattern is None and report.file is None
            else report
            for report in new_reports
        ]
    base = known.reader
    replaced = {report.name for report in new_reports}
    others = [report for report in base.reports if report.name not in replaced]
    reader = replace(
        base,
        name=name,
        reports=(*others, *new_reports),
        files=files or base.files,
        fresh_folder=base.fresh_folder if fresh_folder is None else fresh_folder,
    )
    return None if reader == Reader(name) else reader


def _start(word: str, region: Region, is_wrapped: bool) -> str:
    if region.armed:
        return "mark"
    return "main" if takes_preload(word) and not is_wrapped else "exec"
