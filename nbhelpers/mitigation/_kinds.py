"""From the words of a mitigation's file to an action. Owns the table of kinds."""

from collections.abc import Callable, Mapping

from ..errors import InputError
from .action import Action
from .gpu import GpuSetting
from .groups import CpuSet, CpuWeight
from .inherited import MemoryPolicy, NoHugePages, NoRandomisation
from .parameter import FixedSeed
from .preparation import CoolDown, Flush, Latency, Trigger, WarmFiles
from .program import Environment, Preload
from .scheduling import Confined, FewerThreads, IoPriority, Niced, PinnedThreads, Scheduled
from .settings import FrequencyCap, InterruptsAway, Setting, TurboOff, WorkqueuesAway


def _cpus(value: str | list[int]) -> str | tuple[int, ...]:
    return tuple(value) if isinstance(value, list) else value


KINDS: dict[str, Callable[..., Action]] = {
    "environment": Environment,
    "preload": Preload,
    "confine": lambda cpus: Confined(_cpus(cpus)),
    "pin-threads": PinnedThreads,
    "threads": FewerThreads,
    "nice": Niced,
    "policy": Scheduled,
    "io-priority": lambda level, **fields: IoPriority(fields["class"], level),
    "memory-policy": MemoryPolicy,
    "no-randomisation": NoRandomisation,
    "huge-pages-off": NoHugePages,
    "setting": Setting,
    "frequency-cap": FrequencyCap,
    "turbo-off": TurboOff,
    "trigger": lambda counts=(), **fields: Trigger(counts=tuple(counts), **fields),
    "flush": Flush,
    "warm-files": WarmFiles,
    "cool-down": CoolDown,
    "latency": Latency,
    "interrupts-away": InterruptsAway,
    "workqueues-away": WorkqueuesAway,
    "cpuset": lambda cpus: CpuSet(_cpus(cpus)),
    "cpu-weight": CpuWeight,
    "gpu": GpuSetting,
    "seed": FixedSeed,
}


def action_of(specified: Mapping[str, object], where: str) -> Action:
    """The action of a kind with its arguments.

    Raises
    ------
    InputError
        No such kind, or arguments that it does not take.
    """
    arguments = dict(specified)
    kind = arguments.pop("kind", None)
    if kind not in KINDS:
        raise InputError(
            f"there is no kind of action {kind!r}",
            where=where,
            fix=f"choose one of {', '.join(KINDS)}",
        )
    try:
        action = KINDS[kind](**arguments)
        what, fix = action.refusal()
    except (TypeError, KeyError, AttributeError, ValueError) as error:
        raise InputError(
            f"the action {kind} does not take these arguments: {error}", where=where
        ) from None
    if what:
        raise InputError(
            what,
            where=f"{where}: {arguments.get('path', kind)}",
            why="a file of knowledge must not be able to change what it likes",
            fix=fix,
        )
    return action
