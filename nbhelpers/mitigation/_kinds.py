"""From the words of a mitigation's file to an action. Owns the table of kinds, and what knowledge
from elsewhere may not do.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from .. import extras
from ..errors import InputError
from ..machine.parts import LIBRARIES
from ..workloads import Workload
from .action import Action, Possible
from .program import Environment, Preload
from .scheduling import (
    Confined,
    FewerThreads,
    Niced,
    NoHugePages,
    NoRandomisation,
    PinnedThreads,
    Scheduled,
)
from .settings import CoolDown, Flush, InterruptsAway, Latency, Setting

# variables with which no program loads or runs something else
_HARMLESS = re.compile(
    r"OMP_(?!TOOL)\w+|GOMP_(?!DEBUG)\w+|MALLOC_(ARENA|MMAP|TOP|TRIM)\w+|\w+_NUM_THREADS"
)


@dataclass(frozen=True)
class OfAnExtra(Action):
    """In the place of an action whose extra, which has the kind's name, is not installed: it cannot
    be done.
    """

    kind: str

    @property
    def risk(self) -> str:
        """What extras set is a setting of the machine."""
        return "low"

    def possible(self, workload: Workload | None = None) -> Possible:
        fix = f"make extra EXTRA={self.kind}"
        return Possible(False, "it comes with an extra that is not installed", fix)


KINDS: dict[str, Callable[..., Action]] = {
    "environment": Environment,
    "preload": Preload,
    "confine": lambda cpus: Confined(cpus if isinstance(cpus, str) else tuple(cpus)),
    "pin-threads": PinnedThreads,
    "threads": FewerThreads,
    "nice": Niced,
    "policy": Scheduled,
    "no-randomisation": NoRandomisation,
    "huge-pages-off": NoHugePages,
    "setting": Setting,
    "flush": Flush,
    "cool-down": CoolDown,
    "latency": Latency,
    "interrupts-away": InterruptsAway,
    "gpu": lambda **fields: OfAnExtra("gpu"),
}


def action_of(specified: Mapping[str, object], where: str, foreign: bool = False) -> Action:
    """The action of a kind with its arguments.

    Parameters
    ----------
    specified
        `kind` and arguments of the action, as they stand in the file.
    where
        The file and the entry.
    foreign
        It comes from knowledge that is not ours.

    Raises
    ------
    InputError
        No such kind, arguments that it does not take, or something that it may not do.
    """
    arguments = dict(specified)
    kind = arguments.pop("kind", None)
    if not isinstance(kind, str) or kind not in KINDS:
        raise InputError(
            f"there is no kind of action {kind!r}",
            where=where,
            fix=f"choose one of {', '.join(KINDS)}",
        )
    try:
        action = (KINDS | extras.actions())[kind](**arguments)
        if foreign:
            _refuse_to_load(action)
        return action
    except InputError as error:
        raise InputError(error.what, where=where, why=error.why, fix=error.fix) from None
    except (TypeError, KeyError) as error:
        raise InputError(
            f"the action {kind} does not take these arguments: {error}", where=where
        ) from None


def _refuse_to_load(action: Action) -> None:
    """What could make a program load or run something else."""
    names: list[str] = []
    if isinstance(action, Environment):
        names = [name for name in action.variables if not _HARMLESS.fullmatch(name)]
    elif isinstance(action, Preload) and action.library not in LIBRARIES:
        names = [action.library]
    if names:
        raise InputError(
            f"knowledge from elsewhere may not set or preload {names[0]}",
            why="with it a program could load or run something else",
            fix="set it yourself in the workload's env, if you mean it",
        )
