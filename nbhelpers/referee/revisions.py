"""Two git revisions, built in folders of their own, which are removed afterwards.

Owns the worktrees and their builds.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from ..errors import InputError, RunError, Unavailable
from ..files import digest
from ..machine.leftovers import private_folder

PLACE = "{}"  # in a command: the folder of the revision


@contextmanager
def built_revisions(
    revisions: Sequence[str], build: str, repository: str | Path = "."
) -> Iterator[list[Path]]:
    """Folders with the revisions, built; they are there for the length of the block.

    Parameters
    ----------
    revisions
        What git understands: a branch, a tag, HEAD~1, a commit.
    build
        A line for /bin/sh, run in each folder; empty: nothing to build.
    repository
        A folder of the repository.

    Raises
    ------
    InputError
        No repository, or no such revision.
    RunError
        The build failed; the message ends with its last lines.
    Unavailable
        git is not installed.

    Notes
    -----
    The folders are git worktrees in a private folder: nobody else can change a build. Their paths
    depend on the repository and the commit alone, and all have one length: what was measured by an
    earlier call counts as long as the build gives the same bytes.
    """
    commits = [_commit(revision, repository) for revision in revisions]
    top = _git(repository, "rev-parse", "--show-toplevel")
    home = private_folder("revisions") / digest(top)
    with ExitStack() as stack:
        folders: dict[str, Path] = {}
        for commit in commits:
            if commit not in folders:
                folders[commit] = home / commit[:12]
                stack.callback(_remove, repository, folders[commit])
                _check_out(repository, commit, folders[commit])
                _build(build, folders[commit])
        yield [folders[commit] for commit in commits]


def placed(words: Sequence[str], folder: Path) -> list[str]:
    """The words of a command for one of the folders.

    A relative path of the program is one within the folder, and `{}` stands for the folder.

    Parameters
    ----------
    words
        The program and its arguments.
    folder
        Of `built_revisions`.

    Examples
    --------
    >>> placed(["./a.out", "{}/input", "7"], Path("/tmp/f"))
    ['/tmp/f/a.out', '/tmp/f/input', '7']
    """
    if not words:
        return []
    first, *others = (word.replace(PLACE, str(folder)) for word in words)
    inside = os.sep in first and not os.path.isabs(first)
    return [os.path.normpath(folder / first) if inside else first, *others]


def _git(folder: str | Path, *words: str) -> str:
    if shutil.which("git") is None:
        raise Unavailable(
            "git is not installed",
            why="two revisions are checked out by it",
            fix="apt install git; or build both yourself: noisebook ab --old ./OLD --new ./NEW",
        )
    done = subprocess.run(
        ["git", "-C", str(folder), *words], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise InputError(
            f"git {' '.join(words[:2])}: {done.stderr.strip().splitlines()[-1]}", where=folder
        )
    return done.stdout.strip()


def _commit(revision: str, repository: str | Path) -> str:
    try:
        return _git(repository, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
    except IndexError:  # --quiet: git says nothing
        raise InputError(
            f"there is no revision '{revision}'", where=repository, fix="git log --oneline"
        ) from None


def _check_out(repository: str | Path, commit: str, folder: Path) -> None:
    _remove(repository, folder)  # what a killed call left
    folder.parent.mkdir(parents=True, exist_ok=True)
    _git(repository, "worktree", "add", "--detach", "--force", str(folder), commit)


def _remove(repository: str | Path, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    _git(repository, "worktree", "prune")


def _build(build: str, folder: Path) -> None:
    if not build:
        return
    done = subprocess.run(
        ["/bin/sh", "-c", build], cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-5:]
        raise RunError(
            f"the build failed with status {done.returncode}",
            where=f"{build}, in revision {folder.name}",
            why="; ".join(last) or None,
            fix="run it by hand in a checkout of that revision",
        )
