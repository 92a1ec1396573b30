"""Noisebook's helper library: measure, trace, replay and explain the variability of parallel
programs.

The names below are the public face. Each package is a stage and imports only from the stages before
it; CONTRIBUTING.md has the order and the agreements.
"""

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

__version__ = "0.3.0"

if TYPE_CHECKING:
    from . import (
        attribution,
        errors,
        files,
        injection,
        machine,
        measurement,
        mitigation,
        noise,
        places,
        report,
        simulation,
        statistics,
        studies,
        tracing,
        workloads,
    )
    from .attribution import explain
    from .injection import inject
    from .machine import doctor
    from .measurement import Campaign, Cell, calibrate, finished, measure, recorded_runs
    from .mitigation import autopilot
    from .noise import NoiseConfig, Signature, average_noise, delta_noise
    from .simulation import LogGOPS, Schedule, read_goal, simulate
    from .statistics import compare
    from .studies.program_study import ProgramStudy
    from .tracing import read_osnoise, record_detours, trace
    from .workloads import Workload, program


def lazily(package: str) -> tuple[list[str], Callable[[str], object], Callable[[], list[str]]]:
    """What a package exports: the names that it imports for type checkers, loaded when asked for.

    So a notebook loads what it uses, and is stale only when that changes (`nbhelpers.loaded`).

    Parameters
    ----------
    package
        Its name; its `__init__.py` has the imports under ``if TYPE_CHECKING:``.

    Returns
    -------
    Its `__all__`, `__getattr__` and `__dir__`.
    """
    names = vars(sys.modules[package])
    tree = ast.parse(Path(names["__file__"]).read_text(encoding="utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level]
    owners = {alias.name: node.module for node in imports for alias in node.names}
    owners.pop("lazily", None)

    def load(name: str) -> object:
        if name not in owners:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        owner = owners[name]
        module = import_module(f"{package}.{owner or name}")
        names[name] = getattr(module, name) if owner else module
        return names[name]

    return sorted(filter(owners.get, owners)), load, lambda: sorted({*names, *owners})


if not TYPE_CHECKING:
    __all__, __getattr__, __dir__ = lazily(__name__)
