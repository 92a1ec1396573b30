"""Executed notebooks written to a second place as well: any path that papermill can write, such as
``s3://bucket/study``, ``gs://…``, ``abs://…``, ``https://…``, or a folder.
"""

import importlib.util
import os
import shlex
import sys
from pathlib import Path

from ..errors import InputError

# The module that papermill needs for a scheme, and the extra of papermill that installs it.
_NEEDED = {
    "s3": ("boto3", "s3"),
    "gs": ("gcsfs", "gcs"),
    "abs": ("azure.storage.blob", "azure"),
    "adl": ("azure.datalake.store", "azure"),
    "github": ("github", "github"),
}


def require_target(folder: str) -> None:
    """Check that papermill can write below a path, before hours of measuring.

    Parameters
    ----------
    folder
        A folder, or an address with a scheme of papermill.

    Raises
    ------
    InputError
        The scheme is unknown, or a package for it is missing.

    Examples
    --------
    >>> require_target("results/of/today")
    """
    scheme, separator, _ = folder.partition("://")
    if not separator:
        return
    from papermill.iorw import papermill_io

    known = sorted({name for name, _ in papermill_io._handlers if name.endswith("://")})
    if f"{scheme}://" not in known:
        raise InputError(
            f"papermill cannot write to {scheme}://",
            where=f"OUTPUT={folder}",
            fix=f"a folder, or one of {', '.join(known)}",
        )
    module, extra = _NEEDED.get(scheme, ("papermill", ""))
    if not _is_here(module):
        python = shlex.quote(os.path.relpath(sys.executable))
        raise InputError(
            f"to write to {scheme}:// papermill needs the package {module}, which is not here",
            where=f"OUTPUT={folder}",
            why="the stage would run and its notebook could not be written there",
            fix=f"{python} -m pip install 'papermill[{extra}]'",
        )


def _is_here(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # of the package around it
        return False


def upload_notebook(notebook: Path, folder: str) -> str:
    """Write an executed notebook below a path of papermill too; return where.

    Parameters
    ----------
    notebook
        The file.
    folder
        See `require_target`; the notebook keeps its name.

    Raises
    ------
    InputError
        It could not be written.
    """
    from papermill.iorw import papermill_io

    target = f"{folder.rstrip('/')}/{notebook.name}"
    try:
        if "://" not in folder:
            Path(folder).mkdir(parents=True, exist_ok=True)
        papermill_io.write(notebook.read_text(encoding="utf-8"), target)
    except Exception as error:  # of whichever client papermill uses
        raise InputError(
            f"the notebook could not be written there: {error}",
            where=target,
            why=f"it is here: {notebook}",
            fix="correct OUTPUT or the access to it; the same command tries again",
        ) from None
    return target
