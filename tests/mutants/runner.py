"""Tries mutants: each stands in a copy of the repository, and its tests run there.

So tests that start a Python of their own see the mutant, too. cosmic-ray's own runner starts a
Python for each mutant and imports all anew, which takes longer than most tests here; this one forks
a process that has imported what is not ours.
"""

import importlib
import math
import os
import shutil
import signal
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from ..trees import copied_tree
from .making import REPOSITORY, Mutant, modules, tests_of

PASSED, FAILED, NO_COLLECTION = 0, 1, 2
# what tests of the group "settings" change for real: put back whatever a mutant does
REAL_SETTINGS = ("/proc/sys/vm/stat_interval", "/proc/sys/kernel/sched_rt_runtime_us")
HEAVY = ("numpy", "pandas", "scipy.stats", "pytest", "hypothesis", "yaml", "jsonschema", "pyarrow")
ALONE = ("settings", "store")  # their tests look at all processes and change the machine


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


class _Tree:
    """A copy of the repository in which one file at a time is another."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.changed: Path | None = None

    def take(self, mutant: Mutant) -> None:
        """The mutant stands in the tree; the one before does no more."""
        self.restore()
        path = self.folder / mutant.path.relative_to(REPOSITORY)
        # its compiled form is valid for a file of the same size and second
        for compiled in path.parent.glob(f"__pycache__/{path.stem}.*.pyc"):
            compiled.unlink()
        path.write_text(mutant.text)
        self.changed = path

    def restore(self) -> None:
        if self.changed:
            shutil.copy2(REPOSITORY / self.changed.relative_to(self.folder), self.changed)
            self.changed = None


def _child(mutant: Mutant, tree: Path, folder: str) -> int:
    """pytest's status for the tests of a mutant."""
    os.setsid()
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    output = os.open(f"{folder}/output", os.O_WRONLY | os.O_CREAT)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.chdir(tree)
    sys.path[:0] = [str(tree)]
    for name in [name for name in sys.modules if name.split(".")[0] in ("tests", "nbhelpers")]:
        del sys.modules[name]
    os.environ |= {"TMPDIR": folder, "PYTHONPATH": str(tree)}
    if mutant.change:
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        sys.dont_write_bytecode = True
    tempfile.tempdir = folder
    import pytest

    # our own plugin would have pytest load all of nbhelpers in its own way
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    words = ["-x", "-q", "-m", "not long", "-p", "no:cacheprovider", "-p", "pytest_timeout"]
    words += ["-p", "pytest_rerunfailures", "-p", "_hypothesis_pytestplugin"]
    words += [f"--basetemp={folder}/base", *(["--reruns=1"] if mutant.group in ALONE else [])]
    return int(pytest.main([*words, *tests_of(mutant)]))


@dataclass
class _Try:
    """A mutant that is being tried."""

    mutant: Mutant
    tree: _Tree
    pid: int
    folder: str
    began: float


def _start(mutant: Mutant, tree: _Tree) -> _Try:
    tree.take(mutant)
    folder = tempfile.mkdtemp(prefix="mutant-")
    os.chmod(folder, 0o755)  # tests run parts as another user
    pid = os.fork()
    if not pid:
        status = 99
        try:
            status = _child(mutant, tree.folder, folder)
        finally:
            os._exit(status)
    return _Try(mutant, tree, pid, folder, time.monotonic())


def _ended(one: _Try, limit_s: float) -> int | None:
    """Its status; None: it goes on. One that takes too long has failed."""
    ended, status = os.waitpid(one.pid, os.WNOHANG)
    if not ended and time.monotonic() - one.began < limit_s:
        return None
    if not ended:
        os.killpg(one.pid, signal.SIGKILL)
        os.waitpid(one.pid, 0)
    return os.waitstatus_to_exitcode(status) if ended else FAILED


def _baseline(group: str, tree: _Tree) -> float:
    """How long the tests take without a change, by the same way.

    Raises
    ------
    RuntimeError
        They fail.
    """
    path = modules(group)[0]
    one = _start(Mutant(group, path, path.read_text()), tree)
    while (status := _ended(one, 600)) is None:
        time.sleep(0.02)
    took = time.monotonic() - one.began
    tree.restore()
    if status != PASSED:
        output = Path(one.folder, "output").read_text()
        raise RuntimeError(f"the tests of '{group}' fail without a mutant ({status}):\n{output}")
    shutil.rmtree(one.folder, ignore_errors=True)
    return took


def try_all(mutants: list[Mutant], at_once: int = 2) -> dict[str, Score]:
    """The scores by group; a mutant that takes three times as long as none counts as killed."""
    for name in HEAVY:
        importlib.import_module(name)
    before = {path: Path(path).read_text() for path in REAL_SETTINGS if os.access(path, os.W_OK)}
    groups = list(dict.fromkeys(mutant.group for mutant in mutants))
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        os.chmod(folder, 0o755)
        first = _Tree(copied_tree(Path(folder, "0")))
        try:
            limits = {group: 3 * _baseline(group, first) + 20 for group in groups}
            trees = [first]
            for number in range(1, at_once):
                shutil.copytree(first.folder, Path(folder, str(number)))
                trees.append(_Tree(Path(folder, str(number))))
            return _try_all(mutants, trees, limits)
        finally:
            for path, value in before.items():
                if Path(path).read_text() != value:
                    Path(path).write_text(value)


def _try_all(
    mutants: list[Mutant], trees: list[_Tree], limits: dict[str, float]
) -> dict[str, Score]:
    scores = {group: Score() for group in limits}
    waiting, running, free = list(mutants), [], list(trees)
    while waiting or running:
        while waiting and free and not (running and _alone(waiting[0], running[0].mutant)):
            running.append(_start(waiting.pop(0), free.pop()))
        for one in list(running):
            status = _ended(one, limits[one.mutant.group])
            if status is None:
                continue
            running.remove(one)
            free.append(one.tree)
            shutil.rmtree(one.folder, ignore_errors=True)
            score = scores[one.mutant.group]
            if status == PASSED:
                score.survived.append(one.mutant)
            elif status in (FAILED, NO_COLLECTION) or status < 0:
                score.killed += 1
            else:
                score.unclear.append(f"{one.mutant.path.name}: {one.mutant.change}: {status}")
        time.sleep(0.02)
    return scores


def _alone(*mutants: Mutant) -> bool:
    return any(mutant.group in ALONE for mutant in mutants)
