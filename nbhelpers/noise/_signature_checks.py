"""What a noise signature may be: words, numbers, CPUs, policies.

Owns the errors of wrong ones.
"""

import math
from collections.abc import Mapping, Sequence

from ..errors import InputError
from ._vocabulary import INJECTED_AS, INTERRUPT_KINDS, KINDS, POLICIES, REAL_TIME

DISTRIBUTIONS = ("periodic", "poisson", "ferreira")
DURATIONS = ("fixed", "exponential", "ferreira")
PHASES = ("aligned", "random")
LARGEST_COUNT = 10**8
USUAL_SHARE = 0.025


def check_words(
    distribution: str = "periodic",
    durations: str = "fixed",
    phase: object = "random",
    kind: str = "irq",
) -> None:
    """Refuse a word that is not known."""
    words: dict[str, tuple[object, tuple[str, ...]]] = {
        "kind": (kind, KINDS),
        "distribution": (distribution, DISTRIBUTIONS),
        "durations": (durations, DURATIONS),
    }
    if not isinstance(phase, Mapping):
        words["phase"] = (phase, PHASES)
    for name, (word, known) in words.items():
        if word not in known:
            raise InputError(f"unknown {name} {word!r}", fix=f"{name} is one of {', '.join(known)}")


def two_of_three(
    frequency_hz: float | None, duration_us: float | None, share: float | None
) -> tuple[float, float, float]:
    """Frequency, duration and share; all three are accepted where they agree."""
    three = {"frequency_hz": frequency_hz, "duration_us": duration_us, "share": share}
    passed = {name: value for name, value in three.items() if value is not None}
    if len(passed) == 1 and share is None:
        passed["share"] = USUAL_SHARE
    if len(passed) < 2:
        raise _wrong_number(passed)
    for name, value in passed.items():
        _check_positive(name, value)
    frequency, duration = passed.get("frequency_hz"), passed.get("duration_us")
    frequency = passed["share"] * 1e6 / passed["duration_us"] if frequency is None else frequency
    duration = passed["share"] * 1e6 / frequency if duration is None else duration
    taken = frequency * duration / 1e6
    if not math.isclose(passed.get("share", taken), taken, rel_tol=1e-9):
        raise _wrong_number(passed)
    if taken >= 1:
        raise InputError(
            f"the noise would take {taken:.0%} of each CPU",
            where="frequency_hz × duration_us",
            why="nothing would be left for the workload",
            fix="choose a product below 1 000 000, a share below 1",
        )
    return frequency, duration, passed.get("share", taken)


def _wrong_number(passed: Mapping[str, float]) -> InputError:
    return InputError(
        f"{len(passed)} of frequency, duration and share are given",
        where=", ".join(passed) or "arguments",
        fix="give two of frequency_hz, duration_us and share: the third follows",
    )


def _check_positive(name: str, value: float | None) -> None:
    # false for NaN; beyond, periods and lengths overflow
    if value is None or not 1e-9 <= value <= 1e12:
        raise InputError(
            f"{name} is {value}", fix=f"{name} must be a positive number, 1e-9 to 1e12"
        )


def checked_window(frequency_hz: float, seconds: float | None, cpus: int) -> float:
    """The window in seconds, if the events in it fit in memory."""
    _check_positive("seconds", seconds)
    seconds = float(seconds or 0)
    if frequency_hz * seconds * cpus > LARGEST_COUNT:
        raise InputError(
            f"{frequency_hz * seconds * cpus:.2g} events",
            where="frequency_hz × seconds × CPUs",
            why=f"more than {LARGEST_COUNT:.0e} don't fit in memory",
            fix="choose a lower frequency or a shorter window",
        )
    return seconds


def different_numbers(values: Sequence[int], name: str, example: str) -> list[int]:
    """CPU or rank numbers, sorted: whole, 0 or more, each one time."""
    numbers = sorted(values) if not isinstance(values, (int, str)) else []
    whole = all(int(value) == value and value >= 0 for value in numbers)
    if not numbers or not whole or len(set(numbers)) < len(numbers):
        raise InputError(f"{name} is {values!r}", fix=f"{name} is a list of different {example}")
    return [int(value) for value in numbers]


def cpu_numbers(cpus: Sequence[int]) -> list[int]:
    """CPU numbers, sorted."""
    return different_numbers(cpus, "cpus", "CPU numbers, for instance [0, 1]")


def policy_of(kind: str, policy: str | None, priority: int | None) -> tuple[str, int]:
    """Policy and priority with which a kind is injected, if they go together."""
    policy = INJECTED_AS[kind][0] if policy is None else policy
    usual = INJECTED_AS[kind][1] if kind in INTERRUPT_KINDS else int(policy in REAL_TIME)
    if policy not in POLICIES or (kind in INTERRUPT_KINDS and policy not in REAL_TIME):
        raise InputError(
            f"policy {policy!r} does not go with {kind} noise",
            fix=f"known: {', '.join(POLICIES)}; for all kinds but thread {' or '.join(REAL_TIME)}",
        )
    return policy, usual if priority is None else priority
