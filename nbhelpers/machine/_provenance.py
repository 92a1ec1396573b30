"""Where a result comes from: machine, commit, library, packages, parameters and inputs.

Owns the record that is stored with every result; it names no host, no user and no absolute path.
"""

import hashlib
import json
import os
import subprocess
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

from .. import __version__
from ..errors import InputError
from ..places import shipped
from .description import describe

PACKAGES = (
    "numpy",
    "scipy",
    "pandas",
    "pyarrow",
    "scikit-learn",
    "statsmodels",
    "seaborn",
    "matplotlib",
    "cffi",
    "papermill",
    "nbconvert",
    "jupyterlab",
)


def provenance(
    parameters: Mapping | None = None,
    inputs: Iterable[str | Path] = (),
    repository: str | Path | None = None,
    time: str | None = "now",
) -> dict:
    """Say where a result comes from, as plain JSON types.

    Parameters
    ----------
    parameters
        What the stage was run with; NumPy numbers and paths become plain ones.
    inputs
        Files that the result was made of.
    repository
        The checkout; by default the one that holds this library, if it is one.
    time
        "now" (UTC, whole seconds), another text, or None to leave the time out: then equal
        inputs on an equal machine give an equal record.

    Returns
    -------
    dict with these keys:

    * `machine`: its facts and their `digest`;
    * `commit`, `dirty`: None without git;
    * `noisebook`: the version; `packages`: name -> version;
    * `environment`: digest of requirements.lock, or None;
    * `parameters`; `inputs`: name -> first 16 digits of the SHA-256;
    * `time`, if wanted.

    Raises
    ------
    InputError
        An input cannot be read, or a parameter is no JSON.
    """
    folder = Path(repository or shipped()).resolve()
    machine = describe()
    record = {
        "machine": machine.to_dict() | {"digest": machine.digest},
        **_commit(folder),
        "noisebook": __version__,
        "environment": (
            _sha256(folder / "requirements.lock")
            if (folder / "requirements.lock").exists()
            else None
        ),
        "packages": {name: version for name in PACKAGES if (version := _version(name))},
        "parameters": _plain(parameters or {}),
        "inputs": _inputs(inputs, folder),
    }
    if time is not None:
        record["time"] = datetime.now(UTC).isoformat(timespec="seconds") if time == "now" else time
    return record


def _commit(folder: Path) -> dict:
    """The commit, and whether the tree differs from it; None without git or a repository."""
    commit = _git(folder, "rev-parse", "--verify", "HEAD")
    status = _git(folder, "status", "--porcelain")
    if _git(folder, "rev-parse", "--show-cdup") != "":
        return {"commit": None, "dirty": None}
    return {"commit": commit, "dirty": None if status is None else bool(status)}


def _git(folder: Path, *arguments: str) -> str | None:
    """What git prints; None where it fails.

    A hook's GIT_DIR is ignored, and no lock of ours delays anybody's commit.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            capture_output=True,
            text=True,
            timeout=30,
            env=environment | {"GIT_OPTIONAL_LOCKS": "0"},
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _plain(parameters: Mapping) -> dict:
    try:
        return json.loads(json.dumps(dict(parameters), default=_plain_value, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise InputError(
            f"a parameter cannot be recorded: {error}",
            where="parameters",
            why="a result must say what it was made with",
            fix="use numbers, texts, lists and dicts",
        ) from None


def _plain_value(value: object) -> object:
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{value!r} is no JSON")


def _inputs(paths: Iterable[str | Path], folder: Path) -> dict[str, str]:
    """Digests by name.

    Names are relative to the repository; elsewhere, to the folder that the files have in common.
    """
    files = [Path(path).resolve() for path in paths]
    elsewhere = [str(path.parent) for path in files if not path.is_relative_to(folder)]
    common = os.path.commonpath(elsewhere) if elsewhere else folder
    digests = {}
    for path in sorted(files):
        base = folder if path.is_relative_to(folder) else common
        digests[path.relative_to(base).as_posix()] = _sha256(path)
    return digests


def _sha256(path: Path) -> str:
    """The first 16 digits that sha256sum prints for the file."""
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()[:16]
    except OSError as error:
        raise InputError(
            f"cannot read the input: {error.strerror}",
            where=path,
            why="a result must name what it was made of",
            fix="run the stage that makes it",
        ) from None
