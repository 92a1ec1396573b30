"""What knowledge from elsewhere may load into a program, or set in its environment: nothing, unless
the user agrees to exactly that.

Owns the question, the variable $NOISEBOOK_ALLOW that answers it beforehand, and what is refused in
any case.
"""

import os
import re
import shlex
import stat
import sys
from collections.abc import Iterable
from pathlib import Path

from ..errors import InputError, Unavailable
from .action import YES, Possible

ALLOW = "NOISEBOOK_ALLOW"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FILE = re.compile(r"/[A-Za-z0-9_./+-]+")  # no blank, colon or $: the loader gives them a meaning
_LONGEST = 4096
# variables that make a program, or one that it starts, load or run something else
_NEVER = re.compile(
    r"LD_.*|DYLD_.*|GLIBC_TUNABLES|GCONV_PATH|GETCONF_DIR|LOCPATH|NLSPATH|MALLOC_TRACE|TZDIR"
    r"|HOSTALIASES|LOCALDOMAIN|RES_OPTIONS|RESOLV_.*|NIS_PATH|PATH|HOME|TMPDIR|IFS|ENV|PS[0-9]"
    r"|BASH.*|SHELL.*|CDPATH|PROMPT_COMMAND|EDITOR|VISUAL|PAGER|BROWSER|PYTHON.*|PERL.*|RUBY.*"
    r"|GEM_.*|NODE_.*|LUA_.*|PHP.*|R_.*|JULIA_.*|CLASSPATH|_?JAVA_.*|JDK_.*|.*_JAVA_OPTIONS|GIT_.*"
    r"|SSH_.*|XDG_.*|OMP_TOOL.*|CUDA_INJECTION.*|NVTX_.*|OMPI_.*|OPAL_.*|PMIX_.*|PRTE_.*|PMI_.*"
    r"|I_MPI_.*|MPICH_.*|FI_.*|UCX_.*|OCL_.*|OPENCL_.*|SYCL_.*|UR_.*|ZE_.*|VK_.*|LIBGL_.*|GTK_.*"
    r"|QT_.*|SSL_.*|OPENSSL_.*|KRB5.*|NOISEBOOK_.*|GOMP_DEBUG|.*_PRELOAD|.*_LIBRARY_PATH"
)
_answered: dict[str, bool] = {}


def check_variables(variables: Iterable[tuple[str, str]]) -> None:
    """Refuse variables that no knowledge from elsewhere may set, even if the user agrees.

    Raises
    ------
    InputError
        One of them would load or run something else, or is none.
    """
    for name, value in variables:
        if not _NAME.fullmatch(name) or not value.isprintable() or len(value) > _LONGEST:
            raise InputError(f"this is no variable of an environment: {name!r}")
        if _NEVER.fullmatch(name):
            raise InputError(
                f"knowledge from elsewhere may not set {name}",
                why="with it a program loads or runs something else",
                fix="set it yourself in the workload's env, if you mean it",
            )


def check_library(path: str) -> None:
    """Refuse what names no file by its absolute path.

    Raises
    ------
    InputError
        It has a blank, a colon, a $, `..`, or does not begin with a slash.
    """
    if not _FILE.fullmatch(path) or ".." in Path(path).parts or len(path) > _LONGEST:
        raise InputError(
            f"knowledge from elsewhere may not preload {path!r}",
            why="the loader would choose the file, or take it for several",
            fix="name the file by its absolute path: letters, digits and _ . + - only",
        )


def untrusted(path: str) -> str:
    """Why a file may not be loaded: somebody else could change it; "" if nobody can."""
    mine = {0, os.geteuid()}
    file = Path(os.path.realpath(path))
    try:
        for place in (file, *file.parents):
            seen = place.stat()
            # in a sticky folder others cannot replace the file
            safe = place != file and seen.st_mode & stat.S_ISVTX
            if seen.st_uid not in mine or (seen.st_mode & 0o022 and not safe):
                return f"{place} belongs to, or can be changed by, somebody else"
        return "" if stat.S_ISREG(file.stat().st_mode) else f"{path} is no file"
    except OSError as error:
        return f"{path}: {error.strerror}"


def possible(items: Iterable[str]) -> Possible:
    """Whether these were agreed to, or somebody is there to be asked.

    Parameters
    ----------
    items
        Each as it is written in $NOISEBOOK_ALLOW: ``NAME=value``, or the path of a library.
    """
    missing = [item for item in items if not _agreed(item)]
    refused = [item for item in missing if _answered.get(item) is False]
    if not missing or (_somebody_is_there() and not refused):
        return YES
    words = ", ".join(missing)
    return Possible(
        False,
        f"knowledge from elsewhere would put {words} into the program, and nobody agreed",
        f"export {ALLOW}={shlex.quote(' '.join(map(shlex.quote, missing)))}",
    )


def require(items: Iterable[str]) -> None:
    """Ask for what was not agreed to.

    Raises
    ------
    Unavailable
        Nobody is there to be asked, or the answer is not yes.
    """
    items = list(items)
    answer = possible(items)
    for item in items if answer else ():
        if not _agreed(item):
            _answered[item] = _question(item)
    if not (answer := possible(items)):
        raise Unavailable(answer.reason, fix=answer.fix)


def _agreed(item: str) -> bool:
    try:
        words = shlex.split(os.environ.get(ALLOW, ""))
    except ValueError:
        words = []
    return item in words or _answered.get(item, False)


def _somebody_is_there() -> bool:
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))


def _question(item: str) -> bool:
    sys.stderr.write(f"Knowledge from elsewhere would put {item} into the program. Agree? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")
