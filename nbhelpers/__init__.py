"""Noisebook's helper library: measure, trace, replay and explain the variability of parallel
programs.

The names below are the public face. Each package is a stage and imports only from the stages before
it; CONTRIBUTING.md has the order and the agreements.
"""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.3.0"

if TYPE_CHECKING:
    from .attribution import classify as classify
    from .attribution import explain as explain
    from .injection import inject as inject
    from .machine import doctor as doctor
    from .measurement import Campaign as Campaign
    from .measurement import Cell as Cell
    from .measurement import calibrate as calibrate
    from .measurement import finished as finished
    from .measurement import measure as measure
    from .measurement import recorded_runs as recorded_runs
    from .mitigation import autopilot as autopilot
    from .noise import NoiseConfig as NoiseConfig
    from .noise import average_noise as average_noise
    from .noise import delta_noise as delta_noise
    from .noise import signature_noise as signature_noise
    from .simulation import LogGOPS as LogGOPS
    from .simulation import Schedule as Schedule
    from .simulation import read_goal as read_goal
    from .simulation import simulate as simulate
    from .statistics import compare as compare
    from .studies.program_study import ProgramStudy as ProgramStudy
    from .tracing import read_osnoise as read_osnoise
    from .tracing import record_detours as record_detours
    from .tracing import trace as trace
    from .workloads import Workload as Workload
    from .workloads import program as program

# The public face: name -> the package that owns it. Loaded when asked for, so `import nbhelpers`
# costs next to nothing; tests/test_public_face.py holds this table and the imports above together.
_FACE = {
    "Campaign": "measurement",
    "Cell": "measurement",
    "LogGOPS": "simulation",
    "NoiseConfig": "noise",
    "ProgramStudy": "studies.program_study",
    "Schedule": "simulation",
    "Workload": "workloads",
    "autopilot": "mitigation",
    "average_noise": "noise",
    "calibrate": "measurement",
    "classify": "attribution",
    "compare": "statistics",
    "delta_noise": "noise",
    "doctor": "machine",
    "explain": "attribution",
    "finished": "measurement",
    "inject": "injection",
    "measure": "measurement",
    "program": "workloads",
    "read_goal": "simulation",
    "read_osnoise": "tracing",
    "record_detours": "tracing",
    "recorded_runs": "measurement",
    "signature_noise": "noise",
    "simulate": "simulation",
    "trace": "tracing",
}
_PACKAGES = (
    "attribution",
    "errors",
    "files",
    "injection",
    "machine",
    "measurement",
    "mitigation",
    "noise",
    "places",
    "report",
    "simulation",
    "statistics",
    "studies",
    "tracing",
    "workloads",
)
__all__ = ["__version__", *sorted(_FACE)]


def __getattr__(name: str) -> object:
    if name in _FACE:
        found = getattr(import_module(f"{__name__}.{_FACE[name]}"), name)
        globals()[name] = found
        return found
    if name in _PACKAGES:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_FACE, *_PACKAGES])
