"""Small figures for the cards of the front page: strips of values, or an interval, as SVG.

Pure: an answer in, text of an SVG out; the same answer gives the same text.
"""

import math
from collections.abc import Sequence
from html import escape
from statistics import median

from ..answers import Answer, short_number

WIDTH = 212  # of the drawing, in pixels of a page: as wide as a card's text
_LETTER = 6.6  # width of a letter, as text of 12 pixels (9 pt) has it
_ROW, _AXIS = 30, 20  # heights of a strip and of a line of text
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#7a5195")


def small_figure(answer: Answer) -> str:
    """The measured values of an answer as strips with their medians; else its interval; else "".

    Parameters
    ----------
    answer
        Its groups, axis and line, or its value, low and high.

    Returns
    -------
    An SVG 212 pixels wide, its text 12 pixels (9 pt) high.
    """
    groups = {name: _finite(values) for name, values in answer.groups.items()}
    groups = {name: values for name, values in groups.items() if values}
    if groups:
        return _strips(groups, answer)
    if all(math.isfinite(end) for end in (answer.value, answer.low, answer.high)):
        return _interval(answer)
    return ""


def _finite(values: Sequence[float]) -> list[float]:
    return [float(value) for value in values if math.isfinite(value)]


def _strips(groups: dict[str, list[float]], answer: Answer) -> str:
    line = _line(answer)
    everything = [value for values in groups.values() for value in values] + line
    place = _Scale(everything)
    top = _AXIS if line else 2
    bottom = top + len(groups) * _ROW
    marks = _reference(answer, place, bottom) if line else []  # beneath the names
    for number, (name, values) in enumerate(groups.items()):
        y = top + number * _ROW
        marks.append(_text(0, y + 11, _cut(name)))
        marks += _dots(values, place, y + 20, _COLOURS[number])
    return _svg(marks, bottom, place, answer.axis or answer.unit)


def _dots(values: list[float], place: "_Scale", y: float, colour: str) -> list[str]:
    """A dot a value, moved up and down by turns so that they do not cover each other."""
    dots = [
        f'<circle cx="{place(value)}" cy="{y + (-3, 0, 3)[i % 3]}" r="2.2"/>'
        for i, value in enumerate(values)
    ]
    x = place(median(values))
    tick = f'<path d="M{x} {y - 7}V{y + 7}" stroke="#1b1b1b" stroke-width="2"/>'
    return [f'<g fill="{colour}" fill-opacity=".45">{"".join(dots)}</g>', tick]


def _interval(answer: Answer) -> str:
    place = _Scale([answer.low, answer.high, answer.value, *_line(answer)])
    top = _AXIS if _line(answer) else 2
    y = top + 12
    low, middle, high = (place(end) for end in (answer.low, answer.value, answer.high))
    marks = [
        f'<path d="M{low} {y}H{high}M{low} {y - 5}V{y + 5}M{high} {y - 5}V{y + 5}"'
        ' stroke="#0072b2" stroke-width="2" fill="none"/>',
        f'<circle cx="{middle}" cy="{y}" r="4.5" fill="#0072b2"/>',
    ]
    marks += _reference(answer, place, top + 24) if answer.line else []
    return _svg(marks, top + 24, place, answer.axis or answer.unit)


def _line(answer: Answer) -> list[float]:
    return [answer.line[1]] if answer.line and math.isfinite(answer.line[1]) else []


def _reference(answer: Answer, place: "_Scale", bottom: float) -> list[str]:
    """The dashed line, with its name and value above."""
    assert answer.line
    name, value = answer.line
    x = place(value)
    said = short_number(value)
    text = _cut(name if said in name else f"{name} {said}")
    left = min(max(x - len(text) * _LETTER / 2, 0), WIDTH - len(text) * _LETTER)
    return [
        f'<path d="M{x} 16V{bottom}" stroke="#1b1b1b" stroke-dasharray="4 3"/>',
        _text(round(left, 1), 12, text),
    ]


def _svg(marks: list[str], bottom: float, place: "_Scale", axis: str) -> str:
    """The marks over an axis that has its least and largest value, and its name."""
    ends = [short_number(place.least), short_number(place.most)]
    fits = sum(map(len, [*ends, axis])) * _LETTER + 16 < WIDTH
    name_y = bottom + (14 if fits else 30)
    height = name_y + 6
    marks = [
        *marks,
        f'<path d="M4 {bottom}H{WIDTH - 4}" stroke="#888"/>',
        _text(0, bottom + 14, ends[0]),
        _text(WIDTH, bottom + 14, ends[1], "end"),
        _text(WIDTH / 2, name_y, _cut(axis), "middle"),
    ]
    return (
        f'<svg class="small" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}"'
        f' role="img" aria-label="{escape(axis)}">{"".join(marks)}</svg>'
    )


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    if not text:
        return ""
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(text)}</text>'


def _cut(text: str) -> str:
    longest = int(WIDTH / _LETTER)
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


class _Scale:
    """From a value to its place in pixels, 6 from each edge."""

    def __init__(self, values: list[float]):
        self.least, self.most = min(values), max(values)

    def __call__(self, value: float) -> float:
        width = self.most - self.least
        share = (value - self.least) / width if width else 0.5
        return round(6 + share * (WIDTH - 12), 1)
