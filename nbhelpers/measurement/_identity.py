"""What the runs of a campaign are runs of, as `campaign.json` holds it, and how two such records
differ.
"""

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

from ..files import to_json
from ..workloads import Workload, binary_folder, program_path
from .seal import sha256

FORMAT = "noisebook campaign 1"
# what recorded data must agree in on a machine that did not measure them
_PORTABLE = ("workload", "model", "config", "noise")
_WORDS = {
    "program_digest": "build of the program",
    "cpus": "set of CPUs",
    "env": "environment",
    "config": "placement",
    "accompanied": "disturbance, mitigation or tracer",
}


def cell_identity(
    workload: Workload,
    noise: str = "none",
    accompanied: Sequence[str] = (),
    folder: Path | None = None,
    with_program: bool = False,
) -> dict:
    """What the runs of a cell are runs of: its workload, its noise and what accompanies it. Holds
    wherever the campaign's `folder` is moved to.
    """
    program = Path(workload.command[0])
    arguments = list(workload.command[1:])
    if folder is not None:
        arguments = [word.replace(str(folder.absolute()), "FOLDER") for word in arguments]
    identity: dict[str, Any] = {
        "workload": workload.name,
        "model": workload.model,
        "config": workload.config,
        "noise": noise,
        "command": [_recorded_name(program), *arguments],
        "env": dict(workload.env),
        "start": workload.start,
        "cpus": workload.cpus and list(workload.cpus),
        "program_digest": program_digest(program) if with_program else None,
    }
    if workload.reader is not None:
        identity["reader"] = json.loads(to_json(asdict(workload.reader)))  # as it is read back
    # marks and process follow from `start`; studies were measured before there were other kinds
    if workload.region.kind not in ("marks", "process"):
        identity["region"] = workload.region.as_dict()
    return identity | {"accompanied": list(accompanied)}


def _recorded_name(program: Path) -> str:
    """Without the folder that this checkout happens to lie in, for our programs and for the
    Python that runs this.
    """
    if program.is_relative_to(binary_folder()):
        return str(program.relative_to(binary_folder()))
    return "python" if program == Path(sys.executable) else str(program)


def program_digest(program: str | Path) -> str:
    """First 16 hexadecimal digits of the SHA-256 of a program's file.

    Raises
    ------
    RunError
        It does not exist.
    """
    path = program_path(program)
    status = path.stat()
    return _digest_of(path, status.st_mtime_ns, status.st_size, status.st_ino)[:16]


@cache
def _digest_of(path: Path, *_version: int) -> str:
    return sha256(path)


def stale_cells(recorded: dict, identity: dict) -> dict[str, str]:
    """Cells whose recorded runs are of something else than the campaign now measures under their
    name, and what differs.
    """
    old, new = recorded["cells"], identity["cells"]
    if recorded["seed"] != identity["seed"]:
        return dict.fromkeys(old, f"another seed ({recorded['seed']}, now {identity['seed']})")
    stale = {}
    for name in sorted(old.keys() & new.keys()):
        keys = sorted(old[name].keys() | new[name].keys())
        words = [_WORDS.get(key, key) for key in keys if old[name].get(key) != new[name].get(key)]
        if words:
            stale[name] = f"another {', another '.join(words)}"
    return stale


def portable_differences(recorded: dict, identity: dict) -> list[str]:
    """How the recorded cells differ from those of a campaign in what must agree anywhere.

    That is name, workload, model, placement, and noise: which, and how it was injected.

    Returns
    -------
    A line each; cells that the campaign does not have do not count.
    """
    lines = []
    for name, new in sorted(identity["cells"].items()):
        old = recorded["cells"].get(name)
        if old is None:
            lines.append(f"cell '{name}' is part of this campaign and was not recorded")
            continue
        differ = [(key, old.get(key), new.get(key)) for key in sorted(_PORTABLE)]
        differ += [("injection", _injected(old), injected)] if (injected := _injected(new)) else []
        lines += [
            f"cell '{name}', {key}: recorded {before!r}, now {now!r}"
            for key, before, now in differ
            if before != now
        ]
    return lines


def _injected(cell: dict) -> str:
    """How noise was injected; empty: by nothing, or the campaign, which is only read, leaves it
    out.
    """
    return next((one for one in cell["accompanied"] if one.startswith("injected ")), "")
