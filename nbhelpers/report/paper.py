"""The paper: tables and figures of all stages in order, numbered, with the provenance of the data.

Owns the numbering and the provenance block; what stands in a table or figure was saved by the stage
that made it.
"""

import html
from dataclasses import dataclass
from pathlib import Path

from .record import Figure, Table, records


@dataclass(frozen=True)
class Numbered:
    """A table or figure with its number; shows itself in a notebook.

    Attributes
    ----------
    label
        Such as "Table 1" or "Figure 2".
    record
        The Table or Figure.
    stage
        The subfolder that it was found in, "" if none.
    """

    label: str
    record: Figure | Table
    stage: str = ""

    def __repr__(self) -> str:
        return f"{self.label}: {self.record.name}"

    def _repr_html_(self) -> str:
        return self.record.to_html(self.label)


@dataclass(frozen=True)
class Paper:
    """Numbered tables and figures, in order; a sequence that shows itself in a notebook."""

    items: tuple[Numbered, ...]

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self):
        return iter(self.items)

    def __getitem__(self, key: int | str) -> Numbered:
        """By position, or by the name it was saved under."""
        if isinstance(key, int):
            return self.items[key]
        return next(item for item in self.items if item.record.name == key)

    def of(self, stage: str) -> "Paper":
        """Those of one stage, with the numbers they have in the whole."""
        return Paper(tuple(item for item in self.items if item.stage == stage))

    def __repr__(self) -> str:
        tables = sum(isinstance(item.record, Table) for item in self.items)
        return f"Paper({tables} tables, {len(self.items) - tables} figures)"

    def _repr_html_(self) -> str:
        return "\n".join(item._repr_html_() for item in self.items)


def collect(folder: str | Path) -> Paper:
    """Number the tables and figures that the stages saved under a folder.

    They come by subfolder (a stage's number begins its name) and, within one, in the order they
    were first saved in.

    Parameters
    ----------
    folder
        Results of the stages, a subfolder each.

    Returns
    -------
    Paper: the numbered tables and figures, in order.
    """
    folder, counts, items = Path(folder), {"Table": 0, "Figure": 0}, []
    for record in records(folder):
        kind = type(record).__name__
        counts[kind] += 1
        items.append(
            Numbered(
                f"{kind} {counts[kind]}", record, "/".join(record.folder.relative_to(folder).parts)
            )
        )
    return Paper(tuple(items))


def provenance_html(provenance: dict, title: str = "Provenance of the data") -> str:
    """A block that unfolds and shows where the data are from: nested names and values as a table.

    Parameters
    ----------
    provenance
        Names and values (text, numbers, lists, dicts), as `nbhelpers.machine._provenance` gives
        them.
    """
    rows = "".join(
        f"<tr><th>{html.escape(name)}</th><td>{html.escape(value)}</td></tr>"
        for name, value in _flat(provenance)
    )
    return (
        '<details class="noisebook'
        f' provenance"><summary>{html.escape(title)}</summary><table>{rows}</table></details>'
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
