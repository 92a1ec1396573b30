"""JupyterLab on copies of the notebooks, and their contents: question, notebook, answer, minutes.

Owns `build/lab`: which copies are made, which are kept because somebody changed them. Owns
`data/recorded/answers.json`, too: the answers of the recorded campaign, as they are shipped.
"""

import argparse
import ast
import contextlib
import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from .answers import CANNOT_TELL, NO, YES, Answer, Answered, read_answer, read_answers
from .errors import InputError, NoisebookError
from .files import digest, write_json, write_text
from .places import HOME, is_installed, results, shipped
from .profiles import adopted, default_parameters, parameters_of
from .reading import read_json
from .study import NO_STAGES, NOTEBOOKS, PAPER, Study, question

CONTENTS = "contents"
_RECORD = ".copies.json"  # digests of the copies as they were made
_BEGIN, _END = "<!-- answers -->\n", "<!-- end of answers -->\n"
_LONGEST = 220  # of a sentence in a table


# ---- copies to work with -------------------------------------------------------------------------


@dataclass(frozen=True)
class Copies:
    """The copies in a folder.

    Attributes
    ----------
    folder
        Where they lie.
    changed
        Names of those that somebody changed; they are as they were.
    """

    folder: Path
    changed: tuple[str, ...]

    def __str__(self) -> str:
        if not self.changed:
            return f"The notebooks to work with: {os.path.relpath(self.folder)}"
        return (
            f"The notebooks to work with: {os.path.relpath(self.folder)}. Left as you changed them:"
            f" {', '.join(self.changed)} (delete or rename one to get it anew)"
        )


def working_copies(profile: str) -> Copies:
    """Copy the notebooks to build/lab; their parameters are those of the profile.

    A copy whose cells somebody changed is never written to. One that was only run is made anew
    where the notebook has changed since, and otherwise left alone with its outputs.

    Parameters
    ----------
    profile
        Its name, or the path of a file. `recorded` lies in build/lab, others in build/lab/NAME.

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
    for source in sorted(NOTEBOOKS.glob("*.ipynb")):
        content, copy = _copied(source, name, folder), folder / source.name
        here = _cells_digest(read_json(copy)) if copy.exists() else None
        if here not in (None, made.get(source.stem)):
            changed.append(source.stem)
        elif here != _cells_digest(content):
            write_json(copy, content, 1)
            made[source.stem] = _cells_digest(content)
    write_json(record, made)
    return Copies(folder, tuple(changed))


def _copied(source: Path, profile: str, folder: Path) -> dict:
    """A notebook with a profile's parameters, and links that lead from the folder of the copy."""
    content = read_json(source)
    start = os.path.relpath(shipped(), folder)
    for cell in content["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            text = text.replace("](../", f"]({start}/")
        elif "parameters" in cell["metadata"].get("tags", []) and profile != "recorded":
            text = with_values(text, _values(source.stem, profile))
        cell["source"] = text.splitlines(keepends=True)
    return content


def relative_links(text: str) -> list[str]:
    """Files that a text links, relative to its folder.

    Examples
    --------
    >>> relative_links("[a](../data/README.md) and [b](https://example.org)")
    ['../data/README.md']
    """
    return re.findall(r"\]\(([^)#:]+)\)", text)


def _values(stage: str, profile: str) -> dict:
    """The profile's values for a notebook; one that is no stage has its own."""
    declared = default_parameters(stage)
    if stage in NO_STAGES:
        return {"profile": profile} if "profile" in declared else {}
    return parameters_of(stage, profile)


def with_values(source: str, values: Mapping[str, Any]) -> str:
    """The source of a parameters cell with other values.

    Examples
    --------
    >>> print(with_values("# how many\\nruns: int = 3", {"runs": 5}))
    # how many
    runs: int = 5
    """
    lines = source.split("\n")
    for one in reversed(ast.parse(source).body):
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name):
            name = one.target.id
            if name in values:
                kind = ast.unparse(one.annotation)
                lines[one.lineno - 1 : one.end_lineno] = [f"{name}: {kind} = {values[name]!r}"]
    return "\n".join(lines)


def _cells_digest(content: dict) -> str:
    """Of what somebody may have typed; outputs and counts do not matter."""
    return digest(
        *(
            part
            for cell in content["cells"]
            for part in (cell["cell_type"], "".join(cell["source"]))
        )
    )


# ---- contents ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Line:
    """A line of the contents: a notebook, its question, its answer if there is one, and minutes."""

    stage: str
    question: str
    answer: Answer | None
    minutes: float


