"""What each stage will do on this machine: the full method, something in its place, or a part left
out, and the command that gets the rest.

Owns the promises that `make doctor` makes and that the pages repeat at their top. Which parts
matter to a stage, and what is told without them, stands in its record (`without` in
notebooks/stages.yml). Each is decided by the very check that the stage itself makes (capabilities,
mitigations, design; those of an extra are its own), so that the doctor, the pages and the
measurements cannot disagree.
"""

import argparse
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from .errors import Unavailable
from .extras import checks, findings
from .machine import Doctor, doctor, topology
from .machine.checks import wrapped
from .mpi import installation
from .profiles import default_parameters, parameters_of
from .stage_records import record_of
from .studies.design import why_missing
from .study import NO_STAGES, PAPER, notebook_files
from .workloads import configurations, existing_configurations

FULL, REPLACED, LEFT_OUT = "full method", "replaced", "left out"
_NAME_WIDTH = 25


@dataclass(frozen=True)
class Promise:
    """One line about one stage."""

    stage: str  # name of the notebook
    part: str  # what it is about, such as "kernel tracer"; "" for the full method
    state: str  # "full method", "replaced" or "left out"
    sentence: str  # what takes its place, or what is left out and why
    fix: str = ""  # the command that gets the rest; "" where there is none

    def __str__(self) -> str:
        return self.sentence + (f" To change that: {self.fix}." if self.fix else "")


class Here:
    """What the promises are made of: the doctor's findings, and the parameters of a profile.

    Parameters
    ----------
    profile
        Whose parameters decide which causes, allocators and configurations are requested.
    found
        Findings of `doctor`; None: looked up now.
    """

    def __init__(self, profile: str = "quick", found: Doctor | None = None):
        self.profile, self._found = profile, found

    @cached_property
    def doctor(self) -> Doctor:
        """The findings; looked up a single time."""
        return self._found or doctor()

    def fix(self, check: str) -> str:
        """The command that the doctor has for one of its checks."""
        return next((found.fix for found in self.doctor.checks if found.name == check), "")

    def parameter(self, stage: str, name: str) -> Any:
        """The value of a notebook's parameter: the profile's, or else the notebook's default."""
        return (default_parameters(stage) | parameters_of(stage, self.profile))[name]


def promises(
    profile: str = "quick", stages: Iterable[str] | None = None, found: Doctor | None = None
) -> list[Promise]:
    """What the stages will do here.

    Parameters
    ----------
    profile
        Whose parameters count.
    stages
        Names of notebooks; None: all, in their order.
    found
        Findings of `doctor`.

    Returns
    -------
    One or more promises a stage; a stage of which nothing is replaced or left out has one of the
    state "full method".

    Examples
    --------
    >>> [promise.state for promise in promises("quick", ["00-machine"])]
    ['full method']
    """
    here = Here(profile, found)
    names = (
        list(stages)
        if stages is not None
        else [stage for stage in notebook_files() if stage not in NO_STAGES]
    )
    return [promise for stage in names for promise in _of_stage(stage, here)]


def _of_stage(stage: str, here: Here) -> list[Promise]:
    made = []
    known = _CHECKS | checks()
    for entry in record_of(stage).get("without", ()):
        name, argument = next(iter(entry.items())) if isinstance(entry, dict) else (entry, None)
        made += [Promise(stage, *rest) for rest in known[name](stage, here, argument)]
    return made or [Promise(stage, "", FULL, "the full method")]


# ---- what each part means to a stage: (part, state, sentence, fix) ------------------------------

_Parts = Iterable[tuple[str, str, str, str]]


def _tracer(stage: str, here: Here, argument: str, state: str = REPLACED) -> _Parts:
    """`argument`: the sentence where only the detour loop sees noise."""
    tracer = here.doctor.capabilities.tracer
    if tracer == "tracepoints" and state == REPLACED:
        yield (
            "kernel tracer",
            REPLACED,
            (
                "The osnoise tracer is replaced by ordinary tracepoints, turned into the same"
                " events by the kernel's own net-duration rule."
            ),
            here.fix("osnoise tracer"),
        )
    if tracer == "detours":
        yield "kernel tracer", state, argument, here.fix("tracepoints")


