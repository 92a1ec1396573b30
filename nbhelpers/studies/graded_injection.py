"""A suspected factor, injected at graded doses: one cell a dose, and a sham that does all but the
harm.

Owns what `inject` of a factor (data/knowledge/factors) means; how the doses are judged is in
`dose_response`.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from ..errors import InputError, Unavailable
from ..injection import Injector
from ..injection.rules import may_realtime
from ..injection.stressors import check_interrupts
from ..machine import topology
from ..measurement import Attachment, Cell
from ..mitigation.action import with_variables
from ..mitigation.knowledge import Factor
from ..mitigation.treatment import treat_workload
from ..noise import NoiseConfig, stressor_noise
from ..workloads import Workload
from .disturbances import CpuQuota, ShakenAffinity, Shootdowns

SHAM = "sham"
COMPETITOR = "duty"
# noise that may be for the program's CPU: a competitor, timers, which expire on the CPU where they
# were set, and interrupts from other CPUs; any other kind has a helper there, which competes
AT_THE_PROGRAM = (COMPETITOR, "timer", "ipi")
_BUSY = 1.1  # CPUs; a program that keeps more of them busy has several threads
_NEVER_S = 0.1  # of the window's end: when the sham would do harm, no run is left


@dataclass(frozen=True)
class Place:
    """What is disturbed.

    Attributes
    ----------
    workload
        The program.
    window_s
        Longer than any run.
    busy
        CPUs that it keeps busy.
    most
        The largest dose.
    """

    workload: Workload
    window_s: float
    busy: float
    most: float

    @property
    def cpus(self) -> tuple[int, ...]:
        """The program's."""
        return tuple(self.workload.cpus or sorted(os.sched_getaffinity(0)))

    @property
    def last_cpu(self) -> tuple[int, ...]:
        """The last CPU that the program leaves free, on a core that it leaves free, too.

        Raises
        ------
        Unavailable
            There is none.
        """
        allowed, own = os.sched_getaffinity(0), set(self.workload.cpus or ())
        cores = {cpu.core for cpu in topology().cpus if cpu.cpu in own}
        free = [one.cpu for one in topology().cpus if one.core not in cores and one.cpu in allowed]
        if len(allowed) < 2 or not free:
            raise Unavailable(
                "this factor is injected from another core than the program's",
                fix="a machine with more CPUs, or a program on fewer of them",
            )
        return (free[-1],)


Disturbed = tuple[Workload, tuple[Attachment, ...]]


def stressor_events(
    at: Place, dose: float | None, noise: str, where: str, fifo: int = 0
) -> pd.DataFrame:
    """Noise of one of the injector's kinds; without a dose it would begin after any run.

    Raises
    ------
    Unavailable
        It would compete with the program, or real-time priority is needed and not allowed.
    """
    _check_noise(at, noise, where)
    if fifo and not may_realtime(fifo):
        raise Unavailable("this user may not use SCHED_FIFO", fix="run as root, or: ulimit -r 99")
    policy: dict[str, Any] = {"policy": "SCHED_FIFO", "priority": fifo} if fifo else {}
    start = at.window_s - _NEVER_S if dose is None else 0.0
    cpus = at.cpus if where == "program" else at.last_cpu
    least = 1e-3 if noise == "duty" else 1.0
    return stressor_noise(noise, dose or least, at.window_s, cpus, start_s=start, **policy)


def stressed(at: Place, events: pd.DataFrame) -> Disturbed:
    """The program with these events injected where they are."""
    config = NoiseConfig.from_events(events, window_ns=round(at.window_s * 1e9))
    return at.workload, (Injector(config, placement="origin"),)


def _stressor(at: Place, dose: float | None, **options: Any) -> Disturbed:
    return stressed(at, stressor_events(at, dose, **options))


def _check_noise(at: Place, noise: str, where: str) -> None:
    """Refuse noise that would compete with the program, and is to do something else."""
    if where == "program" and noise not in AT_THE_PROGRAM:
        raise InputError(
            f"noise of kind {noise} for the program's CPU",
            why="it would come from a helper on this CPU, which competes with the program",
            fix="where: others",
        )
    if noise == "ipi":
        check_interrupts()
        _ = at.last_cpu  # else the sender competes


