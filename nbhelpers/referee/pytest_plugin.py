"""The referee for tests: the fixture `referee`, and its answers at the end of a pytest session.

pytest loads this in every session where Noisebook is installed, so nothing is imported here that
takes time.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from .ruling import Ruling

_SENTENCES = pytest.StashKey[list[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """The budget of each comparison."""
    parser.getgroup("noisebook").addoption(
        "--referee-seconds",
        type=float,
        default=None,
        metavar="SECONDS",
        help="time for each comparison of the fixture `referee` (default: what the test says)",
    )


@pytest.fixture
def referee(request: pytest.FixtureRequest, record_property: Callable) -> Callable[..., "Ruling"]:
    """Compare two commands: ``assert not referee("./old 100", "./new 100").worse``.

    The keywords are those of `nbhelpers.referee.ruling.decide`: margin, level, pairs, seconds,
    folder. The answer has `better`, `worse`, `open` and a `sentence`.
    """

    def compared(old: Any, new: Any, **options: Any) -> "Ruling":
        __tracebackhide__ = True
        from ..errors import NoisebookError
        from .ruling import decide

        seconds = request.config.getoption("--referee-seconds")
        if seconds is not None:
            options["seconds"] = seconds
        try:
            ruling = decide(_side(old), _side(new), **options)
        except NoisebookError as error:
            raise error.with_traceback(None) from None  # the line of the test is what is shown
        record_property("referee", ruling.sentence)
        stash = request.config.stash.setdefault(_SENTENCES, [])
        stash.append(f"{request.node.nodeid}: {ruling.sentence}")
        return ruling

    return compared


def _side(side: Any):
    """A side as it is; of a command or a workload its side."""
    from ..workloads.programs import as_workload
    from .sides import Side

    return side if isinstance(side, Side) else Side(as_workload(side))


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """One line a comparison."""
    sentences = config.stash.get(_SENTENCES, [])
    if sentences:
        terminalreporter.section("referee")
        for sentence in sentences:
            terminalreporter.line(sentence)