def _only_tracepoints(stage: str, here: Here, argument: None) -> _Parts:
    if here.doctor.capabilities.tracer != "tracepoints":
        fix = here.fix("tracepoints") or 'record with tracepoints: Tracer(…, source="tracepoints")'
        yield (
            "time of the hypervisor",
            LEFT_OUT,
            (
                "What the hypervisor took is not told apart, and no loop runs beside the trace: "
                "both need a recording of tracepoints."
            ),
            fix,
        )


def _realtime(stage: str, here: Here, argument: None) -> _Parts:
    can = here.doctor.capabilities
    if not can.fifo:
        yield (
            "real-time scheduling",
            REPLACED,
            (
                "SCHED_FIFO is replaced by SCHED_OTHER: the scheduler shares the CPU between noise"
                " and workload, so noise that is injected or planted has less effect than the"
                " recorded one."
            ),
            here.fix("real-time scheduling"),
        )
    elif not can.rt_throttling_liftable:
        yield (
            "real-time throttling",
            REPLACED,
            "SCHED_FIFO noise beyond 0.95 s in a second is cut: real-time throttling stays on.",
            here.fix("real-time throttling"),
        )
    elif can.fair_server == "locked":
        yield (
            "fair server",
            REPLACED,
            (
                "SCHED_FIFO noise that fills a CPU for 0.95 s is interrupted for up to 54 ms: the"
                " kernel's fair server stays on."
            ),
            here.fix("fair server"),
        )


def _counters(stage: str, here: Here, argument: None) -> _Parts:
    can = here.doctor.capabilities
    if not can.perf_hardware:
        others = (
            "resource usage, the kernel's counters and software events"
            if can.perf_software
            else "resource usage and the kernel's counters; software events are missing too"
        )
        yield (
            "hardware counters",
            REPLACED,
            f"Hardware counters are replaced by {others}.",
            here.fix("hardware counters"),
        )


_MODELS = {
    "sycl": ("SYCL programs are", "make sycl ACCEPT_LICENCE=yes"),
    "omp": ("OpenMP programs are", "make env"),
    "clang": (
        "Programs built by clang are",
        "apt-get install clang libomp-dev; rm build/c-parts; make env",
    ),
    "gcc": ("Programs built by gcc are", "make env"),
}


def _models(stage: str, here: Here, parameter: str) -> _Parts:
    """Programming models, or compilers, that the stage is asked for and that are not installed."""
    for model in str(here.parameter(stage, parameter)).split():
        if reason := why_missing(model):
            subject, command = _MODELS[model]
            yield model, LEFT_OUT, f"{subject} left out: {reason}.", command


def _configurations(stage: str, here: Here, families: list[str]) -> _Parts:
    names = str(here.parameter(stage, "configs")).split()
    listed = configurations(topology(), os.sched_getaffinity(0), families, names)
    requested = names or [one.name for one in listed]
    there = {one.name for one in existing_configurations(listed, requested)}
    reasons: dict[str, list[str]] = {}
    for one in listed:
        if one.name in requested and one.name not in there:
            reasons.setdefault(one.missing, []).append(one.name)
    for reason, names in reasons.items():
        verb = "is" if len(names) == 1 else "are"
        yield "configurations", LEFT_OUT, f"{', '.join(names)} {verb} left out: {reason}.", ""


def _allocators(stage: str, here: Here, argument: None) -> _Parts:
    from .mitigation import mitigations

    for name in here.parameter(stage, "allocators"):
        if name in mitigations() and not (answer := mitigations()[name].possible()):
            yield name, LEFT_OUT, f"The allocator {name} is left out: {answer.reason}.", answer.fix


