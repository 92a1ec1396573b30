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
from .recorded import is_campaign
from .session import Session

STATIC = "NOISEBOOK_STATIC"  # set where nobody is there to drag
NAME, CHOICES = "session.ipynb", "session.json"


def save_notebook(session: Session, path: Path | None = None) -> Path:
    """Save what was chosen, run notebook 02 on it, and keep what it shows.

    Parameters
    ----------
    session
        Of the workbench.
    path
        Of the notebook; None: `session.ipynb` in the session's folder.

    Returns
    -------
    Where it lies.

    Raises
    ------
    RunError
        A cell failed; nothing is written.
    """
    import nbformat
    import papermill
    from papermill.exceptions import PapermillExecutionError

    path = path or session.save_folder / NAME
    folder = path.parent
    write_json(folder / CHOICES, asdict(_copied_session(session, folder)))
    running = folder / f".{path.name}"
    source = shipped() / "notebooks" / "02-workbench.ipynb"
    try:
        with patch.dict(os.environ, {STATIC: "1"}):
            notebook = papermill.execute_notebook(
                source, running, {"saved": CHOICES}, cwd=folder, progress_bar=False
            )
    except PapermillExecutionError as error:
        raise RunError("a cell of the session's notebook failed", why=str(error)) from None
    finally:
        running.unlink(missing_ok=True)
    for part in (notebook, *notebook.cells):  # when and where it ran: of no use to anybody else
        for name in ("papermill", "execution"):
            part.metadata.pop(name, None)
    with written(path) as file:
        file.write((nbformat.writes(notebook, indent=1) + "\n").encode())
    return path


def is_elsewhere(session: Session) -> bool:
    """Whether somebody else who has the notebook's folder and the library lacks the runs."""
    place, data = session.place.resolve(), (shipped() / "data").resolve()
    return not (place == session.save_folder.resolve() or place.is_relative_to(data))


def _copied_session(session: Session, folder: Path) -> Session:
    """The session whose runs lie beside the notebook, copied there if need be."""
    if session.place.resolve() == folder.resolve():
        return replace(session, folder="./")
    if not is_elsewhere(session):
        inside = session.place.resolve().relative_to(shipped().resolve())
        return replace(session, folder=inside.as_posix())
    copy = folder / f"runs-{digest(session.folder)[:8]}"  # no folder of a user has this name
    shutil.rmtree(copy, ignore_errors=True)
    place = session.place
    if session.is_table:
        _copy_files([place], copy)
        return replace(session, folder=f"./{copy.name}/{place.name}")
    folders = [place, *(path for path in place.iterdir() if path.is_dir())]
    for one in filter(is_campaign, folders):
        records = [*one.glob("runs.jsonl*"), *one.glob("campaign.json")]
        _copy_files(records, copy / one.relative_to(place))
    return replace(session, folder=f"./{copy.name}")


def _copy_files(files: list[Path], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for file in files:
        shutil.copyfile(file, folder / file.name)
