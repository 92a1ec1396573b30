"""Trees of files: those that a test writes, as /proc and /sys have them, and the repository's."""

import shutil
import site
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from .processes import run

REPOSITORY = Path(__file__).resolve().parents[1]
CHECKS = REPOSITORY / "build/checks"  # what tests/optional.sh installs


def write_tree(root: Path, files: dict[str, str]) -> Path:
    """Write {path: text} below a folder, with a newline after each text."""
    for name, text in files.items():
        path = root / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    return root


def tracked() -> list[Path]:
    """The repository's files, without what git ignores; skips the test where there is no git."""
    command = ["git", "ls-files", "-co", "--exclude-standard", "-z"]
    try:
        done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")
    paths = (REPOSITORY / name for name in done.stdout.split("\0") if name)
    return [path for path in paths if path.is_file()]


def copied_tree(folder: Path) -> Path:
    """Copy what git tracks, and the built parts; `folder`."""
    built = [*(REPOSITORY / "nbhelpers").rglob("*.so"), *(REPOSITORY / "build/bin").rglob("*")]
    for path in [*tracked(), *filter(Path.is_file, built)]:
        copy = folder / path.relative_to(REPOSITORY)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, copy)
    return folder


def own_environment(folder: Path) -> Path:
    """Make an empty environment; its Python."""
    done = run(sys.executable, "-m", "venv", "--without-pip", folder)
    assert done.returncode == 0, done.stderr
    return folder / "bin/python"


def borrow_packages(python: Path) -> Path:
    """Let an environment of its own use all packages of ours; where its own are."""
    (packages,) = python.parents[1].glob("lib/python*/site-packages")
    ours = {*site.getsitepackages(), sysconfig.get_path("purelib")}
    borrowed = [path for path in ours if Path(path).is_dir()]
    (packages / "borrowed.pth").write_text("\n".join(borrowed))
    return packages
