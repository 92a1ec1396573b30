"""What each stage will do on this machine: the full method, something in its place, or a part left
out, and the command that gets the rest.

Owns the promises that `make doctor` makes and that the pages repeat at their top. Which parts
matter to a stage stands in its record (`without` in notebooks/stages.yml), what is said of them in
data/knowledge/doctor.yml. Each is decided by the very check that the stage itself makes
(capabilities, mitigations, design; those of an extra are its own), so that the doctor, the pages
and the measurements cannot disagree.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from .errors import Unavailable
from .extras import checks, findings
from .machine import Doctor, doctor, topology
from .machine.checks import Capabilities, texts, wrapped
from .mpi import installation
from .profiles import default_parameters, parameters_of
from .stage_records import record_of
from .studies.design import why_missing
from .study import NO_STAGES, PAPER, notebook_files
from .workloads import configurations, existing_configurations

FULL, REPLACED, LEFT_OUT = "full method", "replaced", "left out"
Parameters = Mapping[str, Any]  # of a stage: the profile's values, or else the notebook's own
Part = tuple[str, str, str, str]  # what a promise is about, its state, sentence and fix


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


def promises(
    profile: str = "quick", stages: Iterable[str] | None = None, found: Doctor | None = None
) -> list[Promise]:
    """What the stages will do here.

    Parameters
    ----------
    profile
        Whose parameters decide which causes, allocators and configurations are requested.
    stages
        Names of notebooks; None: all, in their order.
    found
        Findings of `doctor`; None: looked up now.

    Returns
    -------
    One or more promises a stage; a stage of which nothing is replaced or left out has one of the
    state "full method".

    Examples
    --------
    >>> [promise.state for promise in promises("quick", ["00-machine"])]
    ['full method']
    """
    found = found or doctor()
    if stages is None:
        stages = [stage for stage in notebook_files() if stage not in NO_STAGES]
    made = []
    for stage in stages:
        own = [Promise(stage, *part) for part in _parts(stage, profile, found)]
        made += own or [Promise(stage, "", FULL, "the full method")]
    return made


def _parts(stage: str, profile: str, found: Doctor) -> Iterator[Part]:
    """What the stage lacks here, in the order of its record."""
    look_ups = _LOOK_UPS | checks()
    for entry in record_of(stage).get("without", ()):
        name, argument = next(iter(entry.items())) if isinstance(entry, dict) else (entry, None)
        if name in look_ups:
            parameters = default_parameters(stage) | parameters_of(stage, profile)
            yield from look_ups[name](parameters, argument)
        elif said := texts()["without"][name].get(_case(name, found.capabilities)):
            fixes = [one.fix for one in found.checks if one.name == said.get("check") and one.fix]
            sentence = said.get("sentence") or argument or ""
            yield said["part"], said["state"], sentence, [*fixes, said.get("fix", "")][0]


def _case(name: str, can: Capabilities) -> str:
    """Which case of a part this machine is; one without a text: nothing is lacking."""
    if name == "hypervisor":
        return "seen" if can.tracer == "tracepoints" else "unseen"
    if name == "real-time":
        liftable = can.fair_server if can.rt_throttling_liftable else "throttled"
        return liftable if can.fifo else "ordinary"
    if name == "counters":
        return "hardware" if can.perf_hardware else "software" if can.perf_software else "none"
    if name == "clock":
        from .measurement import FrequencyLogger

        return "readable" if FrequencyLogger().reads_frequency else "unreadable"
    if name == "mpi":
        with suppress(Unavailable):
            installation()
            return "installed"
        return "none"
    return can.tracer


# ---- what is looked up in the parameters of a stage ----------------------------------------------


def _models(parameters: Parameters, parameter: str) -> Iterator[Part]:
    """Programming models, or compilers, that the stage is asked for and that are not installed."""
    for model in str(parameters[parameter]).split():
        if reason := why_missing(model):
            said = texts()["without"]["models"][model]
            yield model, LEFT_OUT, f"{said['sentence']} left out: {reason}.", said["fix"]


def _configurations(parameters: Parameters, families: list[str]) -> Iterator[Part]:
    names = str(parameters["configs"]).split()
    listed = configurations(topology(), os.sched_getaffinity(0), families, names)
    requested = names or [one.name for one in listed]
    there = {one.name for one in existing_configurations(listed, requested)}
    reasons: dict[str, list[str]] = {}
    for one in listed:
        if one.name in requested and one.name not in there:
            reasons.setdefault(one.missing, []).append(one.name)
    for reason, missing in reasons.items():
        verb = "is" if len(missing) == 1 else "are"
        yield "configurations", LEFT_OUT, f"{', '.join(missing)} {verb} left out: {reason}.", ""


def _allocators(parameters: Parameters, argument: None) -> Iterator[Part]:
    from .mitigation import mitigations

    for name in parameters["allocators"]:
        if name in mitigations() and not (answer := mitigations()[name].possible()):
            yield name, LEFT_OUT, f"The allocator {name} is left out: {answer.reason}.", answer.fix


_LOOK_UPS: dict[str, Callable[[Parameters, Any], Iterable[Part]]] = {
    "models": _models,
    "configurations": _configurations,
    "allocators": _allocators,
}

# ---- what is said --------------------------------------------------------------------------------


def _together(made: Iterable[Promise]) -> dict[Promise, str]:
    """Each promise a single time, and the stages that it is about."""
    about: dict[Promise, list[str]] = {}
    for one in made:
        about.setdefault(replace(one, stage=""), []).append(one.stage[:2])
    return {one: ", ".join(stages) for one, stages in about.items()}


def replaced_or_left_out(profile: str, stage: str, found: Doctor | None = None) -> list[str]:
    """The sentences for the top of a stage's page; of the paper those of all stages, each
    a single time, with the stages that it is about.
    """
    made = promises(profile, None if stage == PAPER else [stage], found)
    about = _together(one for one in made if one.state != FULL)
    return [f"{one} (stage {of})" if stage == PAPER else str(one) for one, of in about.items()]


def text(profile: str = "quick", found: Doctor | None = None) -> str:
    """The promises for a terminal of 100 columns: each a single time, with the stages that it is
    about.
    """
    lines = [f"What make paper PROFILE={profile} will do here:"]
    for one, stages in _together(promises(profile, found=found)).items():
        words = f"{one.part} {one.state}: {one.sentence}" if one.part else one.sentence
        of = "Stages" if "," in stages else "Stage"
        lines += ["", *wrapped("  ", f"{of} {stages}: {words}")]
        lines += wrapped("    ", f"fix: {one.fix}") if one.fix else []
    others = {"MPI": _mpi()} | {f"extra {name}": finding for name, finding in findings().items()}
    lines += [""]
    for name, words in others.items():
        lines += wrapped(f"  {name}: ", words)
    return "\n".join(lines)


def _mpi() -> str:
    try:
        return str(installation())
    except Unavailable as error:
        return f"{error.what}: {error.why}; {error.fix}"
