"""The agreements of CONTRIBUTING.md that a machine can check: layout, one direction, clean
notebooks, one set of wheels.
"""

import ast
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

REPOSITORY = Path(__file__).resolve().parent.parent
PYPROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]
TESTS = PROJECT["optional-dependencies"]["test"]
NEEDED = [
    re.split(r"[<>=]", name)[0]
    for name in [*PROJECT["dependencies"], *TESTS, *PYPROJECT["build-system"]["requires"]]
]
LOCK = (REPOSITORY / "requirements.lock").read_text()
NOTEBOOKS = sorted((REPOSITORY / "notebooks").glob("*.ipynb"))
ORDER = [
    "places",
    "errors",
    "progress",
    "empty",
    "files",
    "schemas",
    "outcomes",
    "page",
    "machine",
    "workloads",
    "measure",
    "trace",
    "noise",
    "inject",
    "attribute",
    "mitigate",
    "simulate",
    "studies",
    "report",
    "study",
    "profiles",
    "estimate",
    "stage_line",
    "stages",
    "promise",
    "cli",
]


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def locked() -> dict[str, str]:
    return {
        normal(name): version
        for name, version in re.findall(r"^([A-Za-z0-9_.-]+)==([^\s;\\]+)", LOCK, re.M)
    }


def tracked() -> list[Path]:
    try:
        names = subprocess.run(
            ["git", "ls-files", "-co", "--exclude-standard", "-z"],
            cwd=REPOSITORY,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")
    return [
        REPOSITORY / name for name in names.split("\0") if name and (REPOSITORY / name).is_file()
    ]


def test_the_top_level_of_the_design_card_is_there():
    for name in (
        "notebooks",
        "nbhelpers",
        "injector_c",
        "data",
        "environment.yml",
        "Makefile",
        "README.md",
    ):
        assert (REPOSITORY / name).exists(), name


def test_every_dependency_is_locked():
    assert {normal(name) for name in NEEDED} <= set(locked())


def test_every_dependency_is_imported_and_what_is_for_tests_is_not_for_users():
    """Of the names a user installs, each is imported, or is run by JupyterLab's or papermill's
    side.
    """
    started = {
        "jupyterlab",
        "ipykernel",
        "cffi",
    }  # by `noisebook lab`, by the kernel, by the built modules
    modules = {"scikit-learn": "sklearn", "pyyaml": "yaml"}
    text = "\n".join(path.read_text() for path in (REPOSITORY / "nbhelpers").rglob("*.py"))
    for name in set(PROJECT["dependencies"]) - started:
        module = modules.get(name, name)
        assert re.search(rf"^\s*(import|from) {module}\b", text, re.M), name
    assert not set(TESTS) & set(PROJECT["dependencies"])


def test_every_locked_wheel_has_a_hash_and_no_address():
    for block in re.split(r"\n(?=[A-Za-z0-9])", LOCK.strip()):
        assert "--hash=sha256:" in block, block.splitlines()[0]
    assert not re.search(r"https?://|--index|--extra-index|--find-links|\s@\s", LOCK)


def test_environment_yml_takes_its_wheels_from_the_lock_and_the_same_pythons():
    environment = yaml.safe_load((REPOSITORY / "environment.yml").read_text())
    pip = [entry["pip"] for entry in environment["dependencies"] if isinstance(entry, dict)]
    python = [
        entry
        for entry in environment["dependencies"]
        if isinstance(entry, str) and entry.startswith("python")
    ]
    assert pip == [["-r requirements.lock"]]
    assert python[0].removeprefix("python").split(",")[0] == PROJECT["requires-python"]


def test_what_is_installed_here_is_what_is_locked():
    from importlib.metadata import version

    for name in NEEDED:
        assert version(name) in re.findall(
            rf"^{re.escape(normal(name))}==([^\s;\\]+)", LOCK, re.M
        ), name


def imported_parts(path: Path) -> set[str]:
    """Names of the parts of nbhelpers that a module imports, relative or absolute, at any depth."""
    parts, depth = set(), len(path.relative_to(REPOSITORY / "nbhelpers").parts)
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level == depth:
            parts |= (
                {node.module.split(".")[0]} if node.module else {alias.name for alias in node.names}
            )
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("nbhelpers"):
            parts |= (
                {node.module.split(".")[1]}
                if "." in node.module
                else {alias.name for alias in node.names}
            )
        elif isinstance(node, ast.Import):
            parts |= {
                alias.name.split(".")[1]
                for alias in node.names
                if alias.name.startswith("nbhelpers.")
            }
    return parts


@pytest.mark.parametrize(
    "path",
    sorted((REPOSITORY / "nbhelpers").rglob("*.py")),
    ids=lambda path: str(path.relative_to(REPOSITORY)),
)
def test_no_module_imports_from_a_stage_after_it(path):
    own = path.relative_to(REPOSITORY / "nbhelpers").parts[0].removesuffix(".py")
    if own in ("__init__", "__main__"):
        return
    later = {
        part
        for part in imported_parts(path)
        if part in ORDER and ORDER.index(part) > ORDER.index(own)
    }
    if own == "study":  # the header of a page is shown by report, and says what the doctor promised
        later -= {"report", "promise"}
    assert not later, f"{own} imports from {later}"


def test_nothing_committed_is_large_or_names_a_registry_or_a_machine():
    hosts = re.compile(rb"pypi\.org|files\.pythonhosted|conda\.anaconda\.org|/root/|/home/[a-z]")
    for path in tracked():
        content = path.read_bytes()
        assert len(content) <= 2 * 2**20, f"{path} is larger than 2 MiB"
        if path != Path(__file__):
            assert not hosts.search(content), path
