"""What knowledge from elsewhere may do to a program only when the user says so.

Owns what asks, what is never done, and how consent is given: by $NOISEBOOK_ALLOW, by `--allow`, or
by an answer in a terminal. Knowledge that comes with Noisebook is part of it and asks for nothing.
"""

import os
import re
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path

from ..errors import InputError
from ..places import knowledge, shipped

ALLOW = "NOISEBOOK_ALLOW"
_NEVER = re.compile(
    r"LD_\w*|GLIBC_TUNABLES|GCONV_PATH|LOCPATH|NLSPATH|MALLOC_TRACE|RESOLV_\w*|HOSTALIASES|PATH|IFS"
    r"|ENV|BASH_ENV|SHELLOPTS|PS4|PYTHON\w*|PERL5?\w*|RUBY\w*|NODE_\w*|JAVA_TOOL_OPTIONS|_JAVA_\w*"
    r"|OMP_TOOL_LIBRARIES|CUDA_INJECTION\w*|OPAL_PREFIX|HOME|SHELL|TMPDIR|GIT_\w*|NOISEBOOK\w*"
)


def is_from_elsewhere() -> bool:
    """Whether the knowledge in use is another one than Noisebook's own."""
    return knowledge().resolve() != (shipped() / "data/knowledge").resolve()


def allow(names: Iterable[str]) -> None:
    """Give consent to mitigations by their ids, for this process and those that it starts."""
    given = [*os.environ.get(ALLOW, "").split(","), *names]
    os.environ[ALLOW] = ",".join(dict.fromkeys(filter(None, given)))


def is_allowed(name: str) -> bool:
    """Whether the user has given consent to a mitigation."""
    return name in os.environ.get(ALLOW, "").split(",")


def refuse_variables(variables: Mapping[str, str], where: str) -> None:
    """Variables by which foreign code would run in a program are never set by foreign knowledge.

    Raises
    ------
    InputError
        There is such a variable.
    """
    for name in variables:
        if _NEVER.fullmatch(name):
            raise InputError(
                f"knowledge from elsewhere may not set {name}",
                where=where,
                why="it could make every program run other people's code",
                fix="set it yourself, in the workload's env",
            )


def refuse_library(path: str, where: str) -> None:
    """A file that is preloaded belongs to root or to this user, and nobody else can change it.

    Raises
    ------
    InputError
        Somebody else could.
    """
    real = Path(path).resolve()
    for part in (real, *real.parents):
        found = part.stat()
        others = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        sticky = stat.S_ISDIR(found.st_mode) and found.st_mode & stat.S_ISVTX
        if found.st_uid not in (0, os.geteuid()) or (others and not sticky):
            raise InputError(
                "others can change this library",
                where=f"{path} ({part}), of {where}",
                why="it would run in your program",
                fix=f"copy it to a folder of yours; ls -ld {part}",
            )
