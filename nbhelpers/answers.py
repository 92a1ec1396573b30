"""A notebook's answer to the question in its title: one record, shown at the top of its page and on
the first page of the paper.

Owns the record, its file `found.json`, and how it is shown.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from html import escape
from pathlib import Path
from types import MappingProxyType
from typing import Any

from .errors import InputError
from .files import write_json
from .reading import read_json

FORMAT = "noisebook answer 1"
YES, NO, CANNOT_TELL = "yes", "no", "cannot tell here"
LONGEST = 40  # characters of an answer
MOST_POINTS = 200  # of a group that are kept for the small figure
_DIGITS = 4


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
    groups
        Measured values by name, for the small figure: at most four groups.
    axis
        What `groups` are, with the unit, such as ``"run time (s)"``.
    line
        Name and value of a line in the small figure, such as ``("anomaly", 0.779)``.

    Raises
    ------
    InputError
        An answer that is too long, or more than four groups.

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
    groups: Mapping[str, Sequence[float]] = field(default_factory=lambda: MappingProxyType({}))
    axis: str = ""
    line: tuple[str, float] | None = None

    def __post_init__(self):
        if not self.answer or len(self.answer) > LONGEST:
            raise InputError(
                f"an answer of {len(self.answer)} characters: {self.answer!r}",
                why="it stands in a card of the first page",
                fix=f"1 to {LONGEST} characters; the rest goes into the sentence",
            )
        if len(self.groups) > 4:
            raise InputError(
                f"{len(self.groups)} groups for a small figure", fix="at most four: leave some out"
            )

    def __repr__(self) -> str:
        return f"Answer({self.answer}: {self.number or self.sentence})"

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
        word = self.answer[0].upper() + self.answer[1:]
        theirs = f" Published: {escape(self.published)}." if self.published else ""
        number = f"{escape(self.quantity)}: {escape(self.number)}." if self.number else ""
        return (
            '<div class="noisebook-answer"><p><strong>'
            f"{escape(word)}.</strong> {escape(self.sentence)}</p>"
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
        Its groups are thinned to 200 values each, evenly over their ranks.
    findings
        Further sentences of the page.
    """
    content = {name: _plain(value) for name, value in _parameters(_thinned(answer)).items()}
    return write_json(
        path,
        {
            "format": FORMAT,
            "stage": stage,
            "question": question,
            "answer": content,
            "findings": list(findings),
        },
    )


@dataclass(frozen=True)
class Answered:
    """A notebook's question and its answer, as they were written.

    Attributes
    ----------
    stage, question
        Name and title of the notebook.
    answer
        The `Answer`.
    findings
        Further sentences of its page.
    """

    stage: str
    question: str
    answer: Answer
    findings: tuple[str, ...]


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
    known = {part.name for part in fields(Answer)}
    parameters: dict[str, Any] = {
        name: value for name, value in content["answer"].items() if name in known
    }
    for name in ("value", "low", "high"):
        parameters[name] = math.nan if parameters[name] is None else parameters[name]
    parameters["line"] = tuple(parameters["line"]) if parameters["line"] else None
    return Answered(
        content["stage"], content["question"], Answer(**parameters), tuple(content["findings"])
    )


def read_answers(results: Path) -> list[Answered]:
    """The answers of all stages under a folder of results, in the order of the stages."""
    return [read_answer(path) for path in sorted(Path(results).glob("*/found.json"))]


def _thinned(answer: Answer) -> Answer:
    groups = {name: _evenly(values) for name, values in answer.groups.items()}
    return Answer(**{**_parameters(answer), "groups": groups})


def _parameters(answer: Answer) -> dict[str, Any]:
    return {part.name: getattr(answer, part.name) for part in fields(Answer)}


def _evenly(values: Sequence[float]) -> list[float]:
    finite = sorted(float(value) for value in values if math.isfinite(value))
    count = min(MOST_POINTS, len(finite))
    last = max(count - 1, 1)
    chosen = [finite[round(i * (len(finite) - 1) / last)] for i in range(count)]
    return [float(f"{value:.{_DIGITS}g}") for value in chosen]


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return list(value) if isinstance(value, tuple) else value
