"""Tables that a study has and no single part owns: the cost of looking, the error of a replay,
what a page rests on.

Pure: tables in, tables out. Intervals are 95 % bootstrap intervals.
"""

import re
from collections.abc import Iterable
from html import escape
from pathlib import Path

from ..reading import read_json


def provenance_html(provenance: dict, title: str = "Provenance of the data") -> str:
    """A block that unfolds and shows where the data are from: nested names and values as a table.

    Parameters
    ----------
    provenance
        Names and values (text, numbers, lists, dicts), as `nbhelpers.machine._provenance` gives
        them.
    """
    rows = "".join(
        f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>"
        for name, value in _flat(provenance)
    )
    return (
        '<details class="noisebook'
        f' provenance"><summary>{escape(title)}</summary><table>{rows}</table></details>'
    )


def _flat(value: object, name: str = "") -> list[tuple[str, str]]:
    if isinstance(value, dict) and value:
        return [
            pair
            for key, inner in value.items()
            for pair in _flat(inner, f"{name} / {key}" if name else str(key))
        ]
    if isinstance(value, list | tuple):
        return [(name, ", ".join(map(str, value)) or "none")]
    return [(name, "none" if value in (None, "", {}) else str(value))]


class Provenance:
    """What each stage was made from; shows itself in a notebook as blocks that unfold."""

    def __init__(self, folder: str | Path):
        self.stages = {path.stem: read_json(path) for path in sorted(Path(folder).glob("*.json"))}

    def __repr__(self) -> str:
        return f"Provenance of {len(self.stages)} stages"

    def _repr_html_(self) -> str:
        return "".join(
            provenance_html(provenance, title=f"Stage {stage}")
            for stage, provenance in self.stages.items()
        )


def found_html(sentences: Iterable[str]) -> str:
    """Sentences with ``**bold**`` parts as an HTML list."""
    items = (
        re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", escape(sentence)) for sentence in sentences
    )
    return "<ul class='found'>" + "".join(f"<li>{item}</li>" for item in items) + "</ul>"
