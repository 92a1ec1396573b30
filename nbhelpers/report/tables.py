"""What a page shows beside its tables and figures: sentences, a few or many."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

_MOST = 5  # sentences of a list; the others are folded


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
