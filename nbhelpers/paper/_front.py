"""The front page of the paper: one card a question, with its answer and its number.

Owns which questions come first, and what stands on a card.
"""

import math
from html import escape
from pathlib import Path

from ..answers import CANNOT_TELL, NO, YES, Answer, Answered, read_answers, short_number
from ..reading import read_json

CSS = Path(__file__).with_name("paper.css")
TITLE = "What noise does to programs"
# What a reader asks first: is the machine noisy, who takes the time, does a replay cost the same,
# what helps, and what it would cost on very many nodes.
FIRST = (
    "00-machine",
    "15-account",
    "30-injection",
    "35-planted-anomaly",
    "50-attribution",
    "55-mitigate-and-compare",
    "60-openmp-variability",
    "75-mpi-at-scale",
    "82-this-machine-at-scale",
)
_SHAPES = {  # colour and shape say the same
    "yes": '<circle cx="7" cy="7" r="6" fill="#007a5a"/>',
    "no": '<path d="M2 2L12 12M12 2L2 12" stroke="#b84a00" stroke-width="3.4"/>',
    "unknown": '<path d="M7 1L13 7L7 13L1 7Z" fill="none" stroke="#666" stroke-width="2"/>',
    "named": '<path d="M2 1L13 7L2 13Z" fill="#0072b2"/>',
}
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
        return f'{styles}<div class="front">{self.cards("", "ipynb")}</div>'

    def cards(self, folder: str = "../pages/", ending: str = "html") -> str:
        """The cards, those of `FIRST` before the others; each links to FOLDER/STAGE.ENDING."""
        rank = {stage: number for number, stage in enumerate(FIRST)}
        first = [one for one in self.answers if one.stage in rank]
        others = [one for one in self.answers if one.stage not in rank]
        shown = (_card(one, f"{folder}{one.stage}.{ending}", True) for one in first)
        more = (_card(one, f"{folder}{one.stage}.{ending}", False) for one in others)
        heading = "<h2>Further questions</h2>" if others else ""
        return f"{_grid(shown)}{heading}{_grid(more)}"

    @property
    def whose(self) -> str:
        """Whose data these are, in one line: the machine and the profile."""
        return f"{_machine(self.build)} {_profile(self.build.name)}"


def _grid(cards) -> str:
    return f'<div class="cards">{"".join(cards)}</div>'


def _card(one: Answered, link: str, whole: bool) -> str:
    """A card; `whole`: with the published value."""
    answer, kind = one.answer, _WORDS.get(one.answer.answer, "named")
    shape = f'<svg width="14" height="14" aria-hidden="true">{_SHAPES[kind]}</svg>'
    number = f"{answer.quantity}: {_number(answer)}" if answer.number else ""
    theirs = f"Published: {_short(answer.published)}" if whole and answer.published else ""
    lines = "".join(
        f'<p class="{name}">{escape(text)}</p>'
        for name, text in (("number", number), ("theirs", theirs))
        if text
    )
    return (
        f'<article class="card {kind}" title="{escape(answer.sentence)}">'
        f'<h3><a href="{escape(link)}">{escape(one.question)}</a></h3>'
        f'<p class="word">{shape}{escape(answer.word).replace("_", "_<wbr>")}</p>'
        f"{lines}"
        "</article>\n"
    )


def _number(answer: Answer) -> str:
    """The number with interval and n in few words: there are some twenty cards."""
    low, high = answer.low, answer.high
    ends = f" ({short_number(low)}{'–' if low >= 0 else ' to '}{short_number(high)})"
    count = f", n={answer.n} {answer.n_of}" if answer.n else ""
    value = f"{short_number(answer.value)}\N{NO-BREAK SPACE}{answer.unit}".rstrip()
    text = f"{value}{ends if math.isfinite(low + high) else ''}{count}"
    return text.replace("-", "−")


def _short(published: str) -> str:
    """A source as a card names it: "Persson 2025, Table 7"."""
    return published.replace(" et al.", "")


def _machine(build: Path) -> str:
    """The machine that the data are from, as the stages wrote it down."""
    files = sorted((build / "provenance").glob("*.json"))
    machine = read_json(files[0]).get("data_from", {}) if files else {}
    if not machine:
        return "Machine: not recorded."
    kernel = str(machine.get("kernel") or "?").split("-")[0]
    model = machine.get("cpu_model") or "CPU of unknown model"
    virtual = f", {machine['virtualisation']}" if machine.get("virtualisation") else ""
    return f"{model}, {len(machine.get('cpus') or [])} CPUs, Linux {kernel}{virtual}."


def _profile(name: str) -> str:
    whose = {
        "recorded": "nothing measured on your machine",
        "smoke": "a handful of runs; no conclusions",
    }
    return f"Profile {name}: {whose.get(name, 'measured on this machine')}."
