"""Programs do the same with the probe as without: real ones, each run both ways."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from nbhelpers.speed import SpeedProbe
from nbhelpers.workloads import binary_folder, program

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("binaries", "nothing_left")]
HERE = Path(__file__).parent
# name: whether there are samples to the end
PROGRAMS = {
    "every_handler": True,
    "wait_for_all": False,  # it is sent our signal, too, and gets it
    "wait_for_each": False,
    "die_of_each": True,
    "children": True,
    "many_timers": False,  # most threads find no timer left
    "small_stacks": False,  # the stack that the program made itself has no room
    "alternative_stacks": False,  # the second one has no room
    "sleeping": True,
    "jumps": True,
    "modes": True,
    "without_files": True,
    "forbidden": False,  # from then on no system call
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("programs")


@pytest.fixture(scope="module")
def programs(folder) -> Path:
    return built(folder, "programs.c", "gcc", "-O1", "-pthread", "-lm")


def built(folder: Path, source: str, compiler: str, *options: str) -> Path:
    if not shutil.which(compiler):
        pytest.skip(f"{compiler} is not here")
    program = folder / source.partition(".")[0]
    words = [compiler, "-o", program, HERE / source, *options]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return program


def ended(command, variables=()) -> tuple[int, str, str]:
    done = subprocess.run(
        list(map(str, command)),
        env={**os.environ, **dict(variables)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    return done.returncode, done.stdout, done.stderr


def both_ways(folder, *command, sampled: bool = True) -> tuple[tuple, tuple, dict]:
    """Status, output and errors without the probe and with it, and the columns of the probe."""
    probe = SpeedProbe(folder / "speed", interval_us=4000)
    probe.before(program(["true"]))
    try:
        # a list that blanks separate: the project's own folder may have one
        library = {"LD_PRELOAD": shutil.copy(binary_folder() / "libnbspeed.so", folder)}
        with_it = ended(command, {**library, **probe.variables})
        columns = probe.after({"run": 0, "start_ns": 0, "end_ns": 0})
    finally:
        probe.close()
    assert (columns["speed_samples"] > 0) == sampled and columns["speed_lost"] == 0
    return ended(command), with_it, columns


@pytest.mark.long
@pytest.mark.parametrize("name", PROGRAMS)
def test_same_output(programs, folder, name):
    without, with_it, columns = both_ways(folder, programs, name)
    assert with_it == without and without[1]
    assert (columns["speed_unsampled"] == 0) == PROGRAMS[name]


def test_setitimer_counts_its_own_signals(programs, folder):
    without, with_it, _ = both_ways(folder, programs, "profiled")
    calls = [int(done[1]) for done in (without, with_it)]
    # one for each 20 ms of a second, fewer where others have the CPU at a tick; of the probe's own
    # timer there would be five times as many
    assert min(calls) >= 10 and max(calls) <= 100


def test_threads_leave_no_timer(programs, folder):
    without, with_it, columns = both_ways(folder, programs, "churn")
    assert with_it[:2] == without[:2] and columns["speed_unsampled"] == 0
    assert with_it[2] == "timers 1\n"  # of the first thread, which still runs


def test_python(folder):
    without, with_it, columns = both_ways(folder, sys.executable, HERE / "signals.py")
    assert with_it == without and without[0] == 0
    assert columns["speed_samples"] > 20


@pytest.mark.parametrize("kind", ["openmpi", "mpich"])
def test_ranks(folder, kind):
    compiler, launcher = f"mpicc.{kind}", f"mpirun.{kind}"
    if not shutil.which(compiler) or not shutil.which(launcher):
        pytest.skip(f"{compiler} or {launcher} is not here")
    program = built(folder, "ranks.c", compiler, "-O1")
    options = ["--oversubscribe", "--allow-run-as-root"] if kind == "openmpi" else []
    without, with_it, _ = both_ways(folder, launcher, *options, "-n", "2", program)
    assert with_it == without and without[0] == 0
