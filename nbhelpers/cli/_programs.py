"""What each verb on a program does: a call or two of the library, and its answer as text and as
data.
"""

import os
import shlex
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import click

from .. import places
from ..errors import InputError
from ._parser import OF_PROGRAM, SECONDS, flag, listed, number, verb
from ._verbs import Answer, relative, rows, say

if TYPE_CHECKING:
    from ..referee.sides import Side
    from ..studies.program_study import ProgramStudy
    from ..studies.program_study.steps import TracedRuns
    from ..studies.program_study.verdicts import Verdict
    from ..workloads import Workload


_SHORT_S = 0.02  # of what is shorter, exec and loader would be 5 % or more
_RUNS = number("--runs", "N", "how many runs, at least 2", type=click.IntRange(2))


@verb(_RUNS, of_program=True)
def run(arguments: SimpleNamespace) -> Answer:
    """Run a program some times: how long it takes, and how much that differs."""
    workload, folder = _program(arguments)  # an error comes before the imports
    from ..measurement import finished, measure, run_notes
    from ..statistics import cell_statistics

    kept = arguments.data_folder = folder if arguments.folder else None
    runs = measure(workload, runs=arguments.runs or 10, metrics="all", folder=kept)
    table = cell_statistics(finished(runs), by="workload")
    row = table.iloc[0]
    summary = (
        f"{workload.name}, {workload.judged.label}: mean {row['mean']:.4g} (95 % interval"
        f" {row.mean_low:.4g} to {row.mean_high:.4g}), median {row['median']:.4g}, largest"
        f" {row['max']:.4g}, coefficient of variation {row.cv:.2%}, n = {int(row.runs)}"
    )
    lines, waits_late = [summary], workload.start == "main" and workload.region.kind == "process"
    if waits_late and not workload.reader and row["median"] <= _SHORT_S:
        # `true` takes 0.2 ms, and 1.1 ms with exec and the loader
        lines += ["timed from main() to the end: before came exec and the loader, about 1 ms"]
    return _with_notes(lines, rows(table)[0], run_notes(runs), arguments.folder)


@verb(_RUNS, of_program=True)
def trace(arguments: SimpleNamespace) -> Answer:
    """Record what takes the CPU from it, and write its slowest run as a noise config."""
    program = _program(arguments)
    from ..studies.program_study import ProgramStudy

    study = ProgramStudy(*program, runs=arguments.runs or 10)
    traced = study.traced
    shown, config = _for_perfetto(study, traced), traced.config
    lines = [study.verdict("noise").sentence, "", traced.noise.head(12).round(4).to_string(), ""]
    lines += [f"the slowest run, for https://ui.perfetto.dev: {relative(shown)}"] if shown else []
    data: dict = {"noise": rows(traced.noise), "perfetto": shown, "config": None}
    if config is None:
        lines += ["The slowest run suffered no more than the average: there is nothing to replay."]
        return _with_notes(lines, data, study.notes("traced"), study.folder)
    path, delta = study.folder / "worst-run.json", traced.delta
    slowest, seconds = delta.attrs["run"], delta.attrs["seconds"]
    lines += [
        f"Run {slowest} was the slowest: {seconds:.4g} s. What it suffered beyond the average:",
        config.summary().to_string(),
        f"To replay it: {_same_with(arguments, 'inject', os.path.relpath(path))}",
    ]
    data |= {"config": path, "run": slowest, "seconds": seconds, "events": len(delta)}
    return _with_notes(lines, data, study.notes("traced"), study.folder)


def _for_perfetto(study: "ProgramStudy", traced: "TracedRuns") -> Path | None:
    """The slowest traced run as a file for the viewer; None: tracepoints were not recorded."""
    from ..account.tracks import tracks_of_run
    from ..outcomes import worst_first
    from ..perfetto import write_tracks

    slowest = worst_first(traced.runs[traced.runs["cell"] == "traced"])
    with suppress(InputError):
        tracks = tracks_of_run(study.folder / "traced" / "traces", slowest)
        return write_tracks(study.folder / "slowest-run.perfetto.json", tracks)
    return None


def _same_with(arguments: SimpleNamespace, *words: str) -> str:
    """The command line with another verb: the user's options, and the program."""
    config = getattr(arguments, "config", None)
    ours = [word for word in shlex.split(arguments.before)[2:] if word != config]
    program = ["--", *arguments.command] if arguments.command else []
    return shlex.join(["noisebook", *words, *ours, *program])


