"""The agreements of CONTRIBUTING.md that a machine can check: who may import whom, names, lengths,
clean notebooks, one set of wheels.
"""

import ast
import importlib
import inspect
import json
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml

import nbhelpers

from .trees import tracked

REPOSITORY = Path(__file__).resolve().parent.parent
PYPROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]
EXTRAS = [name for extra in PROJECT["optional-dependencies"].values() for name in extra]
NEEDED = [
    re.split(r"[<>=]", name)[0]
    for name in [*PROJECT["dependencies"], *EXTRAS, *PYPROJECT["build-system"]["requires"]]
]
LOCK = (REPOSITORY / "requirements.lock").read_text()
NOTEBOOKS = sorted((REPOSITORY / "notebooks").glob("*.ipynb"))
LIBRARY = REPOSITORY / "nbhelpers"
MODULES = sorted(path for path in LIBRARY.rglob("*.py") if "_shipped" not in path.parts)


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def locked() -> dict[str, str]:
    return {
        normal(name): version
        for name, version in re.findall(r"^([A-Za-z0-9_.-]+)==([^\s;\\]+)", LOCK, re.M)
    }


def test_every_dependency_is_locked():
    assert {normal(name) for name in NEEDED} <= set(locked())


def test_every_dependency_is_imported_and_what_is_for_tests_is_not_for_users():
    """Of the names a user installs, each is imported by the library or a notebook, or is run by
    JupyterLab's or papermill's side.
    """
    # by `noisebook lab`, by the kernel, by the built modules, by notebooks
    started = {"jupyterlab", "ipykernel", "cffi", "seaborn"}
    modules = {"scikit-learn": "sklearn", "pyyaml": "yaml", "vl-convert-python": "vl_convert"}
    text = "\n".join(path.read_text() for path in (REPOSITORY / "nbhelpers").rglob("*.py"))
    for name in set(PROJECT["dependencies"]) - started:
        module = modules.get(name, name)
        assert re.search(rf"^\s*(import|from) {module}\b", text, re.M), name
    assert not set(EXTRAS) & set(PROJECT["dependencies"])


@pytest.mark.parametrize("path", sorted(REPOSITORY.glob("*.lock")), ids=lambda path: path.stem)
def test_every_locked_wheel_has_a_hash_and_no_address(path):
    lock = path.read_text()
    for block in re.split(r"\n(?=[A-Za-z0-9])", lock.strip()):
        assert "--hash=sha256:" in block, block.splitlines()[0]
    assert not re.search(r"https?://|--index|--extra-index|--find-links|\s@\s", lock)


def test_every_action_of_ci_is_pinned_by_its_hash_and_the_tests_run_as_root():
    """A tag can be moved; as an ordinary user nothing privileged would run."""
    workflow = yaml.safe_load((REPOSITORY / ".github/workflows/ci.yml").read_text())
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    used = [step["uses"] for step in steps if "uses" in step]
    assert used and all(re.search(r"@[0-9a-f]{40}$", one) for one in used), used
    assert any(re.search(r"sudo \S.*\.ci/run", step.get("run", "")) for step in steps)


def test_environment_yml_takes_its_wheels_from_the_lock_and_the_same_pythons():
    environment = yaml.safe_load((REPOSITORY / "environment.yml").read_text())
    pip = [entry["pip"] for entry in environment["dependencies"] if isinstance(entry, dict)]
    assert pip == [["-r requirements.lock"]]
    python = next(entry for entry in environment["dependencies"] if "python" in entry)
    assert python.removeprefix("python").split(",")[0] == PROJECT["requires-python"]


def test_what_is_installed_here_is_what_is_locked():
    for name in NEEDED:
        pattern = rf"^{re.escape(normal(name))}==([^\s;\\]+)"
        assert version(name) in re.findall(pattern, LOCK, re.M), name


# --- who may import whom: CONTRIBUTING.md's table is what is tested -------------------------------


@cache
def parts_in_order() -> list[str]:
    """The parts of nbhelpers in the table's order: each imports only parts above it."""
    text = (REPOSITORY / "CONTRIBUTING.md").read_text()
    return re.findall(r"^\| `(\w+)` \| [^|]+ \|$", text, re.MULTILINE)


def module_name(path: Path) -> str:
    parts = path.relative_to(REPOSITORY).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


NAMED = {module_name(path): path for path in MODULES}


def part_of(path: Path) -> str:
    return path.relative_to(LIBRARY).parts[0].removesuffix(".py")


def imports(body: list[ast.stmt], inside: bool, face: bool) -> Iterator[ast.stmt]:
    """The import statements of a module; those inside its functions, and what a face exports."""
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            yield from imports(node.body, inside, face) if face else ()
        elif inside or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for name in ("body", "orelse", "finalbody", "handlers"):
                yield from imports(getattr(node, name, []), inside, face)


@cache
def imported(path: Path, inside: bool = True) -> set[str]:
    """The modules of the library that a module imports, packages as they are named."""
    found = set()
    face = path.name == "__init__.py" and path.parent != LIBRARY
    for node in imports(ast.parse(path.read_text()).body, inside, face):
        if isinstance(node, ast.ImportFrom):
            package = path.parent.relative_to(REPOSITORY).parts
            start = package[: len(package) - node.level + 1] if node.level else ()
            source = ".".join([*start, *filter(None, [node.module])])
            names = {f"{source}.{alias.name}" for alias in node.names}
            found |= names & set(NAMED)
            if node.module and not names <= set(NAMED):  # `from . import _native` is a C part
                found.add(source)
        else:
            found |= {alias.name for alias in node.names}
    return found & set(NAMED) - {module_name(path)}


