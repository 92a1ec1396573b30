"""Where a result comes from: machine, commit, library, packages and parameters.

Owns the record that is stored with every result; it names no host, no user and no absolute path.
"""

import hashlib
import os
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

from .. import __version__
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


def provenance(parameters: Mapping) -> dict:
    """Say where a result comes from, as plain JSON types.

    Parameters
    ----------
    parameters
        What the stage was run with, as JSON.

    Returns
    -------
    dict with these keys:

    * `machine`: its facts and their `digest`;
    * `commit`, `dirty`: None without git;
    * `noisebook`: the version; `packages`: name -> version;
    * `environment`: digest of requirements.lock, or None;
    * `parameters`; `time` (UTC, whole seconds).
    """
    machine, lock = describe(), shipped() / "requirements.lock"
    return {
        "machine": machine.to_dict() | {"digest": machine.digest},
        **commit_of(shipped()),
        "noisebook": __version__,
        "environment": (
            hashlib.sha256(lock.read_bytes()).hexdigest()[:16] if lock.exists() else None
        ),
        "packages": {name: version for name in PACKAGES if (version := _version(name))},
        "parameters": dict(parameters),
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def commit_of(folder: Path) -> dict:
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
