"""The rules of RO-Crate 1.1 that a shared study is held against, when packed and when read."""

import re
from collections.abc import Collection, Iterator, Mapping
from urllib.parse import unquote

from ..errors import InputError

METADATA = "ro-crate-metadata.json"
VERSION = "https://w3id.org/ro/crate/1.1"
_ROOT = "./"
_DATE = re.compile(r"\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?)?")
_SHA256 = re.compile(r"[0-9a-f]{64}")


def require_valid(metadata: object, names: Collection[str], where: object) -> None:
    """Hold a crate against the rules.

    Raises
    ------
    InputError
        It breaks one.
    """
    faults = list(crate_faults(metadata, names))
    if faults:
        raise InputError(
            f"not a valid RO-Crate 1.1: {faults[0]}",
            where=where,
            why="others could not tell what is in it, or whether it is whole"
            + (f" ({len(faults)} faults in all)" if len(faults) > 1 else ""),
            fix="copy it again from where it came, or pack the study again: make artifact",
        )


def crate_faults(metadata: object, names: Collection[str]) -> Iterator[str]:
    """What is wrong with a crate.

    Parameters
    ----------
    metadata
        Of ``ro-crate-metadata.json``.
    names
        Files of the crate, the metadata file among them.

    Yields
    ------
    One sentence a fault.
    """
    graph = metadata.get("@graph") if isinstance(metadata, Mapping) else None
    if not isinstance(graph, list) or not all(isinstance(one, Mapping) for one in graph):
        yield "it has no @graph of entities"
        return
    context = metadata.get("@context") if isinstance(metadata, Mapping) else None
    if f"{VERSION}/context" not in (context if isinstance(context, list) else [context]):
        yield f"its @context is not {VERSION}/context"
    ids = [str(entity.get("@id")) for entity in graph]
    if len(set(ids)) < len(ids):
        yield f"the id {next(one for one in ids if ids.count(one) > 1)} is there twice"
    entities = dict(zip(ids, graph))
    yield from _descriptor_faults(entities.get(METADATA))
    yield from _root_faults(entities.get(_ROOT))
    yield from _file_faults(entities, names)


def _descriptor_faults(descriptor: Mapping | None) -> Iterator[str]:
    if descriptor is None:
        yield f"no entity describes {METADATA}"
        return
    if descriptor.get("@type") != "CreativeWork":
        yield "the descriptor is not of type CreativeWork"
    if descriptor.get("about") != {"@id": _ROOT}:
        yield "the descriptor is not about ./"
    if descriptor.get("conformsTo") != {"@id": VERSION}:
        yield f"the descriptor does not conform to {VERSION}"


def _root_faults(root: Mapping | None) -> Iterator[str]:
    if root is None or root.get("@type") != "Dataset":
        yield "there is no root dataset ./"
        return
    for name in ("name", "description", "datePublished", "license"):
        if not root.get(name):
            yield f"the root dataset has no {name}"
    if not _DATE.fullmatch(str(root.get("datePublished"))):
        yield f"datePublished is no date of ISO 8601: {root.get('datePublished')}"


def _file_faults(entities: Mapping[str, Mapping], names: Collection[str]) -> Iterator[str]:
    listed = listed_files(entities)
    for name in sorted(set(names) - set(listed) - {METADATA}):
        yield f"{name} is not listed"
    for name in sorted(set(listed) - set(names)):
        yield f"{name} is listed and missing"
    for name, entity in listed.items():
        if not str(entity.get("contentSize", "")).isdigit():
            yield f"{name} has no size"
        if not _SHA256.fullmatch(str(entity.get("sha256", ""))):
            yield f"{name} has no SHA-256"


def listed_files(entities: Mapping[str, Mapping]) -> dict[str, Mapping]:
    """The files that the root dataset has, by their names in the crate."""
    parts = entities.get(_ROOT, {}).get("hasPart", [])
    parts = parts if isinstance(parts, list) else [parts]
    ids = [str(part.get("@id")) for part in parts if isinstance(part, Mapping)]
    return {unquote(one): entities.get(one, {}) for one in ids}
