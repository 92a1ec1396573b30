"""From the words of a mitigation's file to an action. Owns the table of kinds, and what knowledge
from elsewhere may not do.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from .. import extras
from ..errors import InputError, check_choice
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

# All that knowledge from elsewhere may set: with none of them a program loads, runs or writes
# something else, as it would with OMP_TOOL_LIBRARIES, MALLOC_CONF or MKL_VERBOSE_OUTPUT_FILE.
_VARIABLES = """
OMP: AFFINITY_FORMAT CANCELLATION DEFAULT_DEVICE DISPLAY_AFFINITY DISPLAY_ENV DYNAMIC
OMP: MAX_ACTIVE_LEVELS MAX_TASK_PRIORITY NESTED NUM_TEAMS NUM_THREADS PLACES PROC_BIND SCHEDULE
OMP: STACKSIZE TARGET_OFFLOAD TEAMS_THREAD_LIMIT THREAD_LIMIT WAIT_POLICY
GOMP: CPU_AFFINITY SPINCOUNT STACKSIZE
KMP: AFFINITY BLOCKTIME DETERMINISTIC_REDUCTION DYNAMIC_MODE HW_SUBSET LIBRARY SETTINGS STACKSIZE
MALLOC: ARENA_MAX ARENA_TEST MMAP_MAX_ MMAP_THRESHOLD_ TOP_PAD_ TRIM_THRESHOLD_
MKL: CBWR DOMAIN_NUM_THREADS DYNAMIC ENABLE_INSTRUCTIONS NUM_THREADS
OPENBLAS: CORETYPE DEFAULT_NUM_THREADS MAIN_FREE NUM_THREADS THREAD_TIMEOUT
BLIS: NUM_THREADS
GOTO: NUM_THREADS
JULIA: NUM_THREADS
NUMBA: NUM_THREADS
NUMEXPR: NUM_THREADS
RAYON: NUM_THREADS
"""
_HARMLESS = {
    f"{family}_{name}"
    for family, _, names in (line.partition(": ") for line in _VARIABLES.split("\n"))
    for name in names.split()
}


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
    check_choice("kind of action", kind, KINDS, where)
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
    if isinstance(action, Environment):
        refuse_variables(action.variables)
    elif isinstance(action, Preload) and action.library not in LIBRARIES:
        raise _refusal(action.library, f"env={{'LD_PRELOAD': {action.library!r}}}")


def refuse_variables(names: Iterable[str], where: str = "") -> None:
    """Those that are not on the list.

    Raises
    ------
    InputError
        There is one; the message says how whoever means it sets it.
    """
    for name in names:
        if name not in _HARMLESS:
            raise _refusal(name, f"env={{{name!r}: …}}", where)


def _refusal(name: str, keyword: str, where: str = "") -> InputError:
    return InputError(
        f"knowledge from elsewhere may not set or preload {name}",
        where=where,
        why="it is not on the list of what makes no program load or run something else",
        fix=f"set it yourself, if you mean it: program(…, {keyword})",
    )
