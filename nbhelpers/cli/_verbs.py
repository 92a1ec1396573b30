"""What each verb does: a call or two of the library, and its answer as text and as data."""

import os
import shlex
import shutil
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

from .. import places
from ..errors import InputError, printable

if TYPE_CHECKING:
    import pandas as pd

    from ..studies.program_study import ProgramStudy
    from ..studies.program_study.steps import TracedRuns
    from ..studies.program_study.verdicts import Verdict
    from ..workloads import Workload


_SHORT_S = 0.02  # of what is shorter, exec and loader would be 5 % or more


@dataclass(frozen=True)
class Answer:
    """What a verb found: for a person, and for a program; and the exit status that says it."""

    text: str
    data: object
    status: int = 0


def doctor(arguments: SimpleNamespace) -> Answer:
    from ..machine import doctor as examined
    from ..promise import text

    found = examined()
    where = [f"programs  {places.programs()}", f"results   {places.results()}"]
    return Answer(
        "\n\n".join([found.checks_text(), text(arguments.profile, found), "\n".join(where)]),
        {
            "checks": [asdict(check) for check in found.checks],
            "replaced": found.replaced(),
            "programs": places.programs(),
            "results": places.results(),
        },
    )


def verify(arguments: SimpleNamespace) -> Answer:
    from ..verify import WHOLE, examine, report

    findings = examine(arguments.path)
    wrong = any(one.state != WHOLE for one in findings)
    return Answer(report(findings), [asdict(one) for one in findings], 4 if wrong else 0)


def compare(arguments: SimpleNamespace) -> Answer:
    from ..answers import read_answer
    from ..artifact.machines import open_studies
    from ..files import digest
    from ..reading import read_csv
    from ..stages import run_in
    from ..study import MACHINES

    paths = [Path(path) for path in arguments.paths]
    if len(paths) < 2:
        fix = "noisebook compare A.zip B.zip, with zips of make artifact or folders as build/quick"
        raise InputError("one study has nothing beside it", fix=fix)
    machines = open_studies(paths)
    named = [str(path.absolute()) for path in paths]
    name = "-".join([*(path.stem for path in paths), digest(*named)[:8]])
    folder = places.results() / "compared" / name
    page = run_in(folder, MACHINES, {"studies": named, "folder": str(folder)}, "compared.html")
    results = folder / "results"
    findings = read_csv(results / "findings.csv").set_index("finding")
    said = [read_answer(results / "found.json").answer.sentence, f"Open {_relative(page)}"]
    return Answer(
        "\n".join([findings.to_string(), "", *said]),
        {"machines": [asdict(one) for one in machines], "findings": _rows(findings), "page": page},
    )


def pack(arguments: SimpleNamespace) -> Answer:
    from ..artifact.crate import pack_study
    from ..artifact.names import KEEP, Names, names_here

    more = arguments.names.replace(",", " ").split()
    names = Names() if arguments.names == KEEP else names_here(more)
    path = pack_study(arguments.profile, names)
    note = f"{os.path.relpath(path)}  {path.stat().st_size / 1e6:.1f} MB"
    if names.ordinary:
        words = ", ".join(sorted(names.ordinary))
        note += (
            f"\nNames that are ordinary words too, replaced in paths and addresses only: {words}"
        )
    return Answer(note, {"path": path})


def unpack(arguments: SimpleNamespace) -> Answer | None:
    from ..artifact.unpack import adopt

    if not Path(arguments.path).exists():
        fix = "give the path of a zip that make artifact wrote: make paper DATA=PATH.zip"
        raise InputError("there is no such file", where=os.path.abspath(arguments.path), fix=fix)
    done = adopt(arguments.path, arguments.profile)
    return Answer(f"{done}\n", {"done": done}) if done else None


def run(arguments: SimpleNamespace) -> Answer:
    from ..measurement import measure

    workload = _workload(arguments)
    runs = measure(workload, runs=arguments.runs or 10, metrics="all", folder=_folder(arguments))
    return _summary(workload, runs, arguments)


def trace(arguments: SimpleNamespace) -> Answer:
    study, traced = _traced(arguments)
    shown, config = _for_perfetto(study, traced), traced.config
    lines = [study.verdict("noise").sentence, "", traced.noise.head(12).round(4).to_string(), ""]
    lines += [f"the slowest run, for https://ui.perfetto.dev: {_relative(shown)}"] if shown else []
    data: dict = {"noise": _rows(traced.noise), "perfetto": shown, "config": None}
    if config is None:
        lines += ["The slowest run suffered no more than the average: there is nothing to replay."]
        return _with_notes(lines, data, study.notes("traced"), study.folder)
    path, delta = study.folder / "worst-run.json", traced.delta
    run, seconds = delta.attrs["run"], delta.attrs["seconds"]
    lines += [
        f"Run {run} was the slowest: {seconds:.4g} s. What it suffered beyond the average:",
        config.summary().to_string(),
        f"To replay it: {_same_with(arguments, 'inject', os.path.relpath(path))}",
    ]
    data |= {"config": path, "run": run, "seconds": seconds, "events": len(delta)}
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


