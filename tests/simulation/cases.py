"""The reference simulator's results in data/loggops-cases.tar.xz, see the README there."""

import json
import tarfile
import tempfile
from functools import cache
from pathlib import Path

ARCHIVE = Path(__file__).parent / "data" / "loggops-cases.tar.xz"
_unpacked = tempfile.TemporaryDirectory(prefix="loggops-cases-")  # removed when Python ends


@cache
def reference_folder() -> Path:
    """The archive unpacked, once in each process: `cases.json`, `goal/`, `noise/`."""
    with tarfile.open(ARCHIVE) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", lambda member, path: member)
        archive.extractall(_unpacked.name)
    return Path(_unpacked.name)


def reference_cases() -> list[dict]:
    """What cases.json holds of each case."""
    return json.loads((reference_folder() / "cases.json").read_text())["cases"]