def imported_parts(path: Path) -> set[str]:
    names = imported(path)
    return {name.split(".")[1] for name in names if name.count(".")} - {part_of(path)}


def test_the_table_has_each_part_of_the_library_once():
    order = parts_in_order()
    assert len(order) == len(set(order))
    assert set(order) == {part_of(path) for path in MODULES} - {"__init__", "__main__"}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_a_module_imports_only_parts_above_its_own(path):
    part, order = part_of(path), parts_in_order()
    if part in ("__init__", "__main__"):
        return
    # The head of a page repeats what the doctor promised, and checks the notebook's parameters.
    head = {"promise", "profiles"} if part == "study" else set()
    below = set(order[order.index(part) :]) - head
    assert not imported_parts(path) & below


def test_statistics_and_noise_touch_no_machine():
    for path in MODULES:
        if part_of(path) in ("statistics", "noise"):
            assert not imported_parts(path) & {"machine", "measurement", "workloads", "injection"}


def circles(inside: bool) -> list[set[str]]:
    """Groups of modules that import each other, directly or by way of others."""
    reached = {name: set(imported(path, inside)) for name, path in NAMED.items()}
    for middle in reached:
        for name, others in reached.items():
            if middle in others:
                reached[name] = others | reached[middle]
    groups = {
        frozenset(other for other in others if name in reached[other])
        for name, others in reached.items()
        if name in others
    }
    return [set(group) for group in groups]


def test_no_circle_of_imports_at_the_top_of_modules():
    assert circles(inside=False) == []


def test_at_most_two_circles_with_the_imports_inside_functions():
    assert len(circles(inside=True)) <= 2, circles(inside=True)


# --- names, lengths and words ---------------------------------------------------------------------


def exported() -> dict[str, list[str]]:
    """The names in `__all__` of each package."""
    return {
        module_name(path): getattr(importlib.import_module(module_name(path)), "__all__", [])
        for path in MODULES
        if path.name == "__init__.py" and path.parent not in (LIBRARY, LIBRARY / "cli")
    }


def test_no_exported_name_is_that_of_a_module_or_package_beside_it():
    for package, names in exported().items():
        folder = LIBRARY.joinpath(*package.split(".")[1:])
        beside = {path.stem for path in [*folder.iterdir(), *LIBRARY.iterdir()]}
        here = importlib.import_module(package)
        functions = {name for name in names if not inspect.ismodule(getattr(here, name))}
        assert not beside & functions, package


def test_no_function_or_class_has_the_name_of_its_module():
    for path in MODULES:
        defined = {getattr(node, "name", None) for node in ast.parse(path.read_text()).body}
        assert path.stem.startswith("_") or path.stem not in defined, path


def notebook_code() -> list[str]:
    """The source of each code cell."""
    return [
        "".join(cell["source"])
        for path in NOTEBOOKS
        for cell in json.loads(path.read_text())["cells"]
        if cell["cell_type"] == "code"
    ]


@cache
def names_in(text: str) -> set[str]:
    """Names that some code imports, or looks up as an attribute."""
    used: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom):
            used |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Attribute):
            used.add(node.attr)
    return used


def used_names(package: str) -> set[str]:
    """Names that code outside a package, or the documentation, uses."""
    folder = LIBRARY.joinpath(*package.split(".")[1:])
    code = [path.read_text() for path in MODULES if folder not in path.parents]
    code += [path.read_text() for path in (REPOSITORY / "benchmarks").rglob("*.py")]
    used = set().union(*map(names_in, [*code, *notebook_code()]))
    for path in [REPOSITORY / "README.md", *(REPOSITORY / "docs").rglob("*.md")]:
        used |= set(re.findall(r"\w+", path.read_text()))
    return used


def test_each_exported_name_is_used_outside_its_package():
    for package, names in exported().items():
        assert set(names) <= used_names(package) | set(nbhelpers.__all__), package


def test_what_benchmarks_import_exists():
    for path in (REPOSITORY / "benchmarks").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("nbhelpers"):
                exec(ast.unparse(node), {})


def functions(path: Path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def code_lines(function) -> int:
    """Lines of a function without those of its docstring."""
    lines = function.end_lineno - function.lineno + 1
    first = function.body[0]
    if ast.get_docstring(function, clean=False) is not None:
        lines -= first.end_lineno - first.lineno + 1
    return lines


def test_functions_are_short():
    lengths = {
        f"{path.relative_to(REPOSITORY)} {function.name}": code_lines(function)
        for path in MODULES
        for function in functions(path)
    }
    long = {name: lines for name, lines in lengths.items() if lines > 40}
    assert len(long) <= 15 and max(long.values(), default=0) <= 60, long


def test_every_exported_function_and_class_says_what_it_is():
    for package, names in exported().items():
        for name in names:
            found = getattr(importlib.import_module(package), name)
            if inspect.isfunction(found) or inspect.isclass(found):
                text = found.__doc__ or ""
                # A dataclass without a docstring is given its signature.
                assert text and not text.startswith(f"{name}("), f"{package}.{name}"


def test_nothing_committed_is_large_or_names_a_registry_or_a_machine():
    hosts = re.compile(rb"pypi\.org|files\.pythonhosted|conda\.anaconda\.org|/root/|/home/[a-z]")
    for path in tracked():
        content = path.read_bytes()
        assert len(content) <= 2 * 2**20, f"{path} is larger than 2 MiB"
        assert f"{REPOSITORY}/".encode() not in content, f"{path} names this folder"
        if path != Path(__file__):
            assert not hosts.search(content), path
