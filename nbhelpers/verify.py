"""Whether a study is whole: every file is the one that its manifest names.

Owns `noisebook verify`: what is checked, and what is said of it. Nothing is changed. A study's
manifest is read once, and its files are compared with it by SHA-256. Records are checked line by
line only where no manifest has them: in a campaign by itself, and in a stage that has not ended.
"""

import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from .artifact.unpack import checked_files, looked_at
from .errors import InputError, NoisebookError
from .measurement.seal import FILES, broken_promises
from .reading import read_json, refusing
from .records import SEAL, read
from .stages import MANIFEST, STUDY, is_hidden, promised, whole_digests

WHOLE, DAMAGED, MISSING, ADDED, NEWER = "whole", "damaged", "missing", "added", "newer"


@dataclass(frozen=True)
class Finding:
    """What was found of one thing.

    Attributes
    ----------
    what
        The campaign, stage or file.
    state
        "whole"; "damaged": its content is another; "missing"; "added": the stage did not make it;
        "newer": its content is another, and it was written after the manifest, as by an editor. A
        failing disk leaves the time of a file as it was.
    found
        What was counted, which files these are, or what is wrong.
    """

    what: str
    state: str
    found: str


def examine(path: str | Path) -> list[Finding]:
    """Check a study, a campaign, or what `make artifact` wrote.

    Parameters
    ----------
    path
        The folder of a campaign or a study (``build/quick``, or any folder with campaigns in it),
        or a zip of `make artifact`.

    Returns
    -------
    list of Finding, one for each campaign, and for each stage and state of its files.

    Raises
    ------
    InputError
        There is nothing to check.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from nbhelpers.measurement import measure
    >>> with TemporaryDirectory() as folder:
    ...     _ = measure("sleep 0.01", runs=2, folder=folder)
    ...     [finding.found for finding in examine(folder)]
    ['2 runs, 2 of them ok; sealed']
    """
    path = Path(path)
    if path.is_file() and zipfile.is_zipfile(path):
        return [_judged(path.name, _artifact, path)]
    findings, then = [], dict[str, dict[str, str]]()
    try:
        with refusing("this cannot be understood", path / MANIFEST):
            then = promised(path)
            findings = [one for stage in sorted(then) for one in _stage(path, stage, then[stage])]
    except NoisebookError as error:
        findings = [Finding(MANIFEST, DAMAGED, error.what)]
    known = {path / name for files in then.values() for name in files}
    for note in sorted(path.rglob("campaign.json")):
        name = note.parent.relative_to(path)
        if note not in known and "aside" not in name.parts:
            what = name.as_posix() if name.parts else path.name
            findings.append(_judged(what, _campaign, note.parent))
    if not findings:
        raise InputError(
            "there is nothing to verify here: no campaign, no stage, no artifact",
            where=path,
            fix="noisebook verify build/quick, or the folder of a campaign",
        )
    return findings


def _judged(what: str, look: Callable[[Path], tuple[list[str], str]], path: Path) -> Finding:
    """What is wrong there, or else what was counted."""
    try:
        with refusing("this cannot be understood", path):
            wrong, counted = look(path)
    except NoisebookError as error:
        wrong, counted = [f"{error.what} ({error.where})"], ""
    return Finding(what, DAMAGED if wrong else WHOLE, "; ".join(wrong) or counted)


def _artifact(path: Path) -> tuple[list[str], str]:
    count = looked_at(path, lambda source: sum(1 for _ in checked_files(source)))
    return [], f"{count} files, each with the SHA-256 that it was packed with"


def _stage(build: Path, stage: str, then: dict[str, str]) -> Iterator[Finding]:
    """What became of the files of its last execution; hidden ones may be added."""
    now, written_ns = whole_digests(build, stage), (build / MANIFEST).stat().st_mtime_ns
    wrong = defaultdict(list)
    for name in sorted({name for name, _ in then.items() ^ now.items()}):
        if name not in now:
            wrong[MISSING].append(name)
        elif name in then:
            is_newer = (build / name).stat().st_mtime_ns > written_ns
            wrong[NEWER if is_newer else DAMAGED].append(name)
        elif not is_hidden(Path(name)):
            wrong[ADDED].append(name)
    what = "the study itself" if stage == STUDY else f"stage {stage}"
    for state, names in wrong.items():
        yield Finding(what, state, ", ".join(names))
    if not wrong:
        yield Finding(what, WHOLE, f"{len(now)} files, as its last execution left them")


def _campaign(folder: Path) -> tuple[list[str], str]:
    """What is wrong with the records of a campaign, and how many runs there are."""
    read_json(folder / "campaign.json")
    records = {name: read(folder / name) for name in FILES}
    wrong = [
        f"{name}, line {one.line}: {one.what}"
        for name, found in records.items()
        for one in found.damage
    ]
    runs, series = records.values()
    # a recorded campaign is shipped without series; a seal misses them
    if list(folder.glob(f"{FILES[1]}*")):
        wrong += _without_series(runs.rows, series.rows)
    fine = sum(row.get("status") == "ok" for row in runs.rows)
    found = f"{len(runs.rows)} runs, {fine} of them ok"
    if not runs.checked:
        found += "; recorded before records had checks: they can be read, no more is known"
    else:
        sealed = (folder / SEAL).exists()
        found += "; sealed" if sealed else "; not sealed: measuring goes on"
    return [*wrong, *broken_promises(folder)], found


def _without_series(runs: list[dict], series: list[dict]) -> list[str]:
    """Runs that printed values which are not there. A crash may leave the series of a run that was
    not recorded: only runs want theirs.
    """
    printed = {row["run"] for row in series}
    printing = [row for row in runs if row.get("series_values") and row["status"] == "ok"]
    return [f"run {row['run']} has no series" for row in printing if row["run"] not in printed]


def report(findings: list[Finding]) -> str:
    """The findings as text, what is whole last, with what to do."""
    ordered = sorted(findings, key=lambda one: one.state == WHOLE)
    wide = max(len(one.what) for one in ordered)
    lines = [f"{one.state:8} {one.what:{wide}}  {one.found}" for one in ordered]
    whole = sum(one.state == WHOLE for one in findings)
    end = (
        f"{len(findings) - whole} of {len(findings)} are not whole. All other records stay usable."
        "\nWhat to do: rm build/…/stamps/STAGE.done, then make paper PROFILE=…: the stage runs"
        " again, keeps damaged records in aside, and measures those runs again. Of a campaign's"
        " folder noisebook verify names the lines."
    )
    return "\n".join([*lines, f"All {whole} are whole." if whole == len(findings) else end])
