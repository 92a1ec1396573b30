"""Mutants by cosmic-ray's operators, each tried in a fork of a process that has all else imported.

cosmic-ray's own runner starts a Python for each mutant, which takes longer than most tests here.
So its operators make the mutants, and this runs them: a fork, the changed text in the place of the
module's, pytest on the tests of that module until the first failure.
"""

import importlib
import importlib.abc
import importlib.util
import math
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
CHECKS = REPOSITORY / "build/checks"
LIMIT_S = 90.0
HEAVY = ("numpy", "pandas", "scipy.stats", "pytest", "hypothesis", "yaml", "jsonschema", "pyarrow")

# group: (modules, tests that cover them)
GROUPS: dict[str, tuple[list[str], list[str]]] = {
    "statistics": (["statistics/*.py"], ["tests/statistics"]),
    "attribution": (
        ["attribution/cutoff.py", "attribution/classes.py", "attribution/null.py"],
        ["tests/attribution"],
    ),
    "noise": (["noise/*.py"], ["tests/noise"]),
    "planning": (
        [f"injection/{name}.py" for name in ("plan", "_coalesce", "_lanes", "_limits", "costs")],
        [f"tests/injection/test_{name}.py" for name in ("plan", "check")],
    ),
    "settings": (
        ["machine/settings.py", "machine/allowed.py", "machine/guardian.py"],
        [f"tests/machine/test_{name}.py" for name in ("allowed", "settings", "leftovers")],
    ),
    "store": (
        ["records.py", "measurement/_store.py", "measurement/damage.py", "measurement/seal.py"],
        ["tests/test_records.py", "tests/test_verify.py", "tests/measurement/test_growing.py"],
    ),
}
# a decorator is not a decision; the last two want to know names
_LEFT_OUT = ("core/RemoveDecorator", "core/VariableInserter", "core/VariableReplacer")


@dataclass(frozen=True)
class Mutant:
    """One small change of a module."""

    group: str
    path: Path
    operator: str
    occurrence: int
    text: str = field(repr=False)
    change: str = ""


@dataclass
class Score:
    """Killed and surviving mutants of a group."""

    killed: int = 0
    survived: list[Mutant] = field(default_factory=list)

    @property
    def count(self) -> int:
        return self.killed + len(self.survived)

    def interval(self) -> tuple[float, float, float]:
        """Share that was killed, with Wilson's 95 % interval."""
        n, z = max(1, self.count), 1.959964
        share = self.killed / n
        middle = (share + z * z / (2 * n)) / (1 + z * z / n)
        half = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / (1 + z * z / n)
        return share, middle - half, middle + half


# ---- making them ---------------------------------------------------------------------------------


def _modules(group: str) -> list[Path]:
    found = [
        path for pattern in GROUPS[group][0] for path in (REPOSITORY / "nbhelpers").glob(pattern)
    ]
    return sorted(path for path in found if path.name != "__init__.py")


def sample(group: str, count: int, draw: random.Random) -> Iterator[Mutant]:
    """Mutants of a group: a line of code by chance, then one of its changes."""
    sys.path.insert(0, str(CHECKS))
    import cosmic_ray.mutating
    import cosmic_ray.plugins
    from cosmic_ray.ast import ast_nodes, get_ast

    names = [name for name in cosmic_ray.plugins.operator_names() if name not in _LEFT_OUT]
    operators = {name: cosmic_ray.plugins.get_operator(name)() for name in sorted(names)}
    places: list[tuple[Path, str, int]] = []
    for path in _modules(group):
        nodes = list(ast_nodes(get_ast(path.read_text())))
        for name, operator in operators.items():
            positions = [place for node in nodes for place in operator.mutation_positions(node)]
            places += [(path, name, number) for number in range(len(positions))]
    seen: set[str] = set()
    while places and len(seen) < count:
        path, name, number = places.pop(draw.randrange(len(places)))
        before = path.read_text()
        after = cosmic_ray.mutating.mutate_code(before, operators[name], number)
        line = _changed_line(before, after or before)
        if after and line and line not in seen and _counts(line):
            seen.add(line)
            yield Mutant(group, path, name, number, after, line)


def _changed_line(before: str, after: str) -> str:
    for number, (old, new) in enumerate(zip(before.splitlines(), after.splitlines()), start=1):
        if old != new:
            return f"{number}: {old.strip()}  →  {new.strip()}"
    return ""


def _counts(line: str) -> bool:
    """A change of an annotation (`int | None`) changes nothing that runs."""
    old = line.partition(": ")[2].partition("  →")[0]
    annotated = old.startswith(("def ", "class ", "@")) or " | None" in old or "->" in old
    return not annotated and not old.startswith(("import ", "from ", '"', "#"))


# ---- trying them ---------------------------------------------------------------------------------


class _Changed(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives one module another text."""

    def __init__(self, name: str, mutant: Mutant):
        self.name, self.mutant = name, mutant

    def find_spec(self, name, path=None, target=None):
        if name != self.name:
            return None
        return importlib.util.spec_from_loader(name, self, origin=str(self.mutant.path))

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        module.__file__ = str(self.mutant.path)
        exec(compile(self.mutant.text, str(self.mutant.path), "exec"), module.__dict__)


def _child(mutant: Mutant) -> None:
    os.setsid()
    quiet = os.open(os.devnull, os.O_RDWR)
    for handle in (0, 1, 2):
        os.dup2(quiet, handle)
    name = ".".join(mutant.path.relative_to(REPOSITORY).with_suffix("").parts)
    sys.meta_path.insert(0, _Changed(name, mutant))
    import pytest

    os.chdir(REPOSITORY)
    # our own plugin would have pytest load all of nbhelpers in its own way
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    words = ["-x", "-q", "-m", "not long", "-p", "no:cacheprovider", "-p", "pytest_timeout"]
    words += ["-p", "pytest_rerunfailures", "-p", "_hypothesis_pytestplugin"]
    words += [f"--basetemp={tempfile.mkdtemp(prefix='mutant-')}"]
    os._exit(int(pytest.main([*words, *GROUPS[mutant.group][1]]) == 0))


def _start(mutant: Mutant) -> int:
    pid = os.fork()
    if not pid:
        try:
            _child(mutant)
        finally:
            os._exit(0)  # what does not even import is noticed
    return pid


def try_all(mutants: list[Mutant], at_once: int = 2) -> dict[str, Score]:
    """The scores by group; a mutant that takes too long counts as killed."""
    for name in HEAVY:
        importlib.import_module(name)
    scores: dict[str, Score] = {}
    waiting, running = list(mutants), {}
    while waiting or running:
        while waiting and len(running) < at_once:
            mutant = waiting.pop(0)
            running[_start(mutant)] = (mutant, time.monotonic())
        for pid, (mutant, began) in list(running.items()):
            ended, status = os.waitpid(pid, os.WNOHANG)
            late = time.monotonic() - began > LIMIT_S
            if late and not ended:
                os.killpg(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            if ended or late:
                del running[pid]
                score = scores.setdefault(mutant.group, Score())
                if ended and os.waitstatus_to_exitcode(status) == 1:
                    score.survived.append(mutant)
                else:
                    score.killed += 1
        time.sleep(0.02)
    return scores
