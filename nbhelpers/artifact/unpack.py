"""A shared study as the data of a study here: its zip is checked whole, and its data are copied to
``build/NAME``.
"""

import hashlib
import json
import lzma
import re
import shutil
import stat
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

from ..errors import InputError
from ..files import write_atomically, write_json
from ..places import results
from ..progress import each
from ..reading import MOST_BYTES, SMALL_BYTES, open_regular, read_json
from ..study import adopted_profile_file, shared_file
from .crate import FORMAT, MANIFEST, METADATA

_MOST_ZIP = 1 << 40
_MOST_RATIO, _ALWAYS_FINE = 100, 64 << 20  # bytes unpacked for one packed; texts have 3 to 20
_NO_ARTIFACT = "what make artifact writes is expected: a zip, not unpacked"
_DAMAGED = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    OSError,
    NotImplementedError,  # a way of packing that zipfile does not know
    RuntimeError,  # one with a password
)
_COPY_AGAIN = "copy it again from where it came; unzip -t says whether a zip is whole"


@dataclass(frozen=True)
class Source:
    """The files of a shared study, in its open zip."""

    path: Path
    archive: zipfile.ZipFile

    def names(self) -> list[str]:
        """The files, as paths from the top."""
        return [one.filename for one in self.archive.infolist() if not one.is_dir()]

    def read(self, name: str, most: int = MOST_BYTES) -> bytes:
        """The bytes of a file, which may have so many.

        Raises
        ------
        InputError
            It is missing, or damaged.
        """
        try:
            if self.archive.getinfo(name).file_size > most:
                raise _too_large(f"{name} in it would have more than {most:,}", self.path)
            # never more than its directory says: zipfile stops there
            return self.archive.read(name)
        except KeyError:
            raise InputError(
                f"there is no {name} in it", where=self.path, fix=_NO_ARTIFACT
            ) from None
        except _DAMAGED as error:
            raise InputError(
                f"{name} in it is damaged: {error}", where=self.path, fix=_COPY_AGAIN
            ) from None

    def metadata(self) -> bytes:
        """The crate's list of files, which takes less than the files do."""
        return self.read(METADATA, max(SMALL_BYTES, 5 * self.path.stat().st_size))


def _too_large(what: str, where: Path) -> InputError:
    return InputError(
        f"{what} bytes",
        where=where,
        why="it would fill the memory or the disk",
        fix="ask who sent it for another: make artifact writes none such",
    )


@contextmanager
def opened(path: str | Path) -> Iterator[Source]:
    """A shared study for reading; no file of it lies outside of it.

    Raises
    ------
    InputError
        There is none, it was cut, it names a file outside, or becomes more than 100 times as large.
    """
    path = Path(path)
    try:
        open_regular(path, "shared study", _MOST_ZIP).close()
        archive = zipfile.ZipFile(path)
    except OSError as error:
        raise InputError(
            f"cannot read it: {error.strerror}", where=path, fix=_NO_ARTIFACT
        ) from None
    except (zipfile.BadZipFile, NotImplementedError, ValueError):
        raise InputError(
            "this is no whole zip: it was cut, or is something else", where=path, fix=_COPY_AGAIN
        ) from None
    with archive:
        for entry in archive.infolist():
            _require_inside(entry, path)
        most = max(_MOST_RATIO * path.stat().st_size, _ALWAYS_FINE)
        # its directory says it truly: zipfile reads no further
        if sum(entry.file_size for entry in archive.infolist()) > most:
            raise _too_large(f"its files would have more than {most:,}", path)
        yield Source(path, archive)


def _require_inside(entry: zipfile.ZipInfo, where: Path) -> None:
    name = PurePosixPath(entry.filename)
    link = stat.S_ISLNK(entry.external_attr >> 16)
    if name.is_absolute() or ".." in name.parts or "\\" in entry.filename or link:
        raise InputError(
            f"it holds a file that would lie outside: {entry.filename}",
            where=where,
            why="unpacking it could overwrite files of this machine",
            fix="nothing was unpacked; ask who sent it for another: make artifact writes none such",
        )


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
        metadata = source.metadata()
        shared = {"digest": hashlib.sha256(metadata).hexdigest(), **_manifest(source)}
        data, note = results() / name / "data", shared_file(name)
        if data.exists():
            return _same_data(read_json(note) if note.exists() else {}, shared, name)
        fresh = data.with_name("data.unpacking")
        shutil.rmtree(fresh, ignore_errors=True)
        _copy(source, fresh)
        write_atomically(adopted_profile_file(name), source.read("profile.yml"))
        write_json(note, shared)
        fresh.rename(data)
    return f"{path}: profile {shared['profile']}, measured elsewhere; its data are in {name}/data"


def _manifest(source: Source) -> dict:
    try:
        manifest = json.loads(source.read(MANIFEST, SMALL_BYTES))
    except (ValueError, RecursionError):
        manifest = None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise InputError(
            f"this is no shared study of a known format: {MANIFEST} does not say '{FORMAT}'",
            where=source.path,
            fix=_NO_ARTIFACT,
        )
    return {key: manifest.get(key) for key in ("profile", "noisebook", "commits", "stages")}


def _same_data(here: dict, shared: dict, name: str) -> str:
    if here.get("digest") != shared["digest"]:
        raise InputError(
            f"other data have the name {name} already",
            where=results() / name,
            why="two studies would be mixed",
            fix=f"rename the zip, which names the profile; or remove build/{name}",
        )
    return ""


def _digests(source: Source) -> dict[str, str]:
    """The SHA-256 of each file that the crate lists; they are all there, and no other."""
    try:
        graph = json.loads(source.metadata())["@graph"]
        listed = {unquote(one["@id"]): str(one["sha256"]) for one in graph if "sha256" in one}
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
        raise InputError(
            f"{METADATA} in it lists no files", where=source.path, fix=_COPY_AGAIN
        ) from None
    names = set(source.names()) - {METADATA}
    missing = [f"{name} is listed and missing" for name in sorted(set(listed) - names)]
    if faults := missing + [f"{name} is not listed" for name in sorted(names - set(listed))]:
        raise InputError(
            faults[0],
            where=source.path,
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
        content = source.read(name)
        if hashlib.sha256(content).hexdigest() != digests[name]:
            raise InputError(
                f"{name} was changed since the study was packed",
                where=source.path,
                why="its SHA-256 is not the one that ro-crate-metadata.json has",
                fix=_COPY_AGAIN,
            )
        yield name, content


def _copy(source: Source, target: Path) -> None:
    """Check every file by its digest, and copy those of the folder `data`."""
    for name, content in checked_files(source):
        inside = PurePosixPath(name)
        if inside.parts[0] == "data":
            write_atomically(target.joinpath(*inside.parts[1:]), content)
    target.mkdir(parents=True, exist_ok=True)
