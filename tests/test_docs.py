"""The pages of docs/: they build without a warning, open without a network, and the walks work.

A walk's blocks are applied to a copy of the repository as a reader would do it; then the walk's own
command must succeed.
"""

import os
import re
import sys
from importlib import import_module
from pathlib import Path

import pytest

import nbhelpers

from .processes import run
from .trees import borrow_packages, copied_tree, own_environment

REPOSITORY = Path(__file__).resolve().parent.parent
DOCS = REPOSITORY / "docs"
WALKS = sorted((DOCS / "walks").glob("*.md"))


# "New file `PATH`:", "In `PATH`:" or "Run:", and the block of code behind it
STEP = re.compile(
    r"^(?P<verb>New file|In|Run)(?: `(?P<path>[^`\n]+)`)?:\n\n```\w+\n(?P<block>.*?)^```$",
    re.M | re.S,
)


def apply_diff(text: str, block: str) -> str:
    """The text with each piece of a diff in its place; `@@` begins a piece."""
    for piece in re.split(r"^@@.*\n", block, flags=re.M):
        lines = piece.splitlines(keepends=True)
        before = "".join(line[1:] for line in lines if line[0] in " -")
        after = "".join(line[1:] for line in lines if line[0] in " +")
        if lines:
            assert text.count(before) == 1, f"not found, or not only one time:\n{before}"
            text = text.replace(before, after)
    return text


def follow(walk: Path, folder: Path) -> None:
    """Do what a walk says, in a copy of the repository."""
    for step in STEP.finditer(walk.read_text()):
        if step["verb"] == "Run":
            run_line(step["block"], folder)
        elif step["verb"] == "In":
            path = folder / step["path"]
            path.write_text(apply_diff(path.read_text(), step["block"]))
        else:
            assert not (folder / step["path"]).exists(), step["path"]
            (folder / step["path"]).write_text(step["block"])


def run_line(line: str, folder: Path) -> None:
    """Run a line for a shell; what `make env` would install is borrowed."""
    places = {"PYTHONPATH": str(folder), "NOISEBOOK_STATE": str(folder / "build/state")}
    script = ["sh", "-c", f"set -e\n{line}"]
    done = run(*script, cwd=folder, timeout=280, env=os.environ | places)
    assert done.returncode == 0, f"{line}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"


@pytest.mark.long
@pytest.mark.parametrize("walk", WALKS, ids=lambda walk: walk.stem)
def test_a_walk_works_as_it_stands_there(walk, tmp_path, binaries):
    copy = copied_tree(tmp_path)
    borrow_packages(own_environment(copy / ".venv"))
    (copy / ".venv/installed").touch()
    follow(walk, copy)


@pytest.mark.parametrize("walk", WALKS, ids=lambda walk: walk.stem)
def test_a_walk_fits_the_files_that_it_changes(walk):
    for step in STEP.finditer(walk.read_text()):
        if step["verb"] == "In":
            apply_diff((REPOSITORY / step["path"]).read_text(), step["block"])


@pytest.mark.long
def test_the_pages_build_have_every_public_name_and_open_without_a_network(tmp_path):
    """One test, since sphinx writes docs/reference, and so must not run beside itself. As `make
    docs` builds them; a warning is an error.
    """
    for module in ("sphinx", "numpydoc", "myst_parser"):
        pytest.importorskip(module, reason=f"make docs needs {module}: pip install -e '.[docs]'")
    words = ["-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html"]
    done = run(sys.executable, *words, DOCS, tmp_path, timeout=280)
    assert done.returncode == 0, done.stderr[-4000:]
    has_every_public_name(tmp_path)
    opens_without_a_network(tmp_path)


def has_every_public_name(pages: Path) -> None:
    text = (pages / "reference/index.html").read_text()
    links = re.findall(r'href="([\w.]+\.html)#([\w.]+)"[^>]*>(?:<[^>]*>)*nb\.(\w+)<', text)
    assert {name for *_, name in links} == set(nbhelpers.__all__) - {"__version__"}
    for page, anchor, name in links:
        assert f'id="{anchor}"' in (pages / "reference" / page).read_text(), name


def opens_without_a_network(pages: Path) -> None:
    elsewhere = re.compile(
        r"<(?:link|script|img|iframe|source)\b[^>]*(?:href|src)\s*=\s*[\"']?(?:https?:)?//"
        r"|url\(\s*[\"']?(?:https?:)?//|@import\s+[\"'](?:https?:)?//",
        re.I,
    )
    files = [*pages.rglob("*.html"), *pages.rglob("*.css")]
    assert len(files) > 20
    for file in files:
        found = elsewhere.search(file.read_text())
        assert not found, f"{file.name} asks another host: {found[0]}"


def test_names_of_the_library_in_the_pages_exist():
    pages = [REPOSITORY / "README.md", REPOSITORY / "CONTRIBUTING.md", *DOCS.rglob("*.md")]
    names = {
        name
        for page in pages
        for name in re.findall(r"`(?:nb|nbhelpers)\.([A-Za-z_.]+)(?:\([^`]*)?`", page.read_text())
    }
    assert len(names) > 20
    missing = [name for name in sorted(names) if not exists(name)]
    assert not missing


def exists(name: str) -> bool:
    """Whether a dotted name leads somewhere from `nbhelpers`."""
    found: object = nbhelpers
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            try:
                found = import_module(f"{found.__name__}.{part}")
            except (ImportError, AttributeError):
                return False
    return True