@verb(_RUNS, click.Argument(["config"]), of_program=True)
def inject(arguments: SimpleNamespace) -> Answer:
    """Run it with and without the noise of a config, in turn."""
    from ..injection import injection_campaign, read_logs
    from ..injection.log import tracks_of_log
    from ..measurement import finished, run_notes
    from ..noise import NoiseConfig
    from ..outcomes import worst_first
    from ..perfetto import write_tracks
    from ..statistics import compare

    path = arguments.config
    if not os.path.exists(path):
        fix = f"write one: {_same_with(arguments, 'trace')}"
        raise InputError("there is no such noise config", where=path, fix=fix)
    config = NoiseConfig.read(path)
    workload, folder = _program(arguments, "injected", config.digest)
    runs = injection_campaign(folder, workload, config, runs=arguments.runs or 10).run()
    cells = finished(runs).groupby("cell")
    found = compare(cells.get_group("baseline"), cells.get_group("injected"))
    slowest = read_logs(folder / "logs", worst_first(cells.get_group("injected")).head(1))
    shown = write_tracks(folder / "slowest-injected.perfetto.json", tracks_of_log(slowest))
    lines = [found.verdict, f"what was injected, for https://ui.perfetto.dev: {relative(shown)}"]
    data = {"ratios": rows(found.table), "verdict": found.verdict, "perfetto": shown}
    return _with_notes(lines, data, run_notes(runs), folder)


# fewer can't be searched (`nbhelpers.attribution.cutoff.FEWEST_VALUES`)
@verb(
    number("--runs", "N", "how many runs, at least 12", type=click.IntRange(12)),
    of_program=True,
)
def explain(arguments: SimpleNamespace) -> Answer:
    """Which counters separate its slow runs, or those of a FILE of another tool."""
    from ..attribution import explain as explained
    from ..measurement import consequences, finished, measure, rates, run_notes

    file = arguments.command[0] if len(arguments.command) == 1 else ""
    if os.path.isfile(file) and not os.access(file, os.X_OK):
        from ..workbench.elsewhere import explain_file

        sentences, factors = explain_file(file, arguments.outcome or None)
        text = "\n".join([*sentences, *([factors.head(12).to_string()] if len(factors) else [])])
        return Answer(text, {"found": sentences, "table": rows(factors)})
    workload, folder = _program(arguments, "explained")
    runs = measure(workload, runs=arguments.runs or 60, metrics="all", folder=folder)
    found = explained(rates(finished(runs)), consequences=consequences())
    data = {name: getattr(found, name) for name in ("found", "p_value", "summary")}
    data |= {"factors": rows(found.factors)}
    return _with_notes([found.summary], data, run_notes(runs), folder)


@verb(
    _RUNS,
    number("--budget", "SECONDS", "time for measuring (default: 180, or 9 runs)", type=SECONDS),
    click.Option(
        ["--risk"],
        type=click.Choice(("none", "low", "high")),
        default="none",
        help="the highest risk of a remedy that is tried; none: on the program alone (default);"
        " low: on the whole machine, and undone",
    ),
    flag("--no-page", what="leave the page out"),
    of_program=True,
)
def why(arguments: SimpleNamespace) -> Answer:
    """All of these in a bounded time: verdicts, remedies, and a page."""
    program = _program(arguments)
    from ..studies.program_study import ProgramStudy
    from ..studies.program_study.summary import terminal_text

    study = ProgramStudy(*program, arguments.budget, arguments.runs, arguments.risk)
    say(f"Why does {study.command} not take the same time twice?", study.plan.sentence())
    verdicts = study.verdicts(lambda verdict: say(*_grown(study, verdict)))
    page = None if arguments.no_page else _page(arguments, study)
    places_of = (relative(page) if page else "", relative(study.folder))
    return Answer(
        "\n" + terminal_text(study, *places_of),
        {
            "command": study.workload.command,
            "verdicts": [asdict(verdict) for verdict in verdicts],
            "notes": study.notes(),
            "page": page,
            "folder": study.folder,
        },
    )


def _grown(study: "ProgramStudy", verdict: "Verdict") -> list[str]:
    """What a further answer adds."""
    from ..studies.program_study.summary import histogram

    lines = [f"  {verdict.question} {verdict.reply}"]
    if verdict == study.verdict("spread"):
        lines += histogram(study.undisturbed[study.outcome.name], study.outcome.unit)
    return lines


def _page(arguments: SimpleNamespace, study: "ProgramStudy") -> Path | None:
    """The page; a fault in making it takes no verdict away."""
    from ..stages import run_in
    from ..study import STARTER

    say("  writing the page")
    parameters = _described(arguments) | {
        "command": shlex.join(arguments.command),
        "folder": str(study.folder),
        "budget_seconds": arguments.budget,
        "runs": arguments.runs,
        "risk": arguments.risk,
    }
    try:
        return run_in(study.folder, STARTER, parameters, "why.html")
    except Exception as error:  # of Jupyter, too: an installation that lacks a part
        say(f"The page could not be made: {error}")
        return None