@dataclass(frozen=True)
class Contents:
    """Question, notebook, answer and minutes of each notebook; shows itself in a notebook.

    Attributes
    ----------
    profile
        Whose answers and minutes they are.
    lines
        In the order of the notebooks.
    """

    profile: str
    lines: tuple[Line, ...]

    def __repr__(self) -> str:
        answered = sum(line.answer is not None for line in self.lines)
        return f"Contents({self.profile}: {answered} of {len(self.lines)} questions answered)"

    def _repr_html_(self) -> str:
        rows = "".join(
            f'<tr><td style="text-align:left">{escape(line.question)}</td>'
            f'<td style="text-align:left"><a href="{escape(line.stage)}.ipynb">'
            f"{escape(title_of(line.stage))}</a></td>"
            f'<td style="text-align:left">{_answer_html(line.answer)}</td>'
            f"<td>{_minutes(line.minutes)}</td></tr>"
            for line in self.lines
        )
        return (
            "<table><thead><tr><th>question</th><th>notebook</th>"
            f"<th>answer (profile {escape(self.profile)})</th><th>minutes</th></tr></thead>"
            f"<tbody>{rows}</tbody></table>"
        )


def contents(profile: str = "recorded") -> Contents:
    """What each notebook asks, what it answered, and how long it takes.

    Answers are those of build/PROFILE; of the recorded campaign also those that are shipped.

    Parameters
    ----------
    profile
        Its name.

    Examples
    --------
    >>> contents("recorded").lines[0].stage
    '00-machine'
    """
    known = {one.stage: one.answer for one in answers(profile)}
    minutes = _all_minutes(profile)
    stages = [stage for stage in _notebooks() if stage not in (CONTENTS, PAPER)]
    return Contents(
        profile,
        tuple(
            Line(stage, question(stage), known.get(stage), minutes.get(stage, float("nan")))
            for stage in stages
        ),
    )


def answers(profile: str) -> list[Answered]:
    """The answers that were made in this profile; of the recorded campaign, else the shipped one.

    What an older Noisebook wrote counts as not made.
    """
    found = {one.stage: one for one in shipped_answers()} if profile == "recorded" else {}
    for path in (Study(PAPER, profile).build / "results").glob("*/found.json"):
        with contextlib.suppress(InputError):
            found[path.parent.name] = read_answer(path)
    return [found[stage] for stage in sorted(found)]


def shipped_answers() -> list[Answered]:
    """The answers of the recorded campaign, as data/recorded has them."""
    path = shipped() / "data" / "recorded" / "answers.json"
    rows = read_json(path) if path.exists() else []
    return [
        Answered(row["stage"], row["question"], Answer(**_finite(row["answer"])), ())
        for row in rows
    ]


def _finite(parts: dict) -> dict:
    return {name: value for name, value in parts.items() if value is not None}


def title_of(stage: str) -> str:
    """How a notebook is called in a table: `10 trace collection`."""
    return stage.replace("-", " ")


def _notebooks() -> list[str]:
    return sorted(path.stem for path in NOTEBOOKS.glob("*.ipynb"))


def _all_minutes(profile: str) -> dict[str, float]:
    """Stage -> minutes here; none where they cannot be estimated."""
    from .estimate import stage_estimate, this_machine

    stages = [stage for stage in _notebooks() if stage not in NO_STAGES]
    try:
        parameters = {
            stage: default_parameters(stage) | parameters_of(stage, profile) for stage in stages
        }
        machine = this_machine()
        return {
            stage: stage_estimate(stage, parameters, machine, Study(stage, profile)).seconds / 60
            for stage in stages
        }
    except (NoisebookError, KeyError):
        return {}


def _minutes(value: float) -> str:
    if value != value:
        return ""
    return f"{value:.1f}" if value < 10 else f"{value:.0f}"


def _answer_html(answer: Answer | None) -> str:
    if answer is None:
        return "<em>not made yet</em>"
    number = f"<br><small>{escape(answer.number)}</small>" if answer.number else ""
    return f"<b>{escape(_capital(answer.answer))}.</b> {escape(_short(answer.sentence))}{number}"


def _capital(text: str) -> str:
    """Of an answer in words; what is the name of a thing stays as it is."""
    named = text not in (YES, NO, CANNOT_TELL) and not text.startswith(("a ", "an ", "the "))
    return text if named else text[:1].upper() + text[1:]


