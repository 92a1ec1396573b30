"""Studies of noise at scale: one function a question, tables out; figures of them are in
`nbhelpers.report`.
"""

from . import experiments, skeletons
from .applications import (
    applications_on,
    extrapolation,
    point_to_point,
    sensitivity,
)
from .collectives import bottleneck, pipelining
from .extremes import (
    deciding_sentence,
    foretold_sentence,
    returns_sentence,
    spreads_sentence,
)
from .formulas import closed_forms
from .load import detours_with_published, quiet_and_loaded
from .machine_simulations import MachineSimulations
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
    "MachineSimulations",
    "Simulations",
    "Sizes",
    "applications_on",
    "beckman_table",
    "bottleneck",
    "bottleneck_table",
    "closed_forms",
    "correlation_sentence",
    "deciding_sentence",
    "detours_with_published",
    "experiments",
    "extrapolation",
    "extrapolation_table",
    "foretold_sentence",
    "path_sentence",
    "pipelining",
    "point_to_point",
    "published_signatures",
    "quiet_and_loaded",
    "regular_sentence",
    "returns_sentence",
    "sensitivity",
    "skeletons",
    "spreads_sentence",
    "systems_table",
    "this_machine_at_scale",
    "this_machine_sentence",
    "traces_of_runs",
]
