"""Noisebook's helper library: measure, trace, replay and explain the variability of parallel
programs.

Each folder is a stage and imports only from the stages before it; CONTRIBUTING.md has the order and
the agreements.
"""

from importlib import import_module

__version__ = "0.2.0"

# The parts, each loaded when it is asked for: `import nbhelpers` costs next to nothing.
_PARTS = (
    "attribute",
    "errors",
    "files",
    "inject",
    "machine",
    "measure",
    "mitigate",
    "noise",
    "page",
    "places",
    "report",
    "schemas",
    "simulate",
    "stages",
    "studies",
    "study",
    "trace",
    "workloads",
)
__all__ = ["__version__", *_PARTS]


def __getattr__(name: str) -> object:
    if name not in _PARTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_PARTS])