def _short(sentence: str) -> str:
    plain = sentence.replace("**", "").replace("\n", " ")
    return plain if len(plain) <= _LONGEST else f"{plain[:_LONGEST].rsplit(' ', 1)[0]} …"


# ---- what is shipped, and the README's table -----------------------------------------------------


def ship_answers(folder: Path | None = None) -> Path:
    """Write the answers of a recorded campaign that was just made, and the README's table.

    Parameters
    ----------
    folder
        The results of all stages; None: those of build/recorded.
    """
    made = read_answers(folder or Study(PAPER, "recorded").build / "results")
    path = write_json(shipped() / "data" / "recorded" / "answers.json", shipped_rows(made), 1)
    readme = shipped() / "README.md"
    text = readme.read_text(encoding="utf-8")
    before, _, rest = text.partition(_BEGIN)
    _, _, after = rest.partition(_END)
    write_text(readme, f"{before}{_BEGIN}{readme_table()}{_END}{after}")
    return path


def shipped_rows(made: list[Answered]) -> list[dict]:
    """The answers as `data/recorded/answers.json` has them: without points and findings."""
    parts = ("answer", "sentence", "quantity", "value", "low", "high", "unit", "n", "n_of")
    rows = []
    for one in made:
        values = {name: getattr(one.answer, name) for name in parts}
        plain = {name: None if value != value else value for name, value in values.items()}
        rows.append({"stage": one.stage, "question": one.question, "answer": plain})
    return rows


def readme_table() -> str:
    """The README's table of questions, notebooks, and answers of the recorded campaign."""
    return "\n".join(("| question | notebook | answer |", "| --- | --- | --- |", *_rows(), ""))


def _rows() -> Iterator[str]:
    shipped_ones = {one.stage: one for one in shipped_answers()}
    for stage in _notebooks():
        if stage not in (*NO_STAGES, PAPER):
            one = shipped_ones.get(stage)
            asked = one.question if one else question(stage)
            said = (
                f"**{_capital(one.answer.answer)}.** {_short(one.answer.sentence)}" if one else ""
            )
            cells = (asked, f"[{title_of(stage)}](notebooks/{stage}.ipynb)", said)
            yield f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


# ---- the command ---------------------------------------------------------------------------------


def checked_options(options: list[str]) -> list[str]:
    """The options for JupyterLab, with the loopback address where none is chosen.

    Raises
    ------
    InputError
        No token, and another address than loopback: everybody who reaches the machine could run
        code as this user.
    """
    values = _option_values(options)
    address = values.get("ip", "127.0.0.1")
    if values.get("token") == "" and address not in ("127.0.0.1", "localhost", "::1"):
        raise InputError(
            f"JupyterLab without a token on the address {address or 'of every network'}",
            why="everybody who reaches this machine could run code as you",
            fix="leave the token, or the address, as it is",
        )
    return options if "ip" in values else ["--ServerApp.ip=127.0.0.1", *options]


def _option_values(options: list[str]) -> dict[str, str]:
    """Last part of an option's name to its value, which follows a "=" or is the next word."""
    found = {}
    for word, following in zip(options, [*options[1:], ""]):
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            if not equals:
                value = "" if following.startswith("--") else following
            found[name.rpartition(".")[2]] = value.strip("'\"")
    return found


def open_lab(profile: str, options: list[str]) -> None:
    """Make the copies and replace this process by JupyterLab on their contents.

    Parameters
    ----------
    profile
        See `working_copies`.
    options
        Further options of `jupyter lab`.
    """
    made = working_copies(profile)
    print(made, flush=True)
    os.environ[HOME] = str(results())
    root = made.folder if is_installed() else shipped()
    words = [f"--ServerApp.root_dir={root}", str(made.folder / f"{CONTENTS}.ipynb")]
    words += checked_options(options)
    if os.geteuid() == 0:
        words.append("--allow-root")
    os.execv(sys.executable, [sys.executable, "-m", "jupyter", "lab", *words])


def main(words: list[str] | None = None) -> int:
    """`python -m nbhelpers.lab open` or `ship`; an error that a user can fix is one message."""
    parser = argparse.ArgumentParser(
        prog="python -m nbhelpers.lab", description=__doc__.splitlines()[0]
    )
    parser.add_argument("what", choices=("open", "ship"))
    parser.add_argument("--profile", default="recorded")
    arguments, options = parser.parse_known_args(words)
    try:
        if arguments.what == "ship":
            print(os.path.relpath(ship_answers()))
        else:
            open_lab(arguments.profile, options)
    except NoisebookError as error:
        print(f"\n{error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
