"""Python and the helper read the list of settings alike."""

import errno
import os
import shutil
from pathlib import Path

import pytest

from nbhelpers.machine import allowed
from nbhelpers.machine.privileged import Helper
from nbhelpers.workloads import binary_folder

from .conftest import as_nobody
from .test_privileged import asked

VALUES = [
    *("0", "1", "-1", "3", "100", "101", "200", "201", "1000000", "1000001", "", " 1", "1 ", "+1"),
    *("always", "never", "alway", "defer+madvise", "off", "performance", "on off", "Always"),
    *("0-1", "0,1", "1-0", "0-", "-0", "0,,1", "9999", "0-9999", "00", "f", "0,0", "00000001,f"),
    *("xyz", "0x1", "１", "1\x00", "9" * 30),
]
PATHS = [
    *(one.path.replace("*", "0") for one in allowed.entries()),
    *(one.path.replace("*", "x") for one in allowed.entries() if "*" in one.path),
    *("/proc/sys/kernel/core_pattern", "/proc/sys/vm/swappines", "/proc/sys/vm/swappiness1"),
    *("/proc/sys/vm/swappiness/", "//proc/sys/vm/swappiness", "/proc/irq/0x1/smp_affinity_list"),
]


def _verdicts(program: Path, pairs: list[tuple[str, str]]) -> list[str]:
    """What a helper without any right finds of settings and values; it can write nothing."""

    def ask() -> list[str]:
        helper = Helper([str(program)])
        numbers = [asked(helper, "write", *pair) for pair in pairs]
        helper.close()
        words = {errno.EACCES: "not listed", errno.EDOM: "out of range", errno.EPERM: "allowed"}
        return [words[number] for number in numbers]

    found = as_nobody(ask)
    assert isinstance(found, list), found
    return found


def _expected(path: str, value: str) -> str:
    refused = allowed.refusal(path, value)
    if refused is None:
        return "allowed"
    return "not listed" if "not on the list" in refused else "out of range"


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming nobody takes root")
def test_the_helper_and_python_agree(open_folder: Path) -> None:
    """Of every path with every value."""
    words = [value for value in VALUES if value.isprintable() and value.isascii()]
    pairs = [(path, word) for path in PATHS for word in words if word and " " not in word]
    program = Path(shutil.copy(binary_folder() / "noisebook-priv", open_folder))
    found = _verdicts(program, pairs)
    assert set(found) == {"allowed", "not listed", "out of range"}
    wrong = [(pair, verdict) for pair, verdict in zip(pairs, found) if verdict != _expected(*pair)]
    assert not wrong
