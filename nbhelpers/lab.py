"""JupyterLab on copies of the notebooks, and their contents: question, notebook, answer, minutes.

Owns `build/lab`: which copies are made, which are kept because somebody changed them.
"""

import ast
import contextlib
import math
import os
import sys
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

import pandas as pd

from .answers import Answer, Answered, answered, read_answer
from .errors import InputError
from .files import write_json
from .places import HOME, is_installed, results, shipped
from .profiles import adopted, parameters_of
from .reading import read_json
from .stages import cells_digest
from .study import NO_STAGES, PAPER, Study, notebook_files, question

CONTENTS = "contents"
_RECORD = ".copies.json"  # digests of the copies as they were made


# ---- copies to work with -------------------------------------------------------------------------


def working_copies(profile: str) -> tuple[Path, list[str]]:
    """Copy the notebooks to build/lab; their parameters are those of the profile.

    A copy whose cells somebody changed is never written to. One that was only run is made anew
    where the notebook has changed since, and otherwise left alone with its outputs. A new one has
    the outputs of the profile's study, as far as that was made.

    Parameters
    ----------
    profile
        Its name, or the path of a file. `recorded` lies in build/lab, others in build/lab/NAME.

    Returns
    -------
    Their folder, and the names of those that somebody changed; they are as they were.

    Raises
    ------
    InputError
        The profile cannot be used.
    """
    name = adopted(profile)
    folder = results() / "lab" / ("" if name == "recorded" else name)
    record = folder / _RECORD
    made = read_json(record) if record.exists() else {}
    changed = []
    for source in notebook_files().values():
        content, copy = _copied(source, name, folder), folder / source.name
        old = read_json(copy) if copy.exists() else {"cells": []}
        here, was_run = cells_digest(old), any(cell.get("outputs") for cell in old["cells"])
        if old["cells"] and here != made.get(source.stem):
            changed.append(source.stem)
        elif here != cells_digest(content) or not was_run:
            write_json(copy, content, 1)
            made[source.stem] = cells_digest(content)
    write_json(record, made)
    return folder, changed


def _copied(source: Path, profile: str, folder: Path) -> dict:
    """A notebook with a profile's parameters, and links that lead from the folder of the copy."""
    content, run = read_json(source), Study(source.stem, profile).build / "notebooks" / source.name
    cells = read_json(run)["cells"] if run.exists() else []
    outputs = {cell.get("id"): cell.get("outputs") for cell in cells}
    start = os.path.relpath(shipped(), folder)
    for cell in content["cells"]:
        text = "".join(cell["source"])
        if shown := outputs.get(cell["id"]):
            cell["outputs"] = shown
        if cell["cell_type"] == "markdown":
            text = text.replace("](../", f"]({start}/")
        elif "parameters" in cell["metadata"].get("tags", []):
            is_stage = source.stem not in NO_STAGES
            values = parameters_of(source.stem, profile) if is_stage else {"profile": profile}
            text = with_values(text, values)
        cell["source"] = text.splitlines(keepends=True)
    return content


def with_values(source: str, values: Mapping[str, Any]) -> str:
    """The source of a parameters cell with other values; those that it does not declare are left.

    Examples
    --------
    >>> print(with_values("# how many\\nruns: int = 3", {"runs": 5}))
    # how many
    runs: int = 5
    """
    lines = source.split("\n")
    for one in reversed(ast.parse(source).body):
        if isinstance(one, ast.AnnAssign) and (name := ast.unparse(one.target)) in values:
            kind = ast.unparse(one.annotation)
            lines[one.lineno - 1 : one.end_lineno] = [f"{name}: {kind} = {values[name]!r}"]
    return "\n".join(lines)


# ---- contents ------------------------------------------------------------------------------------


