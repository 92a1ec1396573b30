"""What to do about slow runs: factors, mitigations that act and prove it, and the autopilot."""

from importlib import import_module
from typing import TYPE_CHECKING

from .knowledge import (
    available_mitigations,
    explain_factor,
    factors,
    mitigations,
    references,
)
from .treatment import BASELINE, Treatment, mitigated, treat_workload, treatment_cells

if TYPE_CHECKING:
    from .loop import autopilot as autopilot
    from .report import Report as Report

# Loaded when asked for: they bring scikit-learn and statsmodels with them.
_LATER = {"Report": "report", "autopilot": "loop"}

__all__ = [
    "BASELINE",
    "Report",
    "Treatment",
    "autopilot",
    "available_mitigations",
    "explain_factor",
    "factors",
    "mitigated",
    "mitigations",
    "references",
    "treat_workload",
    "treatment_cells",
]


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
    globals()[name] = found
    return found
