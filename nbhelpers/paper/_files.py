"""The folder of the paper: which files it has and what stands in each.

Owns `build/PROFILE/paper`; the same results give the same bytes in any folder.
"""

from html import escape
from pathlib import Path

from ..page import write_page
from ._front import CSS, TITLE, Front


def write_paper(build: str | Path) -> Path:
    """Make the paper of a profile from what its stages saved.

    Parameters
    ----------
    build
        Folder of the profile, with `results` and `provenance`.

    Returns
    -------
    The front page, `paper/index.html` in that folder.

    Raises
    ------
    InputError
        A stage's answer is of an older version.
    """
    build = Path(build)
    folder = build / "paper"
    folder.mkdir(parents=True, exist_ok=True)
    return _page(folder / "index.html", TITLE, _front_page(Front(build)))


def _page(path: Path, title: str, body: str) -> Path:
    return write_page(path, title, body, css=CSS.read_text(encoding="utf-8"))


def _front_page(front: Front) -> str:
    return (
        f'<div class="front"><h1>{escape(TITLE)}</h1>'
        f'<p class="whose">{escape(front.whose)}</p>{front.cards()}</div>'
    )
