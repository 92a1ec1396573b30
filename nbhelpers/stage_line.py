"""What is said of stages before and while they run: how long they will take, and one line of the
running one's name and doings.

Its kernel writes the line by itself, where we write, between two runs only. How long a stage takes
is not computed: it is what it took here the last time, or else on two virtual cores
(notebooks/stages.yml). A campaign says by itself how many runs it lacks, and how long they take.
"""

import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from .places import results
from .progress import HEAD, Stream, readable, reporting, stage_head
from .reading import read_json
from .stage_records import record_of
from .study import Study

SMALL_B = 2_000_000_000  # what a study and its environment need at least
_SAME = {"here": "quick", "record": "full"}  # profiles that nobody timed, and one that is alike


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
    study = Study(stage, profile)
    took = study.build / "provenance" / f"{stage}.json"
    if took.exists():
        return read_json(took).get("took_s")
    name = "recorded" if study.recorded_only else _SAME.get(profile, profile)
    minutes = record_of(stage).get("minutes", {}).get(name)
    return None if minutes is None else 60.0 * minutes


def outlook(profile: str, left: list[str], total: int) -> str:
    """What is said before the first of the stages that are left runs; empty where none is."""
    if not left:
        return ""
    known = [seconds for stage in left if (seconds := stage_seconds(stage, profile)) is not None]
    said = [f"PROFILE={profile}: {len(left)} of {total} stages are to be run"]
    if len(known) == len(left):
        took = "what they took here before, or on two virtual cores"
        said.append(f"about {readable(sum(known))}: {took}")
    free = shutil.disk_usage(results() / profile).free
    if free < SMALL_B:
        said.append(
            f"the disk may be too small: {free / 1e9:.1f} GB are free. What was measured until it"
            " is full is kept, and the same command goes on"
        )
    return "; ".join(said) + "."


@contextmanager
def shown(stage: str, seconds: float | None = None) -> Iterator[None]:
    """Within the block, what a stage and its kernel do is shown in one line. Its name stands
    before it, and how long it will take, or that it takes longer.
    """
    head = f"{stage} {seconds} {time.monotonic()}" if seconds else stage
    line = Stream(sys.stderr, 0.0, head=partial(stage_head, head))
    line.show("starting")
    os.environ[HEAD] = head
    try:
        with reporting(line):
            yield
    finally:
        os.environ.pop(HEAD, None)
        line.head = None
        line.end("")
