"""A session as an executed notebook: the calls of the library with what was chosen, and what they
returned.

Owns that notebook. It lies beside the runs, or beside a copy of them if they are neither its own
nor shipped. It names no folder but its own, and measures nothing, so that whoever has the folder
can run it again.
"""

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import RunError
from ..files import digest, written
from ..places import shipped
from .recorded import is_campaign
from .session import AGAIN, COUNT, TRIAL, Session

if TYPE_CHECKING:
    from ..attribution import Explanation

NAME = "session.ipynb"
_TIMEOUT_S = 300
_IMPORTS = """\
from pathlib import Path

from nbhelpers.attribution import explain
from nbhelpers.attribution.chance import accuracy_by_chance
from nbhelpers.measurement import consequences
from nbhelpers.mitigation import BASELINE, explain_factor, mitigations
from nbhelpers.mitigation.trials import judge_trials
from nbhelpers.places import shipped
from nbhelpers.report import figure_attribution
from nbhelpers.statistics import cell_statistics, compare
from nbhelpers.workbench.association import relation
from nbhelpers.workbench.pictures import figure_densities, figure_relation
from nbhelpers.workbench.recorded import runs_of, with_rates
from nbhelpers.workbench.views import sentence_of_most_runs"""


def save_notebook(session: Session, path: Path | None = None) -> Path:
    """Write the session as a notebook, run it, and keep what it shows.

    Parameters
    ----------
    session
        Of the workbench.
    path
        Of the notebook; None: `session.ipynb` in the session's folder.

    Returns
    -------
    Where it lies.

    Raises
    ------
    RunError
        A cell failed; nothing is written.
    """
    import nbformat
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError

    path = path or session.save_folder / NAME
    path.parent.mkdir(parents=True, exist_ok=True)
    session.save()
    _copy_runs(session, path.parent)
    notebook = notebook_of(session)
    client = NotebookClient(
        notebook, timeout=_TIMEOUT_S, resources={"metadata": {"path": str(path.parent)}}
    )
    try:
        client.execute()
    except CellExecutionError as error:
        raise RunError("a cell of the session's notebook failed", why=str(error)) from None
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # when it ran: of no use to anybody else
    with written(path) as file:
        file.write((nbformat.writes(notebook, indent=1) + "\n").encode())
    return path


def is_elsewhere(session: Session) -> bool:
    """Whether somebody else who has the notebook's folder and the library lacks the runs."""
    place, data = session.place.resolve(), (shipped() / "data").resolve()
    return not (place == session.save_folder.resolve() or place.is_relative_to(data))


def _copy_name(session: Session) -> str:
    """Of the folder beside the notebook, made anew each time: no folder of a user has this name."""
    return f"runs-{digest(session.folder)[:8]}"


def _copy_runs(session: Session, folder: Path) -> None:
    """The records that the session reads, and nothing else of their folders."""
    if not is_elsewhere(session):
        return
    copy = folder / _copy_name(session)
    shutil.rmtree(copy, ignore_errors=True)
    place = session.place
    if session.is_table:
        return _copy_files([place], copy)
    folders = [place, *(path for path in place.iterdir() if path.is_dir())]
    for one in filter(is_campaign, folders):
        records = [*one.glob("runs.jsonl*"), *one.glob("campaign.json")]
        _copy_files(records, copy / one.relative_to(place))


def _copy_files(files: list[Path], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for file in files:
        shutil.copyfile(file, folder / file.name)


def notebook_of(session: Session) -> Any:
    """The notebook, not yet run.

    Parameters
    ----------
    session
        Of the workbench.
    """
    from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

    cells = []
    for number, (text, code) in enumerate(_steps(session, session.explanation())):
        cells.append(new_markdown_cell(text, id=f"text-{number:02d}"))
        if code:
            cells.append(new_code_cell(code, id=f"code-{number:02d}"))
    kernel = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}
    return new_notebook(cells=cells, metadata={"kernelspec": kernel})


def _steps(session: Session, found: "Explanation") -> list[tuple[str, str]]:
    """Text and code of each step."""
    steps = [
        (_title(session), ""),
        ("The library, and where the runs lie.", f"{_IMPORTS}\n\n{_folder(session)}"),
        ("## The runs", _runs_code(session)),
        ("How they vary.", _statistics_code(session)),
        ("Where most of them lie.", f"print(sentence_of_most_runs(runs[{session.judged!r}]))"),
        ("## What separates the slow runs, under the null", _explain_code(session)),
        ("Distribution and tree.", "figure_attribution(found, runs);"),
    ]
    if not found.found:
        text = "How accurate a tree of these runs is, and trees of shuffled tables."
        steps.append((text, _chance_code(session)))
    metric = session.chosen(found)
    if metric:
        steps += _factor_steps(session, metric)
    steps += _trial_steps(session)
    steps.append((_limits_of_the_method(), ""))
    return steps


def _title(session: Session) -> str:
    measured = (
        "The runs were recorded earlier."
        if session.is_recorded
        else f"Measured: `{session.command}`, rule “{session.rule}”, {_runs_wanted(session)},"
        f" metric layers {', '.join(session.layers) or 'none'}."
    )
    return (
        "# What separates the slow runs, and what helps?\n\nA session of the workbench, saved. Run"
        f" all cells to compute it again from the recorded runs. {measured}"
    )


