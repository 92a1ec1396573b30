"""What to do about slow runs: knowledge of factors, mitigations that act and prove it, and the
autopilot that goes round the loop.
"""

from importlib import import_module

from .action import Action, Possible
from .knowledge import (
    Factor,
    Mitigation,
    Reference,
    explain_factor,
    factors,
    here,
    mitigations,
    references,
)
from .language_model import ask
from .treatment import BASELINE, NOT_IN_EFFECT, Treatment, applied, cells, treated

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
    "applied",
    "ask",
    "cells",
    "explain_factor",
    "factors",
    "here",
    "mitigations",
    "references",
    "treated",
    *_WHEN_ASKED,
]


def __getattr__(name: str) -> object:
    if name not in _WHEN_ASKED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{_WHEN_ASKED[name]}"), name)
    globals()[name] = found
    return found
