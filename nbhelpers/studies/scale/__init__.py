"""Studies of noise at scale: one function a question, tables out; figures of them are in
`nbhelpers.report`.
"""

from .applications import (
    application_slowdown,
    applications_on,
    communication_kinds,
    extrapolated_sweep3d,
    extrapolation,
    injected_codes,
    overlap_potential,
    point_to_point,
    pop_alone,
    sensitivity,
)
from .cache import Cache
from .collectives import bottleneck, overhead_and_slowdown, pipelining, rank_correlation, scaling
from .formulas import closed_forms
from .load import detours_with_published, quiet_and_loaded
from .results import application_results, collective_results, injected_results
from .signatures import (
    published_noise,
    published_signature,
    signatures,
    system_networks,
    system_noises,
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
    this_machine_recordings,
    this_machine_sentence,
    traces_of_runs,
)

__all__ = [
    "Cache",
    "Simulations",
    "Sizes",
    "application_results",
    "application_slowdown",
    "applications_on",
    "beckman_table",
    "bottleneck",
    "bottleneck_table",
    "closed_forms",
    "collective_results",
    "communication_kinds",
    "correlation_sentence",
    "detours_with_published",
    "extrapolated_sweep3d",
    "extrapolation",
    "extrapolation_table",
    "injected_codes",
    "injected_results",
    "overhead_and_slowdown",
    "overlap_potential",
    "path_sentence",
    "pipelining",
    "point_to_point",
    "pop_alone",
    "published_noise",
    "published_signature",
    "quiet_and_loaded",
    "rank_correlation",
    "regular_sentence",
    "scaling",
    "sensitivity",
    "signatures",
    "system_networks",
    "system_noises",
    "systems_table",
    "this_machine_at_scale",
    "this_machine_recordings",
    "this_machine_sentence",
    "traces_of_runs",
]
