"""Runs some cells of a notebook on tables that a test has made: what a page defines is tested where
it is defined.

A cell is chosen by a tag in its metadata, such as "claims". Its page's imports run first; all else
that it needs is handed over.
"""

import ast
import json
from pathlib import Path
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
    cells = json.loads((NOTEBOOKS / f"{stage}.ipynb").read_text())["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    chosen = [source(cell) for cell in code if tag in cell["metadata"].get("tags", [])]
    if not chosen:
        raise LookupError(f"no cell of {stage} has the tag {tag!r}")
    imports = [source(cell) for cell in code if is_import(source(cell))]
    known: dict[str, Any] = {"display": lambda *shown: None}
    for text in imports:
        exec(compile(text, f"{stage}, imports", "exec"), known)
    known |= names
    for text in chosen:
        exec(compile(text, f"{stage}, {tag}", "exec"), known)
    return known


def source(cell: dict[str, Any]) -> str:
    """The text of a cell."""
    return "".join(cell["source"])


def is_import(text: str) -> bool:
    """Whether a cell does nothing but import."""
    body = ast.parse(text).body
    return bool(body) and all(isinstance(line, ast.Import | ast.ImportFrom) for line in body)
