"""A notebook's answer to the question in its title: one record, shown at the top of its page and on
the first page of the paper.

Owns the record, its file `found.json`, and how it is shown.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import InputError
from .files import write_json
from .reading import read_json

if TYPE_CHECKING:
    from .statistics.claims import Judgement

FORMAT = "noisebook answer 1"
YES, NO, CANNOT_TELL = "yes", "no", "cannot tell here"
_WORDS = {"reproduced": YES, "reversed": NO, "equivalent to none": NO}  # by verdict of a claim
LONGEST = 40  # characters of an answer
_NUMBERS = ("value", "low", "high")  # null in the file where there is none


@dataclass(frozen=True)
class Answer:
    """What a notebook answers.

    Parameters
    ----------
    answer
        ``"yes"``, ``"no"`` or ``"cannot tell here"``. Where the question asks what, which or who:
        its name in at most 40 characters, or ``"cannot tell here"``.
    sentence
        The same as one sentence of at most 25 words, with the number.
    quantity
        What `value` is, such as ``"replayed over recorded run time"``; "" if there is no number.
    value, low, high
        The number and its 95 % interval; NaN if there is none.
    unit
        Such as ``"%"``, ``"µs"``, ``"s"``; "" for a ratio.
    n, n_of
        How many of what it rests on, such as 30 and ``"rounds"``: the unit that was randomised.
    published
        The published value and its place, such as ``"8.6 % (Persson et al. 2025, Table 7)"``; ""
        where none is published.
    figure
        Name of the saved figure or table of the same stage that shows it.

    Raises
    ------
    InputError
        An answer that is too long.

    Examples
    --------
    >>> answer = Answer(
    ...     "no",
    ...     "The replay takes half as long.",
    ...     "replayed over recorded",
    ...     0.52,
    ...     0.50,
    ...     0.55,
    ...     n=30,
    ...     n_of="rounds",
    ... )
    >>> answer.number
    '0.52 (0.5 to 0.55), n = 30 rounds'
    """

    answer: str
    sentence: str
    quantity: str = ""
    value: float = math.nan
    low: float = math.nan
    high: float = math.nan
    unit: str = ""
    n: int = 0
    n_of: str = "runs"
    published: str = ""
    figure: str = ""

    def __post_init__(self):
        if not self.answer or len(self.answer) > LONGEST:
            raise InputError(
                f"an answer of {len(self.answer)} characters: {self.answer!r}",
                why="it stands in a card of the first page",
                fix=f"1 to {LONGEST} characters; the rest goes into the sentence",
            )

    @classmethod
    def of(
        cls, judged: "Judgement", sentence: str, quantity: str, unit: str = "%", **more: Any
    ) -> "Answer":
        """The answer of a claim that was judged.

        Parameters
        ----------
        judged
            What `nbhelpers.statistics.claims.judge` found. The answer is yes where its claim is
            shown, no where the reverse or no effect is shown, else it cannot be told.
        sentence, quantity
            The fields of `Answer`.
        unit
            ``"%"`` shows the effect as a change in per cent, ``""`` as a ratio.
        more
            Further fields of `Answer`; `answer` takes the place of the word.

        Examples
        --------
        >>> from nbhelpers.statistics.claims import Claim, Evidence, judge
        >>> slower = Evidence([0.10, 0.11, 0.12, 0.10, 0.11, 0.12, 0.11, 0.11])
        >>> [judged] = judge([(Claim("traced runs are slower", "above"), slower)])
        >>> Answer.of(judged, "Traced runs take 12 % longer.", "change of the run time").answer
        'yes'
        """
        scale, base = (100, 0) if unit == "%" else (1, 1)
        ends = (judged.effect, judged.low, judged.high)
        value, low, high = (base + scale * float(end) for end in ends)
        known: dict[str, Any] = {"answer": _WORDS.get(judged.verdict, CANNOT_TELL), "unit": unit}
        known |= {"value": value, "low": low, "high": high}
        known |= {"n": int(judged.units), "n_of": judged.unit} | more
        return cls(sentence=sentence, quantity=quantity, **known)

    def __repr__(self) -> str:
        return f"Answer({self.answer}: {self.number or self.sentence})"

    @property
    def word(self) -> str:
        """The answer as a sentence begins with it; the name of a thing keeps its small letter."""
        is_word = self.answer in (YES, NO, CANNOT_TELL)
        is_word = is_word or self.answer.startswith(("a ", "an ", "the "))
        return self.answer[0].upper() + self.answer[1:] if is_word else self.answer

    @property
    def number(self) -> str:
        """The number with its interval and n, as text; "" if there is none."""
        if not math.isfinite(self.value):
            return ""
        unit = f"\N{NO-BREAK SPACE}{self.unit}" if self.unit else ""
        ends = [short_number(end) for end in (self.low, self.high)]
        interval = f" ({ends[0]} to {ends[1]})" if math.isfinite(self.low + self.high) else ""
        count = f", n = {self.n} {self.n_of}" if self.n else ""
        return f"{short_number(self.value)}{unit}{interval}{count}"

    def _repr_html_(self) -> str:
        theirs = f" Published: {escape(self.published)}." if self.published else ""
        number = f"{escape(self.quantity)}: {escape(self.number)}." if self.number else ""
        figure = f' data-figure="{escape(self.figure)}"' if self.figure else ""
        return (
            f'<div class="noisebook-answer"{figure}><p><strong>'
            f"{escape(self.word)}.</strong> {escape(self.sentence)}</p>"
            f"<p><small>{number}{theirs}</small></p></div>"
        )


def short_number(value: float) -> str:
    """A number with three significant digits, as answers and their figures show it.

    Examples
    --------
    >>> short_number(0.12345), short_number(43521.7)
    ('0.123', '43,522')
    """
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def write_answer(
    path: Path, stage: str, question: str, answer: Answer, findings: Sequence[str]
) -> Path:
    """Write an answer, the question, and what else was found.

    Parameters
    ----------
    path
        The file, `found.json` of a stage's results.
    stage, question
        Name and title of the notebook.
    answer
        The `Answer`.
    findings
        Further sentences of the page.
    """
    content = {"format": FORMAT, "stage": stage, "question": question}
    return write_json(path, content | {"answer": plain(answer), "findings": list(findings)})


def plain(answer: Answer) -> dict[str, Any]:
    """The fields of an answer as JSON has them: None where there is no number."""
    known = asdict(answer)
    return known | {name: None for name in _NUMBERS if not math.isfinite(known[name])}


@dataclass(frozen=True)
class Answered:
    """A notebook's question and its answer, as they were written.

    Attributes
    ----------
    stage, question
        Name and title of the notebook.
    answer
        The `Answer`.
    """

    stage: str
    question: str
    answer: Answer


def read_answer(path: Path) -> Answered:
    """Read what `write_answer` wrote.

    Raises
    ------
    InputError
        Not such a file.
    """
    content = read_json(path)
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InputError(
            "this is not the answer of a notebook",
            where=path,
            fix="run its stage again: make paper",
        )
    return answered(content)


def answered(content: dict[str, Any]) -> Answered:
    """What a file or a row of the shipped answers holds."""
    names = {part.name for part in fields(Answer)}
    known = {name: one for name, one in content["answer"].items() if name in names}
    known |= {name: math.nan for name in _NUMBERS if known.get(name) is None}
    return Answered(content["stage"], content["question"], Answer(**known))


def read_answers(results: Path) -> list[Answered]:
    """The answers of all stages under a folder of results, in the order of the stages."""
    return [read_answer(path) for path in sorted(Path(results).glob("*/found.json"))]
