"""What a page shows beside its tables and figures: sentences, findings, and what it rests on."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from ..reading import read_json

_MOST = 5  # sentences of a list; the others are folded


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


@dataclass(frozen=True)
class Text:
    """Sentences that were computed from the data; ``**bold**`` parts are shown bold."""

    sentences: tuple[str, ...]

    def __repr__(self) -> str:
        return "\n".join(self.sentences)

    def _repr_html_(self) -> str:
        """A paragraph; of several sentences a list, of many a folded one."""
        if len(self.sentences) > 1:
            return found_html(self.sentences, "sentences")
        return "".join(f"<p>{_bold(one)}</p>" for one in self.sentences)


def found_html(sentences: Sequence[str], what: str = "findings") -> str:
    """Sentences with ``**bold**`` parts as an HTML list; the sixth and later ones are folded behind
    their number.
    """
    further = sentences[_MOST:]
    return _list(sentences[:_MOST]) + folded_html(f"{len(further)} further {what}", further)


def folded_html(summary: str, sentences: Sequence[str]) -> str:
    """A summary that unfolds to sentences; "" where there are none."""
    folded = f"<details><summary>{summary}</summary>{_list(sentences)}</details>"
    return folded if sentences else ""


def _list(sentences: Sequence[str]) -> str:
    items = "".join(f"<li>{_bold(sentence)}</li>" for sentence in sentences)
    return f"<ul class='found'>{items}</ul>" if items else ""


def _bold(sentence: str) -> str:
    return re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", escape(sentence))
