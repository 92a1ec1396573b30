"""Optional packages that bring notebooks of their own: extras/NAME, each installed by itself.

Owns how they are found, by the entry points of the group `noisebook.extras`, and what the doctor
says of one that is missing or broken. No module of the library names an extra.
"""

import sys
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path

from .places import shipped

GROUP = "noisebook.extras"
Parts = Mapping[str, Callable]  # by the name that a file of knowledge, or stages.yml, has for it


@dataclass(frozen=True)
class Extra:
    """What an extra brings: notebooks, and parts that the library looks up by name.

    Examples
    --------
    >>> Extra(notebooks=Path("notebooks")).stages
    []
    """

    notebooks: Path | None = None  # STAGE.ipynb, stages.yml, parameters/PROFILE.yml, as ours
    checks: Parts = field(default_factory=dict)  # of what a stage does without, for the doctor
    readers: Parts = field(default_factory=dict)  # of the sources of metric layers
    actions: Parts = field(default_factory=dict)  # of mitigations
    traces: Parts = field(default_factory=dict)  # of MPI calls: by a pattern of the files' names

    @property
    def stages(self) -> list[str]:
        """Its notebooks, in order."""
        found = self.notebooks.glob("[0-9]*.ipynb") if self.notebooks else []
        return sorted(path.stem for path in found)


@cache
def _loaded() -> dict[str, "Extra | Exception"]:
    """Each installed extra by its name; of a broken one, its error."""
    found: dict[str, Extra | Exception] = {}
    for entry in entry_points(group=GROUP):
        try:
            extra = entry.load()
            found[entry.name] = extra if isinstance(extra, Extra) else TypeError("it is no Extra")
        except Exception as error:  # somebody else's code: whatever it raises is told, not raised
            found[entry.name] = error
    return found


def installed() -> dict[str, Extra]:
    """The installed extras that can be loaded, by name."""
    return {name: one for name, one in sorted(_loaded().items()) if isinstance(one, Extra)}


def with_notebooks() -> dict[Path, Extra]:
    """The installed extras that bring notebooks, by the folder of these."""
    return {one.notebooks: one for one in installed().values() if one.notebooks}


def stages() -> dict[str, Path]:
    """The notebook of each stage that an extra brings."""
    return {
        stage: folder / f"{stage}.ipynb"
        for folder, one in with_notebooks().items()
        for stage in one.stages
    }


def checks() -> dict[str, Callable]:
    """What the extras check for the doctor, by the names in `without` of their stages.yml."""
    return {name: part for one in installed().values() for name, part in one.checks.items()}


def readers() -> dict[str, Callable]:
    """The extras' readers of metrics, by the names in data/knowledge/metrics."""
    return {name: part for one in installed().values() for name, part in one.readers.items()}


def actions() -> dict[str, Callable]:
    """The extras' actions, by the kinds in data/knowledge/mitigations."""
    return {name: part for one in installed().values() for name, part in one.actions.items()}


def traces() -> dict[str, Callable]:
    """The extras' readers of MPI traces, by patterns of the names of a trace or of files in it."""
    return {name: part for one in installed().values() for name, part in one.traces.items()}


def findings() -> dict[str, str]:
    """What the doctor says of each extra, installed or lying in this checkout, by name."""
    said = {}
    for project in sorted(shipped().glob("extras/*/pyproject.toml")):
        name = project.parent.name
        about = tomllib.loads(project.read_text(encoding="utf-8"))["project"]["description"]
        said[name] = f"not installed: {about} To install it: make extra EXTRA={name}"
    for name, one in _loaded().items():
        fix = f"to install it again: make extra EXTRA={name}"
        said[name] = "installed" if isinstance(one, Extra) else f"broken: {one!r}; {fix}"
    return said


if __name__ == "__main__":  # for the Makefile: the stages of the installed extras
    from nbhelpers.extras import stages as stages_of_extras  # an Extra is of that module, not ours

    sys.stdout.write(" ".join(stages_of_extras()))
