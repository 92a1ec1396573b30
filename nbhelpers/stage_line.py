"""What is said of stages before and while they run: how long they will take, and one line of the
running one's number, time and doings. Owns the pipe from its kernel and the words of the line.

The kernel writes into the pipe between two runs only; the thread that reads it sleeps until then.
How long a stage takes is not computed: it is what it took here the last time, or else on two
virtual cores (notebooks/stages.yml). A campaign says by itself how many runs it lacks and how long
they will take.
"""

import os
import re
import shutil
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from .files import write_json
from .places import results
from .progress import FIFO, Reporter, Stream, readable, reporting
from .reading import read_json
from .stage_records import record_of
from .study import Study

SMALL_B = 2_000_000_000  # what a study and its environment need at least
_SAME = {"here": "quick", "record": "full"}  # profiles that nobody timed, and one that is alike
Plan = Mapping[str, float | None]  # the stages that will run, with their seconds where known


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
    """What is said before the first of the stages that are left runs; empty where none is. The plan
    is saved for their lines.
    """
    if not left:
        return ""
    plan = {stage: stage_seconds(stage, profile) for stage in left}
    build = write_json(_plan_path(profile), plan).parent
    said = [f"PROFILE={profile}: {len(left)} of {total} stages are to be run"]
    known = [seconds for seconds in plan.values() if seconds is not None]
    if len(known) == len(plan):
        took = "what they took here before, or on two virtual cores"
        said.append(f"about {readable(sum(known))}: {took}")
    free = shutil.disk_usage(build).free
    if free < SMALL_B:
        said.append(
            f"the disk may be too small: {free / 1e9:.1f} GB are free. What was measured until it"
            " is full is kept, and the same command goes on"
        )
    return "; ".join(said) + "."


def _plan_path(profile: str) -> Path:
    return results() / profile / "stamps" / "plan.json"


class StageLine:
    """A reporter: the line of whatever runs, behind the stage's number, name and time.

    Parameters
    ----------
    stage
        Its name.
    plan
        The stages that run, this one among them; another stage stands alone.
    out
        Where the line goes; None: standard error, as a terminal or as a log.
    """

    after_s = 0.0

    def __init__(self, stage: str, plan: Plan, out: Reporter | None = None):
        self.stage, self.plan = stage, plan if stage in plan else {stage: None}
        self.out = out or Stream(sys.stderr, 0.0)
        self.began_s, self.cell = time.monotonic(), "starting"

    def show(self, line: str, urgent: bool = False) -> None:
        """Show what it does now."""
        self.out.show(f"{self._head()}  {line}", urgent)

    def end(self, line: str) -> None:
        """Something in it is over: the cell goes on."""
        self.show(self.cell)

    def at(self, cell: str) -> None:
        """The cell that begins."""
        self.cell = cell
        self.show(cell)

    def clear(self) -> None:
        """The stage is over."""
        self.out.end("")

    def _head(self) -> str:
        spent_s = time.monotonic() - self.began_s
        number, seconds = list(self.plan).index(self.stage), self.plan[self.stage]
        numbered = f"[{number + 1}/{len(self.plan)}] {self.stage} {spent_s:.0f} s"
        if seconds is None:
            return numbered
        after_s = sum(one or 0.0 for one in list(self.plan.values())[number + 1 :])
        left = readable(after_s + max(0.0, seconds - spent_s))
        return f"{numbered} of about {readable(seconds)}, {left} left in all:"


@contextmanager
def shown(stage: str, profile: str = "") -> Iterator[StageLine]:
    """Within the block, whatever runs is shown behind the number of the stage in the plan of its
    profile; "": it stands alone.
    """
    path = _plan_path(profile)
    line = StageLine(stage, read_json(path) if path.exists() else {})
    with reporting(line):
        try:
            yield line
        finally:
            line.clear()


@contextmanager
def listening(line: StageLine, folder: str | Path) -> Iterator[None]:
    """Within the block, what a kernel reports is shown; the pipe lies in `folder`."""
    path = Path(folder) / "progress"
    os.mkfifo(path, 0o600)
    # both ends: opening it waits for nobody, and a kernel's end is not the end
    pipe = os.fdopen(os.open(path, os.O_RDWR | os.O_CLOEXEC), "rb")
    thread = threading.Thread(target=_listen, args=(pipe, line), daemon=True)
    thread.start()
    os.environ[FIFO] = str(path)
    try:
        yield
    finally:
        os.environ.pop(FIFO, None)
        os.write(pipe.fileno(), b"\n")  # an empty line: the last
        thread.join()
        pipe.close()


def _listen(pipe: BinaryIO, line: StageLine) -> None:
    for one in pipe:
        text = one.decode(errors="replace").rstrip("\n")
        if not text:
            return
        line.end("") if text[0] == "." else line.show(text[1:], text[0] == "!")


def engine(line: StageLine) -> str:
    """Register papermill's engine once more, which says each heading that it comes to; its name."""
    from papermill.engines import NBClientEngine, papermill_engines

    class ShowsHeadings(NBClientEngine):
        @classmethod
        def execute_managed_notebook(cls, nb_man, kernel_name, **options):
            def begin(cell, cell_index=None, **more):
                headings = re.findall(r"^#+ (.+)", cell.source, re.MULTILINE)
                if headings and cell.cell_type == "markdown":
                    line.at(headings[-1])
                start(cell, cell_index, **more)

            start, nb_man.cell_start = nb_man.cell_start, begin
            return super().execute_managed_notebook(nb_man, kernel_name, **options)

    papermill_engines.register("noisebook", ShowsHeadings)
    return "noisebook"
