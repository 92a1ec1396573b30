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
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
CHECKS = REPOSITORY / "build/checks"
PASSED, FAILED, NO_COLLECTION, NO_IMPORT = 0, 1, 2, 77
# what tests of the group "settings" change for real: put back whatever a mutant does
REAL_SETTINGS = ("/proc/sys/vm/stat_interval", "/proc/sys/kernel/sched_rt_runtime_us")
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
        # guardian.py runs as a script of its own, which a fork cannot change
        ["machine/settings.py", "machine/allowed.py", "machine/kernel.py"],
        [f"tests/machine/test_{name}.py" for name in ("allowed", "settings")],
    ),
    "store": (
        [
            "records.py",
            *(f"measurement/{name}.py" for name in ("_store", "damage", "seal", "_orphans")),
        ],
        [
            *("tests/test_records.py", "tests/test_verify.py"),
            *(f"tests/measurement/test_{name}.py" for name in ("growing", "processes")),
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
    operator: str
    occurrence: int
    text: str = field(repr=False)
    change: str = ""


@dataclass
class Score:
    """Killed and surviving mutants of a group."""

    killed: int = 0
    survived: list[Mutant] = field(default_factory=list)
    unclear: list[str] = field(default_factory=list)  # neither: pytest itself failed

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
    """Mutants of a group, all changes of all its modules with the same chance."""
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
        key = f"{path} {line}"
        if after and line and key not in seen and _counts(line):
            seen.add(key)
            yield Mutant(group, path, name, number, after, line)


def _changed_line(before: str, after: str) -> str:
    for number, (old, new) in enumerate(zip(before.splitlines(), after.splitlines()), start=1):
        if old != new:
            return f"{number}: {old.strip()}  →  {new.strip()}"
    return ""


def _counts(line: str) -> bool:
    """A change of an annotation (`int | None`) changes nothing that runs."""
    old = line.partition(": ")[2].partition("  →")[0]
    annotated = old.startswith(("def ", "class ", "@", ")"))
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


def _child(mutant: Mutant, folder: str) -> int:
    """pytest's status for the tests of a mutant, or NO_IMPORT."""
    os.setsid()
    quiet = os.open(os.devnull, os.O_RDWR)
    for handle in (0, 1, 2):
        os.dup2(quiet, handle)
    os.chdir(REPOSITORY)
    os.environ["TMPDIR"] = folder
    tempfile.tempdir = folder
    name = ".".join(mutant.path.relative_to(REPOSITORY).with_suffix("").parts)
    sys.meta_path.insert(0, _Changed(name, mutant))
    try:
        importlib.import_module(name)
    except BaseException:
        return NO_IMPORT
    import pytest

    # our own plugin would have pytest load all of nbhelpers in its own way
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    words = ["-x", "-q", "-m", "not long", "-p", "no:cacheprovider", "-p", "pytest_timeout"]
    words += ["-p", "pytest_rerunfailures", "-p", "_hypothesis_pytestplugin"]
    words += [f"--basetemp={folder}/base"]
    return int(pytest.main([*words, *GROUPS[mutant.group][1]]))


@dataclass
class _Try:
    """A mutant that is being tried."""

    mutant: Mutant
    pid: int
    folder: str
    began: float


def _start(mutant: Mutant) -> _Try:
    folder = tempfile.mkdtemp(prefix="mutant-")
    pid = os.fork()
    if not pid:
        status = 99
        try:
            status = _child(mutant, folder)
        finally:
            os._exit(status)
    return _Try(mutant, pid, folder, time.monotonic())


def _ended(one: _Try, limit_s: float) -> int | None:
    """Its status; None: it goes on. One that takes too long has failed."""
    ended, status = os.waitpid(one.pid, os.WNOHANG)
    if not ended and time.monotonic() - one.began < limit_s:
        return None
    if not ended:
        os.killpg(one.pid, signal.SIGKILL)
        os.waitpid(one.pid, 0)
    shutil.rmtree(one.folder, ignore_errors=True)
    return os.waitstatus_to_exitcode(status) if ended else FAILED


def baseline(group: str) -> float:
    """How long the tests take without a change, by the same way.

    Raises
    ------
    RuntimeError
        They fail.
    """
    path = _modules(group)[0]
    one = _start(Mutant(group, path, "none", 0, path.read_text()))
    while (status := _ended(one, 600)) is None:
        time.sleep(0.02)
    if status != PASSED:
        raise RuntimeError(f"the tests of '{group}' fail without a mutant: status {status}")
    return time.monotonic() - one.began


def try_all(mutants: list[Mutant], at_once: int = 2) -> dict[str, Score]:
    """The scores by group; a mutant that takes three times as long as none counts as killed."""
    for name in HEAVY:
        importlib.import_module(name)
    before = {path: Path(path).read_text() for path in REAL_SETTINGS if os.access(path, os.W_OK)}
    try:
        return _try_all(mutants, at_once)
    finally:
        for path, value in before.items():
            if Path(path).read_text() != value:
                Path(path).write_text(value)


def _try_all(mutants: list[Mutant], at_once: int) -> dict[str, Score]:
    groups = list(dict.fromkeys(mutant.group for mutant in mutants))
    limits = {group: 3 * baseline(group) + 20 for group in groups}
    scores = {group: Score() for group in groups}
    waiting, running = list(mutants), []
    while waiting or running:
        # tests of settings and processes change the machine: one at a time
        alone = waiting and waiting[0].group in ("settings", "store")
        while waiting and len(running) < (1 if alone else at_once):
            running.append(_start(waiting.pop(0)))
        for one in list(running):
            status = _ended(one, limits[one.mutant.group])
            if status is None:
                continue
            running.remove(one)
            score = scores[one.mutant.group]
            if status == PASSED:
                score.survived.append(one.mutant)
            elif status in (FAILED, NO_COLLECTION, NO_IMPORT) or status < 0:
                score.killed += 1
            else:
                score.unclear.append(f"{one.mutant.path.name}: {one.mutant.change}: {status}")
        time.sleep(0.02)
    return scores
