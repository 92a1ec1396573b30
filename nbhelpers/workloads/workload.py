"""What is run: a command with its environment, its place on the machine and its timed region.

Owns the `Workload` record and the placements Rm, TP, HK and HK2; the programs themselves are in
`programs`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from ..errors import InputError, check_choice
from ..facts import facts_html
from ..outcomes import Outcome
from . import mpi, sycl
from ._cpus import HOUSEKEEPING_SHARES, cores, format_cpu_list, keep_house, usable_cpus
from .reader import NEITHER, Reader
from .region import Region, as_region

MODELS = ("omp", "sycl", "mpi", "external")
STARTS = ("mark", "main", "exec")
CONFIGS = tuple(base + house for base in ("Rm", "TP") for house in HOUSEKEEPING_SHARES)


@dataclass(frozen=True)
class Workload:
    """A command that can be run, timed and compared; equal workloads are equal records.

    Parameters
    ----------
    name
        What tables and figures call it.
    model
        "omp", "sycl", "mpi" or "external".
    command
        The program and its arguments.
    config
        Its placement, as in Persson et al. 2025, sec. 5 (Rm, RmHK, RmHK2, TP, TPHK, TPHK2); see
        `placed`.
    env
        Variables added to the environment; a mapping is stored as sorted pairs.
    start
        Where it waits for the common start: "mark" (its timed region), "main" or
        "exec" (CONTRIBUTING.md).
    cpus
        The CPUs it is confined to; None: all.
    timeout_s
        It is killed when it takes longer to the start, or from the start to the end.
    reader
        How the output of a program that is not ours is read; None: only the protocol line of ours.
    region
        Where its timed region begins and ends, as a `Region` or what `as_region` takes; None: marks
        if start is "mark", else the whole process. Kinds that wait where the region begins (marks,
        symbols, mpi) need start="mark".
    outcome
        Which number runs are judged by: "seconds" (the time that the program reports, else the
        length of the region), or the name of a report of `reader`.

    Raises
    ------
    InputError
        A field that cannot be used.

    Examples
    --------
    >>> Workload("wait", "external", ("/usr/bin/sleep", "0.01"), start="exec")
    Workload(wait, external, Rm: /usr/bin/sleep 0.01)
    """

    name: str
    model: str
    command: tuple[str, ...]
    config: str = "Rm"
    env: tuple[tuple[str, str], ...] = ()
    start: str = "mark"
    cpus: tuple[int, ...] | None = None
    timeout_s: float = 60.0
    reader: Reader | None = None
    region: Region = None  # type: ignore[assignment]  # set by __post_init__
    outcome: str = "seconds"

    def __post_init__(self):
        pairs = self.env.items() if isinstance(self.env, Mapping) else self.env
        object.__setattr__(
            self, "env", tuple(sorted((str(key), str(value)) for key, value in pairs))
        )
        command = (self.command,) if isinstance(self.command, str) else self.command
        object.__setattr__(self, "command", tuple(str(word) for word in command))
        if self.cpus is not None:
            object.__setattr__(self, "cpus", tuple(sorted({int(cpu) for cpu in self.cpus})))
        default_region = "marks" if self.start == "mark" else "process"
        region = default_region if self.region is None else self.region
        object.__setattr__(self, "region", as_region(region))
        _check(self)

    def __repr__(self) -> str:
        words = " ".join(self.command)
        return (
            f"Workload({self.name}, {self.model}, {self.config}:"
            f" {words if len(words) < 60 else words[:57] + '...'})"
        )

    def _repr_html_(self) -> str:
        facts = {
            "command": " ".join(self.command),
            "programming model": self.model,
            "placement": self.config,
            "CPUs": "all" if self.cpus is None else format_cpu_list(self.cpus),
            "environment": [f"{name}={text}" for name, text in self.env],
            "timed region": self.region.kind,
            "waits for the common start": self.start,
            "judged by": self.outcome,
            "time limit (s)": self.timeout_s,
        }
        return facts_html(f"Workload {self.name}", facts)

    @property
    def judged(self) -> Outcome:
        """What runs of it are judged by."""
        return {"seconds": Outcome(), **_judgeable(self)}[self.outcome]

    @property
    def reported(self) -> dict[str, Outcome]:
        """The numbers besides the time by which runs may be judged, by column."""
        return {name: one for name, one in _judgeable(self).items() if name != "seconds"}

    def placed(self, config: str, cpus: tuple[int, ...] | None = None) -> "Workload":
        """The same workload in another placement (Persson et al. 2025, sec. 5).

        Rm lets threads roam; TP pins them (OMP_PROC_BIND=close, OMP_PLACES a CPU each, one of each
        core first); HK and HK2 reserve 12.5 % and 25 % of the cores, at least one,
        for the system.

        Parameters
        ----------
        config
            Rm, RmHK, RmHK2, TP, TPHK or TPHK2.
        cpus
            The CPUs to place it on, before housekeeping takes its part; None: all that this process
            may use.

        Raises
        ------
        InputError
            No such placement, too few cores, or pinning of a program that is neither OpenMP,
            SYCL nor MPI.
        """
        check_choice("placement", config, CONFIGS)
        base, house = config[:2], config[2:]
        available = usable_cpus() if cpus is None else tuple(sorted(set(cpus)))
        strangers = set(available) - set(usable_cpus())
        if strangers or not available:
            raise InputError(
                f"CPUs {format_cpu_list(tuple(sorted(strangers))) or '(none)'} cannot be used by"
                " this process",
                where=f"it may use {format_cpu_list(usable_cpus())}",
            )
        chosen = keep_house(available, HOUSEKEEPING_SHARES[house], config) if house else available
        # one of each core first: fewer threads than CPUs share no core
        by_core = zip_longest(*cores(chosen))
        ordered = [cpu for mates in by_core for cpu in mates if cpu is not None]
        return self.on(config, base, ordered)

    def on(self, config: str, base: str, cpus: Sequence[int], threads: int = 0) -> "Workload":
        """The same workload on some CPUs.

        Parameters
        ----------
        config
            What the placement is called.
        base
            Rm or TP.
        cpus
            In the order in which threads get them.
        threads
            Number of threads; 0: as the workload has it, at most one a CPU.

        Raises
        ------
        InputError
            Pinning of a program that is neither OpenMP, SYCL nor MPI.
        """
        if base == "TP" and self.model not in ("omp", "sycl", "mpi"):
            raise InputError(
                f"how to pin the threads of a program of model '{self.model}' is not known",
                where=self.name,
                fix='use model="omp" if it is an OpenMP program, or pass env and cpus yourself',
            )
        env = dict(self.env)
        if self.model == "sycl":
            env |= {sycl.THREADS: str(threads)} if threads else {}
            ours = self.region.kind == "marks"
            env = sycl.placed_env(env, base, tuple(sorted(cpus)), ours=ours)
        elif self.model == "mpi":
            env = mpi.without_placement(env) | mpi.placed_env(base, cpus)
        elif self.model == "omp":
            env = _openmp_env(env, base, cpus, threads)
        confined = None if set(cpus) == set(usable_cpus()) else tuple(cpus)
        return replace(self, config=config, cpus=confined, env=tuple(env.items()))


def _openmp_env(
    env: dict[str, str], base: str, cpus: Sequence[int], threads: int
) -> dict[str, str]:
    """A place a thread; the number of threads is changed where it is given, or is too large."""
    env.pop("OMP_PLACES", None)
    count = str(threads or min(int(env.get("OMP_NUM_THREADS", len(cpus))), len(cpus)))
    if threads or "OMP_NUM_THREADS" in env:
        env["OMP_NUM_THREADS"] = count
    if "OMP_THREAD_LIMIT" in env:
        env["OMP_THREAD_LIMIT"] = count
    if base == "Rm":
        return env | {"OMP_PROC_BIND": "false"}
    places = ",".join(f"{{{cpu}}}" for cpu in cpus)
    return env | {"OMP_PROC_BIND": "close", "OMP_PLACES": places}


def _judgeable(workload: Workload) -> dict[str, Outcome]:
    reports = workload.reader.reports if workload.reader else ()
    return {one.name: one.outcome for one in reports if one.direction != NEITHER}


def _check(workload: Workload) -> None:
    where = f"workload '{workload.name}'"
    if not workload.command or not workload.command[0]:
        raise InputError("the command is empty", where=where)
    for field, choices in (("model", MODELS), ("start", STARTS)):
        check_choice(field, getattr(workload, field), choices, where)
    words = [*workload.command, *(part for pair in workload.env for part in pair)]
    limit, cpus = workload.timeout_s, workload.cpus
    wrong = {
        f"timeout_s is {limit}; it must be above 0 and at most 1e6": not 0 < limit <= 1e6,
        "a word of the command or the environment holds a zero byte": "\0" in "".join(words),
        "the name of an environment variable is empty or holds '='": any(
            not key or "=" in key for key, _ in workload.env
        ),
        "cpus is empty or holds a negative number": cpus is not None and min(cpus, default=-1) < 0,
    }
    if what := next((what for what, is_so in wrong.items() if is_so), ""):
        raise InputError(what, where=where)
    _check_region_and_outcome(workload, where)


def _check_region_and_outcome(workload: Workload, where: str) -> None:
    if workload.region.armed != (workload.start == "mark"):
        raise InputError(
            f"start is '{workload.start}' and the region is of kind '{workload.region.kind}'",
            where=where,
            why=(
                "the program waits either where its region begins (marks, symbols, mpi) or before"
                " it runs"
            ),
            fix=(
                'start="mark" for marks, symbols and mpi; start="main" or "exec" for process and'
                " lines"
            ),
        )
    outcomes = list(dict.fromkeys(("seconds", *_judgeable(workload))))
    if workload.outcome not in outcomes:
        raise InputError(
            f"the outcome '{workload.outcome}' is no report of the program",
            where=where,
            fix=f"choose one of {', '.join(outcomes)}, or describe it: reports=[Report(…)], on the"
            f" command line --report '{workload.outcome}=(?P<value>[0-9.]+)'",
        )
