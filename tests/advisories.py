"""Known vulnerabilities among the locked packages, without a service: `python -m tests.advisories
FOLDER`, a checkout of https://github.com/pypa/advisory-database.

pip-audit asks a service, which not every machine reaches.
"""

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

REPOSITORY = Path(__file__).resolve().parents[1]
_LOCKED = re.compile(r"(?m)^([\w.-]+)(?:\[.*\])?==([^\s;\\]+)")


@dataclass(frozen=True)
class Hit:
    """A locked version that an advisory names."""

    package: str
    version: str
    advisory: str

    def __str__(self) -> str:
        return f"{self.package} {self.version}: {self.advisory}"


def locked() -> dict[str, set[str]]:
    """Versions of every package in the lock files."""
    found: dict[str, set[str]] = {}
    for path in sorted(REPOSITORY.glob("requirements*.lock")):
        for name, version in _LOCKED.findall(path.read_text()):
            found.setdefault(canonicalize_name(name), set()).add(version)
    return found


def affected(version: str, about: dict) -> bool:
    """Whether an advisory's "affected" names a version, in its list or in a range."""
    if version in about.get("versions", []):
        return True
    ranges = (one["events"] for one in about.get("ranges", []) if one["type"] == "ECOSYSTEM")
    return any(_within(Version(version), events) for events in ranges)


def _within(version: Version, events: list[dict[str, str]]) -> bool:
    begun = False
    for event in events:  # in the order of versions
        (kind, text), *_ = event.items()
        try:
            at = Version(text)
        except InvalidVersion:
            continue
        if kind == "introduced" and version >= at:
            begun = True
        elif kind == "fixed" and version >= at or kind == "last_affected" and version > at:
            begun = False
    return begun


def hits(folder: Path, versions: dict[str, set[str]]) -> Iterator[Hit]:
    """What the advisories in a folder say of these versions."""
    for path in sorted(folder.glob("vulns/*/*.yaml")):
        if canonicalize_name(path.parent.name) not in versions:
            continue
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
        if "withdrawn" in content:
            continue
        for about in content["affected"]:
            name = canonicalize_name(about["package"]["name"])
            for version in sorted(versions.get(name, ())):
                if affected(version, about):
                    yield Hit(name, version, path.stem)


def main() -> int:
    if len(sys.argv) != 2 or not Path(sys.argv[1], "vulns").is_dir():
        sys.exit(f"usage: {__doc__}")
    versions = locked()
    found = list(hits(Path(sys.argv[1]), versions))
    for hit in found:
        print(hit)
    print(f"{len(versions)} packages, {len(found)} advisories that name a locked version")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