def _clock(stage: str, here: Here, argument: None) -> _Parts:
    from .measurement import FrequencyLogger

    if not FrequencyLogger().reads_frequency:
        yield (
            "clock frequency",
            REPLACED,
            (
                "The clock frequency cannot be read: what the hypervisor took of each run stands in"
                " its place."
            ),
            here.fix("CPU frequency"),
        )


def _real_ranks(stage: str, here: Here, argument: None) -> _Parts:
    """Real ranks need an MPI, which is an optional extra."""
    try:
        installation()
    except Unavailable:
        yield (
            "MPI",
            LEFT_OUT,
            "No program runs on real ranks: no MPI is installed for Noisebook.",
            "make mpi",
        )


_CHECKS: dict[str, Callable[..., _Parts]] = {
    "tracer": _tracer,
    "tracer, or left out": partial(_tracer, state=LEFT_OUT),
    "hypervisor": _only_tracepoints,
    "real-time": _realtime,
    "counters": _counters,
    "models": _models,
    "configurations": _configurations,
    "allocators": _allocators,
    "clock": _clock,
    "mpi": _real_ranks,
}


def replaced_or_left_out(profile: str, stage: str, found: Doctor | None = None) -> list[str]:
    """The sentences for the top of a stage's page; of the paper those of all stages, each
    a single time, with the stages that it is about.
    """
    made = [
        promise
        for promise in promises(profile, None if stage == PAPER else [stage], found)
        if promise.state != FULL
    ]
    if stage != PAPER:
        return [str(promise) for promise in made]
    about: dict[str, list[str]] = {}
    for promise in made:
        about.setdefault(str(promise), []).append(promise.stage[:2])
    return [f"{sentence} (stage {', '.join(stages)})" for sentence, stages in about.items()]


def text(profile: str = "quick", found: Doctor | None = None) -> str:
    """The promises for a terminal of 100 columns: a line a stage, and below what the numbers in it
    mean.
    """
    made = promises(profile, found=found)
    numbers: dict[tuple[str, str], int] = {}
    for promise in made:
        if promise.state != FULL:
            numbers.setdefault((promise.sentence, promise.fix), len(numbers) + 1)
    lines = [f"What make paper PROFILE={profile} will do here:"]
    for stage in dict.fromkeys(promise.stage for promise in made):
        lines += wrapped(
            f"  {stage:<{_NAME_WIDTH}}",
            _in_a_line([one for one in made if one.stage == stage], numbers),
        )
    lines += wrapped(f"  {'MPI':<{_NAME_WIDTH}}", _mpi())
    for name, finding in findings().items():
        lines += wrapped(f"  {f'extra {name}':<{_NAME_WIDTH}}", finding)
    lines += [""] if numbers else []
    for (sentence, fix), number in numbers.items():
        lines += wrapped(f"  [{number}]".ljust(7), sentence)
        lines += wrapped(" " * 7, f"fix: {fix}") if fix else []
    return "\n".join(lines)


def _mpi() -> str:
    try:
        return str(installation())
    except Unavailable as error:
        return f"{error.what}: {error.why}; {error.fix}"


def _in_a_line(made: list[Promise], numbers: Mapping[tuple[str, str], int]) -> str:
    parts = []
    for state in (REPLACED, LEFT_OUT):
        named = [
            f"{one.part} [{numbers[one.sentence, one.fix]}]" for one in made if one.state == state
        ]
        parts += [f"{state}: {', '.join(named)}"] if named else []
    return "; ".join(parts) or FULL


def main() -> None:
    """`python -m nbhelpers.promise [--profile P]`: the doctor's report, and what each stage will
    do.
    """
    parser = argparse.ArgumentParser(
        description="what this machine can do, and what each stage of `make paper` will do on it"
    )
    parser.add_argument("--profile", default="quick")
    profile, found = parser.parse_args().profile, doctor()
    print(found.checks_text(), text(profile, found), sep="\n\n")


if __name__ == "__main__":
    main()
