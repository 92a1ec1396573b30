"""Runs a notebook as a stage of the pipeline: parameters checked, machine locked, the result moved
into place only when whole.

`noisebook check`, `wanted` and `stage` are what the Makefile calls;
nothing here knows what a stage computes.
"""

import ctypes
import fcntl
import os
import re
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from .errors import InputError, Unavailable
from .extras import stages as extra_stages
from .files import (
    digest,
    disk_error,
    opened_folder,
    put_aside,
    to_json,
    write_atomically,
    write_json,
)
from .loaded import EXTENSION, LIST, digests, modules
from .measurement.seal import sha256
from .places import HOME, programs, results, shipped
from .profiles import adopted, check_parameters, notebook_of, parameters_of
from .progress import HEAD, readable, reporting, task
from .reading import read_json
from .schemas import jsonschema
from .stage_records import record_of
from .study import NO_STAGES, PAPER, Study, notebook_files

_SET_PARENT_DEATH_SIGNAL = 1  # prctl(2)
MANIFEST = "manifest.json"  # of a study: the SHA-256 of every file, by stage
STUDY = "study"  # in it: what stands in the folder of a study itself, its profile say
_FILES = """results/{0}/**/* data/{0}/**/* notebooks/{0}.ipynb pages/{0}.html provenance/{0}.json
  stamps/{0}.wanted stamps/{0}.made"""  # of a stage
_SMALL_B = 2_000_000_000  # what a study and its environment need at least
_FOR_PAPER = (".png", ".svg", ".pdf", ".html", ".tex")


def cells_digest(content: dict) -> str:
    """Digest of a notebook's cells; outputs, counts and metadata do not matter."""
    cells = content["cells"]
    return digest(
        *(part for cell in cells for part in (cell["cell_type"], "".join(cell["source"])))
    )


def write_wanted(profile: str, stages: list[str]) -> str:
    """For each stage, what it would be made from now; files whose content is the same are left
    alone. Returns which of them will run, and how long that will take; "": none. First it says
    which of the study's own files, its profile say, are others than at the last time.

    Parameters
    ----------
    profile
        Its name, or the path of a file.
    stages
        Names of notebooks, in order.

    Raises
    ------
    InputError
        What `parameters_of` refuses, of any stage, before the first one runs for hours.
    """
    profile = adopted(profile)
    made_from = {stage: _wanted(stage, profile) for stage in stages}
    for stage, wanted in made_from.items():
        _write_if_changed(_stamp(stage, profile, "wanted"), wanted)
    changed = _changed_files(Study(PAPER, profile).build, stages)
    needs, left = _needs(), list[str]()
    for stage in stages:
        before = needs[stage]
        if _is_stale(stage, before, profile) or set(before) & set(left):
            left.append(stage)
    return "\n".join(filter(None, [changed, _outlook(profile, left, len(stages))]))


def _outlook(profile: str, left: list[str], total: int) -> str:
    """What is said before the first of the stages that are left runs; empty where none is."""
    if not left:
        return ""
    expected = (Study(stage, profile).expected_s for stage in left)
    known = [seconds for seconds in expected if seconds is not None]
    said = [f"PROFILE={profile}: {len(left)} of {total} stages are to be run"]
    if len(known) == len(left):
        took = "what they took here before, or on two virtual cores"
        said.append(f"about {readable(sum(known))}: {took}")
    free = shutil.disk_usage(results() / profile).free
    if free < _SMALL_B:
        said.append(
            f"the disk may be too small: {free / 1e9:.1f} GB are free. What was measured until it"
            " is full is kept, and the same command goes on"
        )
    return "; ".join(said) + "."


def _changed_files(build: Path, stages: list[str]) -> str:
    """Promise anew what stages would be made from, and the files of the study itself; say which of
    the latter is another than at the last time.
    """
    now, then, said = whole_digests(build, STUDY), dict[str, dict[str, str]](), ""
    try:
        then = promised(build)
    except InputError as error:
        said = put_aside(build / MANIFEST, error.what)
    wanted = {stage: f"stamps/{stage}.wanted" for stage in stages if stage in then}
    anew = {stage: then[stage] | {name: sha256(build / name)} for stage, name in wanted.items()}
    _promise(build, anew | {STUDY: now})
    before = now | then.get(STUDY, {})
    if changed := [name for name in now if before[name] != now[name]]:
        said = f"Changed since the last time: {', '.join(changed)}"
    return said


