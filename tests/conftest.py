"""What tests share: the programs, built once; and the proof that a test leaves no process and no
file descriptor behind.
"""

import gc
import os
import signal
import subprocess
from pathlib import Path

import hypothesis
import pytest

from .pages import browser, chromium

REPOSITORY = Path(__file__).resolve().parents[1]


SHORT = "not long"  # what `make test` selects by -m
FEWER = 5  # times fewer examples of each property there


def pytest_configure(config):
    """What is started from a script with & or by nohup ignores these signals, and so would every
    program that tests start and interrupt.
    """
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(
                number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
            )
    examples = hypothesis.settings.default.max_examples // (
        FEWER if config.option.markexpr == SHORT else 1
    )
    hypothesis.settings.register_profile("noisebook", max_examples=examples, deadline=None)
    hypothesis.settings.load_profile("noisebook")


def pytest_collection_modifyitems(config, items):
    """`make test` tries every property on fewer examples; `make test-all` on as many as the test
    says.
    """
    if config.option.markexpr != SHORT:
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
    command = [
        "make",
        "-C",
        "workloads",
        "BIN=../build/bin",
    ]  # make takes no blank in a name: a relative one has none
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
