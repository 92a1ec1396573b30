"""An action by a control group, version 1 or 2: a group for the run alone, removed at the end.

Owns where the hierarchies are mounted and how a group is made; the folder is made by
`nbhelpers.machine.settings`, so that it goes after a SIGKILL too.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from ..errors import SettingError, Unavailable
from ..machine import kernel, settings
from ..workloads import Workload
from . import _proc
from .action import YES, Action, Possible


@dataclass(frozen=True)
class Hierarchy:
    """Where groups with a controller can be made: the parent's folder, and the version of the
    interface.
    """

    folder: Path
    version: int


def hierarchy(controller: str, mounts: str = "/proc/self/mounts") -> Hierarchy:
    """The hierarchy of a controller.

    In version 2 groups are made at the top, since a group with processes can't hand controllers on;
    in version 1 below the group of this process.

    Raises
    ------
    Unavailable
        There is none.
    """
    rows = [line.split()[:4] for line in Path(mounts).read_text().splitlines()]
    for _, place, kind, options in rows:
        if kind == "cgroup" and controller in options.split(","):
            own = _proc.groups(os.getpid()).get(controller, "/")
            return Hierarchy(Path(place) / own.lstrip("/"), 1)
    for _, place, kind, _ in rows:
        if kind == "cgroup2" and controller in _words(Path(place) / "cgroup.controllers"):
            if controller in _words(Path(place) / "cgroup.subtree_control"):
                return Hierarchy(Path(place), 2)
            raise Unavailable(
                f"the controller {controller} is not handed on to groups",
                fix=f"echo +{controller} > {place}/cgroup.subtree_control",
            )
    raise Unavailable(
        f"no control groups with the controller {controller} are mounted",
        fix="a kernel with cgroups, outside of a container",
    )


def _words(path: Path) -> list[str]:
    with suppress(OSError):
        return path.read_text().split()
    return []


class Group(Action, ABC):
    """A control group for the run; subclasses say which controller and which values."""

    controller = ""

    @property
    def risk(self) -> str:
        return "low"

    @abstractmethod
    def values(self, version: int, parent: Path, workload: Workload | None) -> dict[str, str]:
        """File of the group to value, in the order in which they are written."""

    def possible(self, workload: Workload | None = None) -> Possible:
        try:
            folder = hierarchy(self.controller).folder
        except Unavailable as error:
            return Possible(False, error.what, error.fix or "")
        if not os.access(folder, os.W_OK) or os.geteuid():
            return Possible(False, f"no group can be made in {folder}", "run as root")
        return YES

    @contextmanager
    def held(self, workload: Workload) -> Iterator[None]:
        found = hierarchy(self.controller)
        folder = self._folder(found)
        with settings.make_folder(folder):
            for name, value in self.values(found.version, found.folder, workload).items():
                _write(folder / name, value)
            yield

    def arm(self, pid: int) -> None:
        _write(self._folder(hierarchy(self.controller)) / "cgroup.procs", str(pid))

    def check(self, pid: int) -> str | None:
        found = hierarchy(self.controller)
        has = _proc.groups(pid).get(self.controller if found.version == 1 else "", "")
        name = self._folder(found).name
        if os.path.basename(has) == name:
            return None
        return f"the process is in the control group {has or '/'}, not in {name}"

    def _folder(self, found: Hierarchy) -> Path:
        return found.folder / kernel.owned_name(self.controller)


def _write(path: Path, value: str) -> None:
    try:
        path.write_text(value)
    except OSError as error:
        raise SettingError(
            f"the control group does not take {value!r}: {error.strerror}",
            where=path,
            why="the run would be measured without its mitigation",
        ) from None
