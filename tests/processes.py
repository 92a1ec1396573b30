"""Processes that tests start."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]


def run_python(
    code: str, *arguments: object, env: Mapping[str, str] = os.environ, **options
) -> subprocess.CompletedProcess:
    """Python on a program text, with this repository's nbhelpers and what it writes captured.

    `env`: the environment to begin with; further options are those of subprocess.run.
    """
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        env={**env, "PYTHONPATH": str(REPOSITORY)},
        **options,
    )


def mounted() -> list[tuple[str, str]]:
    """What is mounted, as (place, type)."""
    rows = Path("/proc/self/mounts").read_text().splitlines()
    return [(place, kind) for _, place, kind, *_ in map(str.split, rows)]


def run(*words: object, **options) -> subprocess.CompletedProcess:
    """A command that has ended, with both its outputs as text."""
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, **options)
