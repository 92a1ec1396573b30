"""What a fuzzer found in the readers in Python is refused in words; a second of search for more."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nbhelpers.errors import NoisebookError

from ..test_readers import READERS
from ..trees import CHECKS, REPOSITORY

CORPUS = Path(__file__).with_name("corpus")
SECONDS = int(os.environ.get("NOISEBOOK_FUZZ_SECONDS", "1"))  # a reader


@pytest.mark.parametrize(
    "name", [path.name for path in sorted(CORPUS.iterdir())] if CORPUS.is_dir() else []
)
def test_what_was_found_is_refused(name, tmp_path):
    read, ending, _ = next(one for known, one in READERS.items() if known.replace(" ", "-") == name)
    inputs = sorted((CORPUS / name).iterdir())
    assert inputs
    for found in inputs:
        path = tmp_path / f"input{ending}"
        path.write_bytes(found.read_bytes())
        with pytest.raises(NoisebookError, match="input"):
            read(path)


@pytest.mark.long
@pytest.mark.timeout(120 + 2 * SECONDS)
@pytest.mark.skipif(
    not (CHECKS / "atheris").is_dir(), reason="atheris is not here: sh tests/optional.sh"
)
@pytest.mark.parametrize("name", READERS)
def test_a_short_search_finds_nothing(name, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.reader", name, tmp_path, f"-max_total_time={SECONDS}"],
        cwd=REPOSITORY,
        env=os.environ | {"PYTHONPATH": str(CHECKS)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and "DONE" in done.stderr, done.stderr[-3000:]
    found = list((tmp_path / "found").iterdir())
    assert not found, f"{done.stdout}\n{[path.read_bytes() for path in found]}"
