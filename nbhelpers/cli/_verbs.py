"""What each verb on studies and traces does: a call or two of the library, and its answer as text
and as data.
"""

import os
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import click

from .. import places
from ..errors import InputError, printable
from ._parser import COUNT, flag, number, text, verb

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Answer:
    """What a verb found: for a person, and for a program; and the exit status that says it."""

    text: str
    data: object
    status: int = 0


@verb(text("--profile", "NAME", "what it will do here", default="quick"))
def doctor(arguments: SimpleNamespace) -> Answer:
    """What this machine can and cannot measure, and what fixes it."""
    from ..machine import doctor as examined
    from ..promise import text as promised

    found = examined()
    where = {"programs": places.programs(), "results": places.results()}
    lines = "\n".join(f"{name:8}  {path}" for name, path in where.items())
    checks = [asdict(check) for check in found.checks]
    return Answer(
        "\n\n".join([found.checks_text(), promised(arguments.profile, found), lines]),
        {"checks": checks, "replaced": found.replaced(), **where},
    )


@verb(click.Argument(["path"]))
def verify(arguments: SimpleNamespace) -> Answer:
    """Whether a study, a campaign or an artifact is whole, and which run is damaged."""
    from ..verify import WHOLE, examine, report

    findings = examine(arguments.path)
    wrong = any(one.state != WHOLE for one in findings)
    return Answer(report(findings), [asdict(one) for one in findings], 4 if wrong else 0)


@verb(click.Argument(["paths"], nargs=-1, metavar="A.zip B.zip ..."))
def compare(arguments: SimpleNamespace) -> Answer:
    """Studies of several machines side by side: what holds on which, and a page."""
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
    said = [read_answer(results / "found.json").answer.sentence, f"Open {relative(page)}"]
    return Answer(
        "\n".join([findings.to_string(), "", *said]),
        {"machines": [asdict(one) for one in machines], "findings": rows(findings), "page": page},
    )


_PROFILE = click.Option(["--profile"], required=True)


@verb(_PROFILE, text("--names", "NAMES", "keep, or further names to replace"), hidden=True)
def pack(arguments: SimpleNamespace) -> Answer:
    """What make artifact does: a study as one zip."""
    from ..artifact.crate import pack_study
    from ..artifact.names import KEEP, Names, names_here

    more = arguments.names.replace(",", " ").split()
    names = Names() if arguments.names == KEEP else names_here(more)
    path = pack_study(arguments.profile, names)
    said = f"{os.path.relpath(path)}  {path.stat().st_size / 1e6:.1f} MB"
    if words := ", ".join(sorted(names.ordinary)):
        note = "Names that are ordinary words too, replaced in paths and addresses only"
        said += f"\n{note}: {words}"
    return Answer(said, {"path": path})


@verb(_PROFILE, click.Argument(["path"]), hidden=True)
def unpack(arguments: SimpleNamespace) -> Answer | None:
    """What make paper DATA=that.zip does first: its data as a profile here."""
    from ..artifact.unpack import adopt

    done = adopt(os.path.abspath(arguments.path), arguments.profile)
    return Answer(f"{done}\n", {"done": done}) if done else None


@verb(_PROFILE, hidden=True)
def check(arguments: SimpleNamespace) -> None:
    """What make paper does first: is the whole profile fine, before anything is built or run?"""
    from ..profiles import adopted

    adopted(arguments.profile)


@verb(_PROFILE, click.Argument(["stages"], nargs=-1), hidden=True)
def wanted(arguments: SimpleNamespace) -> Answer | None:
    """What make paper does next: which stages are stale, and what they would be made from."""
    from ..stages import write_wanted

    said = write_wanted(arguments.profile, list(arguments.stages))
    return Answer(said, said) if said else None


@verb(_PROFILE, click.Argument(["name"]), hidden=True)
def stage(arguments: SimpleNamespace) -> None:
    """Run one notebook as a stage of a study."""
    from ..stages import run_and_print

    arguments.data_folder = places.results() / arguments.profile
    run_and_print(arguments.name, arguments.profile)


@verb(
    click.Argument(["traces"], nargs=-1, required=True, metavar="TRACE ..."),
    number("--times", "K", "times as many ranks (folders of MPI calls)", default=1, type=COUNT),
    flag("--drawn", what="computations as traced, not their medians (folders)"),
    text(
        "--network",
        "NAME",
        "whose LogGOPS parameters: a known machine's, or here, measured between two ranks now"
        " (default: the reference simulator's)",
        default="reference",
    ),
    text(
        "--noise",
        "NOISE",
        "here (this machine, recorded now for 10 s; default), none, a recording's file, or"
        " Hz x µs: 10x2500",
        default="here",
    ),
    number("--seeds", "N", "replicates, each with other phases", default=10, type=COUNT),
    text("--perfetto", "FILE", "the run in the middle, for https://ui.perfetto.dev"),
)
def whatif(arguments: SimpleNamespace) -> Answer:
    """How long a traced MPI program takes on another network, on more ranks, under noise."""
    from ..perfetto import write_tracks
    from ..simulation import what_if

    if arguments.perfetto and len(arguments.traces) > 1:
        raise InputError("one file for several traces", fix="give --perfetto with one trace")
    name, noise = arguments.network, arguments.noise
    network, lines, found = what_if.network_named(name), [], []
    times, drawn = arguments.times, arguments.drawn
    traces = [what_if.read_trace(path, times, drawn, network) for path in arguments.traces]
    detours = what_if.noise_named(noise)
    for path, (schedule, notes) in zip(arguments.traces, traces):
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
        found.append(about | row | {"why": rows(why)})
    if arguments.perfetto:
        written = write_tracks(arguments.perfetto, what_if.tracks_of_result(result))
        lines.append(f"for https://ui.perfetto.dev: {relative(written)}")
    return Answer("\n".join(lines).rstrip(), found)


@verb(
    text("--profile", "NAME", "whose parameters the copies have: recorded, quick, …"),
    click.Argument(["options"], nargs=-1, metavar="[-- OPTION OF JUPYTERLAB ...]"),
)
def lab(arguments: SimpleNamespace) -> None:
    """Open the notebooks in JupyterLab."""
    from ..lab import open_lab

    default = "quick" if places.is_installed() else "recorded"
    open_lab(arguments.profile or default, list(arguments.options))  # replaces this process


@verb(text("--profile", "NAME", "smoke, quick or full (default: quick)", default="quick"))
def paper(arguments: SimpleNamespace) -> Answer:
    """The whole study on this machine, ending in one page."""
    if not places.is_installed():  # make also builds what the study needs
        values = [f"PROFILE={arguments.profile}", f"PY={sys.executable}"]
        where = ["--no-print-directory", "-C", str(places.shipped())]
        os.execvp("make", ["make", *where, "paper", *values])
    from ..stages import make_paper

    page = make_paper(arguments.profile)
    return Answer(f"Open {relative(page)}", {"page": page})


def say(*sentences: str) -> None:
    """Say something beside the answer, on standard error."""
    for sentence in sentences:
        print(printable(sentence), file=sys.stderr, flush=True)


def relative(path: Path) -> str:
    """A path as seen from here, if it is not elsewhere."""
    near = os.path.relpath(path)
    return str(path) if near.startswith("..") else near


def rows(table: "pd.DataFrame") -> list[dict]:
    """A table as JSON has it."""
    return table.reset_index().to_dict("records")
