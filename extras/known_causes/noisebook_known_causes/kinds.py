"""The kinds of causes: how each is planted in a victim, and its sham, which does all but the harm.

Owns the table `KINDS`. What disturbs a run accompanies the undisturbed runs as well, without a
dose: that it is there, with its processes and its memory, then says nothing of the truth.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from nbhelpers.errors import NoisebookError, Unavailable
from nbhelpers.injection import Hog, Injector
from nbhelpers.injection.rules import may_realtime
from nbhelpers.injection.stressors import check_interrupts
from nbhelpers.measurement import Attachment
from nbhelpers.mitigation.action import Action, with_variables
from nbhelpers.mitigation.scheduling import NoHugePages
from nbhelpers.mitigation.treatment import treat_workload
from nbhelpers.noise import NoiseConfig, stressor_noise
from nbhelpers.studies.disturbances import CpuQuota, ShakenAffinity, Shootdowns
from nbhelpers.workloads import Workload, binary_folder, program_path

from .catalogue import Dose
from .outside import Confined, NiceHog, Profiler, Tracer
from .planting import DroppedFile, MemoryLimit
from .victims import input_file, input_path, victim_command

WINDOW_S = 3.0  # of the noise: longer than any run
_NEVER_NS = 60_000_000_000  # after the start: no run is so long
_PERIOD_NS = 18_000_000


@dataclass(frozen=True)
class Place:
    """Where a cause is planted.

    Attributes
    ----------
    workload, file, dose
        The victim, what it reads or writes, and how much of the cause.
    cpu, other_cpu
        The victim's, and another one.
    trial
        True: only find out whether the cause can be planted.
    """

    workload: Workload
    cpu: int
    other_cpu: int
    file: Path | None
    dose: Dose
    trial: bool = False

    @property
    def second_cpu(self) -> int:
        """The other CPU.

        Raises
        ------
        Unavailable
            There is none.
        """
        if self.other_cpu == self.cpu:
            raise Unavailable(
                "this cause needs a second CPU",
                why="the culprit runs at the same time as the victim",
            )
        return self.other_cpu


def _unchanged(workload: Workload) -> Workload:
    return workload


@dataclass(frozen=True)
class Disturbance:
    """What makes a disturbed run, and the sham that accompanies an undisturbed one."""

    attachments: tuple[Attachment, ...] = ()
    sham: tuple[Attachment, ...] = ()
    treat: Callable[[Workload], Workload] = _unchanged


Kind = Callable[..., Disturbance]


def hog(at: Place, amount: float, priority: int = 0) -> Disturbance:
    """A program takes the CPU for `amount` ms of each 18 ms."""
    if priority and not may_realtime(priority):
        raise Unavailable("this user may not use SCHED_FIFO", fix="run as root, or: ulimit -r 99")
    length_ns = round(amount * 1e6)
    blocks = [(3_000_000 + _PERIOD_NS * number, length_ns) for number in range(60)]
    never = [(_NEVER_NS, length_ns)]
    return Disturbance(
        (Hog({at.cpu: blocks}, priority=priority),), (Hog({at.cpu: never}, priority=priority),)
    )


def nice_hog(at: Place, amount: float) -> Disturbance:
    """A program of nice value `amount` wants the CPU all the time."""
    stretch = [(0, 900_000_000)]
    return Disturbance(
        (NiceHog({at.cpu: stretch}, round(amount)),),
        (NiceHog({at.cpu: [(_NEVER_NS, 1_000_000)]}, round(amount)),),
    )


def noise(
    at: Place,
    amount: float,
    noise: str,
    other_cpu: bool = False,
    folder: str | None = None,
    cold: bool = False,
) -> Disturbance:
    """Noise of one of the injector's kinds, on the victim's CPU or another one; `cold`: the
    victim's file is never in the page cache.
    """
    cpu = at.second_cpu if other_cpu else at.cpu
    if noise == "ipi":
        _ = at.second_cpu
        check_interrupts()
    if folder and not os.path.isdir(folder):
        raise Unavailable(f"there is no folder {folder}", fix=f"mount -t tmpfs tmpfs {folder}")
    if at.trial:  # an injector is calibrated, which takes the machine for a second
        return Disturbance()
    both = [
        Injector(
            NoiseConfig.from_events(
                stressor_noise(noise, amount, WINDOW_S, [cpu], start_s=start, duration_s=length)
            ),
            placement="origin",
            scratch=folder,
        )
        for start, length in ((0.0, WINDOW_S), (WINDOW_S - 0.1, 0.1))
    ]
    dropped = (DroppedFile(at.file),) if cold and at.file else ()
    return Disturbance((*dropped, both[0]), (*dropped, both[1]))


def quota(at: Place, amount: float) -> Disturbance:
    """A control group with a share of one CPU, or with all of it."""
    return _acts(at, CpuQuota(amount), CpuQuota(float("inf")))


def memory_limit(at: Place, amount: float) -> Disturbance:
    """A control group with so many MiB, or without a limit, for a victim whose file is cold."""
    limited = _acts(at, MemoryLimit(round(amount * 2**20)), MemoryLimit(0))
    assert at.file  # the catalogue gives it a victim with a file
    cold = DroppedFile(at.file)
    return replace(limited, attachments=(cold, *limited.attachments), sham=(cold, *limited.sham))


def small_pages(at: Place, amount: float) -> Disturbance:
    """No huge pages for the program."""
    return _acts(at, NoHugePages())


def _acts(at: Place, action: Action, sham: Action | None = None) -> Disturbance:
    attachments = tuple(treat_workload([action], at.workload).attachments)
    shams = tuple(treat_workload([sham], at.workload).attachments) if sham else ()
    return Disturbance(attachments, shams)


def confine(at: Place, amount: float) -> Disturbance:
    """All threads on one CPU for the first `amount` ms, then on both."""
    both = {at.cpu, at.second_cpu}
    return Disturbance(
        (Confined({at.cpu}, both, amount / 1e3),), (Confined(both, both, amount / 1e3),)
    )


def shake(at: Place, amount: float) -> Disturbance:
    """The affinity changes `amount` times a second; in the sham it is set as often, to the same."""
    pause_s = 1 / amount
    return Disturbance(
        (ShakenAffinity((at.cpu, at.second_cpu), pause_s),), (ShakenAffinity((at.cpu,), pause_s),)
    )


def profiler(at: Place, amount: float) -> Disturbance:
    """So many samples a second of CPU time; in the sham one."""
    Profiler.check()
    return Disturbance((Profiler(round(amount)),), (Profiler(1),))


def shootdowns(at: Place, amount: float) -> Disturbance:
    """So many times a second the victim's CPU forgets its memory; in the sham, memory that nobody
    uses.
    """
    cpu = at.second_cpu
    Shootdowns.check()
    return Disturbance((Shootdowns(cpu, amount),), (Shootdowns(cpu, amount, harmless=True),))


def tracer(at: Place, amount: float) -> Disturbance:
    """strace on the victim; in the sham on a program that sleeps."""
    path = _required("strace")
    return Disturbance((Tracer(path),), (Tracer(path, of_sleeper=True),))


def drop(at: Place, amount: float) -> Disturbance:
    """A share of the victim's file is not in the page cache."""
    assert at.file  # the catalogue gives it a victim with a file
    return Disturbance((DroppedFile(at.file, amount),), (DroppedFile(at.file, 0.0),))


