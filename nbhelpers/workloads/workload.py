"""What is run: a command with its environment, its place on the machine and its timed region.

Owns the `Workload` record and the placements Rm, TP, HK and HK2; the programs themselves are in
`programs`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ..errors import InputError
from ..facts import facts_html
from ..outcomes import Outcome
from . import mpi, sycl_env
from ._cpus import HOUSEKEEPING_SHARES, cores, format_cpu_list, keep_house, usable_cpus
from .reader import NEITHER, Reader
from .region import Region, as_region

MODELS = ("omp", "sycl", "mpi", "external")
STARTS = ("mark", "main", "exec")
CONFIGS = tuple(base + house for base in ("Rm", "TP") for house in HOUSEKEEPING_SHARES)
_UNBOUND = {"OMP_PROC_BIND": "false"}


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
            "environment": dict(self.env),
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

        Rm lets threads roam; TP pins them (OMP_PROC_BIND=close; OMP_PLACES=cores, or threads where
        several share a core); HK and HK2 reserve 12.5 % and 25 % of the cores, at least one,
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
        if config not in CONFIGS:
            raise InputError(
                f"there is no placement '{config}'", fix=f"choose one of {', '.join(CONFIGS)}"
            )
        base, house = config[:2], config[2:]
        available = usable_cpus() if cpus is None else tuple(sorted(set(cpus)))
        _check_available(available)
        chosen = keep_house(available, HOUSEKEEPING_SHARES[house], config) if house else available
        confined = chosen if house or cpus is not None else None
        return replace(
            self, config=config, cpus=confined, env=tuple(self._placed_env(base, chosen).items())
        )

    def _placed_env(self, base: str, cpus: tuple[int, ...]) -> dict[str, str]:
        env = dict(self.env)
        if self.model == "sycl":
            return sycl_env.placed_env(env, base, cpus, ours=self.region.kind == "marks")
        if self.model == "mpi":
            return mpi.without_placement(env) | mpi.placed_env(base, cpus)
        if self.model != "omp":
            if base == "TP":
                raise InputError(
                    f"how to pin the threads of a program of model '{self.model}' is not known",
                    where=self.name,
                    fix=(
                        'use model="omp" if it is an OpenMP program, or pass env and cpus yourself'
                    ),
                )
            return env
        for name in ("OMP_PROC_BIND", "OMP_PLACES"):
            env.pop(name, None)
        threads = min(int(env.get("OMP_NUM_THREADS", len(cpus))), len(cpus))
        if "OMP_NUM_THREADS" in env:
            env["OMP_NUM_THREADS"] = str(threads)
        if "OMP_THREAD_LIMIT" in env:
            env["OMP_THREAD_LIMIT"] = str(threads)
        if base == "Rm":
            return env | _UNBOUND
        places = "cores" if threads <= len(cores(cpus)) else "threads"
        return env | {"OMP_PROC_BIND": "close", "OMP_PLACES": places}


def _judgeable(workload: Workload) -> dict[str, Outcome]:
    reports = workload.reader.reports if workload.reader else ()
    return {one.name: one.outcome for one in reports if one.direction != NEITHER}


def _check(workload: Workload) -> None:
    where = f"workload '{workload.name}'"
    if not workload.command or not workload.command[0]:
        raise InputError("the command is empty", where=where)
    _check_choice("model", workload.model, MODELS, where)
    _check_choice("start", workload.start, STARTS, where)
    if not 0 < workload.timeout_s <= 1e6:
        raise InputError(
            f"timeout_s is {workload.timeout_s}; it must be above 0 and at most 1e6", where=where
        )
    variables = [part for pair in workload.env for part in pair]
    if any("\0" in text for text in (*workload.command, *variables)):
        raise InputError("a word of the command or the environment holds a zero byte", where=where)
    if any(not key or "=" in key for key, _ in workload.env):
        raise InputError("the name of an environment variable is empty or holds '='", where=where)
    _check_region_and_outcome(workload, where)
    if workload.cpus is not None and (not workload.cpus or min(workload.cpus) < 0):
        raise InputError("cpus is empty or holds a negative number", where=where)


def _check_choice(field: str, value: str, choices: tuple[str, ...], where: str) -> None:
    if value not in choices:
        raise InputError(
            f"{field} is '{value}'", where=where, fix=f"choose one of {', '.join(choices)}"
        )


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
                'start="mark" for marks, symbols and mpi; start="main" or "exec" for process, lines'
                " and roi"
            ),
        )
    outcomes = list(dict.fromkeys(("seconds", *_judgeable(workload))))
    if workload.outcome not in outcomes:
        raise InputError(
            f"the outcome '{workload.outcome}' is no report of the program",
            where=where,
            fix=(f"choose one of {', '.join(outcomes)}, or describe it: reports=[Report(…)]"),
        )


def _check_available(cpus: tuple[int, ...]) -> None:
    strangers = set(cpus) - set(usable_cpus())
    if strangers or not cpus:
        raise InputError(
            f"CPUs {format_cpu_list(tuple(sorted(strangers))) or '(none)'} cannot be used by this"
            " process",
            where=f"it may use {format_cpu_list(usable_cpus())}",
        )
