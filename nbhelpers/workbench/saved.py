"""A session as an executed notebook: notebook 02, run by papermill on what was chosen.

Owns the folder of a saved session: notebook, choices, and a copy of the runs where they are
neither shipped nor beside it; whoever has it can run it again. It measures nothing.
"""

import os
import shutil
from dataclasses import asdict, replace
from pathlib import Path
from unittest.mock import patch

from ..errors import RunError
from ..files import digest, write_json, written
from ..places import shipped
from .recorded import is_table
from .session import Session
from .views import STATIC

NAME, CHOICES = "session.ipynb", "session.json"


def save_notebook(session: Session) -> Path:
    """Save what was chosen, run notebook 02 on it, and keep what it shows.

    Parameters
    ----------
    session
        Of the workbench.

    Returns
    -------
    Where it lies: `session.ipynb` in the session's folder.

    Raises
    ------
    RunError
        A cell failed; nothing is written.
    """
    import nbformat
    import papermill
    from papermill.exceptions import PapermillExecutionError

    folder = session.save_folder
    write_json(folder / CHOICES, asdict(_copied_session(session, folder)))
    source = shipped() / "notebooks" / "02-workbench.ipynb"
    run = {"parameters": {"saved": CHOICES}, "cwd": folder, "progress_bar": False}
    try:
        with patch.dict(os.environ, {STATIC: "1"}):
            notebook = papermill.execute_notebook(source, None, **run)
    except PapermillExecutionError as error:
        raise RunError("a cell of the session's notebook failed", why=str(error)) from None
    for part in (notebook, *notebook.cells):  # when and where it ran: of no use to anybody else
        for name in ("papermill", "execution"):
            part.metadata.pop(name, None)
    with written(folder / NAME) as file:
        file.write((nbformat.writes(notebook, indent=1) + "\n").encode())
    return folder / NAME


def _copied_session(session: Session, folder: Path) -> Session:
    """The session whose runs are shipped or lie beside the notebook, copied there if need be."""
    place, ours = session.place.resolve(), shipped().resolve()
    if place == folder.resolve():
        return replace(session, folder="./")
    if place.is_relative_to(ours / "data"):
        return replace(session, folder=place.relative_to(ours).as_posix())
    copy = folder / f"runs-{digest(session.folder)[:8]}"  # no folder of a user has this name
    shutil.rmtree(copy, ignore_errors=True)
    inside = session.place.name if is_table(session.place) else ""
    for record in session.records:
        for file in filter(Path.exists, (record, record.with_name("campaign.json"))):
            target = copy / file.relative_to(session.place.parent if inside else session.place)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)
    return replace(session, folder=f"./{copy.name}/{inside}")