def variables(at: Place, amount: float, variables: Mapping[str, str]) -> Disturbance:
    """Environment variables."""
    return Disturbance(
        treat=lambda workload: replace(workload, env=with_variables(workload, dict(variables)))
    )


def extra(at: Place, amount: float) -> Disturbance:
    """Another value of the victim's {extra}."""
    changed = victim_command(at.dose, at.file, extra=round(amount))
    return Disturbance(treat=lambda workload: replace(workload, command=changed))


def harder_input(at: Place, amount: float) -> Disturbance:
    """Another file of the same length, a share of it of four letters."""
    kind = at.dose.victim.file
    made = input_file(kind, amount)
    changed = victim_command(at.dose, input_path(kind, amount))
    return Disturbance((made,), (made,), lambda workload: replace(workload, command=changed))


def build(at: Place, amount: float) -> Disturbance:
    """The program as the second compiler built it."""
    first, *words = at.workload.command
    other = binary_folder() / "clang" / Path(first).name
    if not other.exists():
        raise Unavailable(
            "there is no second compiler", fix="apt install clang libomp-dev; make env"
        )
    return Disturbance(treat=lambda workload: replace(workload, command=(str(other), *words)))


def _required(name: str) -> str:
    try:
        return str(program_path(name))
    except NoisebookError:
        raise Unavailable(f"there is no {name}", fix=f"apt install {name}") from None


KINDS: Mapping[str, Kind] = {
    "hog": hog,
    "nice_hog": nice_hog,
    "noise": noise,
    "quota": quota,
    "memory_limit": memory_limit,
    "small_pages": small_pages,
    "confine": confine,
    "shake": shake,
    "profiler": profiler,
    "shootdowns": shootdowns,
    "tracer": tracer,
    "drop": drop,
    "variables": variables,
    "extra": extra,
    "input": harder_input,
    "build": build,
}
