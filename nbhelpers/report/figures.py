"""All figures of Noisebook: one function a figure, tables in, a matplotlib Figure at print size
out.

Owns nothing but the list; `save_figure` puts a figure on disk with its caption and data.
"""

from ._attribution import figure_attribution
from ._causes import figure_causes
from ._classes import figure_classes, figure_factor, figure_quantile_shift
from ._detours import figure_detours, figure_quanta, figure_systems
from ._distribution import figure_compare, figure_distribution, figure_planted
from ._noise import figure_felt, figure_noise, figure_timeline
from ._pipeline import figure_config, figure_replay, figure_subtraction, trace_sample
from ._runtime import figure_clock, figure_extremes, figure_reserved, figure_scaling, figure_sides
from ._simulate import figure_curves, figure_dots, figure_overheads, figure_ranks
from ._stopping import figure_stopping
from ._studies import figure_findings, figure_mitigations
from ._worst import figure_excess

__all__ = [
    "figure_config",
    "figure_replay",
    "figure_subtraction",
    "trace_sample",
    "figure_clock",
    "figure_extremes",
    "figure_reserved",
    "figure_scaling",
    "figure_sides",
    "figure_findings",
    "figure_mitigations",
    "figure_curves",
    "figure_dots",
    "figure_overheads",
    "figure_ranks",
    "figure_attribution",
    "figure_causes",
    "figure_classes",
    "figure_compare",
    "figure_detours",
    "figure_distribution",
    "figure_factor",
    "figure_excess",
    "figure_felt",
    "figure_stopping",
    "figure_noise",
    "figure_planted",
    "figure_quanta",
    "figure_systems",
    "figure_quantile_shift",
    "figure_timeline",
]
