"""What benchmarks/account.py plants, and into what: groups of kinds that share a program."""

import os
from dataclasses import dataclass
from pathlib import Path

from _c_programs import build

from nbhelpers.injection.hog import Hog, Schedule, random_schedule
from nbhelpers.machine import online_cpus, settings
from nbhelpers.measurement import Attachment, calibrate
from nbhelpers.workloads import Workload, nbody, program_path, stream

NEVER_NS = 3600 * 10**9
SCHEDULED = 0.5  # of an undisturbed run, so that every block ends within the fastest one
REAL_TIME = {"75-400 us": (0.1, 0.075, 0.4), "0.5-5 ms": (0.2, 0.5, 5.0)}  # share, lengths in ms
NICE = (-5, 0, 10)
SLOWER = 0.7  # of the highest clock
OCCUPIED = ("kernel", "edges")


@dataclass(frozen=True)
class Kind:
    """Something that is planted.

    Attributes
    ----------
    attachment
        Plants it.
    causes
        Of the account, whose sum is compared with what was planted.
    named
        What the largest cause must be; "occupied" stands for kernel and edges.
    witness
        Who says how much was planted: a "loop" in the program's place, the "hog" (its CPU time), or
        the "CPU time" of the program in the idle run.
    """

    name: str
    attachment: Attachment
    causes: tuple[str, ...]
    named: str
    witness: str


@dataclass(frozen=True)
class Group:
    """Kinds that are measured in the same rounds, with one program; `idle` plants nothing."""

    name: str
    workload: Workload
    seconds: float
    idle: Attachment
    kinds: tuple[Kind, ...]


class NiceHog(Hog):
    """Ordinary hogs of a nice level."""

    def __init__(self, schedule: Schedule, nice: int):
        super().__init__(schedule, priority=0)
        self._nice = nice
        self.identity += f" nice {nice}"

    def _command(self, cpu, blocks):
        words = super()._command(cpu, blocks)
        return [*words[:4], str(program_path("nice")), "-n", str(self._nice), *words[4:]]


class Neighbour(Hog):
    """A process on another CPU (neighbour.c); idle: it sleeps all the time."""

    def __init__(self, program: Path, mode: str, cpu: int, idle: bool = False):
        start_ns = NEVER_NS if idle else 0
        super().__init__({cpu: [(start_ns, 1)]})
        self._words = [str(program), mode, str(cpu), str(start_ns)]
        self.identity = f"neighbour {mode} {cpu} {start_ns}"

    def _command(self, cpu, blocks):
        return [*super()._command(cpu, blocks)[:4], *self._words]


class SlowClock(Attachment):
    """A lower limit of the clock of all CPUs while a run lasts."""

    identity = f"clock at most {SLOWER:.0%}"

    def __init__(self, limits: dict[str, int]):
        self._limits = limits
        self._change: settings.Change | None = None

    def before(self, workload: Workload) -> None:
        self._change = settings.apply(self._limits)

    def after(self, run: dict) -> dict:
        self.close()
        return {}

    def close(self) -> None:
        if self._change is not None:
            self._change.restore()
        self._change = None


def clock_limits(root: Path = Path("/sys/devices/system/cpu")) -> dict[str, int]:
    """The files that limit the clocks of the CPUs, and the limits to write; none: not possible."""
    folders = [root / f"cpu{cpu}/cpufreq" for cpu in online_cpus()]
    files = [folder / "scaling_max_freq" for folder in folders]
    if not all(os.access(file, os.W_OK) for file in files):
        return {}
    return {
        str(file): int(SLOWER * int((file.parent / "cpuinfo_max_freq").read_text()))
        for file in files
    }


def skipped_kinds() -> dict[str, str]:
    """The kinds that this machine cannot have, and why."""
    skipped = {}
    if not clock_limits():
        skipped["slower clock"] = "no cpufreq here, or it cannot be written"
    if len(online_cpus()) < 2:
        skipped["neighbours"] = "there is one CPU"
    return skipped


def groups_of(folder: Path, seconds: float, seed: int) -> list[Group]:
    """All that this machine can have. The programs have one thread, on the first CPU: it waits for
    no other, so whatever is taken from it is lost.
    """
    cpus = online_cpus()
    folder.mkdir(parents=True, exist_ok=True)
    sized = calibrated(
        lambda size: nbody(size, 20, threads=1), 3000, seconds, folder / "nbody.json"
    )
    program = sized.placed("TP", cpus=cpus[:1])
    groups = [
        real_time(program, cpus[0], seconds, seed),
        ordinary(program, cpus[0], seconds, seed),
    ]
    if len(cpus) > 1:
        groups += neighbours(folder, program, cpus[0], cpus[-1], seconds)
    if limits := clock_limits():
        kind = Kind("slower clock", SlowClock(limits), ("slow_core",), "slow_core", "CPU time")
        groups.append(Group("clock", program, seconds, Attachment(), (kind,)))
    return groups


def calibrated(program, size: int, seconds: float, file: Path) -> Workload:
    return calibrate(program, size, target_seconds=seconds, file=file)


def real_time(program: Workload, cpu: int, seconds: float, seed: int) -> Group:
    kinds = [
        Kind(
            f"FIFO {name}",
            Hog(random_schedule(SCHEDULED * seconds, share, [cpu], seed, *lengths)),
            OCCUPIED,
            "occupied",
            "loop",
        )
        for name, (share, *lengths) in REAL_TIME.items()
    ]
    return Group("real-time", program, seconds, Hog({cpu: [(NEVER_NS, 1)]}), tuple(kinds))


def ordinary(program: Workload, cpu: int, seconds: float, seed: int) -> Group:
    schedule = random_schedule(SCHEDULED * seconds, 0.6, [cpu], seed, 10, 40)
    kinds = [
        Kind(f"OTHER nice {nice}", NiceHog(schedule, nice), OCCUPIED, "occupied", "hog")
        for nice in NICE
    ]
    return Group("ordinary", program, seconds, NiceHog({cpu: [(NEVER_NS, 1)]}, 0), tuple(kinds))


def neighbours(
    folder: Path, program: Workload, cpu: int, other: int, seconds: float
) -> list[Group]:
    """Beside the program a neighbour of its core, and one of its memory."""
    size = calibrated(
        lambda size: stream(size, 2**22, threads=1), 5, seconds, folder / "stream.json"
    )
    victims = {"core": program, "bandwidth": size.placed("TP", cpus=(cpu,))}
    causes = {"core": "slow_core", "bandwidth": "slow_memory"}
    neighbour = build(folder, "neighbour")
    return [
        Group(
            mode,
            victim,
            seconds,
            Neighbour(neighbour, mode, other, idle=True),
            (
                Kind(
                    f"neighbour: {mode}",
                    Neighbour(neighbour, mode, other),
                    (causes[mode],),
                    causes[mode],
                    "CPU time",
                ),
            ),
        )
        for mode, victim in victims.items()
    ]
