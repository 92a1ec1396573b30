"""What to do about slow runs: knowledge of factors, mitigations that act and prove it, and the
autopilot that goes round the loop.
"""

from importlib import import_module

from .action import Action, Possible
from .ask import ask
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
from .treatment import BASELINE, NOT_IN_EFFECT, Treatment, applied, cells, treated

# Loaded when they are asked for: they bring scikit-learn and statsmodels with them.
_WHEN_ASKED = {
    name: module
    for module, names in {
        "catalogue": (
            "Cause afflicted cause_campaign cause_runs causes describe_causes not_planted refused"
        ),
        "scores": "explained_cause score_causes score_nothing score_sentences",
        "trials": (
            "candidates compare_trials forgetful left_out matrix_product may_help published_product"
            " trial_runs trial_sentence trial_statistics trial_table"
        ),
        "pilot": "Report autopilot",
    }.items()
    for name in names.split()
}

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
