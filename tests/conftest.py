"""What tests share: the programs, built once; and the proof that a test leaves no process and no
file descriptor behind.
"""

import gc
import os
import signal
import subprocess
import tempfile
import threading
from pathlib import Path

import hypothesis
import pytest
import pytest_timeout

from nbhelpers.schemas import jsonschema

from .pages import browser, chromium

REPOSITORY = Path(__file__).resolve().parents[1]


SHORT = "not long"  # in what `make test` selects by -m
TICKS = 10
FEWER = 10  # times fewer examples of each property there
# they measure, trace or change the machine: one by one, after the others, with what is marked so
# in other files
ALONE = (
    "faults",
    "injection",
    "machine",
    "mpi/test_interrupted.py",
    "mpi/test_pingpong.py",
    "speed",
    "studies/test_ferreira_loops.py",
    "studies/test_persson.py",
    "test_absent.py",
    "test_paper.py",
    "tracing/test_load.py",
    "tracing/test_tracer.py",
    "tracing/test_vm.py",
)
SHARED = (  # of these
    "injection/test_check.py",
    "injection/test_log.py",
    "injection/test_plan.py",
    "injection/test_recalibration.py",
    "machine/test_allowed.py",
    "machine/test_allowed_alike.py",
    "machine/test_checks.py",
    "machine/test_cpus.py",
    "machine/test_description.py",
    "machine/test_kernel_values.py",
    "machine/test_lock.py",
    "machine/test_privileged.py",
    "machine/test_provenance.py",
    "machine/test_settings.py",
)


def pytest_configure(config):
    """What is started from a script with & or by nohup ignores these signals, and so would every
    program that tests start and interrupt.
    """
    jsonschema()  # in its fast way, before a test imports nbformat: 3 s a process
    if worker := os.environ.get("PYTEST_XDIST_WORKER"):  # a measuring lock and journals of its own
        state = Path(tempfile.gettempdir()) / f"noisebook-tests-{os.getuid()}-{worker}"
        os.environ.setdefault("NOISEBOOK_STATE", str(state))
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(
                number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
            )
    examples = hypothesis.settings.default.max_examples // (
        FEWER if SHORT in config.option.markexpr else 1
    )
    hypothesis.settings.register_profile("noisebook", max_examples=examples, deadline=None)
    hypothesis.settings.load_profile("noisebook")


def pytest_timeout_set_timer(item, settings):
    """The limit of a test is ten ticks: as long as the machine is stopped, they come as one."""
    if settings.method != "signal" or threading.current_thread() is not threading.main_thread():
        return None
    left = iter(range(1, TICKS))

    def tick(*_):
        if next(left, None) is None:
            item.cancel_timeout()
            pytest_timeout.timeout_sigalrm(item, settings)

    def cancel():
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)

    item.cancel_timeout = cancel
    signal.signal(signal.SIGALRM, tick)
    signal.setitimer(signal.ITIMER_REAL, *[settings.timeout / TICKS] * 2)
    return True


def pytest_ignore_collect(collection_path, config):
    """Each part of `make test` and of .ci/run reads the files of its own tests only."""
    if not collection_path.name.startswith("test_"):
        return None
    marks, listed = config.option.markexpr, is_alone(collection_path)
    text = collection_path.read_text()
    if marks.startswith("long") and "mark.long" not in text:
        return True
    others = not listed and "alone" not in text
    return (listed if "not alone" in marks else "alone" in marks and others) or None


def is_alone(path: Path) -> bool:
    """Whether the tests of a file run one by one."""
    name = os.path.relpath(path, REPOSITORY / "tests")
    return name.startswith(ALONE) and not name.startswith(SHARED)


def pytest_collection_modifyitems(config, items):
    """Tests of ALONE are marked `alone`; `make test` tries every property on fewer
    examples than the test says.
    """
    for item in items:
        if is_alone(item.path):
            item.add_marker("alone")
    if SHORT not in config.option.markexpr:
        return
    for function in {
        getattr(item.obj, "__func__", item.obj) for item in items if hasattr(item, "obj")
    }:
        said = getattr(function, "_hypothesis_internal_use_settings", None)
        if said is not None:
            fewer = max(10, said.max_examples // FEWER)
            function._hypothesis_internal_use_settings = hypothesis.settings(
                said, max_examples=fewer
            )


def pytest_collection_finish():
    """What was imported and collected stays: left out of garbage collections, which some libraries
    ask for at every call.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def binaries() -> Path:
    """The folder of our programs, built from their sources now; $NOISEBOOK_BIN: that folder."""
    chosen = os.environ.get("NOISEBOOK_BIN")
    if chosen:
        return Path(chosen).resolve()
    folder = REPOSITORY / "build" / "bin"
    # make takes no blank in a name: a relative one has none
    command = ["make", "-C", "workloads", "BIN=../build/bin"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def nothing_left():
    """Fails a test that leaves children or open file descriptors."""
    before = _children(), _open_files()
    yield
    assert (_children(), _open_files()) == before


def _children() -> set[int]:
    threads = Path("/proc/self/task").iterdir()
    return {int(pid) for thread in threads for pid in (thread / "children").read_text().split()}


def _open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.fixture(scope="module")
def opened():
    """A browser that loads pages and nothing of the network."""
    if chromium() is None:
        pytest.skip("no chromium on this machine")
    pytest.importorskip("playwright", reason="playwright comes with the extra `test`")
    with browser() as one:
        yield one