def _runs_wanted(session: Session) -> str:
    return f"{session.runs} runs" if session.rule == COUNT else f"at most {session.runs} runs"


def _folder(session: Session) -> str:
    """Where the runs lie, without naming this machine's folders."""
    if is_elsewhere(session):
        name = f" / {session.place.name!r}" if session.is_table else ""
        return f"folder = Path({_copy_name(session)!r}){name}"
    place = session.place.resolve()
    if place == session.save_folder.resolve():
        return "folder = Path('.')"
    return f"folder = shipped() / {place.relative_to(shipped().resolve()).as_posix()!r}"


def _runs_code(session: Session) -> str:
    alone = session.one_campaign or session.is_table
    where = "folder" if alone else 'folder / "first"'
    lines = [f"runs = runs_of({where})"]
    if session.cell:
        lines.append(f'runs = runs[runs["cell"] == {session.cell!r}]')
    elif "baseline" in session.cells():
        lines.append('runs = runs[runs["cell"] == BASELINE]')
    lines.append("runs = with_rates(runs)")
    for limit in session.limits:
        bounds = f"{limit.low!r}, {limit.high!r}"
        lines.append(f"runs = runs[runs[{limit.metric!r}].between({bounds})]")
    return "\n".join([*lines, "len(runs)"])


def _statistics_code(session: Session) -> str:
    table = 'runs.assign(cell="runs")'
    return f"cell_statistics({table}, outcome={session.judged!r}).T"


def _chance_code(session: Session) -> str:
    return "\n".join(
        [
            "print(found.accuracy)",
            "print(",
            "    accuracy_by_chance(",
            f"        runs, found, {session.excluded!r}, {session.seed},",
            "        consequences=consequences(),",
            "    )",
            ")",
        ]
    )


def _explain_code(session: Session) -> str:
    return "\n".join(
        [
            "found = explain(",
            "    runs,",
            f"    {session.judged!r},",
            f"    cutoff={session.cutoff!r},",
            f"    exclude={session.excluded!r},",
            f"    seed={session.seed},",
            "    consequences=consequences(),",
            ")",
            "found",
        ]
    )


def _factor_steps(session: Session, metric: str) -> list[tuple[str, str]]:
    steps = []
    if session.factor(metric):
        steps.append((f"## {metric}: what it is", f"explain_factor({metric!r})"))
    arguments = f"runs, {metric!r}, {session.judged!r}, {session.seed}"
    code = f"related = relation({arguments})\nprint(related.sentence)\n"
    drawing = "figure_relation(runs, related, found.labels);"
    steps.append((f"How {metric} and {session.judged} are related.", f"{code}{drawing}"))
    return steps


def _trial_steps(session: Session) -> list[tuple[str, str]]:
    pairs = session.trials()
    if not pairs:
        return []
    name = session.mitigation if session.mitigation in pairs else next(iter(pairs))
    steps = [("## What was tried, all judged together", _judge_code(session, list(pairs)))]
    if again := list(session.trials(AGAIN)):
        text = "What was measured again, in runs that had no part in the choice."
        steps.append((text, _judge_code(session, again, AGAIN, "measured_again")))
    steps += [
        (f"## {name}: what it does", f"mitigations()[{name!r}].what"),
        ("Before and after.", _compare_code(session, name)),
        ("Both distributions.", _densities_code(session)),
    ]
    return steps


def _judge_code(
    session: Session, names: list[str], prefix: str = TRIAL, found: str = "tried"
) -> str:
    where = (
        "folder" if session.one_campaign or session.is_table else f'folder / f"{prefix}{{name}}"'
    )
    return "\n".join(
        [
            f"names = {names!r}",
            f"tables = {{name: runs_of({where}) for name in names}}",
            *_judged_line(session),
            "pairs = {",
            '    name: (table[table["cell"] == BASELINE], table[table["cell"] == name])',
            "    for name, table in tables.items()",
            "}",
            f"{found} = judge_trials(pairs, {session.seed})",
            f"{{name: (trial.verdict, trial.sentence) for name, trial in {found}.items()}}",
        ]
    )


def _judged_line(session: Session) -> list[str]:
    if not (session.outcome or session.is_table):
        return []
    code = f"tables = {{name: table.assign(outcome={session.judged!r}) for name, table in"
    return [f"{code} tables.items()}}"]


def _compare_code(session: Session, name: str) -> str:
    return (
        f"untreated, treated = tried[{name!r}].pair\n"
        f"compare(untreated, treated, {session.judged!r}, {session.seed})"
    )


def _densities_code(session: Session) -> str:
    values = ", ".join(
        f'"{side}": {side}[{session.judged!r}].to_numpy(float)' for side in ("untreated", "treated")
    )
    return f"figure_densities({{{values}}}, {session.judged!r});"


def _limits_of_the_method() -> str:
    return (
        "## What this does not show\n\nWhat is associated with slow runs need not cause them. A"
        " mitigation that helps holds for this machine and this input. Nothing is claimed where the"
        " p-value of the whole search is above 0.01."
    )
