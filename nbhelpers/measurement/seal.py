"""The seal of a campaign: how many records it had when all that was requested was measured, their
last chain, and the digest of every file of a run.

It shows what the records alone cannot: that the last of them, or files beside them, are gone. Owns
also what becomes of records that cannot be trusted: put aside, said, and measured again.
"""

import hashlib
import json
from contextlib import suppress
from pathlib import Path

from ..files import new_aside, to_json, write_atomically
from ..records import SEAL, read, write_records
from ._aside import files_of_runs

FORMAT = "noisebook seal 2"
BEFORE = "noisebook seal 1"  # without a check of its own
FILES = ("runs.jsonl", "series.jsonl")


def seal_folder(folder: Path) -> None:
    """Seal a campaign's folder; files of an earlier seal are not read again."""
    known = read_seal(folder).get("files", {})
    files = {}
    for name, _ in files_of_runs(folder):
        size = (folder / name).stat().st_size
        same = name in known and known[name][0] == size
        files[name] = known[name] if same else [size, sha256(folder / name)]
    what = folder / "campaign.json"
    files[what.name] = [what.stat().st_size, sha256(what)]
    records = {}
    for name in FILES:
        if (folder / name).exists():
            found = read(folder / name)
            records[name] = [len(found.rows), found.chain]
    content = {"records": records, "files": files}
    if read_seal(folder) != content:
        _write(folder, content)


def _write(folder: Path, content: dict) -> None:
    whole = {"format": FORMAT, "check": _check(content)} | content
    write_atomically(folder / SEAL, to_json(whole))


def _check(content: dict) -> str:
    return hashlib.sha256(to_json(content).encode()).hexdigest()


def break_seal(folder: Path) -> None:
    """The records are about to be written anew."""
    (folder / SEAL).unlink(missing_ok=True)


def release(folder: Path, name: str) -> None:
    """A file is about to be written anew: the seal promises nothing of it until the next."""
    sealed = read_seal(folder)
    if sealed.get("files", {}).pop(name, None):
        _write(folder, sealed)


def read_seal(folder: Path) -> dict:
    """What was sealed: `records` and `files`; empty where nothing was, or the seal is damaged."""
    with suppress(OSError, ValueError, TypeError, KeyError):
        whole = json.loads((folder / SEAL).read_text(encoding="utf-8"))
        content = {name: whole[name] for name in ("records", "files")}
        if whole["format"] == BEFORE:
            return content
        if whole["format"] == FORMAT and whole["check"] == _check(content):
            return content
    return {}


def broken_promises(folder: Path) -> list[str]:
    """What is not as it was sealed, a sentence each; records that were added later are no harm."""
    sealed = read_seal(folder)
    if not sealed:
        return ["its seal cannot be read"] if (folder / SEAL).exists() else []
    sentences = []
    for name, (count, chain) in sealed["records"].items():
        found = read(folder / name)
        if len(found.rows) + len(found.damage) < count:
            sentences.append(f"{name} has {len(found.rows)} records, and had {count}")
        elif len(found.rows) == count and not found.damage and found.chain != chain:
            sentences.append(f"{name} is not what was sealed")
    for name, (size, digest) in sealed["files"].items():
        path = folder / name
        if not path.is_file():
            sentences.append(f"{name} is missing")
        elif path.stat().st_size != size or sha256(path) != digest:
            sentences.append(f"{name} was changed")
    return sentences


def sha256(path: Path) -> str:
    """The digest of a file, in hexadecimal digits."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def repaired(folder: Path) -> list[str]:
    """Leave damaged records out of the campaign's files; a sentence for each file that had any."""
    sentences = []
    for name in FILES:
        if (folder / name).exists() and (found := read(folder / name)).damage:
            place = new_aside(folder)
            damage = [f"line {one.line}: {one.what}" for one in found.damage]
            write_atomically(place / f"{name}.damaged", (folder / name).read_bytes())
            write_atomically(place / "why.txt", "".join(f"{one}\n" for one in damage))
            break_seal(folder)
            write_records(folder / name, found.rows)
            sentences.append(
                f"{len(damage)} damaged record{'s' * (len(damage) > 1)} of {name} were left out"
                f" ({place.parent.name}/{place.name}): {damage[0]}. What is missing is measured"
                " again."
            )
    return sentences


def first_free_run(folder: Path) -> int:
    """The least number that neither a run that was put aside nor a damaged record can have had."""
    free = 0
    for path in folder.glob("aside/[!.]*/runs.jsonl*"):
        found = read(path)
        used = [row["run"] + 1 for row in found.rows if "run" in row]
        free = max(free, max(used, default=0) + len(found.damage))
    return free