def _same_with(arguments: SimpleNamespace, *verb: str) -> str:
    """The command line with another verb: the user's options, and the program."""
    ours = shlex.split(arguments.before)[2:]
    program = ["--", *arguments.command] if arguments.command else []
    return shlex.join(["noisebook", *verb, *ours, *program])


def inject(arguments: SimpleNamespace) -> Answer:
    from ..injection import injection_campaign, read_logs
    from ..injection.log import tracks_of_log
    from ..measurement import finished, run_notes
    from ..noise import NoiseConfig
    from ..outcomes import worst_first
    from ..perfetto import write_tracks
    from ..statistics import compare

    workload = _workload(arguments)
    _require_config(arguments)
    config = NoiseConfig.read(arguments.config)
    folder = _folder(arguments) or _study_folder(arguments, workload) / "injected" / config.digest
    runs = injection_campaign(folder, workload, config, runs=arguments.runs or 10).run()
    cells = finished(runs).groupby("cell")
    found = compare(cells.get_group("baseline"), cells.get_group("injected"))
    slowest = read_logs(folder / "logs", worst_first(cells.get_group("injected")).head(1))
    shown = write_tracks(folder / "slowest-injected.perfetto.json", tracks_of_log(slowest))
    lines = [found.verdict, f"what was injected, for https://ui.perfetto.dev: {_relative(shown)}"]
    data = {"ratios": _rows(found.table), "verdict": found.verdict, "perfetto": shown}
    return _with_notes(lines, data, run_notes(runs), folder)


def _require_config(arguments: SimpleNamespace) -> None:
    path, words = arguments.config, arguments.words
    if not Path(path).exists():
        same = shlex.join(word for word in words[1:] if word != path)
        fix = f"write one: noisebook trace {same}"
        raise InputError("there is no such noise config", where=path, fix=fix)


def explain(arguments: SimpleNamespace) -> Answer:
    from ..attribution import explain as explained
    from ..measurement import consequences, finished, measure, rates, run_notes

    if file := _file_of_another_tool(arguments.command):
        return _explained_file(file, arguments.outcome)
    workload = _workload(arguments)
    folder = _folder(arguments) or _study_folder(arguments, workload) / "explained"
    arguments.data_folder = folder
    runs = measure(workload, runs=arguments.runs or 60, metrics="all", folder=folder)
    found = explained(rates(finished(runs)), consequences=consequences())
    data = {name: getattr(found, name) for name in ("found", "p_value", "summary")}
    data |= {"factors": _rows(found.factors)}
    return _with_notes([found.summary], data, run_notes(runs), folder)


def _file_of_another_tool(command: list[str]) -> str:
    """The one word of a command that names a file which is no program; "" else."""
    file = command[0] if len(command) == 1 else ""
    return file if os.path.isfile(file) and not os.access(file, os.X_OK) else ""


def _explained_file(file: str, outcome: str) -> Answer:
    from ..workbench.elsewhere import explain_file

    sentences, table = explain_file(file, outcome or None)
    shown = [table.head(12).to_string()] if len(table) else []
    return Answer("\n".join([*sentences, *shown]), {"found": sentences, "table": _rows(table)})