def _stamp(stage: str, profile: str, kind: str) -> Path:
    return Study(stage, profile).build / "stamps" / f"{stage}.{kind}"


def _is_stale(stage: str, before: list[str], profile: str) -> bool:
    """Whether what it would be made from, or what the stages before it made, is newer than its last
    execution; the Makefile asks the same.
    """
    done, kind = _stamp(stage, profile, "done"), "done" if stage == PAPER else "made"
    inputs = [_stamp(stage, profile, "wanted"), *(_stamp(one, profile, kind) for one in before)]
    return not all(path.exists() for path in (done, *inputs)) or any(
        path.stat().st_mtime_ns > done.stat().st_mtime_ns for path in inputs
    )


def _wanted(stage: str, profile: str) -> dict:
    """What a stage would be made from now: of our files, those that its last kernel loaded."""
    loaded: dict[str, str] = {}
    with suppress(InputError):  # none yet, or damaged: it is written anew, and its stage runs again
        loaded = read_json(_stamp(stage, profile, "wanted")).get("code", {})
    return {
        "notebook": cells_digest(read_json(notebook_of(stage))),
        "parameters": parameters_of(stage, profile),
        "code": digests(loaded),
        **_measures_with(stage, profile),
    }


def _measures_with(stage: str, profile: str) -> dict:
    """Our programs, and the optional parts of the machine that a stage makes use of, as they are
    now.
    """
    record = record_of(stage)
    if not record.get("measures") or Study(stage, profile).recorded_only:
        return {}
    from .machine.parts import optional_parts

    used = record.get("parts", [])
    files = programs().glob("**/*" if "programs" in used else "*")
    built = digest(*(path.read_bytes() for path in sorted(files) if path.is_file()))
    here = optional_parts(programs()) if used else {}
    return {"programs": built, "parts": {name: here[name] for name in used}}


def _write_if_changed(path: Path, value: dict) -> None:
    content = to_json(value).encode()
    if not path.exists() or path.read_bytes() != content:
        write_atomically(path, content)


def run_stage(stage: str, profile: str) -> Path:
    """Execute a stage's notebook; return its page. A failed stage stays unmade."""
    study, wanted, began = Study(stage, profile), _wanted(stage, profile), time.monotonic()
    notebook = study.build / "notebooks" / f"{stage}.ipynb"
    _promise(study.build, {stage: {}})  # until its end it promises nothing
    shutil.rmtree(study.results)  # what an older notebook saved there must not reach the paper
    with shown(stage, study.expected_s), _stage_lock(study):
        wanted["code"] = _execute(stage, notebook, wanted["parameters"])
        page = _export(study, notebook)
    wanted["code"] |= digests(modules("nbhelpers.page", "nbhelpers.paper"))
    write_json(study.build / "provenance" / f"{stage}.json", _provenance(study, wanted, began))
    _write_if_changed(_stamp(stage, profile, "made"), _made(study))
    _write_if_changed(_stamp(stage, profile, "wanted"), wanted)
    _promise(study.build, {stage: whole_digests(study.build, stage)})
    return page


def run_in(folder: Path, stage: str, parameters: dict, name: str) -> Path:
    """Execute a notebook that has a folder of its own, for a user's program or for studies side by
    side; return its page.

    Parameters
    ----------
    folder
        For the executed notebook and its page.
    stage
        Name of the notebook.
    parameters
        Of its cell tagged `parameters`.
    name
        The page's.

    Raises
    ------
    InputError
        A name that the notebook does not declare.
    """
    from .page import export_page

    check_parameters(stage, parameters, notebook_of(stage))
    executed, page = folder / f"{stage}.ipynb", folder / name
    with shown(stage):
        _execute(stage, executed, parameters, Path.cwd())  # what a command's paths start from
    export_page(executed, page, hide_code=True)
    return page