def _shootdowns(at: Place, dose: float | None) -> Disturbed:
    """Another CPU makes those of the program forget its memory; in the sham memory that nobody
    uses, as often as the largest dose.
    """
    (cpu,) = at.last_cpu
    Shootdowns.check()
    return at.workload, (Shootdowns(cpu, dose or at.most, harmless=dose is None),)


def _quota(at: Place, dose: float | None) -> Disturbed:
    """A control group that takes a share of the program's CPU time away; the sham's none."""
    share = len(at.cpus) if dose is None else at.busy * (1 - dose)
    treated = treat_workload((CpuQuota(share),), at.workload)
    return treated.workload, treated.attachments


def _shake(at: Place, dose: float | None) -> Disturbed:
    """The program's affinity is changed so many times a second; of one that keeps one CPU busy, as
    threads would be sent to the CPU of another one and compete.
    """
    if at.busy > _BUSY:
        raise Unavailable(
            f"the program keeps {at.busy:.1f} CPUs busy, and its threads would share one",
            fix="one thread",
        )
    cpus = (at.cpus[0], *at.last_cpu) if len(at.cpus) == 1 else at.cpus
    if len(cpus) < 2:
        raise Unavailable("the program has one CPU only", fix="a machine with more CPUs")
    return at.workload, () if dose is None else (ShakenAffinity(cpus, 1 / dose),)


def _environment(at: Place, dose: float | None, variable: str, without: str) -> Disturbed:
    """A variable of the program's environment, which says how much of it there is."""
    value = without if dose is None else f"{dose:.0f}"
    if variable in dict(at.workload.env):
        raise Unavailable(f"the workload sets {variable} itself", fix="leave it out of its env")
    return replace(at.workload, env=with_variables(at.workload, {variable: value})), ()


KINDS: Mapping[str, Callable[..., Disturbed]] = {
    "stressor": _stressor,
    "quota": _quota,
    "shake": _shake,
    "shootdowns": _shootdowns,
    "environment": _environment,
}


def kind_of(factor: Factor) -> tuple[str, dict[str, Any]]:
    """How a factor is injected: the kind, and its arguments."""
    options = {name: one for name, one in factor.inject.items() if name not in ("doses", "unit")}
    return options.pop("kind"), options


def has_helper(factor: Factor) -> bool:
    """Whether somebody else's work makes the harm, who should not compete with the program.

    Parameters
    ----------
    factor
        A factor of the knowledge base, with `inject`.

    Examples
    --------
    >>> from nbhelpers.mitigation import factors
    >>> has_helper(factors()["tlb-shootdowns"]), has_helper(factors()["cpu-contention"])
    (True, False)
    """
    kind, noise = factor.inject["kind"], factor.inject.get("noise")
    return kind == "shootdowns" or (kind == "stressor" and noise != COMPETITOR)


def dose_names(factor: Factor) -> list[str]:
    """Names of the cells, from the sham to the most.

    Parameters
    ----------
    factor
        A factor of the knowledge base, with `inject`.

    Examples
    --------
    >>> from nbhelpers.mitigation import factors
    >>> dose_names(factors()["cpu-contention"])[:2]
    ['sham', '0.1 of each CPU']
    """
    unit = factor.inject["unit"]
    return [SHAM, *(f"{_number(dose)} {unit}" for dose in factor.inject["doses"])]


def _number(dose: float) -> str:
    return f"{dose:,.0f}" if dose >= 1 else f"{dose:g}"


def dose_cells(factor: Factor, workload: Workload, window_s: float, busy: float) -> list[Cell]:
    """The cells of a campaign: the sham, then one a dose, from the least to the most.

    Parameters
    ----------
    factor
        With `inject`.
    workload
        The program.
    window_s
        Longer than any run, doses included.
    busy
        CPUs that the program keeps busy.

    Raises
    ------
    Unavailable
        It cannot be injected here, to this program.
    """
    kind, options = kind_of(factor)
    make, doses = KINDS[kind], factor.inject["doses"]
    at = Place(workload, window_s, busy, max(doses))
    cells = []
    for name, dose in zip(dose_names(factor), (None, *doses), strict=True):
        disturbed, attachments = make(at, dose, **options)
        cells.append(Cell(name, disturbed, attachments=attachments))
    return cells
