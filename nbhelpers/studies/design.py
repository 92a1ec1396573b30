"""What a study runs: programs × models × configurations, decided for a machine and cached with its
data.

Owns `design.json` in the folder of the data, so that recorded data are read on any machine. What
the machine gains is added to the design.
"""

import json
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from ..errors import InputError
from ..files import to_json, write_json
from ..machine import topology
from ..machine.cpus import last_level_caches
from ..measurement import calibrate
from ..measurement.cache import cached_value, read_cached
from ..workloads import Configuration, Workload, compilers, configurations, existing_configurations
from ..workloads import sycl as sycl_programs
from ..workloads.configuration import configuration_table
from ..workloads.sizes import stream_elements

PROGRAMS = ("nbody", "stream", "minife")
MODELS = ("omp", "sycl")
COMPILERS = ("gcc", "clang")
BENCHMARKS = {"nbody": "N-body", "stream": "Babelstream", "minife": "MiniFE"}
PRINTED_MODELS = {"omp": "OMP", "sycl": "SYCL"}
# Average run of Persson et al. 2025, Table 1, not traced; the paper states no problem sizes.
PUBLISHED_SECONDS = {"nbody": 0.451, "stream": 1.922, "minife": 1.063}
_FORMAT = "noisebook design 1"


@dataclass(frozen=True, repr=False)
class Design:
    """What a study runs on one machine.

    Parameters
    ----------
    listed
        All configurations of the study; those that do not exist here with the reason.
    chosen
        Names of the configurations that are measured.
    models
        Programming models, or compilers, that are measured.
    absent
        Model -> why it is not measured.
    workloads
        (program, model) -> the program in its size, not placed yet;
    """

    listed: tuple[Configuration, ...]
    chosen: tuple[str, ...]
    models: tuple[str, ...]
    absent: Mapping[str, str]
    workloads: Mapping[tuple[str, str], Workload]

    def configuration(self, name: str) -> Configuration:
        """The configuration of a name."""
        return next(one for one in self.listed if one.name == name)

    def placed(self) -> dict[tuple[str, str, str], Workload]:
        """(program, model, configuration) -> the workload in its place."""
        return {
            (program, model, name): self.configuration(name).of(workload)
            for (program, model), workload in self.workloads.items()
            for name in self.chosen
        }

    def table(self) -> pd.DataFrame:
        """`configuration_table` with `measured`."""
        table = configuration_table(self.listed)
        return table.assign(measured=table["name"].isin(self.chosen))

    def __repr__(self) -> str:
        return (
            f"Design({len(self.workloads)} programs: {', '.join(self.models)};"
            f" {', '.join(self.chosen)})"
        )


def cached_design(
    folder: str | Path,
    names: Sequence[str],
    target_seconds: float,
    programs: Sequence[str] = PROGRAMS,
    models: Sequence[str] = MODELS,
    families: Collection[str] = ("mitigation",),
    recorded_only: bool = False,
    options: Mapping[str, Mapping] | None = None,
    published_sizes: bool = False,
) -> Design:
    """The design of a study on this machine, cached for those who only read its data.

    Parameters
    ----------
    folder
        Folder of the study's data.
    names
        Names of the configurations to measure, those that exist here; empty: all that do.
    target_seconds
        Run length to which each OpenMP program is calibrated; its SYCL twin has the same size.
    programs
        Names of our programs; see `nbhelpers.measurement.calibrate`.
    models
        Omp, sycl, or compilers; one that is not installed is left out, with the reason.
    families
        Families of configurations, of those of `nbhelpers.workloads.configurations`.
    recorded_only
        True: nothing is decided or calibrated, the folder must hold it.
    options
        Program -> its options; BabelStream's `elements` 0: as `chosen_elements` says.
    published_sizes
        True: runs as long as the paper's (`PUBLISHED_SECONDS`), whatever `target_seconds`.

    Raises
    ------
    InputError
        A name that is no configuration; nothing was recorded and `recorded_only` is True.
    """
    folder, options = Path(folder), dict(options or {})
    record = _cached(folder / "design.json", names, models, families, recorded_only)
    listed = tuple(_configuration(fields) for fields in record["configurations"])
    if "elements" in options.get("stream", {}):
        elements = chosen_elements(folder, options["stream"]["elements"], recorded_only)
        options["stream"] = {**options["stream"], "elements": elements}
    lengths = PUBLISHED_SECONDS if published_sizes else {}
    workloads = {
        (program, model): _calibrated(
            folder,
            program,
            model,
            lengths.get(program, target_seconds),
            recorded_only,
            options.get(program, {}),
        )
        for program in programs
        for model in record["models"]
    }
    return Design(
        listed, tuple(record["chosen"]), tuple(record["models"]), record["absent"], workloads
    )


