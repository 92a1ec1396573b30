"""Records of a campaign that cannot be trusted: put aside, said, and measured again.

Nothing is deleted: the file as it was lies in ``aside/DATE``.
"""

from pathlib import Path

from ..files import new_aside, write_atomically, write_json
from ..reading import read_json
from ..records import Damage, read, write_records
from .seal import FILES, break_seal

_FREE = "first-free-run.json"


def repaired(folder: Path) -> list[str]:
    """Leave damaged records out of the campaign's files; a sentence for each file that had any."""
    return [
        sentence for name in FILES if (folder / name).exists() for sentence in _repair(folder, name)
    ]


def _repair(folder: Path, name: str) -> list[str]:
    path, found = folder / name, read(folder / name)
    if not found.damage:
        return []
    place = new_aside(folder)
    write_atomically(place / f"{name}.damaged", path.read_bytes())
    write_atomically(place / "why.txt", "".join(f"{_sentence(one)}\n" for one in found.damage))
    if name == FILES[0]:
        # the damaged runs have used numbers that cannot be read any more
        used = max((row["run"] + 1 for row in found.rows), default=0) + len(found.damage)
        write_json(folder / _FREE, max(used, first_free_run(folder)))
    break_seal(folder)
    write_records(path, found.rows)
    count = f"{len(found.damage)} damaged record{'s' * (len(found.damage) > 1)}"
    return [
        f"{count} of {name} were left out ({place.parent.name}/{place.name}):"
        f" {_sentence(found.damage[0])}. What is missing is measured again."
    ]


def _sentence(damage: Damage) -> str:
    return f"line {damage.line}: {damage.what}"


def first_free_run(folder: Path) -> int:
    """The least number that no damaged record can have had."""
    path = folder / _FREE
    return int(read_json(path)) if path.exists() else 0
