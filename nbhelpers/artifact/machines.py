"""Studies of several machines, to be read beside each other: shared zips, and folders of a build.

Owns how they are found and opened, and where each comes from. What is compared stands on page 95.
"""

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from ..errors import InputError
from ..files import write_atomically
from ..measurement import finished, recorded_runs, series
from ..places import is_installed, results, shipped
from ..reading import read_json, refusing
from ..study import Study
from .crate import MANIFEST, METADATA
from .unpack import Source, checked_files, content, looked_at

_MACHINE = "00-machine/machine.json"
_FACTS = ("cpu_model", "cores", "virtualisation", "kernel", "compiler")
# what a comparison reads: machines, and the runs of two stages
_READ = re.compile(
    r"artifact\.json|data/00-machine/(machine|detours)\.json"
    r"|data/40-mitigations/injected/\w+/(campaign\.json|runs\.jsonl)(\.gz)?"
    r"|data/60-openmp-variability/runs/(campaign\.json|(runs|series)\.jsonl)(\.gz)?"
)


@dataclass(frozen=True)
class MachineStudy:
    """A study of one machine, opened for reading.

    Attributes
    ----------
    name
        Processor and study, such as ``"AMD EPYC, recorded"``.
    data
        Folder of its measured data, a folder a stage.
    facts
        Where it comes from: processor, cores, hypervisor, kernel, compiler; profile, version and
        commit of Noisebook, as far as they are known.
    """

    name: str
    data: Path
    facts: dict[str, Any]

    def runs(self, campaign: str) -> pd.DataFrame:
        """Finished runs of a campaign, such as ``"40-mitigations/injected"``, with the column
        `machine`. Of several campaigns in that folder it is the largest; without any, no row.
        """
        columns = ["run", "cell", "round", "config", "model", "seconds"]
        tables = (finished(recorded_runs(folder)) for folder in self._campaigns(campaign))
        return self._largest(tables, columns)

    def series(self, campaign: str) -> pd.DataFrame:
        """What the runs of a campaign printed, a row a value, with the column `machine`."""
        columns = ["run", "name", "unit", "index", "value"]
        return self._largest(map(series, self._campaigns(campaign)), columns)

    def _largest(self, tables: Iterable[pd.DataFrame], columns: list[str]) -> pd.DataFrame:
        empty = pd.DataFrame(columns=columns)
        return max(tables, key=len, default=empty).assign(machine=self.name)

    def commands(self, campaign: str) -> dict[str, str]:
        """The command line of each cell of a campaign, by the name of the cell."""
        known: dict[str, str] = {}
        for folder in self._campaigns(campaign):
            with refusing("no campaign of a known format", folder):
                cells = read_json(folder / "campaign.json")["cells"]
                known |= {name: " ".join(cell["command"]) for name, cell in cells.items()}
        return known

    def _campaigns(self, name: str) -> list[Path]:
        found = sorted((self.data / name).rglob("campaign.json"))
        inside = (path.parent for path in found if "aside" not in path.parts)
        return [folder for folder in inside if list(folder.glob("runs.jsonl*"))]


def machine_studies(study: Study, paths: Sequence[str | Path] = ()) -> list[MachineStudy]:
    """Studies to be set side by side.

    Parameters
    ----------
    study
        The study that compares them.
    paths
        Zips of ``make artifact``, or folders such as ``build/quick``. None: what `study` itself
        measured, the recorded campaign, and the studies that are shipped for this page.

    Raises
    ------
    InputError
        There is none; see `open_studies`, too.
    """
    if paths:
        return open_studies(paths)
    recorded = shipped() / "data" / "recorded"
    others = [] if is_installed() else [recorded, *sorted((recorded / study.stage).glob("*"))]
    folders = dict.fromkeys([study.data.parent, *others])
    if found := [one for one in folders if any(one.glob(f"**/{_MACHINE}"))]:
        return open_studies(found)
    fix = "noisebook compare A.zip B.zip, with zips of make artifact or folders such as build/quick"
    raise InputError("nothing was measured here, and no study is shipped", fix=fix)


def open_studies(paths: Sequence[str | Path]) -> list[MachineStudy]:
    """Studies of machines, each with a name of its own.

    Raises
    ------
    InputError
        One is no study, or is damaged; two have the same name.
    """
    found = [open_study(path) for path in paths]
    names = [one.name for one in found]
    if twice := [name for name in names if names.count(name) > 1]:
        raise InputError(
            f"two studies are called {twice[0]}",
            why="their columns could not be told apart",
            fix="rename one of the zips or folders: the name is its file's",
        )
    return found


def open_study(path: str | Path) -> MachineStudy:
    """A study of one machine: a zip, of which what is read is checked and unpacked, or a folder.

    Raises
    ------
    InputError
        It is neither, or is damaged.
    """
    path = Path(path)
    if path.is_dir():
        return _study(path)
    return _study(looked_at(path, _unpacked))


def _unpacked(source: Source) -> Path:
    digest = hashlib.sha256(content(source, METADATA)).hexdigest()
    folder = results() / "compared" / digest[:16] / Path(str(source.filename)).stem
    if not (folder / MANIFEST).exists():  # it is written last
        files = dict(checked_files(source, _READ))
        for name in sorted(files, key=lambda name: name == MANIFEST):
            write_atomically(folder / name, files[name])
    return folder


def _study(folder: Path) -> MachineStudy:
    data = folder / "data" if (folder / "data").is_dir() else folder
    if not (data / _MACHINE).exists():
        raise InputError(
            f"this is no study: it has no {_MACHINE}",
            where=folder,
            fix="give a zip of make artifact, or a folder such as build/quick",
        )
    label = (folder.parent if folder.name == "data" else folder).name.removeprefix("noisebook-")
    with refusing("no study of a known format", folder):
        machine = read_json(data / _MACHINE)["machine"]
        note = folder / MANIFEST
        manifest = read_json(note) if note.exists() else {}
        facts = {name: machine.get(name) for name in _FACTS}
        facts |= {"profile": manifest.get("profile", label)}
        facts |= {"version": manifest.get("noisebook", "")}
        facts["commit"] = " ".join(commit[:8] for commit in manifest.get("commits", ()))
        processor = machine.get("cpu_model") or "unknown"
        processor = re.sub(r"\(R\)|\(TM\)| Processor| CPU.*", "", processor).strip()
    return MachineStudy(f"{processor}, {label}", data, facts)
