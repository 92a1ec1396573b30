"""Studies of noise at scale: one function a question, tables out; figures of them are in
`nbhelpers.report`.
"""

from .applications import (
    applications_on,
    extrapolation,
    point_to_point,
    sensitivity,
)
from .collectives import bottleneck, pipelining
from .formulas import closed_forms
from .load import detours_with_published, quiet_and_loaded
from .signatures import (
    published_signatures,
)
from .simulations import Simulations, Sizes
from .tables import (
    beckman_table,
    bottleneck_table,
    correlation_sentence,
    extrapolation_table,
    path_sentence,
    regular_sentence,
    systems_table,
)
from .this_machine import (
    this_machine_at_scale,
    this_machine_sentence,
    traces_of_runs,
)

__all__ = [
    "Simulations",
    "Sizes",
    "applications_on",
    "beckman_table",
    "bottleneck",
    "bottleneck_table",
    "closed_forms",
    "correlation_sentence",
    "detours_with_published",
    "extrapolation",
    "extrapolation_table",
    "path_sentence",
    "pipelining",
    "point_to_point",
    "quiet_and_loaded",
    "regular_sentence",
    "sensitivity",
    "published_signatures",
    "systems_table",
    "this_machine_at_scale",
    "this_machine_sentence",
    "traces_of_runs",
]
