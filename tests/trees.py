"""Trees of files: those that a test writes, as /proc and /sys have them, and the repository's."""

import shutil
import subprocess
from pathlib import Path

import pytest

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