def chosen_elements(folder: str | Path, elements: int, recorded_only: bool = False) -> int:
    """The elements of BabelStream's arrays; for 0 those that this machine's caches demand, cached
    with the data (`nbhelpers.workloads.sizes.stream_elements`).

    Parameters
    ----------
    folder
        Folder of the study's data.
    elements
        Requested; 0: by the caches.
    recorded_only
        True: the folder must hold the choice.
    """
    if elements:
        return elements
    return cached_value(
        Path(folder) / "stream-elements.json",
        lambda: stream_elements(last_level_caches(os.sched_getaffinity(0))),
        "size of BabelStream's arrays",
        recorded_only,
        key="elements",
    )


def _cached(
    path: Path,
    names: Sequence[str],
    models: Sequence[str],
    families: Collection[str],
    recorded_only: bool,
) -> dict[str, Any]:
    """What is on disk; where it may be measured, as this machine would have it now: what it gained
    is added, what it lost is absent.
    """
    cached = read_cached(path, "design of a study", recorded_only)
    if recorded_only and not cached:
        fix = "measure it: make paper PROFILE=quick"
        raise InputError("this study was not recorded", where=path, fix=fix)
    if recorded_only:
        return cached
    decided = json.loads(to_json(_decided(names, models, families)))  # as it will be read back
    if decided != cached:
        write_json(path, decided)
    return decided


def _decided(
    names: Sequence[str], models: Sequence[str], families: Collection[str]
) -> dict[str, Any]:
    listed = configurations(topology(), os.sched_getaffinity(0), families, names)
    absent = {model: reason for model in models if (reason := why_missing(model))}
    return {
        "format": _FORMAT,
        "configurations": [asdict(one) for one in listed],
        "chosen": [one.name for one in existing_configurations(listed, names)],
        "models": [model for model in models if model not in absent],
        "absent": absent,
    }


def why_missing(model: str) -> str:
    """Why the programs of a model, or compiler, cannot be run here; "" if they can.

    Parameters
    ----------
    model
        omp, sycl, gcc or clang.
    """
    if model == "sycl" and not sycl_programs.available():
        return "the SYCL programs are not installed (an optional extra: make sycl)"
    if model in COMPILERS and model not in compilers():
        return f"the programs are not built with {model}"
    return ""


def _configuration(record: dict[str, Any]) -> Configuration:
    fields: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in record.items()
    }
    return Configuration(**fields)


def _calibrated(
    folder: Path,
    program: str,
    model: str,
    target_seconds: float,
    recorded_only: bool,
    options: Mapping,
) -> Workload:
    """The twin with the size that was found for OpenMP: both must do the same work."""
    find = partial(
        calibrate,
        program,
        target_seconds=None if recorded_only else target_seconds,
        file=folder / f"{program}.json",
        recorded_only=recorded_only,
        **options,
    )
    workload = find()
    return workload if model == "omp" else find(model=model)


def placement_table(runs: pd.DataFrame) -> pd.DataFrame:
    """Where the threads were, as the kernel reports it, and on which device SYCL's kernels ran.

    Parameters
    ----------
    runs
        Finished runs of a campaign with `PlacementCheck`.

    Returns
    -------
    One row a model and configuration: `model`, `config`, `runs`, `placed` (runs in which all
    threads were where the configuration puts them), `threads_on`; where programs name it, `device`
    with its driver: several, if it changed within the campaign.
    """
    parts = runs.reindex(columns=["device", "driver"]).astype(object)
    words = parts["device"] + ", driver " + parts["driver"]
    devices = words.where(parts.notna().all(axis=1), "").astype(str).str.replace("_", " ")
    rows = runs.assign(_placed=runs["placement_ok"].eq(True), _device=devices)
    table = rows.groupby(["model", "config"]).agg(
        runs=("run", "size"),
        placed=("_placed", "sum"),
        threads_on=("placement", lambda column: " or ".join(sorted(set(column)))),
        device=("_device", lambda column: " or ".join(sorted(set(column)))),
    )
    return table.reset_index().drop(columns=[] if devices.ne("").any() else ["device"])
