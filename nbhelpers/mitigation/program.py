"""Actions on the program alone: variables and preloaded libraries, with the proof that they reached
it.

Owns whether a program can take a library.
"""

import os
import platform
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from ..errors import InputError
from ..machine.parts import LIBRARIES, find_library
from ..workloads import Workload
from ..workloads.binaries import elf_interpreter, takes_preload
from . import _proc, verification
from .action import YES, Action, NotYet, Possible, with_variables

_PACKAGES = dict(
    zip(LIBRARIES, ("libjemalloc2", "libtcmalloc-minimal4", "libmimalloc2.0"), strict=True)
)
_HUGE_PAGES = "/sys/kernel/mm/transparent_hugepage/enabled"
_PRELOAD = "LD_PRELOAD"
_DISPLAY = "OMP_DISPLAY_ENV"  # the runtime prints what it follows to standard error


@dataclass(frozen=True)
class Environment(Action):
    """Variables of the program's environment.

    Parameters
    ----------
    variables
        Name to value.
    needs
        Who reads them: "glibc", "dynamic" (a library), "openmp"; "" anybody.
    at_least
        Version of glibc.
    transparent_huge_pages
        Useless where the kernel has them switched off.
    """

    variables: Mapping[str, str]
    needs: str = ""
    at_least: str = ""
    transparent_huge_pages: bool = False
    needs_program = True

    def possible(self, workload: Workload | None = None) -> Possible:
        glibc = platform.libc_ver()[1]
        if self.at_least and _version(glibc) < _version(self.at_least):
            reason = f"glibc {glibc or '(none)'} is older than {self.at_least}"
            return Possible(False, reason, "a newer distribution")
        if self.transparent_huge_pages and _chosen_huge_pages() not in ("always", "madvise"):
            return Possible(
                False, "transparent huge pages are off here", f"echo madvise > {_HUGE_PAGES}"
            )
        if workload is None:
            return YES
        own = dict(workload.env)
        if taken := [
            name for name, value in self.variables.items() if own.get(name, value) != value
        ]:
            reason = f"the workload sets {', '.join(taken)} itself"
            return Possible(False, reason, "leave it out of the workload's env")
        program = Path(workload.command[0])
        if self.needs and _interpreter(program) is None and not _is_script(program):
            reason = f"{program.name} is statically linked, so that it reads no such variable"
            return Possible(False, reason, "link it dynamically")
        return YES

    def applied_to(self, workload: Workload) -> Workload:
        shown = {_DISPLAY: "verbose"} if self.needs == "openmp" else {}
        return replace(workload, env=with_variables(workload, shown | dict(self.variables)))

    def check(self, pid: int) -> str | None:
        has = _proc.environment(pid)
        wrong = [name for name, value in self.variables.items() if has.get(name) != value]
        if wrong:
            return NotYet(
                f"{wrong[0]} is {has.get(wrong[0], 'not set')!r} in the process, not"
                f" {self.variables[wrong[0]]!r}"
            )
        answers = [verification.proof(pid, name, value) for name, value in self.variables.items()]
        return next((answer for answer in answers if answer), None)

    def confirmed(self, errors: str) -> bool:
        return self.needs == "openmp" and all(
            verification.follows_display(name, value, errors)
            for name, value in self.variables.items()
        )


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part.isdigit())


def _chosen_huge_pages() -> str:
    with suppress(OSError):
        text = Path(_HUGE_PAGES).read_text()
        return text[text.find("[") + 1 : text.find("]")]
    return "never"


def _interpreter(program: Path) -> str | None:
    with suppress(OSError):
        return elf_interpreter(program)
    return None


def _is_script(program: Path) -> bool:
    with suppress(OSError), open(program, "rb") as file:
        return file.read(2) == b"#!"
    return False


@dataclass(frozen=True)
class Preload(Action):
    """A library loaded before all others, such as an allocator.

    Parameters
    ----------
    library
        Its name without "lib" and ".so", found by the loader's own list; or the path of a file.
    """

    library: str
    needs_program = True

    def possible(self, workload: Workload | None = None) -> Possible:
        path = find_library(self.library)
        if path is None:
            package = _PACKAGES.get(self.library)
            fix = f"apt-get install {package}" if package else f"ldconfig -p | grep {self.library}"
            return Possible(False, f"there is no library {self.library} here", fix)
        return _takes_library(Path(workload.command[0])) if workload is not None else YES

    def applied_to(self, workload: Workload) -> Workload:
        others = dict(workload.env).get(_PRELOAD, os.environ.get(_PRELOAD, ""))
        libraries = ":".join(filter(None, (self._path(), others)))
        return replace(workload, env=with_variables(workload, {_PRELOAD: libraries}))

    def check(self, pid: int) -> str | None:
        files = {os.path.realpath(name) for name in _proc.mapped_files(pid)}
        if os.path.realpath(self._path()) not in files:
            return NotYet(f"{os.path.basename(self._path())} is not mapped into the process")
        replaces_malloc = "malloc" in verification.symbols(self._path())
        return verification.program_malloc(pid) if replaces_malloc else None

    def _path(self) -> str:
        path = find_library(self.library)
        if path is None:
            raise InputError(f"there is no library {self.library!r}", fix=self.possible().fix)
        return path


def _takes_library(program: Path) -> Possible:
    if takes_preload(program) or _is_script(
        program
    ):  # what it calls may take it: the check will say
        return YES
    why = "has privileges or another loader"
    if _interpreter(program) is None:
        why = "is statically linked"
    reason = f"{program.name} {why}, so that nothing can be preloaded"
    return Possible(False, reason, "link it dynamically, or link the allocator into it")
