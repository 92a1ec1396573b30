"""The front page of the paper: its summary, the linked view of runs, one card a question.

Owns which questions come first, and what stands on a card.
"""

from html import escape
from pathlib import Path

from ..answers import CANNOT_TELL, NO, YES, Answer, Answered, read_answers
from ..machine.description import in_words
from ..reading import read_json

CSS = Path(__file__).with_name("paper.css")
TITLE = "What noise does to programs"
# A summary of this machine: who took the time of slow runs, and what helped.
SUMMARY = ("15-account", "55-mitigate-and-compare")
# Seven cards: a run, its replay, its counters, what helps, OpenMP, MPI, scale.
FIRST = (
    "15-account",
    "35-planted-anomaly",
    "50-attribution",
    "55-mitigate-and-compare",
    "60-openmp-variability",
    "75-mpi-at-scale",
    "82-this-machine-at-scale",
)
_WORDS = {YES: "yes", NO: "no", CANNOT_TELL: "unknown"}


class Front:
    """The questions and answers of a study; shows itself in a notebook as cards.

    Parameters
    ----------
    build
        Folder of a profile, with `results` and `provenance`.
    """

    def __init__(self, build: str | Path):
        self.build = Path(build)
        self.answers = read_answers(self.build / "results")

    def __repr__(self) -> str:
        lines = (f"{one.question} {one.answer.answer}." for one in self.answers)
        return "\n".join(lines) or "no stage has answered its question yet"

    def _repr_html_(self) -> str:
        styles = f"<style>{CSS.read_text(encoding='utf-8')}</style>"
        return f'{styles}<div class="front">{self.summary}{self.cards("", "ipynb")}</div>'

    def cards(self, folder: str = "../pages/", ending: str = "html") -> str:
        """A card for each of `FIRST`, a line for each other; each links to FOLDER/STAGE.ENDING."""
        first = [one for one in self.answers if one.stage in FIRST]
        others = [one for one in self.answers if one.stage not in FIRST]
        shown = (_card(one, f"{folder}{one.stage}.{ending}") for one in first)
        more = (_line(one, f"{folder}{one.stage}.{ending}") for one in others)
        lines = f'<h2>Further questions</h2><ul class="lines">{"".join(more)}</ul>'
        return f'<div class="cards">{"".join(shown)}</div>{lines if others else ""}'

    @property
    def summary(self) -> str:
        """`summary_text` as HTML; empty where there is none."""
        text = escape(self.summary_text)
        return f'<p class="summary">{text}</p>' if text else ""

    @property
    def summary_text(self) -> str:
        """Sentences on this machine; empty where no stage has told them."""
        known = {one.stage: one.answer for one in self.answers}
        took, helps = (known.get(stage) for stage in SUMMARY)
        said = [took.sentence] if took else []
        if helps and helps.answer not in _WORDS:
            said.append(f"What helps most: {helps.answer}.")
        said += [helps.sentence] if helps else []
        return " ".join(said)

    @property
    def view(self) -> str:
        """The linked view of runs on the page of the summary; empty where there is none."""
        notebook = self.build / "notebooks" / f"{SUMMARY[0]}.ipynb"
        cells = read_json(notebook)["cells"] if notebook.exists() else []
        outputs = [output for cell in cells for output in cell.get("outputs", [])]
        shown = ("".join(output.get("data", {}).get("text/html", "")) for output in outputs)
        return next((view for view in shown if view.startswith('<div class="linked-view')), "")

    @property
    def whose(self) -> str:
        """Whose data these are, in one line: the machine and the profile."""
        return f"{_machine(self.build)} {_profile(self.build.name)}"


def kind_of(answer: Answer) -> str:
    """Whether an answer is "yes", "no", "unknown", or a name ("named")."""
    return _WORDS.get(answer.answer, "named")


def _card(one: Answered, link: str) -> str:
    """Question, answer in a word and in a sentence, its number, the published one."""
    answer = one.answer
    said = "" if one.stage in SUMMARY else answer.sentence  # it stands above
    number = f"{answer.quantity}: {answer.number}" if answer.number else ""
    theirs = f"Published: {answer.published.replace(' et al.', '')}" if answer.published else ""
    lines = "".join(
        f'<p class="{name}">{escape(text)}</p>'
        for name, text in (("said", said), ("number", number), ("theirs", theirs))
        if text
    )
    return (
        f'<article class="card {kind_of(answer)}">'
        f'<h2><a href="{escape(link)}">{escape(one.question)}</a></h2>'
        f'<p class="word">{escape(answer.word)}</p>{lines}</article>\n'
    )


def _line(one: Answered, link: str) -> str:
    question = f'<a href="{escape(link)}">{escape(one.question)}</a>'
    said = f'<b class="word">{escape(one.answer.word)}.</b> {escape(one.answer.sentence)}'
    return f'<li class="{kind_of(one.answer)}">{question} {said}</li>\n'


def _machine(build: Path) -> str:
    """The machines that the data are from, as the stages wrote them down."""
    files = sorted((build / "provenance").glob("*.json"))
    machines = filter(None, (read_json(file).get("data_from") for file in files))
    return f"{'; '.join(dict.fromkeys(map(in_words, machines))) or 'Machine: not recorded'}."


def _profile(name: str) -> str:
    whose = {
        "recorded": "nothing measured on your machine",
        "smoke": "a handful of runs; no conclusions",
    }
    return f"Profile {name}: {whose.get(name, 'measured on this machine')}."
