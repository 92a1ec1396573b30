"""Mutants by cosmic-ray's operators: one small change of a module that decides."""

import ast
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
CHECKS = REPOSITORY / "build/checks"

# group: (modules, tests that cover them)
GROUPS: dict[str, tuple[list[str], list[str]]] = {
    "statistics": (["statistics/*.py"], ["tests/statistics"]),
    "attribution": (["attribution/*.py"], ["tests/attribution"]),
    "noise": (["noise/*.py"], ["tests/noise"]),
    "planning": (
        [
            f"injection/{name}.py"
            for name in ("plan", "rules", "_coalesce", "_lanes", "_limits", "_check", "costs")
        ],
        [f"tests/injection/test_{name}.py" for name in ("plan", "check", "overheads")],
    ),
    "settings": (
        [f"machine/{name}.py" for name in ("settings", "allowed", "kernel", "guardian")],
        [
            f"tests/machine/test_{name}.py"
            for name in ("kernel_values", "allowed", "settings", "leftovers")
        ],
    ),
    "store": (
        [
            "records.py",
            *(f"measurement/{name}.py" for name in ("_store", "_aside", "seal", "_orphans")),
            *(f"machine/{name}.py" for name in ("leftovers", "run_groups")),
        ],
        [
            *("tests/test_records.py", "tests/test_verify.py", "tests/machine/test_leftovers.py"),
            *(f"tests/measurement/test_{name}.py" for name in ("orphans", "growing", "processes")),
        ],
    ),
}
# a decorator is not a decision; the last two want to know names
_LEFT_OUT = ("core/RemoveDecorator", "core/VariableInserter", "core/VariableReplacer")


@dataclass(frozen=True)
class Mutant:
    """One small change of a module."""

    group: str
    path: Path
    text: str = field(repr=False)
    change: str = ""


def modules(group: str) -> list[Path]:
    """The files of a group that decide something."""
    found = [
        path for pattern in GROUPS[group][0] for path in (REPOSITORY / "nbhelpers").glob(pattern)
    ]
    return sorted(path for path in found if path.name != "__init__.py")


def tests_of(mutant: Mutant) -> list[str]:
    """The tests of its group; those of the module, which notice most, come first."""
    tests = GROUPS[mutant.group][1]
    name = f"test_{mutant.path.stem.strip('_')}.py"
    first = [f"{one}/{name}" for one in tests if (REPOSITORY / one / name).is_file()]
    first += [one for one in tests if one.endswith(name)]
    return [*first, *(one for one in tests if one not in first)]


def sample(group: str, count: int, draw: random.Random) -> Iterator[Mutant]:
    """Mutants of a group, all changes of all its modules with the same chance."""
    sys.path.insert(0, str(CHECKS))
    import cosmic_ray.mutating
    import cosmic_ray.plugins
    from cosmic_ray.ast import ast_nodes, get_ast

    names = [name for name in cosmic_ray.plugins.operator_names() if name not in _LEFT_OUT]
    operators = {name: cosmic_ray.plugins.get_operator(name)() for name in sorted(names)}
    places: list[tuple[Path, str, int]] = []
    for path in modules(group):
        nodes = list(ast_nodes(get_ast(path.read_text())))
        for name, operator in operators.items():
            positions = [place for node in nodes for place in operator.mutation_positions(node)]
            places += [(path, name, number) for number in range(len(positions))]
    seen: set[tuple[Path, str]] = set()
    while places and len(seen) < count:
        path, name, number = places.pop(draw.randrange(len(places)))
        before = path.read_text()
        after = cosmic_ray.mutating.mutate_code(before, operators[name], number)
        change = _changed_line(before, after or before)
        if after and change and (path, change) not in seen and _acts(before, after):
            seen.add((path, change))
            yield Mutant(group, path, after, change)


def _changed_line(before: str, after: str) -> str:
    for number, (old, new) in enumerate(zip(before.splitlines(), after.splitlines()), start=1):
        if old != new:
            return f"{number}: {old.strip()}  →  {new.strip()}"
    return ""


def _acts(before: str, after: str) -> bool:
    """Whether what runs has changed: annotations do not run."""
    try:
        return _without_annotations(before) != _without_annotations(after)
    except SyntaxError:
        return False


def _without_annotations(text: str) -> str:
    tree = ast.parse(text)
    nothing = ast.Constant(None)
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.returns = None
        elif isinstance(node, ast.AnnAssign):
            node.annotation = nothing
        elif isinstance(node, ast.Constant) and isinstance(node.value, float):
            node.value = float(f"{node.value:.5g}")  # 1e9 and 999999999.0 print the same digits
    return ast.dump(tree)
