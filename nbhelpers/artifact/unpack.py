"""A shared study as the data of a study here: its zip is checked whole, and its data are copied to
``build/NAME``.
"""

import hashlib
import json
import re
import shutil
import stat
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote

from ..errors import InputError
from ..files import write_atomically, write_json
from ..places import results
from ..progress import task
from ..reading import in_child, open_regular, read_json, refusing
from ..study import adopted_profile_file, shared_file
from .crate import FORMAT, MANIFEST, METADATA

_MOST_ZIP = 1 << 40
# What is written for one byte packed, which the child's limits do not bound; texts have 3 to 20.
_MOST_RATIO, _ALWAYS_FINE = 100, 64 << 20
_NO_ARTIFACT = "a zip of make artifact is expected, not unpacked, as in make paper DATA=PATH.zip"
_COPY_AGAIN = "copy it again from where it came; unzip -t says whether a zip is whole"
_ASK = "nothing was unpacked; ask who sent it for another: make artifact writes none such"
_opening = partial(refusing, "cannot read it as a whole zip", fix=f"{_NO_ARTIFACT}; {_COPY_AGAIN}")
Source = zipfile.ZipFile  # a shared study, open


def looked_at(path: str | Path, look: Callable[[Source], Any]) -> Any:
    """What `look` returns of a shared study, which it reads in a child (`in_child`); no file of the
    study lies outside of it.

    Parameters
    ----------
    path
        Path of the zip.
    look
        What is done with the open zip; returns what can be pickled.

    Raises
    ------
    InputError
        There is none, it was cut, it names a file outside, becomes more than 100 times as large, or
        takes too much; and what `look` raises.
    """
    with _opening(path):
        open_regular(path, "shared study", _MOST_ZIP).close()
    with task("checking the shared study"):
        return in_child(partial(_looked_at, path, look), path, "shared study")


def _looked_at(path: str | Path, look: Callable[[Source], Any]) -> Any:
    with _opening(path):
        archive = zipfile.ZipFile(path)
    with archive:
        for entry in archive.infolist():
            _require_inside(entry, path)
        most = max(_MOST_RATIO * Path(path).stat().st_size, _ALWAYS_FINE)
        # its directory says it truly: zipfile reads no further
        if sum(entry.file_size for entry in archive.infolist()) > most:
            problem = f"its files would have more than {most:,} bytes"
            raise InputError(problem, where=path, why="they would fill the disk", fix=_ASK)
        return look(archive)


def _require_inside(entry: zipfile.ZipInfo, where: str | Path) -> None:
    name = PurePosixPath(entry.filename)
    link = stat.S_ISLNK(entry.external_attr >> 16)
    if name.is_absolute() or ".." in name.parts or "\\" in entry.filename or link:
        raise InputError(
            f"it holds a file that would lie outside: {entry.filename}",
            where=where,
            why="unpacking it could overwrite files of this machine",
            fix=_ASK,
        )


def content(source: Source, name: str) -> bytes:
    """The bytes of a file of a shared study.

    Raises
    ------
    InputError
        It is missing, or damaged.
    """
    try:
        entry = source.getinfo(name)
    except KeyError:
        problem = f"there is no {name} in it"
        raise InputError(problem, where=source.filename, fix=_NO_ARTIFACT) from None
    with refusing(f"{name} in it is damaged", str(source.filename), _COPY_AGAIN):
        return source.read(entry)  # never more than its directory says: zipfile stops there


def adopt(path: str | Path, name: str) -> str:
    """Make a shared study the data of the profile `name`; nothing is done if it is so already.

    Parameters
    ----------
    path
        Path of the zip.
    name
        Name of the profile here, such as ``"shared-quick"``.

    Returns
    -------
    What was done, for the user.

    Raises
    ------
    InputError
        It is no whole artifact, or other data have this name.
    """
    return looked_at(path, partial(_adopt, path, name))


def _adopt(path: str | Path, name: str, source: Source) -> str:
    digest = hashlib.sha256(content(source, METADATA)).hexdigest()
    shared = {"digest": digest, **_manifest(source)}
    data, note = results() / name / "data", shared_file(name)
    if data.exists():
        here = read_json(note) if note.exists() else {}
        if here.get("digest") == digest:
            return ""
        raise InputError(
            f"other data have the name {name} already",
            where=results() / name,
            why="two studies would be mixed",
            fix=f"rename the zip, which names the profile; or remove build/{name}",
        )
    fresh = data.with_name("data.unpacking")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    for file, text in checked_files(source):
        inside = PurePosixPath(file)
        if inside.is_relative_to("data"):
            write_atomically(fresh / inside.relative_to("data"), text)
    write_atomically(adopted_profile_file(name), content(source, "profile.yml"))
    write_json(note, shared)
    fresh.rename(data)
    return f"{path}: profile {shared['profile']}, measured elsewhere; its data are in {name}/data"


def _manifest(source: Source) -> dict:
    """What a study says of itself."""
    problem = f"{MANIFEST} in it is not of a known format"
    with refusing(problem, str(source.filename), _NO_ARTIFACT):
        manifest = json.loads(content(source, MANIFEST))
        if manifest["format"] != FORMAT:
            raise ValueError(f"it has {manifest['format']!r}, not {FORMAT!r}")
        return {key: manifest.get(key) for key in ("profile", "noisebook", "commits")}


def _digests(source: Source) -> dict[str, str]:
    """The SHA-256 of each file that the crate lists; they are all there, and no other."""
    text, where = content(source, METADATA), str(source.filename)
    with refusing(f"{METADATA} in it lists no files", where, _COPY_AGAIN):
        graph = json.loads(text)["@graph"]
        listed = {unquote(one["@id"]): str(one["sha256"]) for one in graph if "sha256" in one}
    names = {one.filename for one in source.infolist() if not one.is_dir()} - {METADATA}
    missing = [f"{name} is listed and missing" for name in sorted(listed.keys() - names)]
    if faults := missing + [f"{name} is not listed" for name in sorted(names - listed.keys())]:
        raise InputError(
            faults[0],
            where=where,
            why=f"others could not tell whether it is whole ({len(faults)} such files)",
            fix=_COPY_AGAIN,
        )
    return listed


def checked_files(
    source: Source, wanted: re.Pattern[str] | None = None
) -> Iterator[tuple[str, bytes]]:
    """Each file that the crate lists, checked by its digest: (name, bytes).

    Parameters
    ----------
    source
        The open zip.
    wanted
        Only those whose whole name it matches; None: all.

    Raises
    ------
    InputError
        It is no whole artifact.
    """
    digests = _digests(source)
    for name in [name for name in sorted(digests) if not wanted or wanted.fullmatch(name)]:
        text = content(source, name)
        if hashlib.sha256(text).hexdigest() != digests[name]:
            raise InputError(
                f"{name} was changed since the study was packed",
                where=source.filename,
                why="its SHA-256 is not the one that ro-crate-metadata.json has",
                fix=_COPY_AGAIN,
            )
        yield name, text