def contents(profile: str = "recorded") -> "pd.io.formats.style.Styler":
    """What each notebook asks, what it answered, and how long it takes; for a notebook to show.

    Answers are those of build/PROFILE; of the recorded campaign also those that are shipped.

    Parameters
    ----------
    profile
        Its name.

    Returns
    -------
    Table with a row a notebook: question, link, answer, minutes.

    Examples
    --------
    >>> contents("recorded").data["notebook"][0]
    '<a href="00-machine.ipynb">00 machine</a>'
    """
    known = answers(profile)
    rows = [
        {
            "question": escape(question(stage)),
            "notebook": f'<a href="{escape(stage)}.ipynb">{escape(title_of(stage))}</a>',
            f"answer (profile {escape(profile)})": _answer_html(known.get(stage)),
            "minutes": (Study(stage, profile).expected_s or math.nan) / 60,
        }
        for stage in notebook_files()
        if stage not in (CONTENTS, PAPER)
    ]
    shown = pd.DataFrame(rows).style.hide().format(precision=1, na_rep="")
    return shown.set_table_styles([{"selector": "th, td", "props": "text-align: left"}])


def answers(profile: str) -> dict[str, Answered]:
    """Stage → answer that was made in this profile; of the recorded campaign, else the shipped one.

    What an older Noisebook wrote counts as not made.
    """
    found = shipped_answers() if profile == "recorded" else {}
    for path in (Study(PAPER, profile).build / "results").glob("*/found.json"):
        with contextlib.suppress(InputError):
            found[path.parent.name] = read_answer(path)
    return found


def shipped_answers() -> dict[str, Answered]:
    """Stage → answer of the recorded campaign, as data/recorded has them."""
    path = shipped() / "data" / "recorded" / "answers.json"
    return {row["stage"]: answered(row) for row in (read_json(path) if path.exists() else [])}


def title_of(stage: str) -> str:
    """How a notebook is called in a table: `10 trace collection`."""
    return stage.replace("-", " ")


def _answer_html(one: Answered | None) -> str:
    if one is None:
        return "<em>not made yet</em>"
    word, sentence = map(escape, in_words(one.answer))
    number = f"<br><small>{escape(one.answer.number)}</small>" if one.answer.number else ""
    return f"<b>{word}.</b> {sentence}{number}"


def in_words(answer: Answer) -> tuple[str, str]:
    """The answer, and its sentence, as they stand in a table."""
    return answer.word, answer.sentence.replace("**", "").replace("\n", " ")


# ---- the command ---------------------------------------------------------------------------------


def checked_options(options: list[str]) -> list[str]:
    """The options for JupyterLab, with the loopback address where none is chosen.

    Raises
    ------
    InputError
        Both an address and a token are given: everybody who reaches the machine, or lists its
        processes, could run code as this user.
    """
    given = {word.partition("=")[0].lstrip("-").rpartition(".")[2] for word in options}
    if {"ip", "token"} <= given:
        raise InputError(
            "JupyterLab on an address and without a token, or with one that all users can read",
            why="everybody who reaches this machine could run code as you",
            fix="leave the token, or the address, as it is; $JUPYTER_TOKEN is read by you alone",
        )
    return options if "ip" in given else ["--ServerApp.ip=127.0.0.1", *options]


def open_lab(profile: str, options: list[str]) -> None:
    """Make the copies, run their contents, and replace this process by JupyterLab on these.

    Parameters
    ----------
    profile
        The argument of `working_copies`.
    options
        Further options of `jupyter lab`.
    """
    import nbformat
    import papermill
    from nbformat.sign import NotebookNotary

    words, (folder, changed) = checked_options(options), working_copies(profile)
    print(f"The notebooks to work with: {os.path.relpath(folder)}", flush=True)
    if changed:
        fix = "delete or rename one to get it anew"
        print(f"Left as you changed them: {', '.join(changed)}; {fix}", flush=True)
    os.environ[HOME] = str(results())
    first = folder / f"{CONTENTS}.ipynb"
    if CONTENTS not in changed:
        papermill.execute_notebook(first, first, cwd=folder, progress_bar=False)
    for path in folder.glob("*.ipynb"):  # or JupyterLab shows no picture that can be clicked
        NotebookNotary().sign(nbformat.read(path, as_version=4))
    root = folder if is_installed() else shipped()
    words += [f"--ServerApp.root_dir={root}", str(first)]
    words += ["--allow-root"] if os.geteuid() == 0 else []
    os.execv(sys.executable, [sys.executable, "-m", "jupyter", "lab", *words])
