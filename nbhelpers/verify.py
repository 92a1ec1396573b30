"""Whether a study is whole: every record, every file of a run, and that tables follow from data.

Owns `noisebook verify`: what is checked, and what is said of it. Nothing is changed.
"""

import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .artifact.unpack import checked_files, opened
from .errors import InputError, NoisebookError
from .measurement.seal import FILES, broken_promises
from .reading import read_json
from .records import SEAL, Records, read
from .stages import folder_digest

WHOLE, DAMAGED = "whole", "damaged"


@dataclass(frozen=True)
class Finding:
    """What was found of one thing.

    Attributes
    ----------
    what
        The campaign, stage or file.
    state
        "whole" or "damaged".
    found
        What was counted, or what is wrong.
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
    list of Finding, one a campaign and stage; `Finding.state` is "damaged" where something is.

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
        return [_artifact(path)]
    findings = [*_campaigns(path), *_stages(path)]
    if not findings:
        raise InputError(
            "there is nothing to verify here: no campaign, no stage, no artifact",
            where=path,
            fix="noisebook verify build/quick, or the folder of a campaign",
        )
    return findings


def _artifact(path: Path) -> Finding:
    try:
        with opened(path) as source:
            count = sum(1 for _ in checked_files(source))
    except NoisebookError as error:
        return Finding(path.name, DAMAGED, error.what)
    return Finding(
        path.name, WHOLE, f"{count} files, each with the SHA-256 that it was packed with"
    )


# ---- campaigns -----------------------------------------------------------------------------------


def _campaigns(path: Path) -> Iterator[Finding]:
    for note in sorted(path.rglob("campaign.json")):
        if "aside" not in note.relative_to(path).parts:
            yield _campaign(note.parent, path)


def _campaign(folder: Path, top: Path) -> Finding:
    name = folder.relative_to(top).as_posix() if folder != top else folder.name
    try:
        wrong = [*_wrong_records(folder), *broken_promises(folder)]
        if wrong:
            return Finding(name, DAMAGED, "; ".join(wrong))
        return Finding(name, WHOLE, _counted(folder))
    except NoisebookError as error:
        return Finding(name, DAMAGED, f"{error.what} ({error.where})")


def _wrong_records(folder: Path) -> Iterator[str]:
    read_json(folder / "campaign.json")
    for name in FILES:
        for one in read(folder / name).damage:
            yield f"{name}, line {one.line}: {one.what}"
    runs, series = (read(folder / name) for name in FILES)
    numbers = [int(row["run"]) for row in runs.rows if isinstance(row.get("run"), int)]
    for number in sorted({number for number in numbers if numbers.count(number) > 1}):
        yield f"run {number} is there more than one time"
    yield from _series_of_nobody(runs, series)


def _series_of_nobody(runs: Records, series: Records) -> Iterator[str]:
    """A crash may leave the series of a run that was not recorded: only runs want theirs."""
    printed = {row["run"] for row in series.rows}
    for row in runs.rows:
        if row.get("series_values") and row["run"] not in printed and row["status"] == "ok":
            yield f"run {row['run']} has no series"


def _counted(folder: Path) -> str:
    runs = read(folder / FILES[0])
    fine = sum(row.get("status") == "ok" for row in runs.rows)
    found = f"{len(runs.rows)} runs, {fine} of them ok"
    if not runs.checked:
        return f"{found}; recorded before records had checks: they can be read, no more is known"
    return f"{found}; {'sealed' if (folder / SEAL).exists() else 'not sealed: measuring goes on'}"


# ---- stages --------------------------------------------------------------------------------------


def _stages(path: Path) -> Iterator[Finding]:
    """Data and results of each stage are those of its last execution, by their digests."""
    for stamp in sorted((path / "stamps").glob("*.made")):
        stage = stamp.stem
        made = read_json(stamp)
        wrong = [
            f"its {what} are not those of its last execution"
            for what, digest in made.items()
            if folder_digest(path / what / stage) != digest
        ]
        found = "; ".join(wrong) or "its tables are those that its data gave"
        yield Finding(f"stage {stage}", DAMAGED if wrong else WHOLE, found)


def report(findings: list[Finding]) -> str:
    """The findings as text, damaged ones first, with what to do."""
    ordered = sorted(findings, key=lambda one: one.state != DAMAGED)
    wide = max(len(one.what) for one in ordered)
    lines = [f"{one.state:8} {one.what:{wide}}  {one.found}" for one in ordered]
    damaged = sum(one.state == DAMAGED for one in findings)
    if not damaged:
        return "\n".join([*lines, f"All {len(findings)} are whole."])
    return "\n".join(
        [
            *lines,
            f"{damaged} of {len(findings)} are damaged. All other records stay usable.",
            "What to do: the same command that measured them (make paper PROFILE=…) leaves the"
            " damaged records out, keeps them in aside, and measures those runs again.",
        ]
    )