def why(arguments: SimpleNamespace) -> Answer:
    from ..studies.program_study import ProgramStudy
    from ..studies.program_study.summary import terminal_text

    study = ProgramStudy(
        _workload(arguments), _folder(arguments), arguments.budget, arguments.runs, arguments.risk
    )
    arguments.data_folder = study.folder
    _say(f"Why does {study.command} not take the same time twice?", study.plan.sentence())
    verdicts = study.verdicts(lambda verdict: _say(*_grown(study, verdict)))
    page = None if arguments.no_page else _page(arguments, study)
    places_of = (_relative(page) if page else "", _relative(study.folder))
    summary = "\n" + terminal_text(study, *places_of)
    return Answer(
        summary,
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


def whatif(arguments: SimpleNamespace) -> Answer:
    from ..perfetto import write_tracks
    from ..simulation import what_if

    if arguments.perfetto and len(arguments.traces) > 1:
        raise InputError("one file for several traces", fix="give --perfetto with one trace")
    name, noise = arguments.network or "reference", arguments.noise or "here"
    network, lines, rows = what_if.network_named(name), [], []
    times, drawn = arguments.times, arguments.drawn
    found = [what_if.read_trace(path, times, drawn, network) for path in arguments.traces]
    detours = what_if.noise_named(noise)
    for path, (schedule, notes) in zip(arguments.traces, found):
        row, result = what_if.whatif(schedule, network, detours, arguments.seeds)
        why = what_if.reasons(result)
        shares = why.groupby("what")["share"].sum().sort_values(ascending=False)
        spent = ", ".join(f"{what} {share:.0%}" for what, share in shares.items())
        said = f"{path}: {row['ranks']:,} ranks take {row['ideal_ms']:.4g} ms on {name}"
        if detours:
            said += f", and under noise ({noise}) {row['median']:.3g} times as long"
            said += f" ({row['low']:.3g} to {row['high']:.3g}, 95 % over {row['seeds']} seeds)"
        lines += [f"{said}.", f"critical path: {spent}", why.head(12).round(4).to_string(), *notes]
        about = {"trace": path, "network": name, "noise": noise, "notes": notes}
        rows.append(about | row | {"why": _rows(why)})
    if arguments.perfetto:
        written = write_tracks(arguments.perfetto, what_if.tracks_of_result(result))
        lines.append(f"for https://ui.perfetto.dev: {_relative(written)}")
    return Answer("\n".join(lines).rstrip(), rows)


def lab(arguments: SimpleNamespace) -> None:
    """Replaces this process by JupyterLab."""
    from ..lab import open_lab

    default = "quick" if places.is_installed() else "recorded"
    open_lab(arguments.profile or default, list(arguments.options))


def paper(arguments: SimpleNamespace) -> Answer:
    profile = arguments.profile or "quick"
    if not places.is_installed():  # make also builds what the study needs
        values = [f"PROFILE={profile}", f"PY={sys.executable}"]
        where = ["--no-print-directory", "-C", str(places.shipped())]
        os.execvp("make", ["make", *where, "paper", *values])
    from ..stages import make_paper

    page = make_paper(profile)
    return Answer(f"Open {_relative(page)}", {"page": page})


def _workload(arguments: SimpleNamespace):
    from ..studies.program_study import program_from_options

    return program_from_options(**_described(arguments))


def _described(arguments: SimpleNamespace) -> dict:
    """The keywords of `program_from_options`, and so the parameters of the notebook."""
    return {
        "command": _words(arguments.command),
        "shell": arguments.shell,
        "description": arguments.program,
        "region": arguments.region,
        "lines": list(arguments.lines or ()),
        "seconds": arguments.seconds,
        "reports": list(arguments.report),
        "outcome": arguments.outcome,
        "threads": arguments.threads,
        "timeout_s": arguments.timeout,
    }


def _words(command: list[str]) -> list[str] | str:
    """The words, or the line that somebody put in quotes: `program` splits it, or refuses it
    because it is for a shell.
    """
    quoted = len(command) == 1 and " " in command[0] and shutil.which(command[0]) is None
    return command[0] if quoted else command


def _folder(arguments: SimpleNamespace) -> Path | None:
    arguments.data_folder = arguments.folder
    return Path(arguments.folder).absolute() if arguments.folder else None


def _study_folder(arguments: SimpleNamespace, workload: "Workload") -> Path:
    from ..studies.program_study import study_folder

    arguments.data_folder = study_folder(workload)
    return arguments.data_folder


def _traced(arguments: SimpleNamespace):
    from ..studies.program_study import ProgramStudy

    study = ProgramStudy(_workload(arguments), _folder(arguments), runs=arguments.runs or 10)
    arguments.data_folder = study.folder
    return study, study.traced


def _summary(workload: "Workload", runs: "pd.DataFrame", arguments: SimpleNamespace) -> Answer:
    from ..measurement import finished, run_notes
    from ..statistics import cell_statistics

    table = cell_statistics(finished(runs), by="workload")
    row = table.iloc[0]
    summary = (
        f"{workload.name}, {workload.judged.label}: mean {row['mean']:.4g} (95 % interval"
        f" {row.mean_low:.4g} to {row.mean_high:.4g}), median {row['median']:.4g}, largest"
        f" {row['max']:.4g}, coefficient of variation {row.cv:.2%}, n = {int(row.runs)}"
    )
    lines = [summary, *_untimed(workload, row)]
    return _with_notes(lines, _rows(table)[0], run_notes(runs), arguments.folder)


def _with_notes(lines: list[str], data: dict, notes: list[str], folder: object) -> Answer:
    """An answer with what is to be known of the runs, and where they are, if that was named."""
    where = [f"kept in {folder}"] if folder else []
    return Answer("\n".join([*lines, *notes, *where]), data | {"notes": notes, "folder": folder})


def _untimed(workload: "Workload", row: "pd.Series") -> list[str]:
    """What a short time of a whole process leaves out: `true` takes 0.2 ms, and 1.1 ms with it."""
    waits_late = workload.start == "main" and workload.region.kind == "process"
    if not waits_late or workload.reader or row["median"] > _SHORT_S:
        return []
    return ["timed from main() to the end: exec and the dynamic loader, about 1 ms, came before"]


def _page(arguments: SimpleNamespace, study: "ProgramStudy") -> Path | None:
    """The page; a fault in making it takes no verdict away."""
    from ..stages import run_in
    from ..study import STARTER

    _say("  writing the page")
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
        _say(f"The page could not be made: {error}")
        return None


def _say(*sentences: str) -> None:
    for sentence in sentences:
        print(printable(sentence), file=sys.stderr, flush=True)


def _relative(path: Path) -> str:
    near = os.path.relpath(path)
    return str(path) if near.startswith("..") else near


def _rows(table: "pd.DataFrame") -> list[dict]:
    return table.reset_index().to_dict("records")