@verb(
    listed("--old-env", "NAME=VALUE", "a variable of the old side; may be repeated", multiple=True),
    listed("--new-env", "NAME=VALUE", "a variable of the new side; may be repeated", multiple=True),
    listed("--old-mitigation", "NAME", "in force on the old side; may be repeated", multiple=True),
    listed("--new-mitigation", "NAME", "in force on the new side; may be repeated", multiple=True),
    number(
        "--margin",
        "PERCENT",
        "a smaller change counts as none",
        default=1.0,
        type=click.FloatRange(0, 100, min_open=True, max_open=True),
    ),
    number(
        "--level",
        "SHARE",
        "probability of a false answer in all",
        default=0.01,
        type=click.FloatRange(0, 1, min_open=True, max_open=True),
    ),
    number("--pairs", "N", "at most", default=500, type=click.IntRange(8)),
    number("--budget", "SECONDS", "time for measuring", default=300.0, type=click.FloatRange(0)),
    of_program=True,
)
def ab(arguments: SimpleNamespace) -> Answer:
    """Is the new one of two builds, commands or settings better or worse, and by how much?

    \b
    What is compared, in one of these ways:
      noisebook ab -- ./a 100 -- ./b 100                two commands, or two builds
      noisebook ab --new-env OMP_NUM_THREADS=1 -- ./program 100
      noisebook ab --new-mitigation aslr-off -- ./program 100
                                                        two settings of one program

    A run of each in turn; a coin says anew for each pair which comes first. Measuring ends as soon
    as the answer is known: better, worse, or within the margin. With --folder the same command goes
    on where an earlier one stopped.

    \b
    exit status of ab: 0 the new one is better, or the change is within the margin; 4 it is worse; 5
    it can't be told yet. Of all verbs see below.
    """
    old, new = _sides(arguments)
    from ..files import write_json
    from ..referee.ruling import decide
    from ..statistics.sequential import OPEN, WORSE

    # a new folder, if none was named: a command may stand for another program by now
    named = arguments.folder or places.results() / "ab" / f"{datetime.now():%Y-%m-%d-%H%M%S}"
    folder = arguments.data_folder = Path(named).absolute()
    arguments.continued = f"the same command with --folder {shlex.quote(relative(folder))}"
    stops = {"level": arguments.level, "pairs": arguments.pairs, "seconds": arguments.budget}
    ruling = decide(old, new, folder, margin=arguments.margin / 100, **stops)
    write_json(folder / "ruling.json", ruling.as_dict())
    say(*ruling.notes, f"data  {relative(folder)}")
    if ruling.verdict == OPEN:
        say(f"to go on: {arguments.continued}")
    status = {WORSE: 4, OPEN: 5}.get(ruling.verdict, 0)
    return Answer(ruling.sentence, ruling.as_dict(), status)


def _sides(arguments: SimpleNamespace) -> list["Side"]:
    """The old and the new one."""
    commands = _commands(arguments)
    from ..referee.sides import configured
    from ..studies.program_study import program_from_options

    options = _described(arguments)
    watched = bool(arguments.old_mitigation or arguments.new_mitigation)
    return [
        configured(
            program_from_options(**options | {"command": command}),
            _variables(getattr(arguments, f"{side}_env")),
            getattr(arguments, f"{side}_mitigation"),
            watched,
        )
        for side, command in zip(("old", "new"), commands)
    ]


def _commands(arguments: SimpleNamespace) -> list[list[str]]:
    """Those of the two sides: behind two `--`, or one for both."""
    words, before = arguments.command, arguments.before
    names = ("old_env", "new_env", "old_mitigation", "new_mitigation")
    if "--" not in words and any(getattr(arguments, name) for name in names):
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


def _program(arguments: SimpleNamespace, *below: str) -> tuple["Workload", Path]:
    """The program, and where its runs are kept: the named folder, or one for each command."""
    from ..studies.program_study import program_from_options, study_folder

    workload = program_from_options(**_described(arguments))
    own = study_folder(workload).joinpath(*below)
    arguments.data_folder = Path(arguments.folder).absolute() if arguments.folder else own
    return workload, arguments.data_folder


def _described(arguments: SimpleNamespace) -> dict:
    """The keywords of `program_from_options`, and so the parameters of the notebook.

    One word with blanks is a line that somebody put in quotes: `program` splits it, or refuses it
    because it is for a shell.
    """
    known = {one.name: getattr(arguments, str(one.name)) for one in OF_PROGRAM}
    command = arguments.command
    quoted = len(command) == 1 and " " in command[0] and shutil.which(command[0]) is None
    return known | {"command": command[0] if quoted else command}


def _with_notes(lines: list[str], data: dict, notes: list[str], folder: object) -> Answer:
    """An answer with what is to be known of the runs, and where they are, if that was named."""
    where = [f"kept in {folder}"] if folder else []
    return Answer("\n".join([*lines, *notes, *where]), data | {"notes": notes, "folder": folder})
