"""Runs some cells of a notebook on tables that a test has made: what a page defines is tested where
it is defined.

A cell is chosen by a tag in its metadata, such as "claims". Its page's imports run first; all else
that it needs is handed over.
"""

import ast
import json
from functools import cache
from pathlib import Path
from types import CodeType
from typing import Any

NOTEBOOKS = Path(__file__).resolve().parent.parent / "notebooks"


def run_cells(stage: str, tag: str, **names: Any) -> dict[str, Any]:
    """Run the cells of a notebook that have a tag, in their order.

    Parameters
    ----------
    stage
        Name of the notebook, such as ``"40-mitigations"``.
    tag
        In the metadata of the cells.
    names
        Tables and all else that the cells take from cells before them.

    Returns
    -------
    All names that there are afterwards.

    Examples
    --------
    >>> run_cells("40-mitigations", "claims", injected=runs, design=design)  # doctest: +SKIP
    """
    code = compiled(stage)
    if not any(tag in tags for tags, _ in code):
        raise LookupError(f"no cell of {stage} has the tag {tag!r}")
    known: dict[str, Any] = {"display": lambda *shown: None}
    for tags, cell in code:
        if "imports" in tags:
            exec(cell, known)
    known |= names
    for tags, cell in code:
        if tag in tags:
            exec(cell, known)
    return known


@cache
def compiled(stage: str) -> list[tuple[set[str], CodeType]]:
    """Tags and code of each code cell of a notebook; one that only imports is tagged so."""
    cells = json.loads((NOTEBOOKS / f"{stage}.ipynb").read_text())["cells"]
    found = []
    for cell in (one for one in cells if one["cell_type"] == "code"):
        text, tags = "".join(cell["source"]), set(cell["metadata"].get("tags", []))
        name = f"{stage}, {', '.join(sorted(tags)) or 'imports'}"
        more = {"imports"} if is_import(text) else set()
        found.append((tags | more, compile(text, name, "exec")))
    return found


def is_import(text: str) -> bool:
    """Whether a cell does nothing but import."""
    body = ast.parse(text).body
    return bool(body) and all(isinstance(line, ast.Import | ast.ImportFrom) for line in body)
