"""Aliases of host names, user names and folders, so that a shared study does not tell them.

Owns which names this machine has and how a file's bytes are rewritten, packed ones too.
"""

import getpass
import gzip
import json
import os
import re
import socket
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import quote

from ..errors import InputError
from ..places import PACKAGE, results, shipped
from ..reading import refusing
from ..records import with_new_checks

KEEP = "keep"
PROJECT = "/noisebook"
_SHORTEST = 3  # a name of two letters stands in many texts by chance
_SHORTEST_IN_BINARY = 6  # bytes; a shorter one occurs in packed bytes by chance
# tables of an injection hold numbers, and words of ours
_BINARY = {".png", ".pdf", ".parquet", ".zip", ".woff2", ".npy", ".npz"}
_WORD = rb"[A-Za-z0-9_]"
# as Linux makes it; in a recording, too, as the other one has as many bytes
_BOOT = re.compile(
    rb'("boot(?:_id)?": ")([0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12})'
)
# the folder of a checkout, also of one where it was measured before this one
_CHECKOUT = re.compile(
    rb"(?<![\w/:.-])(?:/[\w.+-]{1,64}){1,12}?"
    rb"(?=/(?:nbhelpers|build/(?:bin|[\w-]{1,64}/(?:data|results)))/)"
)
_PATH_ENDS = rb"(?![A-Za-z0-9_-])(?!\.[A-Za-z0-9])"


@dataclass(frozen=True)
class Names:
    """What is replaced by what.

    Parameters
    ----------
    folders
        Pairs of a path and its alias; the longest is replaced first.
    words
        Pairs of a name and its alias; replaced where it stands as a word.
    ordinary
        Those of the names that are very short, or that Noisebook's own texts have too (`node`,
        `data`): replaced only in addresses, such as ``data@node``.

    Examples
    --------
    >>> names = Names(folders=(("/u/ann", "/home-1"),), words=(("ann", "user-1"),))
    >>> names.replaced(b"ann: /u/ann/annex")
    b'user-1: /home-1/annex'
    """

    folders: tuple[tuple[str, str], ...] = ()
    words: tuple[tuple[str, str], ...] = ()
    ordinary: frozenset[str] = frozenset()

    def replaced(self, content: bytes) -> bytes:
        """The bytes of a text with all names replaced."""
        if self.folders:
            content = _CHECKOUT.sub(PROJECT.encode(), content)
        for pattern, alias in self._patterns():
            content = pattern.sub(alias, content)
        return self.other_boots(content)

    def other_boots(self, content: bytes) -> bytes:
        """The same number of bytes, with other ids of the machine's boots."""
        return _BOOT.sub(_other_boot, content) if self.folders or self.words else content

    def found(self, content: bytes) -> str:
        """The first name in bytes that cannot be rewritten; short ones occur there by chance."""
        for name, _ in (*self.folders, *self.words):
            long_enough = len(name.encode()) >= _SHORTEST_IN_BINARY and name not in self.ordinary
            if long_enough and any(spelt in content for spelt in _spellings(name)):
                return name
        return ""

    def _patterns(self) -> Iterable[tuple[re.Pattern[bytes], bytes]]:
        for path, alias in sorted(self.folders, key=lambda pair: (-len(pair[0]), pair)):
            for spelt in _spellings(path):
                yield re.compile(re.escape(spelt) + _PATH_ENDS), alias.encode()
        for name, alias in sorted(self.words, key=lambda pair: (-len(pair[0]), pair)):
            for spelt in _spellings(name):
                for pattern in _word_patterns(spelt, name in self.ordinary):
                    yield re.compile(pattern), alias.encode()


def _other_boot(found: re.Match[bytes]) -> bytes:
    """Another id for the same boot; as version 5 it stays when it is packed again."""
    return found[1] + str(uuid.uuid5(uuid.NAMESPACE_OID, found[2].decode())).encode()


def _word_patterns(spelt: bytes, ordinary: bool) -> tuple[bytes, ...]:
    word = re.escape(spelt)
    if ordinary:
        return rb"(?<=@)%b(?!%b)" % (word, _WORD), rb"(?<!%b)%b(?=@)" % (_WORD, word)
    return (rb"(?<!%b)%b(?!%b)" % (_WORD, word, _WORD),)


def _spellings(name: str) -> list[bytes]:
    """A name as UTF-8, in JSON's escapes, and in a link's."""
    return list(
        dict.fromkeys([name.encode(), json.dumps(name)[1:-1].encode(), quote(name).encode()])
    )


def names_here(more: Iterable[str] = ()) -> Names:
    """The names of this machine and its user, with stable aliases.

    Parameters
    ----------
    more
        Further names to replace, such as those of the nodes that measured.
    """
    hosts = _distinct([socket.getfqdn(), socket.gethostname(), socket.gethostname().split(".")[0]])
    users = _distinct([_account(), *map(os.environ.get, ("USER", "LOGNAME", "SUDO_USER"))])
    words = [
        *((host, "host-1") for host in hosts if host != "localhost"),
        *((user, "user-1") for user in users if user != "root"),
        *((name, f"name-{number}") for number, name in enumerate(_distinct(more), start=1)),
    ]
    known = _project_words()
    ordinary = frozenset(name for name, _ in words if name in known or len(name) < _SHORTEST)
    return Names(tuple(_folders(users)), tuple(words), ordinary)


def _account() -> str | None:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container's user without a name
        return None


def _distinct(names: Iterable[str | None]) -> list[str]:
    return [name for name in dict.fromkeys(names) if name]


def _folders(users: list[str]) -> Iterable[tuple[str, str]]:
    """Folders that tell who or where: the project's, of the results, and homes."""
    checkout = shipped().resolve()
    yield str(checkout), PROJECT
    if not results().resolve().is_relative_to(checkout):
        yield str(results().resolve()), f"{PROJECT}/build"
    homes = {str(Path.home()), *(f"/home/{user}" for user in users)}
    for home in sorted(homes - {"/", str(checkout)}):
        yield home, "/home-1"


def _project_words() -> frozenset[str]:
    """Words of the library's own texts: to replace one everywhere would spoil tables."""
    files = [*PACKAGE.rglob("*.py"), *(shipped() / "notebooks").rglob("*.*")]
    text = b" ".join(path.read_bytes() for path in files if path.is_file())
    return frozenset(word.decode() for word in re.findall(rb"[A-Za-z0-9-]+|\w+", text))


def without_names(content: bytes, path: PurePosixPath, names: Names) -> bytes:
    """A file's bytes with all names replaced; the same bytes where none is in it.

    Parameters
    ----------
    content
        The file's bytes: text, packed text (.gz), or anything else.
    path
        Its name tells which.
    names
        What to replace.

    Raises
    ------
    InputError
        A binary file holds a name, which cannot be replaced there.
    """
    if path.suffix == ".gz":
        with refusing("a damaged packed file", str(path)):
            text = gzip.decompress(content)
        changed = without_names(text, path.with_suffix(""), names)
        return content if changed == text else gzip.compress(changed, mtime=0)
    if path.suffix == ".jsonl":
        return with_new_checks(content, names.replaced)
    if path.suffix not in _BINARY and b"\0" not in content:
        return names.replaced(content)
    if name := names.found(content):
        raise InputError(
            f"this file holds the name '{name}' and is no text in which it could be replaced",
            where=path,
            why="the shared study would tell it",
            fix="remove the file, or share names too: make artifact NAMES=keep",
        )
    return names.other_boots(content)
