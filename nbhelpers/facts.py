"""What a notebook shows of an object: its name, and its facts as two columns.

Owns the words in which a value stands there, in the table of a machine, and in figures.
"""

from collections.abc import Mapping
from html import escape

_SCALED = {  # ending of a counter's name: factor, and the unit in which people read it
    "_ns_per_s": (1e-6, " ms/s"),
    "_us_per_s": (1e-3, " ms/s"),
    "_kb": (1 / 1024, " MiB"),
}
_LONGEST = 1000  # letters of a fact; `repr` and the attributes have all of it


def facts_html(title: str, facts: Mapping[str, object]) -> str:
    """An object as HTML for a notebook.

    Parameters
    ----------
    title
        What it is; may be empty.
    facts
        Name and value; see `as_words`.

    Returns
    -------
    HTML, in which every text is escaped.

    Examples
    --------
    >>> facts_html("a < b", {"CPUs": (0, 1)})
    "<p><b>a &lt; b</b></p><table><tr><th style='text-align:left'>CPUs</th>\
<td style='text-align:left'>0 1</td></tr></table>"
    """
    rows = "".join(
        f"<tr><th style='text-align:left'>{escape(name)}</th>"
        f"<td style='text-align:left'>{escape(_cut(as_words(value)))}</td></tr>"
        for name, value in facts.items()
    )
    head = f"<p><b>{escape(title)}</b></p>" if title else ""
    body = f"<table>{rows}</table>" if rows else ""
    return head + body


def plain_number(value: float, column: str = "") -> str:
    """A number in about four digits, without a power of ten.

    Parameters
    ----------
    value
        Any number.
    column
        Name of what it counts; where it ends in a unit, the unit is shown.

    Examples
    --------
    >>> plain_number(4.036e8, "runqueue_wait_ns_per_s"), plain_number(65540.0)
    ('403.6 ms/s', '65,540')
    """
    scaled = (look for ending, look in _SCALED.items() if column.endswith(ending))
    factor, unit = next(scaled, (1, ""))
    number = value * factor
    return (f"{number:,.0f}" if 9_999 < abs(number) < 1e15 else f"{number:.4g}") + unit


def as_words(value: object) -> str:
    """A value for people; of None, and of what is empty, "none".

    Examples
    --------
    >>> as_words({"caches": {"L1d": "32K", "L2": None}, "CPUs": (0, 1)})
    'caches L1d 32K, L2 none, CPUs 0 1'
    """
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {as_words(item)}" for name, item in value.items()) or "none"
    if isinstance(value, list | tuple):
        return " ".join(map(str, value)) or "none"
    return "none" if value in (None, "") else str(value)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
