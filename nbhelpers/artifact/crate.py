"""The zip of a study: which files are in it, their description as an RO-Crate 1.1, the same bytes
for the same study.
"""

import hashlib
import mimetypes
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from .. import __version__
from ..errors import InputError
from ..files import to_json, written
from ..machine.description import in_words
from ..places import how_to, shipped
from ..progress import each
from ..reading import read_json
from ..records import SEAL
from ..study import Study, profile_file
from .names import Names, without_names

METADATA = "ro-crate-metadata.json"
MANIFEST = "artifact.json"
FORMAT = "noisebook artifact 1"
LICENCE = "https://spdx.org/licenses/Apache-2.0"
FOLDERS = ("notebooks", "pages", "paper", "results", "provenance")
_SHA256 = {"sha256": "https://w3id.org/ro/terms/workflow-run#sha256"}
_SKIPPED = (".running.ipynb", ".failed.ipynb", ".lock", SEAL)
_PACKED = {".gz", ".png", ".parquet", ".zip", ".pdf"}
Member = tuple[str, dict[str, str]]  # a file of the zip, and what its crate says of it
_WHEN = (1980, 1, 1, 0, 0, 0)  # the first that a zip can hold: its times say nothing
_TYPES = mimetypes.MimeTypes()  # Python's own list; the machine's is not asked
_KINDS = {  # which it lacks
    ".ipynb": "application/x-ipynb+json",
    ".gz": "application/gzip",
    ".yml": "application/yaml",
    ".parquet": "application/vnd.apache.parquet",
}
_READ_ME = """# A study of Noisebook, profile {profile}

Open `paper/index.html` in a browser; it needs no network. To make the same tables again, without
root and without measuring:

    make paper DATA=this.zip

in a checkout of Noisebook {version}.

`data` is what was measured, `results` what was computed from it, `notebooks` and `pages` how.
`ro-crate-metadata.json` lists each file with its size and SHA-256.
"""


def pack_study(profile: str, names: Names) -> Path:
    """Write ``build/PROFILE/artifact/noisebook-PROFILE.zip``.

    Parameters
    ----------
    profile
        Whose study; it has been made.
    names
        Host names, user names and folders with their aliases.

    Raises
    ------
    InputError
        Nothing was made yet, or a file holds a name that cannot be replaced.
    """
    study = Study("00-machine", profile)
    records = [read_json(path) for path in sorted((study.build / "provenance").glob("*.json"))]
    if not records:
        raise InputError(
            f"there is nothing to share yet in profile {profile}",
            where=study.build,
            fix=how_to(f"paper PROFILE={profile}"),
        )
    target = study.build / "artifact" / f"noisebook-{profile}.zip"
    with written(target) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        members = [_add(archive, *pair) for pair in _contents(study, records, names)]
        metadata = describe_crate(profile, records, members)
        _add(archive, METADATA, to_json(metadata).encode())
    return target


def _contents(study: Study, records: list[dict], names: Names) -> Iterator[tuple[str, bytes]]:
    """Each file's name in the zip and its bytes, in the order of their names."""
    manifest = {
        "format": FORMAT,
        "profile": study.profile,
        "noisebook": __version__,
        "commits": sorted({record["commit"] for record in records if record.get("commit")}),
        "names": "replaced" if names.words or names.folders else "as they were",
    }
    notes = {
        MANIFEST: to_json(manifest).encode(),
        "README.md": _READ_ME.format(profile=study.profile, version=__version__).encode(),
    }
    files = dict(_files(study))
    for name in each(sorted({*files, *notes}), "packing", "files"):
        content = notes.get(name) or files[name].read_bytes()
        yield (
            names.replaced(name.encode()).decode(),
            without_names(content, PurePosixPath(name), names),
        )


def _files(study: Study) -> Iterator[tuple[str, Path]]:
    """Every file that is shared, with its name in the zip."""
    folders = [("data", study.data.parent), *((name, study.build / name) for name in FOLDERS)]
    for prefix, folder in folders:
        for path in folder.rglob("*"):
            inside = path.relative_to(folder)
            if path.is_file() and _shared(inside):
                yield f"{prefix}/{inside.as_posix()}", path
    single = {name: shipped() / name for name in ("requirements.lock", "LICENSE")}
    single["profile.yml"] = profile_file(study.profile)
    yield from ((name, path) for name, path in single.items() if path.is_file())


def _shared(path: Path) -> bool:
    hidden = any(part.startswith(".") or part == "aside" for part in path.parts)
    return not hidden and not path.name.endswith(_SKIPPED)


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> Member:
    entry = zipfile.ZipInfo(name, _WHEN)
    entry.create_system, entry.external_attr = 3, 0o644 << 16
    path = PurePosixPath(name)
    entry.compress_type = zipfile.ZIP_STORED if path.suffix in _PACKED else zipfile.ZIP_DEFLATED
    archive.writestr(entry, content)
    return name, {
        "name": path.name,
        "contentSize": str(len(content)),
        "sha256": hashlib.sha256(content).hexdigest(),
        "encodingFormat": _KINDS.get(path.suffix) or _TYPES.guess_type(name)[0] or "text/plain",
    }


def describe_crate(profile: str, records: list[dict], members: Iterable[Member]) -> dict:
    """The content of ``ro-crate-metadata.json``.

    Parameters
    ----------
    profile
        Name of the study's profile.
    records
        Provenance of its stages; the newest time is the date of publication, so that the same
        study gives the same bytes.
    members
        The files: name, and what the crate says of it.
    """
    from rocrate.rocrate import ROCrate

    crate = ROCrate(version="1.1")
    crate.metadata.extra_terms.update(_SHA256)
    crate.name = f"Noisebook study, profile {profile}"
    machine = in_words(records[0].get("data_from", {}))
    crate.description = (
        f"Measured data, executed notebooks, pages, tables and figures of {len(records)} stages."
        f" Measured on: {machine}. Regenerate: make paper DATA=noisebook-{profile}.zip"
    )
    crate.datePublished = max(record.get("time", "") for record in records) or "1980-01-01"
    crate.license = crate.add_jsonld(
        {"@id": LICENCE, "@type": "CreativeWork", "name": "Apache License 2.0"}
    )
    crate.add_jsonld(
        {
            "@id": "#noisebook",
            "@type": "SoftwareApplication",
            "name": "Noisebook",
            "softwareVersion": __version__,
        }
    )
    crate.root_dataset["mentions"] = {"@id": "#noisebook"}
    for name, properties in members:
        crate.add_file(dest_path=name, properties=properties)
    found = crate.metadata.generate()
    return found | {"@graph": sorted(found["@graph"], key=lambda entity: entity["@id"])}