def make_paper(profile: str) -> Path:
    """Run all stages that are stale, in the order of the Makefile; return the paper's page: what
    `make paper` does, where there is no make.
    """
    profile, needs = adopted(profile), _needs()
    print(write_wanted(profile, list(needs)), flush=True)
    for stage, before in needs.items():
        if _is_stale(stage, before, profile):
            run_and_print(stage, profile)
            _stamp(stage, profile, "done").touch()
    return Study(PAPER, profile).build / "paper" / "index.html"


def _needs() -> dict[str, list[str]]:
    """Each stage in order, and the stages whose outcome it rests on, as the Makefile has them."""
    text = (shipped() / "Makefile").read_text(encoding="utf-8")
    needs: dict[str, list[str]] = {name: [] for name in notebook_files() if name not in NO_STAGES}
    for names, inputs in re.findall(r"^\$\(call after,(.*),(.*)\)$", text, re.MULTILINE):
        named = names.replace("$(EXTRA_STAGES)", " ".join(extra_stages())).split()
        needs |= {stage: inputs.split() for stage in named}
    before = sorted(stage for stage in needs if stage != PAPER)
    return {stage: needs[stage] for stage in before} | {PAPER: before}


def _provenance(study: Study, wanted: dict, began: float) -> dict:
    """What a page rests on, and how long it took; commit and environment are named, but do not make
    a stage stale by themselves.
    """
    from .machine import provenance

    code = digest(to_json(wanted["code"]))
    return {
        **provenance(wanted["parameters"]),
        "stage": study.stage,
        "made_from": {"notebook": wanted["notebook"], "code": code},
        "data_from": study.machine["machine"],
        "took_s": round(time.monotonic() - began, 1),
    }


def _execute(
    stage: str, notebook: Path, parameters: dict, cwd: Path | None = None
) -> dict[str, str]:
    """Execute a notebook; returns the files of ours that its kernel has loaded, with their digests.

    It runs in `cwd` (None: beside the notebooks) under a temporary name and takes its place only on
    success; a failed one is saved as ``STAGE.failed.ipynb`` for reading.
    """
    jsonschema()  # for papermill, which takes three seconds more without
    import papermill
    from traitlets.config import Config

    source = notebook_of(stage)
    notebook.parent.mkdir(parents=True, exist_ok=True)
    running, failed = (notebook.with_suffix(f".{state}.ipynb") for state in ("running", "failed"))
    failed.unlink(missing_ok=True)
    # Sockets in a folder of this stage alone: no other user can listen, and no stage that runs at
    # the same time (make -j) can mistake them for its own. A failed cell's error reaches us as a
    # message; the kernel would only log its end. Its standard error stays ours: it shows the line.
    arguments = ["--IPKernelApp.log_level=50", "--IPKernelApp.capture_fd_output=False"]
    arguments.append(f"--ext={EXTENSION}")
    folders = tempfile.TemporaryDirectory(prefix="noisebook-")
    with folders as folder, task("starting", urgent=True):
        kernel = {
            "KernelManager": {"transport": "ipc", "ip": f"{folder}/kernel"},
            "NotebookClient": {"extra_arguments": arguments},
        }
        os.environ[HOME] = str(results())  # the kernel runs in another folder
        os.environ[LIST] = f"{folder}/loaded.json"
        try:
            papermill.execute_notebook(
                str(source),
                str(running),
                parameters=parameters,
                kernel_name="python3",
                cwd=str(cwd or source.parent),
                progress_bar=False,
                start_timeout=120,
                config=Config(kernel),
            )
        except BaseException as error:
            if running.exists():
                running.replace(failed)
            raise _failure(error, failed) from None
        running.replace(notebook)
        return read_json(f"{folder}/loaded.json")


def _failure(error: Any, notebook: Path) -> BaseException:
    """papermill's error carries the failed cell's message; of a full disk, what to do about it.

    Anything else is a fault of ours and keeps its traceback.
    """
    if type(error).__name__ not in ("PapermillExecutionError", "DeadKernelError"):
        return error
    message = f"{error}; finished runs are kept, the same command goes on from here"
    if hasattr(error, "ename"):
        number = re.match(r"\[Errno (\d+)\]", error.evalue)
        full = disk_error(OSError(int(number[1]), error.evalue), notebook) if number else None
        message = str(full or f"{error.ename}: {error.evalue}")
    return InputError(f"{message}\n  the notebook as far as it came: {os.path.relpath(notebook)}")


