"""Whether a study is whole: every record, every file of a run and of a stage.

Owns `noisebook verify`: what is checked, and what is said of it. Nothing is changed.
"""

import os
import subprocess
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from .artifact.unpack import checked_files, opened
from .errors import InputError, NoisebookError
from .measurement.seal import FILES, broken_promises
from .reading import read_json, refusing
from .records import SEAL, read
from .stages import MANIFEST, STUDY, is_hidden, promised, stamped, whole_digests

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
        return [_judged(path.name, _artifact, path)]
    findings = []
    for note in sorted(path.rglob("campaign.json")):
        if "aside" not in note.relative_to(path).parts:
            name = note.parent.relative_to(path).as_posix()
            findings.append(_judged(path.name if name == "." else name, _campaign, note.parent))
    stages = [MANIFEST]
    with suppress(NoisebookError, TypeError):
        stages = sorted(promised(path))
    for stage in stages:
        what = {STUDY: "the study itself", MANIFEST: MANIFEST}.get(stage, f"stage {stage}")
        findings.append(_judged(what, partial(_stage, stage), path))
    if findings and (path / "stamps").is_dir():
        findings.append(_judged("stamps", _stamps, path / "stamps"))
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
    with opened(path) as source:
        count = sum(1 for _ in checked_files(source))
    wrong, signed = _signature(path)
    return wrong, f"{count} files, each with the SHA-256 that it was packed with; {signed}"


def _signature(path: Path) -> tuple[list[str], str]:
    """Who signed a file, as ``ssh-keygen -Y sign -n noisebook`` does: PATH.sig, checked by
    OpenSSH 8.9, with the names of ~/.ssh/allowed_signers or $NOISEBOOK_SIGNERS.
    """
    signature, signers = Path(f"{path}.sig"), os.environ.get("NOISEBOOK_SIGNERS")
    if not signature.exists():
        return [], "not signed"
    signers = signers or os.path.expanduser("~/.ssh/allowed_signers")
    checked = _keygen(path, "check-novalidate", "-n", "noisebook", "-s", signature)
    if not checked:
        return [], "signed, which only ssh-keygen could check"
    if not checked.startswith("Good"):
        return [f"{signature.name} is no signature of it"], ""
    how = ("-n", "noisebook", "-s", signature, "-f", signers)
    names = _keygen(path, "find-principals", *how[2:]).split()
    good = (name for name in names if _keygen(path, "verify", "-I", name, *how).startswith("Good"))
    signer, key = next(good, "somebody unknown"), checked.rpartition(" key ")[2]
    return [], f"signed by {signer}, key {key}"


def _keygen(path: Path, *words: object) -> str:
    """What ssh-keygen says of a file; nothing where there is none."""
    with suppress(OSError), path.open("rb") as content:
        command = ["ssh-keygen", "-Y", *map(str, words)]
        done = subprocess.run(command, stdin=content, capture_output=True, text=True)
        return done.stdout.strip()
    return ""


def _stage(stage: str, build: Path) -> tuple[list[str], str]:
    """All its files are those of its last execution, by their digests, and no other."""
    then, now = promised(build)[stage], whole_digests(build, stage)
    wrong = [
        f"{name} is missing" if name not in now else f"{name} was changed"
        for name, digest in then.items()
        if now.get(name) != digest
    ]
    added = (name for name in now if name not in then)
    wrong += [f"{name} was added" for name in added if not is_hidden(Path(name))]
    return wrong, f"{len(now)} files, as its last execution left them"


def _stamps(folder: Path) -> tuple[list[str], str]:
    """What tells make which stage is to run is one record with its checks; those of up to 2026 have
    none.
    """
    paths = sorted([*folder.glob("*.made"), *folder.glob("*.wanted")])
    wrong = [f"{path.name} is damaged" for path in paths if not stamped(path)]
    return wrong, f"{len(paths)}, each as it was written"


def _campaign(folder: Path) -> tuple[list[str], str]:
    wrong = [*_wrong_records(folder), *broken_promises(folder)]
    runs = read(folder / FILES[0])
    fine = sum(row.get("status") == "ok" for row in runs.rows)
    found = f"{len(runs.rows)} runs, {fine} of them ok"
    if not runs.checked:
        found += "; recorded before records had checks: they can be read, no more is known"
    else:
        sealed = (folder / SEAL).exists()
        found += "; sealed" if sealed else "; not sealed: measuring goes on"
    return wrong, found


def _wrong_records(folder: Path) -> Iterator[str]:
    read_json(folder / "campaign.json")
    runs, series = (read(folder / name) for name in FILES)
    for name, records in zip(FILES, (runs, series), strict=True):
        for one in records.damage:
            yield f"{name}, line {one.line}: {one.what}"
    # A crash may leave the series of a run that was not recorded: only runs want theirs.
    printed = {row["run"] for row in series.rows}
    for row in runs.rows:
        if row.get("series_values") and row["run"] not in printed and row["status"] == "ok":
            yield f"run {row['run']} has no series"


def report(findings: list[Finding]) -> str:
    """The findings as text, damaged ones first, with what to do."""
    ordered = sorted(findings, key=lambda one: one.state != DAMAGED)
    wide = max(len(one.what) for one in ordered)
    lines = [f"{one.state:8} {one.what:{wide}}  {one.found}" for one in ordered]
    damaged = sum(one.state == DAMAGED for one in findings)
    end = (
        f"{damaged} of {len(findings)} are damaged. All other records stay usable.\n"
        "What to do: the same command that measured them (make paper PROFILE=…) leaves the"
        " damaged records out, keeps them in aside, and measures those runs again."
    )
    return "\n".join([*lines, end if damaged else f"All {len(findings)} are whole."])
