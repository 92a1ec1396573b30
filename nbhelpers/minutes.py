"""How long a stage takes, and what is said of it before, during and after `make paper`.

Nothing is computed from counts: what a stage took here the last time, or else what it took on two
virtual cores (notebooks/stages.yml). A campaign says by itself how many runs it lacks and how long
they will take.
"""

import os
import shutil
import time
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from .errors import NoisebookError
from .files import write_json
from .progress import readable
from .reading import read_json
from .stage_records import record_of
from .study import PAPER, Study

SMALL_B = 2_000_000_000  # what a study and its environment need at least
_SAME = {"here": "quick", "record": "full"}  # profiles that nobody timed, and one that is alike


@dataclass(frozen=True)
class Place:
    """Where a stage stands in the plan.

    Attributes
    ----------
    number, total
        It is the number-th of so many.
    seconds, seconds_after
        How long it, and those after it, should take; None where that is not known.
    """

    number: int = 1
    total: int = 1
    seconds: float | None = None
    seconds_after: float | None = None


def stage_seconds(stage: str, profile: str) -> float | None:
    """How long a stage took here the last time, or else on two virtual cores.

    Parameters
    ----------
    stage
        Name of the notebook.
    profile
        Its study; of a shared one, and of a user's, only what it took here is known.

    Returns
    -------
    Seconds; None where nobody knows.
    """
    took = _provenance(stage, profile)
    if took.exists():
        return read_json(took).get("took_s")
    study = Study(stage, profile)
    name = "recorded" if study.recorded_only else _SAME.get(profile, profile)
    minutes = record_of(stage).get("minutes", {}).get(name)
    return None if minutes is None else 60.0 * minutes


def _provenance(stage: str, profile: str) -> Path:
    return Study(stage, profile).build / "provenance" / f"{stage}.json"


def outlook(profile: str, stages: Collection[str]) -> str:
    """What is said before the first stage runs; empty where nothing is to be done.

    The plan is saved for the stages' lines.
    """
    left = _left(profile, stages)
    if not left:
        return ""
    seconds = {stage: stage_seconds(stage, profile) for stage in left}
    plan = {"began_unix_s": time.time(), "over": False, "seconds_left": seconds}
    write_json(_plan_path(profile), plan)
    said = [f"PROFILE={profile}: {len(left)} of {len(stages)} stages are to be run"]
    if all(value is not None for value in seconds.values()):
        total = sum(value or 0.0 for value in seconds.values())
        said.append(f"about {readable(total)}: what they took here before, or on two virtual cores")
    build = Study(PAPER, profile).build
    free = shutil.disk_usage(next(one for one in (build, *build.parents) if one.exists())).free
    if free < SMALL_B:
        said.append(
            f"the disk may be too small: {free / 1e9:.1f} GB are free. What was measured until it"
            " is full is kept, and the same command goes on"
        )
    return "; ".join(said) + "."


def _left(profile: str, stages: Collection[str]) -> list[str]:
    """The stages that will run: the first that changed since it was made, and all after it."""
    stages = list(stages)
    for number, stage in enumerate(stages):
        stamps = Study(stage, profile).build / "stamps"
        made, wanted = (stamps / f"{stage}.{kind}" for kind in ("done", "wanted"))
        if not (made.exists() and wanted.exists()):
            return stages[number:]
        if made.stat().st_mtime_ns < wanted.stat().st_mtime_ns:
            return stages[number:]
    return []


def _plan_path(profile: str) -> Path:
    return Study(PAPER, profile).build / "stamps" / "plan.json"


def place(stage: str, profile: str) -> Place:
    """Where a stage stands in the plan that `outlook` saved; alone where there is none."""
    path = _plan_path(profile)
    left = read_json(path)["seconds_left"] if path.exists() else {}
    if stage not in left:
        return Place()
    number = list(left).index(stage) + 1
    after = [value or 0.0 for value in list(left.values())[number:]]
    return Place(number, len(left), left[stage], sum(after))


def account(profile: str) -> str:
    """What is said at the end: how long it took, and where the page lies."""
    path = _plan_path(profile)
    page = os.path.relpath(Study(PAPER, profile).build / "paper" / "index.html")
    plan = read_json(path) if path.exists() else {}
    if plan.get("over", True):
        return f"Nothing was left to do. Open {page}"
    write_json(path, plan | {"over": True})
    return f"It took {readable(time.time() - plan['began_unix_s'])}. Open {page}"


def all_minutes(profile: str, stages: Collection[str]) -> dict[str, float]:
    """Stage → minutes, of those for which they are known."""
    try:
        seconds = {stage: stage_seconds(stage, profile) for stage in stages}
    except NoisebookError:
        return {}
    return {stage: value / 60 for stage, value in seconds.items() if value is not None}
