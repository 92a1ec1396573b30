"""How many small mistakes in the modules that decide are noticed by their tests:
`python -m tests.mutants [N] [--seed S] [--group G]`.

N mutants a group (default 15), by cosmic-ray's operators; about 15 s each. They stand in a copy of
the repository one after the other, since some tests change the machine. Survivors are printed to be
read; those that no test can see are explained in explained.yml.
"""

import argparse
import ast
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from scipy.stats import binomtest

from ..trees import CHECKS, REPOSITORY, copied_tree

PLANNING = ("plan", "rules", "_coalesce", "_lanes", "_limits", "_check", "costs")
SETTINGS = ("settings", "allowed", "kernel", "guardian")
STORE = ("_store", "_aside", "seal", "_orphans")
# group: (modules, tests that cover them)
GROUPS: dict[str, tuple[list[str], list[str]]] = {
    "statistics": (["statistics/*.py"], ["statistics"]),
    "attribution": (["attribution/*.py"], ["attribution"]),
    "noise": (["noise/*.py"], ["noise"]),
    "planning": (
        [f"injection/{name}.py" for name in PLANNING],
        [f"injection/test_{name}.py" for name in ("plan", "check", "overheads")],
    ),
    "settings": (
        [f"machine/{name}.py" for name in SETTINGS],
        [f"machine/test_{name}.py" for name in ("kernel_values", *SETTINGS[:2], "leftovers")],
    ),
    "store": (
        [
            *("records.py", "machine/leftovers.py", "machine/run_groups.py"),
            *(f"measurement/{name}.py" for name in STORE),
        ],
        [
            *("test_records.py", "test_verify.py", "machine/test_leftovers.py"),
            *(f"measurement/test_{name}.py" for name in ("orphans", "growing", "processes")),
        ],
    ),
}
# a decorator is not a decision; the last two want to know names
LEFT_OUT = ("core/RemoveDecorator", "core/VariableInserter", "core/VariableReplacer")
# what tests change for real: put back whatever a mutant does
REAL_SETTINGS = ("/proc/sys/vm/stat_interval", "/proc/sys/kernel/sched_rt_runtime_us")
PYTEST = (sys.executable, "-m", "pytest", "-x", "-q", "-m", "not long")


@dataclass(frozen=True)
class Mutant:
    """One small change of a module."""

    group: str
    path: Path
    text: str = field(repr=False)
    change: str = ""


def sample(group: str, count: int, draw: random.Random) -> Iterator[Mutant]:
    """Mutants of a group, all changes of all its modules with the same chance."""
    sys.path.insert(0, str(CHECKS))
    import cosmic_ray.mutating
    import cosmic_ray.plugins
    from cosmic_ray.ast import ast_nodes, get_ast

    names = [name for name in cosmic_ray.plugins.operator_names() if name not in LEFT_OUT]
    operators = {name: cosmic_ray.plugins.get_operator(name)() for name in sorted(names)}
    library = REPOSITORY / "nbhelpers"
    paths = sorted(path for pattern in GROUPS[group][0] for path in library.glob(pattern))
    places: list[tuple[Path, str, int]] = []
    for path in (path for path in paths if path.name != "__init__.py"):
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
    lines = zip(before.splitlines(), after.splitlines())
    return next((f"{old.strip()}  →  {new.strip()}" for old, new in lines if old != new), "")


def _acts(before: str, after: str) -> bool:
    """Whether what runs has changed: annotations do not run."""
    try:
        return _without_annotations(before) != _without_annotations(after)
    except SyntaxError:
        return False


def _without_annotations(text: str) -> str:
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.returns = None
        elif isinstance(node, ast.AnnAssign):
            node.annotation = ast.Constant(None)
        elif isinstance(node, ast.Constant) and isinstance(node.value, float):
            node.value = float(f"{node.value:.5g}")  # 1e9 and 999999999.0 print the same digits
    return ast.dump(tree)


def is_killed(mutant: Mutant, tree: Path, limit_s: float) -> bool:
    """Whether the tests of its group fail, or take too long, where it stands in the tree."""
    path, own = tree / mutant.path.relative_to(REPOSITORY), f"test_{mutant.path.stem.strip('_')}.py"
    tests = sorted(GROUPS[mutant.group][1], key=lambda test: not test.endswith(own))
    place = {"PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    path.write_text(mutant.text)
    running = subprocess.Popen(
        [*PYTEST, "-p", "no:cacheprovider", "--reruns=1", *(f"tests/{test}" for test in tests)],
        cwd=tree,
        env=os.environ | place,
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        return running.wait(limit_s) != 0
    except subprocess.TimeoutExpired:
        os.killpg(running.pid, signal.SIGKILL)
        return running.wait() != 0
    finally:
        path.write_bytes(mutant.path.read_bytes())


def try_all(mutants: list[Mutant], tree: Path) -> list[Mutant]:
    """Those that no test notices.

    Raises
    ------
    RuntimeError
        The tests of a group fail without a change.
    """
    limits: dict[str, float] = {}
    survived = []
    for one in mutants:
        if one.group not in limits:
            began = time.monotonic()
            if is_killed(Mutant(one.group, one.path, one.path.read_text()), tree, 600):
                raise RuntimeError(f"the tests of '{one.group}' fail without a mutant")
            limits[one.group] = 3 * (time.monotonic() - began) + 20
        survived += [] if is_killed(one, tree, limits[one.group]) else [one]
    return survived


def main() -> int:
    words = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    words.add_argument("count", type=int, nargs="?", default=15)
    words.add_argument("--seed", type=int, default=1)
    words.add_argument("--group", choices=list(GROUPS))
    asked = words.parse_args()
    draw = random.Random(asked.seed)
    groups = [asked.group] if asked.group else list(GROUPS)
    mutants = [mutant for group in groups for mutant in sample(group, asked.count, draw)]
    rows = yaml.safe_load(Path(__file__).with_name("explained.yml").read_text())
    known = {f"{row['module']}: {row['change']}": row["why"] for row in rows}
    before = {path: Path(path).read_text() for path in REAL_SETTINGS if os.access(path, os.W_OK)}
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        os.chmod(folder, 0o755)  # tests run parts as another user
        try:
            survived = try_all(mutants, copied_tree(Path(folder)))
        finally:
            for path, value in before.items():
                Path(path).write_text(value)
    whys = {one: known.get(f"{one.path.stem}: {one.change}", "") for one in survived}
    for one, why in whys.items():
        print(f"{'equivalent' if why else 'survived  '} {one.path.name}: {one.change} {why}")
    killed = len(mutants) - len(survived)
    count = killed + list(whys.values()).count("")
    low, high = binomtest(killed, count).proportion_ci(method="wilson")
    print(f"{killed} of {count} killed: {killed / count:.1%} ({low:.0%} to {high:.0%})")
    return int(killed / count < 0.85)


if __name__ == "__main__":
    sys.exit(main())