@contextmanager
def shown(stage: str, seconds: float | None = None) -> Iterator[None]:
    """Within the block, what a stage and its kernel do is shown behind its name, and how long it
    will take.
    """
    head = os.environ[HEAD] = f"{stage} (about {readable(seconds)}): " if seconds else f"{stage}: "
    try:
        with reporting(sys.stderr, head):
            yield
    finally:
        os.environ.pop(HEAD, None)


@contextmanager
def _stage_lock(study: Study) -> Iterator[None]:
    """A stage that measures has the machine to itself, from before its kernel starts; the others
    run at the same time. Recorded data can be analysed, and the paper made, while somebody
    measures: at the lowest priority, unlocked.
    """
    from .machine import measuring

    waits = not study.recorded_only and study.stage != PAPER
    alone = record_of(study.stage).get("measures", False) and waits
    with ExitStack() as stack:
        try:
            stack.enter_context(measuring(exclusive=alone, wait=waits))
        except Unavailable:
            if waits:
                raise
            os.nice(19)
        yield


def _export(study: Study, notebook: Path) -> Path:
    from .page import export_page

    page = study.build / "pages" / f"{study.stage}.html"
    page.parent.mkdir(parents=True, exist_ok=True)
    export_page(notebook, page, hide_code=study.stage == PAPER, contents="../paper/index.html")
    if study.stage == PAPER:
        from .paper import write_paper

        return write_paper(study.build)
    return page


def _made(study: Study) -> dict[str, str]:
    """Digest of each file that a stage made or measured, but for caches: the stages after it re-run
    when one changes.

    Pictures, typeset tables, captions and the answer are for the paper, which re-runs after any
    stage.
    """
    files = whole_digests(study.build, study.stage)
    own = [name for name in files if name.startswith(("data/", "results/"))]
    seen = [name for name in own if not is_hidden(Path(name))]
    return {name: files[name] for name in seen if not _is_for_the_paper(study.build / name)}


def _is_for_the_paper(path: Path) -> bool:
    is_record = path.suffix == ".json" and path.with_suffix(".csv").exists()
    return is_record or path.suffix in _FOR_PAPER or path.name == "found.json"


def whole_digests(build: Path, stage: str) -> dict[str, str]:
    """The SHA-256 of each file that a stage made or measured, caches and stamps too, or of the
    `STUDY` itself, by its path below `build`: `noisebook verify` compares them.
    """
    patterns = ["*"] if stage == STUDY else [one.format(stage) for one in _FILES.split()]
    patterns += ["paper/**/*"] if stage == PAPER else []
    files = sorted(path for one in patterns for path in build.glob(one) if path.is_file())
    files = [path for path in files if path.name not in (".lock", MANIFEST)]
    return {path.relative_to(build).as_posix(): sha256(path) for path in files}


def promised(build: Path) -> dict[str, dict[str, str]]:
    """The manifest of a study: of each stage, and of the `STUDY` itself, its `whole_digests`."""
    return read_json(build / MANIFEST) if (build / MANIFEST).exists() else {}


def _promise(build: Path, anew: dict[str, dict[str, str]]) -> None:
    """Bring the manifest up to date, as one of the stages that may run at the same time; one
    without files is taken out.
    """
    with opened_folder(build) as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        whole = promised(build) | anew
        _write_if_changed(build / MANIFEST, {name: then for name, then in whole.items() if then})


def is_hidden(path: Path) -> bool:
    """Whether it is, or lies in, what others would call a cache."""
    return any(part[0] == "." for part in path.parts)


def run_and_print(stage: str, profile: str) -> None:
    """Run a stage; print how long it took, and where its page is."""
    _stop_cleanly()
    began = time.monotonic()
    page = run_stage(stage, profile)
    print(f"{stage}  {time.monotonic() - began:.0f} s  {os.path.relpath(page)}", flush=True)


def _stop_cleanly() -> None:
    """SIGTERM becomes an orderly end: papermill would otherwise leave the kernel's children behind.
    So does the death of make.
    """

    def stop(number, frame):
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stop)
    ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGTERM, 0, 0, 0)
