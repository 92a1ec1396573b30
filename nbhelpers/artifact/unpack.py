"""A shared study as the data of a study here: its zip is checked whole, and its data are copied to
``build/NAME``.
"""

import hashlib
import json
import re
import shutil
import stat
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

from ..errors import InputError
from ..files import write_atomically, write_json
from ..places import results
from ..progress import each
from ..reading import MOST_BYTES, SMALL_BYTES, open_regular, read_json, refusing
from ..study import adopted_profile_file, shared_file
from .crate import FORMAT, MANIFEST, METADATA

_MOST_ZIP = 1 << 40
_MOST_RATIO, _ALWAYS_FINE = 100, 64 << 20  # bytes unpacked for one packed; texts have 3 to 20
_NO_ARTIFACT = "a zip of make artifact is expected, not unpacked, as in make paper DATA=PATH.zip"
_COPY_AGAIN = "copy it again from where it came; unzip -t says whether a zip is whole"
_ASK = "nothing was unpacked; ask who sent it for another: make artifact writes none such"
Source = zipfile.ZipFile  # a shared study, open


@contextmanager
def opened(path: str | Path) -> Iterator[Source]:
    """A shared study for reading; no file of it lies outside of it.

    Raises
    ------
    InputError
        There is none, it was cut, it names a file outside, or becomes more than 100 times as large.
    """
    with refusing("cannot read it as a whole zip", path, f"{_NO_ARTIFACT}; {_COPY_AGAIN}"):
        open_regular(path, "shared study", _MOST_ZIP).close()
        archive = zipfile.ZipFile(path)
    with archive:
        for entry in archive.infolist():
            _require_inside(entry, path)
        most = max(_MOST_RATIO * Path(path).stat().st_size, _ALWAYS_FINE)
        # its directory says it truly: zipfile reads no further
        if sum(entry.file_size for entry in archive.infolist()) > most:
            raise _too_large(f"its files would have more than {most:,}", path)
        yield archive


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


def _too_large(what: str, where: object) -> InputError:
    why = "it would fill the memory or the disk"
    return InputError(f"{what} bytes", where=where, why=why, fix=_ASK)


def content(source: Source, name: str, most: int = MOST_BYTES) -> bytes:
    """The bytes of a file of a shared study, which may have so many.

    Raises
    ------
    InputError
        It is missing, or damaged.
    """
    try:
        size = source.getinfo(name).file_size
    except KeyError:
        problem = f"there is no {name} in it"
        raise InputError(problem, where=source.filename, fix=_NO_ARTIFACT) from None
    if size > most:
        raise _too_large(f"{name} in it would have more than {most:,}", source.filename)
    with refusing(f"{name} in it is damaged", str(source.filename), _COPY_AGAIN):
        return source.read(name)  # never more than its directory says: zipfile stops there


def metadata(source: Source) -> bytes:
    """The crate's list of files, which takes less than the files do."""
    size = Path(str(source.filename)).stat().st_size
    return content(source, METADATA, max(SMALL_BYTES, 5 * size))


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
    with opened(path) as source:
        digest = hashlib.sha256(metadata(source)).hexdigest()
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
        manifest = json.loads(content(source, MANIFEST, SMALL_BYTES))
        if manifest["format"] != FORMAT:
            raise ValueError(f"it has {manifest['format']!r}, not {FORMAT!r}")
        return {key: manifest.get(key) for key in ("profile", "noisebook", "commits")}


def _digests(source: Source) -> dict[str, str]:
    """The SHA-256 of each file that the crate lists; they are all there, and no other."""
    text, where = metadata(source), str(source.filename)
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
    chosen = [name for name in sorted(digests) if not wanted or wanted.fullmatch(name)]
    for name in each(chosen, "checking the shared study", "files"):
        text = content(source, name)
        if hashlib.sha256(text).hexdigest() != digests[name]:
            raise InputError(
                f"{name} was changed since the study was packed",
                where=source.filename,
                why="its SHA-256 is not the one that ro-crate-metadata.json has",
                fix=_COPY_AGAIN,
            )
        yield name, text
