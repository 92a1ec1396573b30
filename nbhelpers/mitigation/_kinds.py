"""From the words of a mitigation's file to an action. Owns the table of kinds."""

from collections.abc import Callable, Mapping
from dataclasses import replace

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

_ASK_FIRST = (Environment, Preload)
# arguments that are numbers, and what they lie between
_NUMBERS = {
    "priority": (0, 99),
    "level": (0, 7),
    "leave": (0, 4096),
    "share": (0, 1),
    "seconds": (0, 600),
    "us": (0, 1_000_000),
    "times": (1, 10_000),
}


def _cpus(value: str | list[int]) -> str | tuple[int, ...]:
    if not isinstance(value, list):
        return value
    if not all(type(cpu) is int and 0 <= cpu < 1 << 16 for cpu in value):
        raise TypeError(f"{value} are no numbers of CPUs")
    return tuple(value)


def _nice(value: int) -> Action:
    if type(value) is not int or not -20 <= value <= 19:
        raise TypeError(f"{value!r} is no nice value, −20 to 19")
    return Niced(value)


KINDS: dict[str, Callable[..., Action]] = {
    "environment": Environment,
    "preload": Preload,
    "confine": lambda cpus: Confined(_cpus(cpus)),
    "pin-threads": PinnedThreads,
    "threads": FewerThreads,
    "nice": _nice,
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
    "warm-files": lambda: WarmFiles(),  # no further files: knowledge names none
    "cool-down": CoolDown,
    "latency": Latency,
    "interrupts-away": InterruptsAway,
    "workqueues-away": WorkqueuesAway,
    "cpuset": lambda cpus: CpuSet(_cpus(cpus)),
    "cpu-weight": CpuWeight,
    "gpu": GpuSetting,
    "seed": FixedSeed,
}


def action_of(specified: Mapping[str, object], where: str, foreign: bool = False) -> Action:
    """The action of a kind with its arguments.

    Parameters
    ----------
    specified
        As the file has it.
    where
        The file and the entry.
    foreign
        It comes from knowledge that is not ours: what it loads or sets is asked for.

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
        _check_numbers(arguments)
        action = KINDS[kind](**arguments)
        return replace(action, foreign=foreign) if isinstance(action, _ASK_FIRST) else action
    except InputError as error:
        raise InputError(error.what, where=where, why=error.why, fix=error.fix) from None
    except (TypeError, KeyError) as error:
        raise InputError(
            f"the action {kind} does not take these arguments: {error}", where=where
        ) from None


def _check_numbers(arguments: Mapping[str, object]) -> None:
    for name in set(arguments) & set(_NUMBERS):
        value, (least, most) = arguments[name], _NUMBERS[name]
        if type(value) not in (int, float) or not least <= value <= most:  # type: ignore[operator]
            raise TypeError(f"{name} is {value!r}, not a number from {least} to {most}")
