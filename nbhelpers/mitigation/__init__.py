"""What to do about slow runs: knowledge of factors, mitigations that act and prove it, and the
autopilot that goes round the loop.
"""

from importlib import import_module

from .action import Action, Possible
from .knowledge import (
    Factor,
    Mitigation,
    Reference,
    available_mitigations,
    explain_factor,
    factors,
    mitigations,
    references,
)
from .language_model import ask_model
from .treatment import (
    BASELINE,
    NOT_IN_EFFECT,
    Treatment,
    mitigated,
    treat_workload,
    treatment_cells,
)

# Loaded when asked for: they bring scikit-learn and statsmodels with them.
_WHEN_ASKED = {"Report": "loop", "autopilot": "loop"}

__all__ = [
    "BASELINE",
    "NOT_IN_EFFECT",
    "Action",
    "Factor",
    "Mitigation",
    "Possible",
    "Reference",
    "Treatment",
    "mitigated",
    "ask_model",
    "treatment_cells",
    "explain_factor",
    "factors",
    "available_mitigations",
    "mitigations",
    "references",
    "treat_workload",
    *_WHEN_ASKED,
]


def __getattr__(name: str) -> object:
    if name not in _WHEN_ASKED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{_WHEN_ASKED[name]}"), name)
    globals()[name] = found
    return found
