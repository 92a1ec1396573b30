"""Where a result comes from: machine, commit, library, packages and parameters.

Owns the record that is stored with every result; it names no host, no user and no absolute path.
"""

import contextlib
import os
import re
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import sha256
from importlib import metadata
from pathlib import Path

from .. import __version__
from ..places import shipped
from .description import describe


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
        "environment": sha256(lock.read_bytes()).hexdigest()[:16] if lock.exists() else None,
        "packages": _packages(),
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


def _packages() -> dict[str, str]:
    """The versions of what Noisebook needs; empty in a checkout that was never installed."""
    with contextlib.suppress(metadata.PackageNotFoundError):
        needed = [line for line in metadata.requires("noisebook") or () if "extra ==" not in line]
        names = [re.split(r"[^\w.-]", line)[0] for line in needed]
        return {name: metadata.version(name) for name in names}
    return {}
