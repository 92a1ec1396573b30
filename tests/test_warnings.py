"""Our C is clean under -Wall -Wextra -Werror. Users' builds only warn: what the next compiler
remarks on must not stop anybody's study.
"""

from pathlib import Path

import pytest

from .processes import run

REPOSITORY = Path(__file__).resolve().parent.parent
STRICT = ["-std=c11", "-O3", "-Wall", "-Wextra", "-Werror"]
PARTS = sorted(
    path for part in ("injector_c", "simulator_c") for path in (REPOSITORY / part).glob("[!_]*.c")
)


@pytest.mark.long
def test_the_programs(tmp_path):
    values = (f"BIN={tmp_path}", "WARNINGS=-Wall -Wextra -Werror", "SECOND=")
    done = run("make", "-j2", "-C", "workloads", *values, "all", cwd=REPOSITORY)
    assert done.returncode == 0, done.stderr


@pytest.mark.long
@pytest.mark.parametrize("path", PARTS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_the_parts_that_python_calls(path, tmp_path):
    done = run("cc", *STRICT, "-c", "-o", tmp_path / "part.o", path)
    assert done.returncode == 0, done.stderr
