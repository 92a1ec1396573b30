"""What code rests on what: the modules that a notebook or a module imports, read from their text.

Nothing is imported to find out. A name that is imported from a package leads to the module that
defines it, not to everything else that the package exports.
"""

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache
from pathlib import Path

from .files import digest
from .reading import read_json

LIBRARY = "nbhelpers"
Request = tuple[str, str | None]  # a module and a name in it; None: all of the module


# What a package rests on beside its Python modules and the other files of its folder.
RESTS_ON = {
    "injection": ("injector_c/*.[ch]", "injector_c/*.py"),
    "measurement": ("data/knowledge/metrics/*",),
    "mitigation": (
        "data/knowledge/factors*",
        "data/knowledge/factors/*",
        "data/knowledge/mitigations*",
        "data/knowledge/mitigations/*",
        "data/knowledge/references.yml",
    ),
    "report": ("data/published/*.csv", "data/knowledge/references.yml"),
    "simulation": ("simulator_c/*.[ch]", "simulator_c/*.py", "data/knowledge/networks.yml"),
    "training": ("data/published/stragglers/*.parquet",),
    "studies": ("data/published/*.csv", "data/knowledge/earlier-findings.csv"),
    "workloads": (
        "data/knowledge/programs/*",
        "workloads/*.[ch]",
        "workloads/Makefile",
        "workloads/sycl/*",
        "workloads/mpi/*",
    ),
}


