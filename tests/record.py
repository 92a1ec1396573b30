"""Make what `make paper PROFILE=record` measured the recorded campaign, data/recorded:
`python -m tests.record`; or some stages of it, with the machine of these: `python -m tests.record
STAGE STAGE`. Of what `make paper PROFILE=recorded` then found, the answers are shipped and stand in
the README, and so is what one notebook hands to another: `python -m tests.record answers`.
"""

import gzip
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from nbhelpers.answers import read_answers
from nbhelpers.errors import InputError
from nbhelpers.files import packed, write_atomically, write_json, write_text
from nbhelpers.lab import in_words, shipped_answers, title_of
from nbhelpers.places import results, shipped
from nbhelpers.records import SEAL
from nbhelpers.study import NO_STAGES, NOTEBOOKS, PAPER, question

BEGIN, END = "<!-- answers -->\n", "<!-- end of answers -->\n"
SHIPPED = ("answer", "sentence", "quantity", "value", "low", "high", "unit", "n", "n_of")


def pack(source: str | Path, target: str | Path) -> str | Path:
    """Copy a file, or for one of records (.jsonl) its packed copy: the same bytes for the same
    content.
    """
    if str(source).endswith(".jsonl"):
        return write_atomically(packed(target), gzip.compress(Path(source).read_bytes(), mtime=0))
    return shutil.copyfile(source, target)


def record(stages: Sequence[str] = ()) -> Path:
    """The measured data, of all stages or of some, packed; programs of Noisebook itself are named
    as if it lay in /noisebook.
    """
    source, target = results() / "record" / "data", shipped() / "data" / "recorded"
    if not source.exists():
        fix = "make paper PROFILE=record"
        raise InputError("nothing was measured in this profile yet", where=source, fix=fix)
    left_out = shutil.ignore_patterns("*.lock", ".*", "aside", SEAL)
    chosen = stages or sorted(path.name for path in source.iterdir() if path.is_dir())
    for stage in map(source.joinpath, chosen):
        shutil.rmtree(target / stage.name, ignore_errors=True)
        shutil.copytree(stage, target / stage.name, ignore=left_out, copy_function=pack)
        for campaign in (target / stage.name).rglob("campaign.json"):
            text = campaign.read_text()
            write_atomically(campaign, text.replace(f'"{shipped()}/', '"/noisebook/'))
        if stages:
            shutil.copy(source / "00-machine/machine.json", target / stage.name)
    return target


def ship_answers() -> Path:
    """Write the answers of the recorded campaign that build/recorded has, the README's table, and
    what a notebook that runs alone starts from.

    Raises
    ------
    InputError
        Some that are shipped were not made again: they would be lost.
    """
    answers, rows = read_answers(results() / "recorded" / "results"), []
    _require_all({one.stage for one in answers})
    for one in answers:
        values = {name: getattr(one.answer, name) for name in SHIPPED}
        plain = {name: None if value != value else value for name, value in values.items()}
        rows.append({"stage": one.stage, "question": one.question, "answer": plain})
    for copy in (shipped() / "data" / "recorded").glob("*/handed-on/*"):
        shutil.copyfile(results() / "recorded/results" / copy.parents[1].name / copy.name, copy)
    path = write_json(shipped() / "data" / "recorded" / "answers.json", rows, 1)
    readme = shipped() / "README.md"
    before, _, rest = readme.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    write_text(readme, f"{before}{BEGIN}{readme_table()}{END}{after}")
    return path


def _require_all(made: set[str]) -> None:
    """Every answer that is shipped, and whose notebook is still there."""
    extras = shipped() / "extras"
    files = [*NOTEBOOKS.glob("*.ipynb"), *extras.glob("*/*/notebooks/*.ipynb")]
    wanted = shipped_answers().keys() - made
    lacking = {path.stem: path for path in files if path.stem in wanted}
    if not lacking:
        return
    theirs = [path for path in lacking.values() if path.is_relative_to(extras)]
    first = [f"make extra EXTRA={path.relative_to(extras).parts[0]}; " for path in theirs]
    raise InputError(
        f"not made yet: {', '.join(sorted(lacking))}",
        where=results() / "recorded" / "results",
        why="their answers would vanish from data/recorded/answers.json and the README",
        fix="".join([*first, "make paper PROFILE=recorded"]),
    )


def readme_table() -> str:
    """The README's table of questions, notebooks, and answers of the recorded campaign."""
    rows, known = ["| question | notebook | answer |", "| --- | --- | --- |"], shipped_answers()
    for stage in sorted(path.stem for path in NOTEBOOKS.glob("*.ipynb")):  # not of the extras
        if stage not in (*NO_STAGES, PAPER):
            said = "**{}.** {}".format(*in_words(known[stage].answer)) if stage in known else ""
            link = f"[{title_of(stage)}](notebooks/{stage}.ipynb)"
            cells = (text.replace("|", "/") for text in (question(stage), link, said))
            rows.append(f"| {' | '.join(cells)} |")
    return "\n".join((*rows, ""))


if __name__ == "__main__":
    print(ship_answers() if "answers" in sys.argv else record(sys.argv[1:]))
