"""What the doctor says of a machine without some parts: asked in a process that lacks them."""

import json
import random
import sys
from pathlib import Path

import pytest

from nbhelpers.study import NO_STAGES, notebook_files

from .absent import PARTS, run_without

STAGES = [stage for stage in notebook_files() if stage not in NO_STAGES]
ASK = """
import dataclasses, json
from nbhelpers.machine import doctor
from nbhelpers.promise import promises
found = doctor()
made = [
    [dataclasses.asdict(one) for one in promises(name, found=found)] for name in ("full", "smoke")
]
print(json.dumps([dataclasses.asdict(found.capabilities), *made]))
"""


def asked(parts: list[str], folder: Path) -> tuple[dict, list[dict], list[dict]]:
    """The doctor's capabilities and its promises for the profiles full and smoke, without some
    parts.
    """
    done = run_without(parts, [sys.executable, "-c", ASK], folder)
    if done.returncode == 77:
        pytest.skip(done.stdout.strip())
    assert done.returncode == 0, done.stdout
    return tuple(json.loads(done.stdout.splitlines()[-1]))


def some_parts(seed: int) -> list[str]:
    """A random set, the same for the same seed."""
    chance = random.Random(seed)
    return [part for part in PARTS if chance.random() < 0.5]