class CodeTree:
    """The Python modules of a library, and what each imports.

    Parameters
    ----------
    root
        The folder that holds the package `nbhelpers`.
    """

    def __init__(self, root: Path):
        self.root = root
        self._requests: dict[tuple[str, bool], set[Request]] = {}

    @cached_property
    def paths(self) -> dict[str, Path]:
        """The file of each module, by the module's name."""
        files = sorted((self.root / LIBRARY).rglob("*.py"))
        return {self._name(path): path for path in files if "_shipped" not in path.parts}

    def _name(self, path: Path) -> str:
        parts = path.relative_to(self.root).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    def is_package(self, module: str) -> bool:
        """Whether a module is the `__init__.py` of a folder."""
        return self.paths[module].name == "__init__.py"

    @cached_property
    def _contents(self) -> dict[str, bytes]:
        return {module: path.read_bytes() for module, path in self.paths.items()}

    def tree(self, module: str) -> ast.Module:
        """The syntax tree of a module, without docstrings that are not read at run time."""
        return _parsed(self._contents[module])

    def digest(self, module: str) -> str:
        """Digest of what a module does: its comments, layout and docstrings do not count."""
        return _digest(self._contents[module])

    def requests(self, module: str, inside: bool = True) -> set[Request]:
        """What a module imports from the library.

        Parameters
        ----------
        module
            Its name.
        inside
            Imports inside functions, and modules that are started with ``python -m``, count too.
        """
        if (module, inside) not in self._requests:
            package = module if self.is_package(module) else module.rpartition(".")[0]
            found = set(_requests(self.tree(module).body, package, inside))
            if inside:
                found |= set(self._started(module))
            ours = {request for request in found if request[0].partition(".")[0] == LIBRARY}
            self._requests[module, inside] = ours
        return self._requests[module, inside]

    def imported(self, module: str, inside: bool = True) -> set[str]:
        """The modules of the library that a module imports, packages as they are named.

        Parameters
        ----------
        module, inside
            See `requests`.
        """
        found = set()
        for source, name in self.requests(module, inside) - set(self._started(module)):
            full = f"{source}.{name}"
            if not self._is_c_part(source, name):
                found.add(full if full in self.paths else source)
        return found & set(self.paths) - {module}

    def _is_c_part(self, package: str, name: str | None) -> bool:
        """Whether a name is that of a built extension: a private one that no file has."""
        return (
            name is not None
            and name.startswith("_")
            and not name.startswith("__")
            and f"{package}.{name}" not in self.paths
            and self.is_package(package)
            and not _assigns(self.tree(package), name)
        )

    def reached(
        self, texts: Iterable[str], modules: Iterable[str] = (), ends: Iterable[str] = ()
    ) -> set[str]:
        """All modules that the code of a notebook may run.

        Parameters
        ----------
        texts
            The notebook's code.
        modules
            Further modules that run with it.
        ends
            Modules that count, but whose own imports do not.
        """
        last = set(ends)
        wanted: list[Request] = [(module, None) for module in modules]
        for text in texts:
            wanted += _requests(ast.parse(text).body, "", inside=True)
        reached: set[str] = set()
        seen: set[Request] = set()
        while wanted:
            request = wanted.pop()
            if request in seen:
                continue
            seen.add(request)
            wanted += self._loaded_lazily(*request)
            for module in self._defining(*request):
                if module not in reached:
                    reached.add(module)
                    wanted += self.requests(module) if module not in last else []
        return reached

    def _defining(self, module: str, name: str | None) -> set[str]:
        """The modules in which a name that is imported from a module is defined."""
        if f"{module}.{name}" in self.paths:
            return self._defining(f"{module}.{name}", None)
        if module not in self.paths:  # not ours, or a C part: see RESTS_ON
            return set()
        if name in (None, "*") or not self.is_package(module):
            return {module}
        return self._behind_face(module, str(name))

    def _behind_face(self, package: str, name: str) -> set[str]:
        tree = self.tree(package)
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    if (alias.asname or alias.name) == name:
                        return self._defining(_absolute(node, package), alias.name)
            if isinstance(node, ast.Dict):  # names that are loaded when they are asked for
                for key, value in zip(node.keys, node.values):
                    where = _constant(value)
                    if _constant(key) == name and isinstance(where, str):
                        return self._defining(f"{package}.{where}", name)
        return set() if self._is_c_part(package, name) else {package}

    def _loaded_lazily(self, module: str, name: str | None) -> Iterator[Request]:
        """Of a package that is taken whole, the modules that its `__getattr__` may load."""
        if name is None and module in self.paths and self.is_package(module):
            for node in ast.walk(self.tree(module)):
                value = _constant(node)
                if isinstance(value, str) and f"{module}.{value}" in self.paths:
                    yield f"{module}.{value}", None

    def _started(self, module: str) -> Iterator[Request]:
        """Modules that are started as programs of their own: their names stand in strings."""
        if not re.search(rb"""["']nbhelpers\.|-m nbhelpers\.""", self._contents[module]):
            return
        for node in ast.walk(self.tree(module)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                for started in re.findall(r"(?:^|-m )(nbhelpers\.[\w.]+)(?:$|\s)", node.value):
                    for name in (started, f"{started}.__main__"):
                        if name in self.paths:
                            yield name, None


def code_digest(
    notebook: Path,
    tree: CodeTree,
    sources: Path,
    besides: Iterable[str] = (),
    ends: Iterable[str] = (),
) -> str:
    """Digest of the code and the knowledge that a notebook may use.

    Its imports are followed through the library, those inside functions too, so a change of what
    it does not use leaves the digest alone; so do comments, docstrings and layout.

    Parameters
    ----------
    notebook
        Its file.
    tree
        The library's modules.
    sources
        The folder that holds the C sources and the knowledge (`RESTS_ON`).
    besides, ends
        See `CodeTree.reached`.
    """
    cells = read_json(notebook)["cells"]
    texts = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    return modules_digest(tree.reached(texts, besides, ends), tree, sources)


def modules_digest(modules: set[str], tree: CodeTree, sources: Path) -> str:
    """Digest of modules, and of what their packages rest on besides (`RESTS_ON`).

    It is the same under each version of Python.

    Parameters
    ----------
    modules
        Their names.
    tree, sources
        See `code_digest`.
    """
    parts = [part for name in sorted(modules) for part in (name, tree.digest(name))]
    for name, path in sorted(_other_files(modules, tree, sources).items()):
        parts += [name, digest(path.read_bytes())]
    return digest(*parts)


def _other_files(modules: set[str], tree: CodeTree, sources: Path) -> dict[str, Path]:
    """What modules rest on that is not Python, by its name: schemas, C sources, knowledge."""
    found = [
        (tree.root, path)
        for folder in {tree.paths[name].parent for name in modules}
        for path in folder.iterdir()
        if path.suffix in (".json", ".css", ".mplstyle")
    ]
    for package in {name.split(".")[1] for name in modules if "." in name} & RESTS_ON.keys():
        for pattern in RESTS_ON[package]:
            found += [(sources, path) for path in sources.glob(pattern)]
    return {
        path.relative_to(root).as_posix(): path
        for root, path in found
        if path.is_file() and not path.name.startswith("_")
    }


def _requests(body: Iterable[ast.AST], package: str, inside: bool) -> Iterator[Request]:
    for node in body:
        if isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = _absolute(node, package)
            yield from ((module, alias.name) for alias in node.names)
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        elif inside or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _requests(_statements(node), package, inside)


def _absolute(node: ast.ImportFrom, package: str) -> str:
    parts = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
    return ".".join([*parts, *([node.module] if node.module else [])])


def _assigns(tree: ast.Module, name: str) -> bool:
    return any(
        isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)
        for node in ast.walk(tree)
    )


def _constant(node: ast.AST | None) -> object:
    return node.value if isinstance(node, ast.Constant) else None


@lru_cache(maxsize=1024)
def _parsed(content: bytes) -> ast.Module:
    tree = ast.parse(content)
    if b"__doc__" not in content:
        _remove_docstrings(tree)
    return tree


def _remove_docstrings(node: ast.AST) -> None:
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    if isinstance(node, kinds) and ast.get_docstring(node, clean=False) is not None:
        node.body = node.body[1:] or [ast.Pass()]
    for statement in _statements(node):
        _remove_docstrings(statement)


def _statements(node: ast.AST) -> list[ast.AST]:
    """What stands in the bodies of a statement."""
    bodies = (getattr(node, name, []) for name in ("body", "orelse", "finalbody", "handlers"))
    return [one for body in bodies if isinstance(body, list) for one in body]


@lru_cache(maxsize=1024)
def _digest(content: bytes) -> str:
    return digest(_written(_parsed(content)))


def _written(node: object) -> str:
    """A syntax tree as text, without what is empty: versions of Python differ in that."""
    if isinstance(node, list):
        return f"[{','.join(map(_written, node))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = ((name, getattr(node, name, None)) for name in node._fields)
    full = (f"{name}={_written(value)}" for name, value in fields if value not in (None, []))
    return f"{type(node).__name__}({','.join(full)})"
